#include "weft/onnx/known_elements.h"

#include <algorithm>

namespace weft::onnx {

bool KnownElements::is_static() const { return std::ranges::all_of(whole, &Dim::is_static); }

std::optional<KnownElements> KnownElements::of(const Value& x) {
  if (x.kind() != Value::Kind::Tensor || x.type() != element_type_of(x.dtype()) ||
      !x.dims().is_static())
    return std::nullopt;
  KnownElements known{x.dtype(), {}, {}, {}};
  for (const Dim& d : x.dims()) known.shape.push_back(d.value());
  if (!known.is_real()) {
    auto whole = x.integers();
    if (!whole) return std::nullopt;
    known.whole = *std::move(whole);
    return known;
  }
  const auto array = x.constant();
  if (!array || array->numel() > Value::kMostKnown) return std::nullopt;
  const size_t size = static_cast<size_t>(bits(array->dtype)) / 8;
  for (size_t at = 0; at < array->bytes.size(); at += size)
    known.real.push_back(weft::Value::load(array->dtype, array->bytes.data() + at).as_double());
  return known;
}

std::optional<Value> KnownElements::value() const {
  if (!is_static()) {
    if (shape.size() > 1) return std::nullopt;
    return Value::known(whole, dtype, shape.empty());
  }
  const size_t size = static_cast<size_t>(bits(dtype)) / 8;
  std::vector<std::byte> bytes(count() * size);
  for (size_t i = 0; i < count(); ++i) {
    const auto element =
        is_real() ? weft::Value::of(dtype, real[i]) : weft::Value::of(dtype, whole[i].value());
    element.store(bytes.data() + i * size);
  }
  return Value(HostArray::owned(dtype, shape, std::move(bytes)));
}

KnownElements KnownElements::at(const std::vector<size_t>& places,
                                std::vector<int64_t> in_shape) const {
  KnownElements out{dtype, std::move(in_shape), {}, {}};
  for (const size_t place : places) out.append(*this, place);
  return out;
}

void KnownElements::append(const KnownElements& other, size_t place) {
  if (is_real())
    real.push_back(other.real[place]);
  else
    whole.push_back(other.whole[place]);
}

}  // namespace weft::onnx
