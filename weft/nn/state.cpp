#include "weft/nn/state.h"

#include <unordered_map>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/tensor/naming.h"

namespace weft {

namespace {

constexpr size_t kMostListed = 5;

// Collects what is wrong; one sentence for all of it.
class Complaints {
 public:
  void add(std::string text) {
    if (count_++ < kMostListed) append_format(text_, "{}{}", text_.empty() ? "" : "; ", text);
  }
  void fail_if_any() const {
    if (count_ == 0) return;
    const std::string more =
        count_ > kMostListed ? strformat("; and {} more", count_ - kMostListed) : "";
    fail("load_state_dict",
         "the saved state does not fit the model, and nothing was loaded. Build the model with the "
         "sizes it was saved with, or pass strict=false to load by name what is there. What "
         "differs: {}{}",
         text_, more);
  }

 private:
  std::string text_;
  size_t count_ = 0;
};

using ByName = std::unordered_map<std::string_view, const Tensor*>;

ByName by_name(const StateDict& state) {
  ByName map;
  for (const NamedTensor& named : state) map.emplace(named.name, &named.tensor);
  return map;
}

void complain_unexpected(const StateDict& from, const ByName& wanted, Complaints& complaints) {
  std::vector<std::string_view> known;
  for (const auto& [name, tensor] : wanted) known.push_back(name);
  for (const NamedTensor& named : from) {
    if (wanted.contains(named.name)) continue;
    complaints.add(
        strformat("{} is unexpected{}", quoted_name(named.name), did_you_mean(named.name, known)));
  }
}

}  // namespace

void StateVisitor::operator()(std::string_view name, Tensor& tensor) {
  if (!tensor.defined()) return;
  const std::string whole = prefix_ + std::string(name);
  name_tensor(tensor, whole);
  leaf_(whole, tensor);
}

Tensor own_constant(const Dims& shape, double value, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  const Value one = Value::of(dtype, value);
  const auto width = static_cast<size_t>(bytes_for(dtype, 1));
  std::vector<std::byte> bytes(static_cast<size_t>(shape.product().value()) * width);
  if (!one.is_zero()) {
    for (size_t byte = 0; byte < bytes.size(); byte += width) one.store(&bytes[byte]);
  }
  return Tensor::from_bytes(bytes, dtype, shape);
}

size_t StateVisitor::enter(std::string_view name) {
  const size_t length = prefix_.size();
  append_format(prefix_, "{}.", name);
  return length;
}

StateDict with_prefix(const StateDict& state, std::string_view prefix) {
  StateDict found;
  for (const NamedTensor& named : state)
    if (named.name.starts_with(prefix))
      found.push_back({named.name.substr(prefix.size()), named.tensor});
  return found;
}

void load_state_dict(const StateDict& into, const StateDict& from, bool strict, CallSite at) {
  const CallSiteScope site(at);
  const ByName saved = by_name(from);
  Complaints complaints;
  std::vector<std::pair<Tensor, const Tensor*>> pairs;
  for (const NamedTensor& named : into) {
    const auto found = saved.find(named.name);
    if (found == saved.end()) {
      if (strict) complaints.add(strformat("'{}' is missing", named.name));
    } else if (found->second->dims() != named.tensor.dims()) {
      complaints.add(strformat("'{}' is {} in the file but {} in the model", named.name,
                               found->second->dims().text(), named.tensor.dims().text()));
    } else {
      pairs.emplace_back(named.tensor, found->second);
    }
  }
  if (strict) complain_unexpected(from, by_name(into), complaints);
  complaints.fail_if_any();

  std::vector<Tensor> written;
  for (auto& [target, value] : pairs) {
    target.assign(value->cast(target.dtype()));
    written.push_back(target);
  }
  realize(written);
}

}  // namespace weft
