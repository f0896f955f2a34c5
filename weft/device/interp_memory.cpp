// Casts, loads and stores of the interpreter.
#include <atomic>
#include <bit>
#include <type_traits>

#include "weft/device/interp.h"
#include "weft/dtype/convert.h"

namespace weft::interp {

namespace {

struct F16 {
  uint16_t bits;
};
struct BF16 {
  uint16_t bits;
};
struct Bool {
  uint8_t value;
};

// An integer as a double that rounds to 16 bits as the integer itself would: what 53 bits cannot
// hold is folded into the last one.
template <class Int>
double for_rounding(Int x) {
  if constexpr (sizeof(Int) < 8) {
    return static_cast<double>(x);
  } else {
    const bool negative = x < 0;
    uint64_t m = negative ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    if (m >> 53 != 0) m = (m & ~uint64_t{0xfff}) | ((m & 0xfff) != 0 ? 0x1000 : 0);
    return negative ? -static_cast<double>(m) : static_cast<double>(m);
  }
}

template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<From, Bool>) {
    return convert<To>(x.value);
  } else if constexpr (std::is_same_v<From, F16>) {
    return convert<To>(f16_to_f32(x.bits));
  } else if constexpr (std::is_same_v<From, BF16>) {
    return convert<To>(bf16_to_f32(x.bits));
  } else if constexpr (std::is_same_v<To, Bool>) {
    return {static_cast<uint8_t>(x != 0)};
  } else if constexpr (std::is_same_v<To, F16>) {
    if constexpr (std::is_same_v<From, float>)
      return {f32_to_f16(x)};
    else
      return {f64_to_f16(for_rounding<From>(x))};
  } else if constexpr (std::is_same_v<To, BF16>) {
    if constexpr (std::is_same_v<From, float>)
      return {f32_to_bf16(x)};
    else
      return {f64_to_bf16(for_rounding<From>(x))};
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>) {
    return float_to_int<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(x);
  }
}

template <>
double for_rounding<double>(double x) {
  return x;
}

template <class To, class From>
const Instr* cast(const Instr* i, Frame& f) {
  To* out = at<To>(f, i->out);
  const From* a = at<From>(f, i->a);
  for (uint32_t k = 0; k < i->n; ++k) out[k] = convert<To, From>(a[k]);
  return i + 1;
}

// Calls visit(T{}) with the type that holds `dtype`.
template <class Visit>
Step with_type(DType dtype, Visit visit) {
  switch (dtype) {
    case DType::Bool: return visit(Bool{});
    case DType::I8: return visit(int8_t{});
    case DType::I16: return visit(int16_t{});
    case DType::I32: return visit(int32_t{});
    case DType::Index:
    case DType::I64: return visit(int64_t{});
    case DType::U8: return visit(uint8_t{});
    case DType::U16: return visit(uint16_t{});
    case DType::U32: return visit(uint32_t{});
    case DType::U64: return visit(uint64_t{});
    case DType::F16: return visit(F16{});
    case DType::BF16: return visit(BF16{});
    case DType::F32: return visit(float{});
    case DType::F64: return visit(double{});
    default: return nullptr;  // no program holds them
  }
}

// a: index; b: mask, where there is one; slot: param.
template <class T, class Index, bool kMasked>
const Instr* load(const Instr* i, Frame& f) {
  T* out = at<T>(f, i->out);
  if (kMasked && *at<uint8_t>(f, i->b) == 0) {
    for (uint32_t k = 0; k < i->n; ++k) out[k] = T{};
    return i + 1;
  }
  const T* from = static_cast<const T*>(f.args->buffers[i->slot]) + *at<Index>(f, i->a);
  for (uint32_t k = 0; k < i->n; ++k) {
    if constexpr (std::is_same_v<T, Bool>) {
      out[k].value = from[k].value != 0;
    } else {
      out[k] = from[k];
    }
  }
  return i + 1;
}

// c: value. Tiles that overlap store the same bits to the same elements, perhaps by two workers at
// once: each store is one atomic, unordered one.
template <class T, class Index, bool kMasked>
const Instr* store(const Instr* i, Frame& f) {
  if (kMasked && *at<uint8_t>(f, i->b) == 0) return i + 1;
  T* to = static_cast<T*>(f.args->buffers[i->slot]) + *at<Index>(f, i->a);
  const T* value = at<T>(f, i->c);
  for (uint32_t k = 0; k < i->n; ++k)
    std::atomic_ref<T>(to[k]).store(value[k], std::memory_order_relaxed);
  return i + 1;
}

template <class T, class Index>
Step load_of(bool masked) {
  return masked ? load<T, Index, true> : load<T, Index, false>;
}
template <class T, class Index>
Step store_of(bool masked) {
  return masked ? store<T, Index, true> : store<T, Index, false>;
}

// Memory does not care what the bits mean, except of bool.
template <class Visit>
Step with_width(DType dtype, Visit visit) {
  if (dtype == DType::Bool) return visit(Bool{});
  switch (bits(dtype)) {
    case 8: return visit(uint8_t{});
    case 16: return visit(uint16_t{});
    case 32: return visit(uint32_t{});
    default: return visit(uint64_t{});
  }
}

}  // namespace

Step cast_step(DType from, DType to) {
  return with_type(from, [&]<class From>(From) {
    return with_type(to, []<class To>(To) -> Step { return cast<To, From>; });
  });
}

Step load_step(DType dtype, DType index, bool masked) {
  return with_width(dtype, [&]<class T>(T) {
    return bits(index) == 32 ? load_of<T, int32_t>(masked) : load_of<T, int64_t>(masked);
  });
}

Step store_step(DType dtype, DType index, bool masked) {
  return with_width(dtype, [&]<class T>(T) {
    return bits(index) == 32 ? store_of<T, int32_t>(masked) : store_of<T, int64_t>(masked);
  });
}

}  // namespace weft::interp
