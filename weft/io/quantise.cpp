#include "weft/io/quantise.h"

#include <algorithm>
#include <cmath>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/thread_pool.h"
#include "weft/io/host_array.h"
#include "weft/io/quantise_block.h"

namespace weft {

namespace {

constexpr int64_t kGrain = 16;  // blocks

/// Empty where there is none.
BlockEncoder encoder_of(Codec codec) {
  if (const Encoder simple = simple_encoder(codec)) return simple;
  if (const Encoder of_parts = k_encoder(codec)) return of_parts;
  return has_grid(codec) ? grid_encoder(codec) : BlockEncoder();
}

bool is_plain_float(Codec codec) { return is_float(row(codec).dtype); }

template <class T, class Convert>
void convert(std::span<const float> values, std::byte* out, Convert to) {
  for (const float x : values) {
    const T y = to(x);
    std::memcpy(out, &y, sizeof(T));
    out += sizeof(T);
  }
}

void put_floats(std::span<const float> values, DType dtype, std::byte* out) {
  switch (dtype) {
    case DType::F16: return convert<uint16_t>(values, out, f32_to_f16);
    case DType::BF16: return convert<uint16_t>(values, out, f32_to_bf16);
    case DType::F64: return convert<double>(values, out, [](float x) { return double{x}; });
    default: return convert<float>(values, out, [](float x) { return x; });
  }
}

void check(std::span<const float> values, Codec codec, std::span<const int64_t> shape) {
  if (!can_quantise(codec)) {
    fail("quantise", "nothing is quantised to {}; choose another format", name(codec));
  }
  const std::optional<int64_t> count = checked_numel(shape);
  if (!count || *count != static_cast<int64_t>(values.size())) {
    fail("quantise", "{} numbers for an array of shape {}", values.size(), shape_text(shape));
  }
  if (!packed_bytes(codec, shape)) {
    fail("quantise", "{} has blocks of {} elements along the last axis, which do not make up {}",
         name(codec), row(codec).elements, shape_text(shape));
  }
  if (is_plain_float(codec)) return;
  const auto bad = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
  if (bad != values.end()) {
    fail("quantise", "number {} is {}: {} holds finite numbers only; choose F16, BF16 or F32",
         bad - values.begin(), *bad, name(codec));
  }
}

}  // namespace

bool can_quantise(Codec codec) {
  return is_plain_float(codec) || simple_encoder(codec) || k_encoder(codec) || has_grid(codec);
}

std::vector<std::byte> quantise(std::span<const float> values, Codec codec,
                                std::span<const int64_t> shape) {
  check(values, codec, shape);
  const CodecRow& format = row(codec);
  std::vector<std::byte> out(static_cast<size_t>(*packed_bytes(codec, shape)));
  if (is_plain_float(codec)) {
    put_floats(values, format.dtype, out.data());
    return out;
  }
  auto* blocks = reinterpret_cast<uint8_t*>(out.data());
  const BlockEncoder encode = encoder_of(codec);
  const auto part = [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i)
      encode(values.data() + i * format.elements, blocks + i * format.bytes);
  };
  Context::current().thread_pool().parallel_for(std::ssize(values) / format.elements, part, kGrain);
  return out;
}

}  // namespace weft
