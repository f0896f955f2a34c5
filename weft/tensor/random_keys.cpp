#include "weft/tensor/random_keys.h"

#include <array>

#include "weft/base/error.h"

namespace weft {

namespace {

using Words = std::pair<Tensor, Tensor>;

void require_key(const char* tag, const Tensor& key) {
  if (key.dtype() == DType::U32 && key.dims() == Dims{2}) return;
  fail_type(tag, "a key is u32 of shape (2,), as random_key() makes it: got {} of shape {}",
            name(key.dtype()), key.dims().text());
}

Tensor constant(uint32_t x) { return Tensor::full({}, Scalar(x), DType::U32); }

/// The two words of every element of `shape`, by its flat position.
Words words_of(const char* tag, const Tensor& key, const Dims& shape) {
  require_key(tag, key);
  const Dim count = shape.product();
  if (count.max() > INT32_MAX)
    fail(tag, "shape {} has more than 2^31 elements: draw it in parts", shape.text());
  const Tensor place = Tensor::arange(count, DType::U32).reshape(shape).to(key.device());
  return Tensor::threefry2x32(key.index({0}), key.index({1}), constant(0).to(key.device()), place);
}

Tensor joined(const Words& words) {
  return (words.first.cast(DType::U64) << 32) | words.second.cast(DType::U64);
}

}  // namespace

Tensor random_key(uint64_t seed, CallSite at) {
  const CallSiteScope site(at);
  const std::array<uint32_t, 2> words{static_cast<uint32_t>(seed >> 32),
                                      static_cast<uint32_t>(seed)};
  return Tensor::from(std::span<const uint32_t>(words), {2});
}

Tensor split_key(const Tensor& key, int64_t count, CallSite at) {
  const CallSiteScope site(at);
  if (count < 0) fail("split_key", "{} keys: give at least 0", count);
  const Words words = words_of("split_key", key, {count});
  return Tensor::stack({words.first, words.second}, -1);
}

Tensor fold_in(const Tensor& key, int64_t data, CallSite at) {
  const CallSiteScope site(at);
  require_key("fold_in", key);
  if (data < 0 || data > UINT32_MAX) fail("fold_in", "{} is not in [0, 2^32)", data);
  const Tensor number = constant(static_cast<uint32_t>(data)).to(key.device());
  const Words words =
      Tensor::threefry2x32(key.index({0}), key.index({1}), constant(0).to(key.device()), number);
  return Tensor::stack({words.first, words.second});
}

Tensor keyed_bits(const Tensor& key, const Dims& shape, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (!is_unsigned(dtype))
    fail_type("keyed_bits", "bits are u8, u16, u32 or u64, not {}", name(dtype));
  const Words words = words_of("keyed_bits", key, shape);
  return dtype == DType::U64 ? joined(words) : (words.first ^ words.second).cast(dtype);
}

Tensor keyed_uniform(const Tensor& key, const Dims& shape, DType dtype, CallSite at) {
  const CallSiteScope site(at);
  if (dtype == DType::F64)
    return (keyed_bits(key, shape, DType::U64) >> 12).cast(DType::F64) * 0x1p-52;
  if (dtype != DType::F32)
    fail_type("keyed_uniform", "makes f32 or f64, not {}: cast the result", name(dtype));
  return (keyed_bits(key, shape) >> 9).cast(DType::F32) * 0x1p-23;
}

}  // namespace weft
