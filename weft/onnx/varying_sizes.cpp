#include "weft/onnx/varying_sizes.h"

#include <algorithm>
#include <bit>

#include "weft/base/format.h"
#include "weft/tensor/bound_sizes.h"

namespace weft::onnx {

namespace {

// As far as Variables reach at least: what lies along them has room for as many.
constexpr int64_t kBatches = 64, kLengths = 512;
constexpr int64_t kOften = 4;  // calls in a row with the same sizes

}  // namespace

VaryingSizes::VaryingSizes(const Graph& graph) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const DeclaredType& type = graph.inputs[i].type;
    if (type.kind != DeclaredType::Kind::Tensor || !type.shape) continue;
    for (size_t a = 0; a < type.shape->size(); ++a) {
      const DeclaredDim& d = (*type.shape)[a];
      if (d.size) continue;
      const std::string name =
          d.name.empty() ? strformat("{}.{}", graph.inputs[i].name, a) : d.name;
      const auto known = std::ranges::find(sizes_, name, &Size::name);
      places_.push_back({i, a, static_cast<size_t>(known - sizes_.begin())});
      if (known == sizes_.end()) sizes_.push_back({name, a == 0 ? kBatches : kLengths});
      vary_ |= is_int(dtype_of(type.element));
    }
  }
}

/// False where a size is a Variable already, or 0.
bool VaryingSizes::read(const Values& inputs, std::vector<int64_t>& values) const {
  values.assign(sizes_.size(), 0);
  for (const Value& v : inputs)
    if (v && !v.dims().is_static()) return false;
  for (const Place& p : places_) {
    if (!inputs[p.input]) continue;
    const Dims dims = inputs[p.input].dims();
    const int64_t value = p.axis < dims.size() ? dims[p.axis].value() : 0;
    if (value < 1 || (values[p.size] != 0 && values[p.size] != value)) return false;
    values[p.size] = value;
  }
  return true;
}

void VaryingSizes::reach(const std::vector<int64_t>& values) {
  for (size_t i = 0; i < sizes_.size(); ++i)
    if (values[i] > sizes_[i].longest)
      sizes_[i].longest = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(values[i])));
}

bool VaryingSizes::next(const Values& inputs) {
  std::vector<int64_t> values;
  if (sizes_.empty() || !possible_ || !read(inputs, values)) return false;
  const bool same = values == last_;
  vary_ |= !same && !last_.empty();
  in_a_row_ = same ? in_a_row_ + 1 : 0;
  if (!vary_ || in_a_row_ >= kOften) {
    last_ = std::move(values);
    return false;
  }
  reach(values);
  last_ = std::move(values);
  return true;
}

Values VaryingSizes::bound(const Values& inputs) const {
  Values all = inputs;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i]) continue;
    Dims dims = inputs[i].dims();
    bool varies = false;
    for (const Place& p : places_) {
      if (p.input != i) continue;
      const Size& size = sizes_[p.size];
      dims[p.axis] = Variable(size.name, 1, size.longest).bind(dims[p.axis].value());
      varies = true;
    }
    if (varies) all[i] = Value(with_sizes(inputs[i].tensor(), dims), inputs[i].type());
  }
  return all;
}

std::string VaryingSizes::ranges() const {
  std::string text;
  for (const Size& s : sizes_) text += strformat("{};", s.longest);
  return text;
}

Values with_numbers(Values outputs) {
  for (Value& v : outputs)
    if (v.kind() == Value::Kind::Tensor && !v.dims().is_static())
      v = Value(with_sizes(v.tensor(), bound_sizes(v.dims())), v.type());
  return outputs;
}

}  // namespace weft::onnx
