// The arithmetic half of WgslWriter: op texts, casts, literals.
#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/render/wgsl_writer.h"

namespace weft {

namespace {

bool is_long(DType d) { return (wgsl_kind(d) & kWgslLong) != 0; }

/// Cut to the width of an integer below 32 bits.
std::string cut(const std::string& text, DType dtype) {
  return bits(dtype) < 32 ? strformat("extractBits({}, 0u, {}u)", text, bits(dtype)) : text;
}

}  // namespace

WgslKind wgsl_kind(DType dtype) {
  switch (kind(dtype)) {
    case DTypeKind::Bool: return kWgslBool;
    case DTypeKind::Index: return kWgslI64;
    case DTypeKind::Signed: return bits(dtype) == 64 ? kWgslI64 : kWgslSigned;
    case DTypeKind::Unsigned: return bits(dtype) == 64 ? kWgslU64 : kWgslUnsigned;
    case DTypeKind::Float:
      if (bits(dtype) == 32) return kWgslFloat;
      if (bits(dtype) == 16) return kWgslHalf;
      break;
    case DTypeKind::Void: break;
  }
  internal_error("render.wgsl", "a value of dtype {} has no WGSL type", name(dtype));
}

std::string_view wgsl_type(DType dtype) {
  switch (wgsl_kind(dtype)) {
    case kWgslFloat: return "f32";
    case kWgslSigned: return "i32";
    case kWgslUnsigned:
    case kWgslHalf: return "u32";
    case kWgslI64:
    case kWgslU64: return "vec2<u32>";
    case kWgslBool: return "bool";
  }
  return {};
}

std::string WgslWriter::literal(Value v) {
  const DType dtype = v.dtype();
  switch (wgsl_kind(dtype)) {
    case kWgslBool: return v.as_bool() ? "true" : "false";
    case kWgslUnsigned: return strformat("{}u", v.as_uint());
    case kWgslSigned: {
      const int64_t x = v.as_int();
      if (x == INT32_MIN) return strformat("({}i - 1i)", x + 1);
      return x < 0 ? strformat("({}i)", x) : strformat("{}i", x);
    }
    case kWgslI64:
    case kWgslU64: {
      const uint64_t x = v.raw_bits();
      return strformat("vec2<u32>({}u, {}u)", x & 0xffffffff, x >> 32);
    }
    case kWgslHalf: {
      uint16_t raw = 0;
      v.store(&raw);
      return strformat("{:#x}u", raw);
    }
    case kWgslFloat: break;
  }
  const auto x = static_cast<float>(v.as_double());
  if (!std::isnormal(x))
    return prelude_.expand(strformat("@number({:#x}u)", std::bit_cast<uint32_t>(x)));
  // %a is exact; its text does not depend on the locale but for the point.
  const uint32_t u = std::bit_cast<uint32_t>(x);
  const int exponent = static_cast<int>(u >> 23 & 0xff) - 127;
  return strformat("({}0x1.{:06x}p{}{}f)", u >> 31 ? "-" : "", (u & 0x7fffff) << 1,
                   exponent < 0 ? "-" : "+", exponent < 0 ? -exponent : exponent);
}

std::string WgslWriter::alu_text(Op op, DType dtype, std::span<const std::string> operands) {
  const WgslOp* row = nullptr;
  for (const WgslOp& r : kWgslOps)
    if (row == nullptr && r.op == op && (r.kinds & wgsl_kind(dtype))) row = &r;
  if (row == nullptr)
    internal_error("render.wgsl", "{}: {} on {} has no WGSL text; lower/ should have decomposed it",
                   program_.name, info(op).mnemonic, name(dtype));
  std::string filled;
  for (size_t i = 0; i < row->text.size(); ++i) {
    if (row->text[i] != '$') {
      filled += row->text[i];
    } else if (const char word = row->text[++i]; word == 'B') {
      append_format(filled, "{}", bits(dtype));
    } else {
      filled += operands[static_cast<size_t>(word - '0')];
    }
  }
  filled = prelude_.expand(filled);
  return row->wraps ? cut(filled, dtype) : filled;
}

void WgslWriter::write_alu(NodeRef n) {
  std::string operands[3];
  for (size_t i = 0; i < n->nsrc && i < 3; ++i) operands[i] = operand(n->src(i));
  const NodeRef first = n->src(n->op == Op::Where ? 1 : 0);
  // NaN alone is not equal to itself, and compilers may take it for absent.
  if (n->op == Op::Ne && n->src(0) == n->src(1) && wgsl_kind(first->dtype) == kWgslFloat)
    return define(n, n->dtype, prelude_.expand(strformat("@is_nan({})", operands[0])));
  define(n, n->dtype, alu_text(n->op, first->dtype, operands));
}

// ---- casts

std::string WgslWriter::to_bool(const std::string& x, DType from) {
  switch (wgsl_kind(from)) {
    case kWgslFloat: return strformat("!({} == 0.0f)", x);
    case kWgslHalf: return strformat("({} & 0x7fffu) != 0u", x);
    case kWgslI64:
    case kWgslU64: return strformat("any({} != vec2<u32>())", x);
    case kWgslSigned: return strformat("{} != 0i", x);
    case kWgslUnsigned: return strformat("{} != 0u", x);
    case kWgslBool: break;
  }
  return x;
}

std::string WgslWriter::from_bool(const std::string& x, DType to) {
  if (is_long(to)) return strformat("vec2<u32>(select(0u, 1u, {}), 0u)", x);
  const std::string none = is_half(to) ? "0u" : strformat("{}(0)", wgsl_type(to));
  return strformat("select({}, {}, {})", none, literal(Value::of(to, 1)), x);
}

std::string WgslWriter::cast_to_half(const std::string& x, DType from, DType to) {
  const std::string_view rounded = to == DType::F16 ? "@to_f16" : "@to_bf16";
  if (from == DType::F32) return strformat("{}({})", rounded, x);
  // Integers of more digits than f32 has are rounded to odd on the way.
  if (is_int(from) && bits(from) >= 32) {
    const bool has_sign = is_signed_int(from);
    const std::string wide = cast_text(x, from, has_sign ? DType::I64 : DType::U64);
    return strformat("{}({}({}))", rounded, has_sign ? "@odd_of_i64" : "@odd_of_u64", wide);
  }
  return strformat("{}({})", rounded, cast_text(x, from, DType::F32));
}

std::string WgslWriter::cast_text(const std::string& x, DType from, DType to) {
  if (from == to) return x;
  if (is_bool(to)) return to_bool(x, from);
  if (is_bool(from)) return from_bool(x, to);
  if (is_half(to)) return cast_to_half(x, from, to);
  if (is_half(from)) {
    const std::string wide = strformat("@{}_to({})", name(from), x);
    return to == DType::F32 ? wide : cast_text(wide, DType::F32, to);
  }
  const bool has_sign = wgsl_kind(to) == kWgslSigned;
  if (to == DType::F32) {
    if (is_long(from))
      return strformat("@f32_of_{}({})", wgsl_kind(from) == kWgslI64 ? "i64" : "u64", x);
    return strformat("f32({})", x);
  }
  if (from == DType::F32) {
    if (is_long(to)) return strformat("@sat_{}({})", name(to), x);
    if (!has_sign) return strformat("min(@sat_u32({}), {}u)", x, int_max(to));
    return strformat("clamp(@sat_i32({}), {}, {}i)", x, literal(Value::of(to, int_min(to))),
                     int_max(to));
  }
  if (is_long(from) && is_long(to)) return x;
  if (is_long(to))
    return wgsl_kind(from) == kWgslSigned ? strformat("@i64_of_i32({})", x)
                                          : strformat("vec2<u32>({}, 0u)", x);
  const std::string word = is_long(from) ? x + ".x" : x;
  return cut(strformat("{}({})", wgsl_type(to), word), to);
}

std::string WgslWriter::bitcast_text(const std::string& x, DType from, DType to) {
  if (is_bool(from) || is_bool(to)) return cast_text(x, from, to);
  if (wgsl_type(from) == wgsl_type(to)) return x;
  return cut(strformat("bitcast<{}>({})", wgsl_type(to), x), to);
}

}  // namespace weft
