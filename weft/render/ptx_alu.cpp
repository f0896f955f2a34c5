// The arithmetic half of PtxWriter: kinds, op texts, casts, literals.
#include "weft/base/error.h"
#include "weft/render/ptx_writer.h"

namespace weft {

namespace {

PtxKind kind_of(DType dtype) {
  switch (kind(dtype)) {
    case DTypeKind::Bool: return kPtxBool;
    case DTypeKind::Index: return kPtxS64;
    case DTypeKind::Signed: return bits(dtype) == 64 ? kPtxS64 : kPtxS32;
    case DTypeKind::Unsigned: return bits(dtype) == 64 ? kPtxU64 : kPtxU32;
    case DTypeKind::Float:
      if (dtype == DType::F16) return kPtxF16;
      if (dtype == DType::BF16) return kPtxBF16;
      if (dtype == DType::F32) return kPtxF32;
      if (dtype == DType::F64) return kPtxF64;
      break;
    case DTypeKind::Void: break;
  }
  internal_error("render.ptx", "a value of dtype {} has no PTX type", name(dtype));
}

uint64_t stored_bits(Value v) {
  uint64_t raw = 0;
  v.store(&raw);
  return raw;
}

bool fits(const PtxCast& row, DType from, DType to) {
  return (row.from & ptx_kind(from).kind) && (row.to & ptx_kind(to).kind) &&
         (row.when != PtxWhen::Narrow || is_narrow(to));
}

bool fits(const PtxOp& row, NodeRef n, DType dtype) {
  if (row.op != n->op || !(row.kinds & ptx_kind(dtype).kind)) return false;
  const auto outside = [&](int64_t x) { return n->src(1)->vmin > x || n->src(1)->vmax < x; };
  switch (row.when) {
    case PtxWhen::Always: return true;
    case PtxWhen::Narrow: return is_narrow(dtype);
    case PtxWhen::ConstShift:
      return is_const(n->src(1)) && n->src(1)->vmin >= 0 && n->src(1)->vmin < bits(dtype);
    case PtxWhen::NotNegative: return n->src(0)->vmin >= 0 && n->src(1)->vmin >= 0;
    case PtxWhen::SafeQuotient: return is_unsigned(dtype) || bits(dtype) < 32 || outside(-1);
  }
  return false;
}

}  // namespace

const PtxKindRow& ptx_kind(DType dtype) {
  const PtxKind kind = kind_of(dtype);
  for (const PtxKindRow& row : kPtxKinds)
    if (row.kind == kind) return row;
  internal_error("render.ptx", "{} has no row of kPtxKinds", name(dtype));
}

std::string ptx_element(DType dtype) {
  if (is_bool(dtype)) return "u8";
  return is_narrow(dtype) ? strformat("{}{}", is_signed_int(dtype) ? 's' : 'u', bits(dtype))
                          : std::string(ptx_kind(dtype).type);
}

bool is_narrow(DType dtype) { return is_int(dtype) && bits(dtype) < 32; }

// "Constants": floats by their bits, integers as wide as 64 bits.
std::string ptx_literal(Value v) {
  switch (ptx_kind(v.dtype()).kind) {
    case kPtxBool: return v.as_bool() ? "1" : "0";
    case kPtxS32: return strformat("{}", v.as_int());
    case kPtxS64:
      return v.as_int() == INT64_MIN ? "0x8000000000000000" : strformat("{}", v.as_int());
    case kPtxU32:
    case kPtxU64: return strformat("{}U", v.as_uint());
    case kPtxF16:
    case kPtxBF16: return strformat("0x{:04X}", stored_bits(v));
    case kPtxF32: return strformat("0f{:08X}", stored_bits(v));
    case kPtxF64: return strformat("0d{:016X}", stored_bits(v));
  }
  return {};
}

void PtxWriter::expand(std::string_view text, const std::string& d,
                       std::span<const std::string> operands, DType from, DType to) {
  std::map<char, std::string> words = {{'d', d},
                                       {'t', std::string(ptx_kind(from).type)},
                                       {'b', std::string(ptx_kind(from).bits)},
                                       {'T', std::string(ptx_kind(to).type)},
                                       {'B', std::string(ptx_kind(to).bits)},
                                       {'N', ptx_element(to)}};
  for (size_t i = 0; i < operands.size(); ++i) words[static_cast<char>('0' + i)] = operands[i];
  const auto word = [&](char letter) -> const std::string& {
    std::string& known = words[letter];
    if (!known.empty()) return known;
    if (letter == 'P' || letter == 'Q') return known = fresh(PtxBank::Predicate);
    if (letter == 'W') return known = fresh(PtxBank::Word);
    return known = fresh(letter == 'U' ? to : from);
  };
  std::string filled;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("; ")) {
      statement(filled);
      filled.clear();
      ++i;
    } else if (text[i] == '$') {
      filled += word(text[++i]);
    } else {
      filled += text[i];
    }
  }
  statement(filled);
}

void PtxWriter::write_alu(NodeRef n) {
  const DType dtype = n->src(n->op == Op::Where ? 1 : 0)->dtype;
  const PtxOp* row = nullptr;
  for (const PtxOp& r : kPtxOps)
    if (row == nullptr && fits(r, n, dtype)) row = &r;
  if (row == nullptr)
    internal_error("render.ptx", "{}: {} on {} has no PTX text; lower/ should have decomposed it",
                   program_.name, info(n->op).mnemonic, name(dtype));
  std::string operands[3];
  for (size_t i = 0; i < n->nsrc && i < 3; ++i) operands[i] = operand(n->src(i));
  const std::string d = result(n, n->dtype);
  expand(row->text, d, operands, dtype, n->dtype);
  if (row->wraps && is_narrow(dtype))
    statement(strformat("cvt.{}.{} {}, {}", ptx_kind(dtype).type, ptx_element(dtype), d, d));
}

// ---- casts

bool PtxWriter::cast_by(std::span<const PtxCast> rows, const std::string& d, const std::string& x,
                        DType from, DType to) {
  for (const PtxCast& row : rows) {
    if (!fits(row, from, to)) continue;
    const std::string operands[] = {x, ptx_literal(Value::of(to, 1)), ptx_literal(Value::of(to, 0)),
                                    ptx_literal(Value::of(from, 0))};
    expand(row.text, d, operands, from, to);
    return true;
  }
  return false;
}

/// To what the integer spans, from what a word does.
void PtxWriter::clamp(const std::string& d, DType dtype) {
  const std::string_view type = ptx_kind(dtype).type;
  if (is_signed_int(dtype)) statement(strformat("max.{} {}, {}, {}", type, d, d, int_min(dtype)));
  statement(strformat("min.{} {}, {}, {}", type, d, d, int_max(dtype)));
}

void PtxWriter::cast(const std::string& d, const std::string& x, DType from, DType to) {
  if (from == to) return move(d, x, to);
  if (cast_by(kPtxCasts, d, x, from, to)) {
    if (is_float(from) && is_narrow(to)) clamp(d, to);
    return;
  }
  const std::string single = fresh(DType::F32);
  const bool exact = is_half(from) || is_narrow(from);
  if (exact) {
    cast(single, x, from, DType::F32);
  } else {
    WEFT_CHECK(cast_by(kPtxOddCasts, single, x, from, DType::F32), "{}: a cast of {} to {}",
               program_.name, name(from), name(to));
  }
  cast(d, single, DType::F32, to);
}

void PtxWriter::bitcast(const std::string& d, const std::string& x, DType from, DType to) {
  if (from == to || is_bool(from) || is_bool(to)) return cast(d, x, from, to);
  WEFT_CHECK(cast_by(kPtxBitcasts, d, x, from, to), "{}: a bitcast of {} to {}", program_.name,
             name(from), name(to));
}

}  // namespace weft
