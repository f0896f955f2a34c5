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
  return op == Op::Dot2 ? dot2(a, b, sum) : dot4(a, b, sum);
}

}  // namespace weft::lower
