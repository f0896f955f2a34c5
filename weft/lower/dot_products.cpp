// What is done with the bytes of words, on targets that lack it: dot products, tables. No rules: a
// rule's variables have one dtype.
#include "weft/lower/legaliser.h"

namespace weft::lower {
namespace {

/// A bf16 is the upper half of an f32.
NodeRef dot2(Expr a, Expr b, Expr sum) {
  const auto lower = [](Expr word) { return (word << 16).bits_as(DType::F32); };
  const auto upper = [](Expr word) { return (word & int64_t{0xffff0000}).bits_as(DType::F32); };
  return upper(a).mul_add(upper(b), lower(a).mul_add(lower(b), sum));
}

/// Bytes by shifts: with the signed ones their sign comes down.
NodeRef dot4(Expr a, Expr b, Expr sum) {
  for (int64_t i = 0; i < 4; ++i) {
    Expr left = ((a >> (8 * i)) & int64_t{255}).bits_as(DType::I32);
    Expr right = (b << (24 - 8 * i)).bits_as(DType::I32) >> 24;
    sum = left.mul_add(right, sum);
  }
  return sum;
}

NodeRef dot2_of_i16(Expr a, Expr b, Expr sum) {
  const auto lower = [](Expr word) { return (word << 16).bits_as(DType::I32) >> 16; };
  const auto upper = [](Expr word) { return word.bits_as(DType::I32) >> 16; };
  return upper(a).mul_add(upper(b), lower(a).mul_add(lower(b), sum));
}

/// The bits of a word that may be 1, where masks, shifts by constants and moves have made it: so
/// many of them at most, one of the other.
uint64_t possible_bits(NodeRef n, int steps = 8) {
  constexpr uint64_t kAll = 0xffffffff;
  if (steps == 0) return kAll;
  const auto of = [=](size_t i) { return possible_bits(n->src(i), steps - 1); };
  switch (n->op) {
    case Op::Const: return const_value(n).as_uint();
    case Op::Splat:
    case Op::Lane: return of(0);
    case Op::And: return of(0) & of(1);
    case Op::Or:
    case Op::Xor:
    case Op::Trn: return of(0) | of(1);
    case Op::Shl:
    case Op::Shr: break;
    default: return kAll;
  }
  NodeRef by = n->src(1)->op == Op::Splat ? n->src(1)->src(0) : n->src(1);
  if (by->op != Op::Const || const_value(by).as_uint() > 31) return kAll;
  const uint64_t count = const_value(by).as_uint();
  return n->op == Op::Shl ? of(0) << count & kAll : of(0) >> count;
}

/// By words of two i16. Sums of two products with a byte below 128 are exact in one (127 * 128 * 2
/// is 32512): what has a highest bit is multiplied without it, and that bit by itself.
NodeRef dot4_by_pairs(Legaliser& l, Expr a, Expr b, Expr sum) {
  constexpr int64_t kHighest = 0x80808080;
  const auto add = [&](Expr bytes, int64_t factor) {
    const Expr pairs = bytes.op(Op::DotPairs, b), factors = pairs.integer(factor << 16 | factor);
    const NodeRef src[] = {pairs, factors, sum};
    sum = {l, l.make(Op::Dot2I16, DType::I32, src)};
  };
  const bool small = (possible_bits(a) & kHighest) == 0;
  if (!small) add((a >> 7) & int64_t{0x01010101}, 128);
  add(small ? a : a & (~kHighest & 0xffffffff), 1);
  return sum;
}

}  // namespace

NodeRef by_choices(Legaliser& l, std::span<const NodeRef> src) {
  const auto table = [&](size_t i) { return Expr(l, src[1 + i]); };
  const Expr a(l, src[0]);
  Expr word = a;
  for (int64_t i = 0; i < 4; ++i) {
    const Expr at = (a >> (8 * i)) & int64_t{15};
    const Expr four = where(at < at.integer(8), where(at < at.integer(4), table(0), table(1)),
                            where(at < at.integer(12), table(2), table(3)));
    const Expr byte = four.op(Op::Shr, (at & int64_t{3}) << 3) & int64_t{255};
    word = i == 0 ? byte : word | (byte << (8 * i));
  }
  return word;
}

NodeRef by_products(Legaliser& l, Op op, std::span<const NodeRef> src) {
  const Expr a(l, src[0]), b(l, src[1]), sum(l, src[2]);
  switch (op) {
    case Op::Dot2: return dot2(a, b, sum);
    case Op::Dot2I16: return dot2_of_i16(a, b, sum);
    default:
      return l.native(Op::Dot2I16, DType::I32) ? dot4_by_pairs(l, a, b, sum) : dot4(a, b, sum);
  }
}

}  // namespace weft::lower
