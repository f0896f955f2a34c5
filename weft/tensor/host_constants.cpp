#include "weft/tensor/host_constants.h"

#include <utility>

#include "weft/base/context.h"

namespace weft {

namespace {
// What is larger is data rather than a constant of a program, and not worth comparing.
constexpr size_t kMostBytes = size_t{64} << 10;

thread_local HostConstantsScope* t_innermost = nullptr;
}  // namespace

HostConstantsScope::HostConstantsScope(Store& store, Mode mode)
    : context_(Context::current()),
      store_(store),
      mode_(mode),
      outer_(std::exchange(t_innermost, this)) {}

HostConstantsScope::~HostConstantsScope() { t_innermost = outer_; }

HostConstantsScope* HostConstantsScope::innermost() { return t_innermost; }

NodeRef HostConstantsScope::filled(std::span<const std::byte> data, DType dtype, const Dims& shape,
                                   FunctionRef<NodeRef()> make) {
  if (data.size() > kMostBytes || &context_ != &Context::current()) return make();
  std::string key = std::string(name(dtype)) + shape.text();
  key.append(reinterpret_cast<const char*>(data.data()), data.size());
  const auto known = store_.find(key);
  if (mode_ == Mode::Find && known != store_.end()) return known->second.node();
  NodeRef made = make();
  if (mode_ == Mode::Record) store_.insert_or_assign(std::move(key), Tensor::from_node(made));
  return made;
}

}  // namespace weft
