// x - y * trunc(x / y) of f32 and f64, exactly: one step, and a loop where quotients have more
// digits than the dtype.
#include "weft/base/small_vector.h"
#include "weft/lower/legaliser.h"
#include "weft/lower/vector_nodes.h"

namespace weft::lower {
namespace {

DType pattern_of(Expr x) { return bits(x.dtype()) == 64 ? DType::I64 : DType::I32; }

Expr magnitude_of(Expr x) {
  return (x.bits_as(pattern_of(x)) & static_cast<int64_t>(int_max(pattern_of(x))))
      .bits_as(x.dtype());
}

/// a - trunc(quotient) * b, rounded once. Exact: where the quotient is a / b rounded, what is left
/// has no more digits than b, and the quotient as many bits less as there are digits.
Expr without_multiple(Expr a, Expr b, Expr quotient) {
  return (-quotient.op1(Op::Trunc)).op3(Op::MulAcc, b, a);
}

/// Of quotients that may overflow: first by b scale^2 or b scale. b >= 0.
Expr reduced_by_part(Expr a, Expr b, double scale) {
  Expr larger = where(b < b.number(1 / scale), b * scale, b);
  Expr largest = where(b < b.number(1), larger * scale, b), size = magnitude_of(a);
  Expr divisor = where(size >= largest, largest, where(size >= larger, larger, b));
  return without_multiple(a, divisor, a / divisor);
}

/// How many steps there are, and for what.
struct Steps {
  double most;  ///< quotients below it take `plain` steps of as many bits as the dtype has
  int plain;
  double scale;  ///< others as many as 2^1024 (f32: 2^128) and twice the scale need
  int scaled;
};
constexpr Steps kSteps64 = {0x1p300, 7, 0x1p537, 44}, kSteps32 = {0x1p100, 6, 0x1p75, 16};

/// One step for quotients below `most`; all of them for others.
Expr reduced_once(Expr a, Expr b, const Steps& steps) {
  Expr quotient = magnitude_of(a / b), huge = quotient >= quotient.number(steps.most);
  Expr next = where(huge, a, without_multiple(a, b, a / b));
  const auto left =
      a.legaliser().repeat_if_any(huge, steps.scaled, {next}, [&](const Legaliser::Values& values) {
        return Legaliser::Values{reduced_by_part(Expr(b.legaliser(), values[0]), b, steps.scale)};
      });
  return {a.legaliser(), left[0]};
}

/// a - b * trunc(a / b), and 0 for the quotient of what is left, in the lanes that ask for it. What
/// is left may be negative: a rounded quotient is sometimes one too many.
Legaliser::Values reduced(Expr large, Expr a, Expr b, Expr quotient) {
  Legaliser& l = large.legaliser();
  const Steps& steps = a.dtype() == DType::F64 ? kSteps64 : kSteps32;
  const bool widen = a.dtype() == DType::F32 && l.has_f64();
  const auto next = [&](Expr x) {
    if (!widen) return reduced_once(x, b, steps);
    return x.converted(DType::F64).op(Op::Rem, b.converted(DType::F64)).converted(DType::F32);
  };
  NodeRef dividends = splat(l.graph(), a, quotient.node()->lanes);  // a constant, maybe
  return l.repeat_if_any(
      large, widen ? 1 : steps.plain, {dividends, quotient}, [&](const Legaliser::Values& values) {
        Expr x(l, values[0]), q(l, values[1]);
        return Legaliser::Values{where(large, next(x), x), where(large, q.number(0), q)};
      });
}

}  // namespace

NodeRef rem_expansion(const Match& m, Legaliser& l) {
  Expr x(l, m[pat::x]), a = magnitude_of(x), b = magnitude_of(Expr(l, m[pat::y]));
  Expr quotient = a / b;
  // Below it the rounded quotient is off by less than one.
  Expr large = quotient >= quotient.number(a.dtype() == DType::F64 ? 0x1p53 : 0x1p24);
  const Legaliser::Values left = reduced(large, a, b, quotient);
  Expr rest(l, left[0]);
  // Of what is smaller than y nothing is taken, 0 times infinity neither.
  rest = where(rest < b, rest, without_multiple(rest, b, Expr(l, left[1])));
  rest = where(rest < rest.number(0), rest + b, rest);
  const int64_t sign = int_min(pattern_of(x));
  return (rest.bits_as(pattern_of(x)) | (x.bits_as(pattern_of(x)) & sign)).bits_as(x.dtype());
}

}  // namespace weft::lower
