#include "weft/tensor/host_constants.h"

#include <utility>

#include "weft/base/context.h"

namespace weft {

namespace {
// What is larger is data rather than a constant of a program, and not worth comparing.
constexpr size_t kMostBytes = size_t{64} << 10;
}  // namespace

HostConstants::Scope::Scope(Context& context, Store& store, Mode mode)
    : all_(context.get<HostConstants>()) {
  std::lock_guard lock(all_.mutex_);
  outer_ = std::exchange(all_.store_, &store);
  outer_mode_ = std::exchange(all_.mode_, mode);
  outer_thread_ = std::exchange(all_.thread_, std::this_thread::get_id());
}

HostConstants::Scope::~Scope() {
  std::lock_guard lock(all_.mutex_);
  all_.store_ = outer_;
  all_.mode_ = outer_mode_;
  all_.thread_ = outer_thread_;
}

HostConstants::Store* HostConstants::store_of_this_thread() {
  std::lock_guard lock(mutex_);
  return thread_ == std::this_thread::get_id() ? store_ : nullptr;
}

NodeRef HostConstants::filled(std::span<const std::byte> data, DType dtype, const Dims& shape,
                              FunctionRef<NodeRef()> make) {
  Store* store = data.size() <= kMostBytes ? store_of_this_thread() : nullptr;
  if (!store) return make();
  std::string key = std::string(name(dtype)) + shape.text();
  key.append(reinterpret_cast<const char*>(data.data()), data.size());
  const auto known = store->find(key);
  if (mode_ == Mode::Find && known != store->end()) return known->second.node();
  NodeRef made = make();
  if (mode_ == Mode::Record) store->insert_or_assign(std::move(key), Tensor::from_node(made));
  return made;
}

}  // namespace weft
