// The arithmetic half of CWriter: op texts, casts, literals.
#include <bit>
#include <cmath>

#include "weft/base/error.h"
#include "weft/render/c_writer.h"

namespace weft {

namespace {

using Kind = CType::Kind;

COpKind op_kind(CType subject, DType dtype) {
  if (is_bool(dtype)) return kCBool;
  return subject.kind == Kind::Float ? kCFloat : kCInt;
}

// Exact, whatever the locale.
std::string hex_float(double x, bool single) {
  const uint64_t u = std::bit_cast<uint64_t>(x);
  const int exponent = static_cast<int>(u >> 52 & 0x7ff);
  std::string digits = strformat("{:013x}", u & 0xfffffffffffff);
  while (!digits.empty() && digits.back() == '0') digits.pop_back();
  const std::string whole =
      strformat("{}0x{}{}{}p{}", u >> 63 ? "-" : "", exponent ? 1 : 0, digits.empty() ? "" : ".",
                digits, u << 1 == 0 ? 0 : (exponent ? exponent : 1) - 1023);
  return single ? whole + "f" : whole;
}

bool spans_whole_dtype(NodeRef n) {
  return n->vmin <= int_min(n->dtype) || n->vmax >= static_cast<int64_t>(int_max(n->dtype));
}

}  // namespace

std::string CWriter::integer_literal(Value v) const {
  const int64_t x = v.as_int();
  const std::string_view suffix = bits(v.dtype()) == 64 ? dialect().long_suffix : "";
  if (is_unsigned(v.dtype())) return strformat("{}u{}", v.as_uint(), suffix);
  if (x == INT64_MIN || (bits(v.dtype()) == 32 && x == INT32_MIN))
    return strformat("({}{} - 1)", x + 1, suffix);
  return x < 0 ? strformat("({}{})", x, suffix) : strformat("{}{}", x, suffix);
}

std::string CWriter::literal(Value v) {
  const DType dtype = v.dtype();
  if (is_bool(dtype)) return v.as_bool() ? "1" : "0";
  if (is_half(dtype)) {
    uint16_t raw = 0;
    v.store(&raw);
    return strformat("{:#x}", raw);
  }
  if (!is_float(dtype)) return integer_literal(v);
  const double x = v.as_double();
  const bool single = dtype == DType::F32;
  if (std::isnan(x) || (std::isinf(x) && dialect().infinity.empty())) {
    uint64_t raw = 0;
    v.store(&raw);
    const CType u{Kind::Unsigned, bits(dtype), 1};
    return strformat("{}({:#x}u{})", prelude_.function("as", c_type(dtype, 1), u), raw,
                     single ? "" : dialect().long_suffix);
  }
  const std::string text =
      std::isinf(x) ? strformat("{}{}{}()", x < 0 ? "-" : "", dialect().infinity, single ? "f" : "")
                    : hex_float(x, single);
  return text[0] == '-' ? "(" + text + ")" : text;
}

bool CWriter::applies(const COp& row, NodeRef n) const {
  switch (row.when) {
    case COpWhen::Always: return true;
    // Bounds are computed before wrapping; where the result could wrap they are the whole dtype's.
    case COpWhen::NoWrap:
      return n && n->lanes == 1 && (is_signed_int(n->dtype) || is_index(n->dtype)) &&
             !spans_whole_dtype(n);
    case COpWhen::ConstShift: {
      if (n == nullptr) return false;
      NodeRef amount = n->src(1)->op == Op::Splat ? n->src(1)->src(0) : n->src(1);
      return is_const(amount) && amount->vmin >= 0 && amount->vmin < bits(n->dtype);
    }
    case COpWhen::SafeQuotient:
      return n && (is_unsigned(n->dtype) || n->src(1)->vmin > -1 || n->src(1)->vmax < -1);
  }
  return false;
}

std::string_view CWriter::alu_row(Op op, DType dtype, CType result, CType subject,
                                  NodeRef n) const {
  const uint8_t kind = op_kind(subject, dtype), form = result.lanes > 1 ? kCVector : kCScalar;
  for (const COp& row : kCOps)
    if (row.op == op && (row.kinds & kind) && (row.forms & form) && applies(row, n))
      return row.text;
  internal_error("render.c", "{}: {} on {} has no C text; lower/ should have decomposed it",
                 program_.name, info(op).mnemonic, name(dtype));
}

std::string CWriter::alu_text(Op op, DType dtype, CType result, CType subject,
                              std::span<const std::string> operands, NodeRef n) {
  const std::string_view text = alu_row(op, dtype, result, subject, n);
  std::string filled;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      filled += text[i];
      continue;
    }
    const char word = text[++i];
    const CType u{Kind::Unsigned, subject.bits, result.lanes};
    switch (word) {
      case 'T':
      case 'M': filled += prelude_.type(result); break;
      case 't': filled += subject.scalar(); break;
      case 'W':
        filled +=
            prelude_.type(result.lanes > 1 || subject.bits > 32 ? u : CType{Kind::Unsigned, 32, 1});
        break;
      case 'I': filled += prelude_.type({Kind::Signed, result.bits, result.lanes}); break;
      default: filled += operands[static_cast<size_t>(word - '0')]; break;
    }
  }
  return prelude_.expand(filled, result.lanes);
}

CType CWriter::alu_type(NodeRef n) {
  if (n->lanes == 1 || !is_bool(n->dtype)) return c_type(n->dtype, n->lanes);
  // A mask as wide as what it is made from, so that consumers of that width need no conversion.
  const CType source = type_of(n->src(n->op == Op::Where ? 1 : 0));
  return c_mask(source.bits, n->lanes);
}

void CWriter::write_alu(NodeRef n) {
  if (n->op == Op::Bitcast) return write_cast(n);
  const CType result = alu_type(n);
  NodeRef first = n->src(n->op == Op::Where ? 1 : 0);
  CType subject = type_of(first).with_lanes(n->lanes);
  if (is_bool(first->dtype)) subject = result;
  std::string operands[3];
  for (size_t i = 0; i < n->nsrc && i < 3; ++i) {
    const bool condition = n->op == Op::Where && i == 0;
    operands[i] = operand(n->src(i), condition ? c_mask(result.bits, n->lanes) : subject);
  }
  define(n, result, alu_text(n->op, first->dtype, result, subject, operands, n));
}

void CWriter::write_cast(NodeRef n) {
  const NodeRef x = n->src(0);
  const CType from = type_of(x), to = c_type(n->dtype, n->lanes);
  const std::string text = operand(x, from);
  const bool same_bits = n->op == Op::Bitcast && !is_bool(x->dtype) && !is_bool(n->dtype);
  if (same_bits && !(from == to)) {
    return define(n, to, strformat("{}({})", prelude_.function("as", to, from), text));
  }
  if (x->dtype == n->dtype || same_bits) return define(n, from, text);
  // To bool: a mask as wide as what was tested.
  const CType result = is_bool(n->dtype) ? c_mask(from.bits, n->lanes) : to;
  define(n, result, cast_text(text, x->dtype, n->dtype, from, result));
}

std::string CWriter::cast_text(const std::string& x, DType from, DType to, CType from_type,
                               CType to_type) {
  const int lanes = to_type.lanes;
  const std::string t = prelude_.type(to_type);
  const auto call = [&](std::string_view family, CType a, CType b, const std::string& argument) {
    return strformat("{}({})", prelude_.function(family, a, b), argument);
  };
  if (is_bool(to)) {
    const std::string test = is_half(from) ? strformat("({} & 0x7fff) != 0", x) : x + " != 0";
    return lanes == 1 ? test : strformat("({})({})", t, test);
  }
  if (is_bool(from) && lanes > 1) {
    const CType mask = c_mask(to_type.bits, lanes);
    const std::string wide = mask == from_type ? x : call("mask", mask, from_type, x);
    uint64_t one = 0;
    Value::of(to, 1).store(&one);
    return strformat("({})({} & {:#x}{})", t, wide, one,
                     to_type.bits == 64 ? dialect().long_suffix : "");
  }
  if (is_half(to)) return cast_to_half(x, from, to, from_type);
  if (is_half(from)) {
    const CType wide = c_type(DType::F32, lanes);
    const std::string widened = call(from == DType::F16 ? "f16_to" : "bf16_to", wide, wide, x);
    return to == DType::F32 ? widened : cast_text(widened, DType::F32, to, wide, to_type);
  }
  if (is_float(from) && !is_float(to)) {
    const int exact = bits(to) - (is_signed_int(to) ? 1 : 0);
    return call(exact <= float_digits(from) ? "sat" : "satwide", to_type, from_type, x);
  }
  if (lanes == 1) return strformat("({}){}", t, x);
  return call("cvt", to_type, from_type, x);
}

std::string CWriter::cast_to_half(const std::string& x, DType from, DType to, CType from_type) {
  const int lanes = from_type.lanes;
  const CType f32 = c_type(DType::F32, lanes), f64 = c_type(DType::F64, lanes);
  const auto call = [&](std::string_view family, CType a, const std::string& argument) {
    return strformat("{}({})", prelude_.function(family, a), argument);
  };
  std::string single;
  if (from == DType::F32) {
    single = x;
  } else if (from == DType::F64) {
    single = call("odd32", f64, x);
  } else if (is_half(from) || from_type.bits <= 16) {
    single = cast_text(x, from, DType::F32, from_type, f32);  // exact
  } else {
    const bool exact = from_type.bits == 32;
    single =
        call("odd32", f64,
             exact ? cast_text(x, from, DType::F64, from_type, f64) : call("odd64", from_type, x));
  }
  return call(to == DType::F16 ? "to_f16" : "to_bf16", f32, single);
}

}  // namespace weft
