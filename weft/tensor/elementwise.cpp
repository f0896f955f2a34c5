// Elementwise operations: dtypes meet, shapes broadcast, one node each. Derived ones: derived.def.
#include <algorithm>
#include <cmath>

#include "weft/base/context.h"
#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/tracing.h"

namespace weft {

using build::Extents;

namespace {

Context& context_of(const Operand& a, const Operand& b) {
  if (a.tensor()) return a.tensor()->context();
  return b.tensor() ? b.tensor()->context() : Context::current();
}

/// The dtype operands meet in: promotion between tensors, weak numbers.
DType meet(const char* tag, const Operand& a, const Operand& b) {
  if (!a.tensor() && !b.tensor())
    return promote(a.scalar().default_dtype(), b.scalar().default_dtype());
  if (!b.tensor()) return promote_weak(a.tensor()->dtype(), b.scalar());
  if (!a.tensor()) return promote_weak(b.tensor()->dtype(), a.scalar());
  const DType da = a.tensor()->dtype(), db = b.tensor()->dtype();
  const DType met = promote(da, db);
  if (met == DType::Void)
    fail_type(tag, "{} and {} have no common dtype: cast one of them", name(da), name(db));
  return met;
}

NodeRef value_of(Graph& g, const Operand& x, DType dtype) {
  return x.tensor() ? g.cast(x.tensor()->node(), dtype) : g.constant(x.scalar().as(dtype));
}

/// Broadcasts operands to one shape. Repeated scalars stay rank 0 where another operand has the
/// shape: the graph broadcasts those by itself.
void align(Graph& g, const char* tag, std::span<NodeRef> operands) {
  if (std::ranges::all_of(operands, [&](NodeRef n) {
        return n->shape == operands[0]->shape && n->op != Op::Expand && n->op != Op::Reshape;
      }))
    return;
  const Extents dims = broadcast(tag, operands);
  auto has_shape = [&](NodeRef n) {
    return std::ranges::equal(n->shape->span(), std::span<const NodeRef>(dims)) &&
           build::without_broadcast(n)->rank() == dims.size();
  };
  const auto carrier = std::find_if(operands.begin(), operands.end(), has_shape);
  for (NodeRef& n : operands) {
    NodeRef bare = build::without_broadcast(n);
    const bool keeps_shape = carrier == operands.end() ? &n == operands.data() : bare->rank() != 0;
    n = keeps_shape || bare->rank() != 0 ? build::broadcast_to(g, n, dims) : bare;
  }
}

void require_takes(const char* tag, Op op, DType dtype) {
  if (has_trait(op, kIntOnly) && is_float(dtype))
    fail_type(tag, "takes integers or bools: got {}; cast to an integer dtype first", name(dtype));
  const bool arithmetic = op == Op::IDiv || op == Op::Mod || op == Op::Shl || op == Op::Shr;
  if (arithmetic && is_bool(dtype))
    fail_type(tag, "is not defined for bool: cast to an integer dtype first");
}

Tensor apply(const char* tag, Op op, DType dtype, const Operand& a, const Operand& b, CallSite at) {
  const OpScope scope(context_of(a, b), at);
  require_takes(tag, op, dtype);
  NodeRef operands[] = {value_of(scope.g, a, dtype), value_of(scope.g, b, dtype)};
  align(scope.g, tag, operands);
  return scope.result(scope.g.alu(op, {operands[0], operands[1]}));
}

/// The user's line: of the right operand where the left is a number made on the same line anyway.
CallSite site_of(const Operand& a, const Operand& b) { return a.tensor() ? a.at() : b.at(); }

Tensor unary(Op op, const Tensor& x, DType dtype, CallSite at) {
  const OpScope scope(x, at);
  return scope.result(scope.g.alu(op, {scope.g.cast(x.node(), dtype)}));
}

DType taken(Op op, DType d) { return has_trait(op, kFloatOnly) ? float_or_default(d) : d; }

Tensor function(const char* tag, Op op, const Tensor& x, CallSite at) {
  const CallSiteScope site(at);
  require_takes(tag, op, x.dtype());
  return unary(op, x, taken(op, x.dtype()), at);
}

Tensor function(const char* tag, Op op, const Tensor& x, const Operand& other, CallSite at) {
  const CallSiteScope site(at);
  return apply(tag, op, taken(op, meet(tag, x, other)), x, other, at);
}

}  // namespace

// ---- operators

Tensor Tensor::binary(const char* name, Op op, const Operand& a, const Operand& b) {
  const CallSiteScope site(site_of(a, b));
  return apply(name, op, meet(name, a, b), a, b, site_of(a, b));
}

Tensor Tensor::subtract(const Operand& a, const Operand& b) {
  const OpScope scope(context_of(a, b), site_of(a, b));
  const DType dtype = meet("-", a, b);
  if (is_bool(dtype))
    fail_type("-", "is not defined for two bools: use ^ or cast to an integer dtype");
  NodeRef operands[] = {value_of(scope.g, a, dtype), value_of(scope.g, b, dtype)};
  align(scope.g, "-", operands);
  return scope.result(scope.g.sub(operands[0], operands[1]));
}

Tensor Tensor::divide(const Operand& a, const Operand& b) {
  const CallSiteScope site(site_of(a, b));
  return apply("/", Op::Div, float_or_default(meet("/", a, b)), a, b, site_of(a, b));
}

Tensor Tensor::remainder(const Operand& a, const Operand& b) {
  const CallSiteScope site(site_of(a, b));
  const DType dtype = meet("%", a, b);
  if (!is_float(dtype)) return apply("%", Op::Mod, dtype, a, b, site_of(a, b));
  return elementwise::floored_rest(a, b, dtype);
}

Tensor Tensor::negate(const Operand& operand) {
  const CallSiteScope site(operand.at());
  const Tensor& x = *operand.tensor();
  if (is_bool(x.dtype()))
    fail_type("-", "is not defined for bool: use ~ or cast to an integer dtype");
  return unary(Op::Neg, x, x.dtype(), operand.at());
}

Tensor Tensor::invert(const Operand& operand) {
  const CallSiteScope site(operand.at());
  const Tensor& x = *operand.tensor();
  require_takes("~", Op::Not, x.dtype());
  return unary(Op::Not, x, x.dtype(), operand.at());
}

// ---- named binary and ternary ones

Tensor Tensor::floor_div(const Operand& other, CallSite at) const {
  const CallSiteScope site(at);
  const DType dtype = meet("floor_div", *this, other);
  if (is_float(dtype))
    return elementwise::floored_quotient(*this, other, sum_dtype(dtype)).cast(dtype);
  return apply("floor_div", Op::IDiv, dtype, *this, other, at);
}

// Not minimum() and maximum(), which share the gradient where both are equal: an element at a
// bound is one that was left alone.
Tensor Tensor::clamp_min(const Operand& low, CallSite at) const {
  const CallSiteScope site(at);
  return (*this < low).where(low, *this);
}

Tensor Tensor::clamp_max(const Operand& high, CallSite at) const {
  const CallSiteScope site(at);
  return (*this > high).where(high, *this);
}

Tensor Tensor::clamp(const Operand& low, const Operand& high, CallSite at) const {
  const CallSiteScope site(at);
  return clamp_min(low).clamp_max(high);
}

Tensor Tensor::where(const Operand& a, const Operand& b, CallSite at) const {
  const OpScope scope(*this, at);
  const DType dtype = meet("where", a, b);
  NodeRef operands[] = {scope.g.cast(node(), DType::Bool), value_of(scope.g, a, dtype),
                        value_of(scope.g, b, dtype)};
  align(scope.g, "where", operands);
  return scope.result(scope.g.where(operands[0], operands[1], operands[2]));
}

namespace elementwise {

namespace {

Tensor ternary(Op op, const Tensor& a, const Tensor& b, const Tensor& c) {
  const OpScope scope(c, CallSite::here());
  NodeRef operands[] = {a.node(), b.node(), c.node()};
  align(scope.g, info(op).mnemonic, operands);
  return scope.result(scope.g.alu(op, {operands[0], operands[1], operands[2]}));
}

}  // namespace

Tensor multiply_add(const Tensor& a, const Tensor& b, const Tensor& c) {
  return ternary(Op::MulAcc, a, b, c);
}

Tensor add_product(const Tensor& a, const Tensor& b, const Tensor& c) {
  return ternary(Op::MulAdd, a, b, c);
}

Tensor horner(const Tensor& x, std::span<const double> c) {
  Tensor sum = Tensor::full({}, c[0], x.dtype());
  for (const double next : c.subspan(1))
    sum = add_product(sum, x, Tensor::full({}, next, x.dtype()));
  return sum;
}

Tensor round_of(const Tensor& x) { return unary(Op::Rint, x, x.dtype(), CallSite::here()); }

namespace {

Tensor cast_to(const Operand& x, DType dtype) {
  return x.tensor() ? x.tensor()->cast(dtype) : Tensor::full({}, x.scalar(), dtype);
}

}  // namespace

Tensor floored_quotient(const Operand& a, const Operand& b, DType run) {
  const Tensor x = cast_to(a, run), y = cast_to(b, run), q = (x / y).floor();
  const Tensor remainder = (q == 0).where(x, multiply_add(-q, y, x));
  return ((remainder != 0) & ((remainder < 0) != (y < 0))).where(q - 1, q);
}

Tensor floored_rest(const Operand& a, const Operand& b, DType dtype) {
  const Tensors given{cast_to(a, dtype), cast_to(b, dtype)};
  return called("floored_rest", {}, given, [dtype](const Tensors& in) {
    const DType run = sum_dtype(dtype);
    const Tensor x = in[0].cast(run), y = in[1].cast(run), down = y < 0;
    const Tensor rest = apply("%", Op::Rem, run, x, y, CallSite::here());
    const Tensor moved = ((rest < 0) != down).where(rest + y, rest);
    // 0 with a sign, and the slope of a remainder that is 0.
    const Tensor zero = down.where(Tensor::full({}, -0.0, run), Tensor::zeros({}, run));
    return Tensors{(rest == 0).where(zero - (rest.detach() - rest), moved).cast(dtype)};
  })[0];
}

Tensor truncated_rest(const Operand& a, const Operand& b, DType dtype) {
  return apply("fmod", Op::Rem, dtype, a, b, site_of(a, b));
}

}  // namespace elementwise

// ---- functions and unary ones

#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, ...) \
  Tensor Tensor::method(WEFT_PARAMS_##group CallSite at) const {             \
    return function(#method, Op::Name, *this, WEFT_PASSED_##group at);       \
  }
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP

Tensor Tensor::trunc(CallSite at) const {
  return is_float(dtype()) ? unary(Op::Trunc, *this, dtype(), at) : unshared(*this);
}

Tensor Tensor::cast(DType to, CallSite at) const {
  const OpScope scope(*this, at);
  if (!is_data(to))
    fail_type("cast", "{} is not a dtype of elements: choose bool, an integer or a float",
              name(to));
  return to == dtype() ? *this : scope.result(scope.g.cast(node(), to));
}

// ---- powers

namespace {

/// x^n by squaring; of n < 0 that of 1 / x, as the slope of 1 / x^-n would be 0 * inf at 0 and at
/// infinity.
Tensor whole_power(const Tensor& x, int64_t n) {
  if (n < 0) return whole_power(1.0 / x, -n);
  if (n == 1) return unshared(x);
  // 1 whatever x is, which depends on it all the same: gradients are 0, not missing.
  if (n == 0 && is_float(x.dtype())) return ((x == x) | (x != x)).where(1, x);
  Tensor result = x.ones_like(), square = x;
  bool first = true;
  for (; n > 0; n >>= 1) {
    if (n & 1) {
      result = first ? square : result * square;
      first = false;
    }
    if (n > 1) square = square * square;
  }
  return result;
}

/// 0 where `some`, with a derivative of NaN.
Tensor nothing_of(const Tensor& some, const Tensor& e) {
  const Tensor one = some.where(e, 0);
  return (one - one.detach()).sqrt() * 0;
}

/// What an infinity, as `size`, becomes, with PyTorch's slope: 0 for roots, 1, or infinite.
Tensor infinite_power(const Tensor& size, const Tensor& e) {
  const Tensor whole = e >= 1, steep = whole.where(size, 1);
  const Tensor above = whole.where(steep * (e == 1).where(1, steep), e);  // of NaN: NaN
  return (e < 0).where(0, (e == 0).where(1, (e < 1).where(INFINITY, above)));
}

/// 2^(e log2 |x|), with the sign of odd powers, NaN for other powers of negative numbers, and the
/// exact values at x = 0, at infinities and where the product would be 0 * inf.
Tensor general_power(const Tensor& x, const Tensor& e) {
  const Tensor zero = x == 0, negative = x < 0, infinite = x.isinf();
  const Tensor size = negative.where(-x, x);
  const Tensor usual = ((zero | infinite).where(1, size).log2() * e).exp2();
  const Tensor y = infinite.where(infinite_power(infinite.where(size, 1), e), usual);
  const Tensor whole = e.trunc() == e, odd = whole & ((e * 0.5).floor() * 2 != e);
  // Between the whole powers of a negative number there are none: no slope along e.
  // Minus: -0 plus nothing were 0.
  const Tensor below = (whole | infinite).where(odd.where(-y, y), NAN) -
                       nothing_of(negative & whole & e.isfinite(), e);
  const Tensor nothing = odd.where(x.detach(), 0);  // with its sign, and slope 0
  const Tensor at_zero = (e > 0).where(nothing, (e < 0).where(INFINITY, (e == 0).where(1, e)));
  const Tensor one =
      ((e == 0) & ~x.isfinite()) | ((size == 1) & ~zero & e.isinf()) | ((x == 1) & e.isnan());
  const Tensor value = one.where(1, zero.where(at_zero, negative.where(below, y)));
  // The same values again where the formula above has no derivative, or another: a root's at 0 is
  // infinite, that of NaN is NaN. Elsewhere x and e are replaced, so that nothing comes of them.
  const Tensor root = (zero & (e > 0) & (e < 1)) | (negative & ~whole & ~infinite);
  const Tensor rooted = (root.where(x, 1) + 0.0).sqrt() *  // of -0: 0
                        (root.where(e, 0) * 0 + 1);
  // 1 / x and 2^(-e inf): both -infinite for odd powers of -0.
  const Tensor pole = zero & (e < 0), inverse = pole.where(x, 1).reciprocal();
  const Tensor power = (pole.where(e, 0) * pole.where(-INFINITY, 0)).exp2(), below_0 = inverse < 0;
  const Tensor poled =
      (below_0 & ~odd).where(-inverse, inverse) + (below_0 & odd).where(-power, power);
  return root.where(rooted, pole.where(poled, (zero & (e == 1)).where(x, value)));
}

/// x^e of integers, which wraps, by the bits of e; of 1 / x only what is whole.
Tensor integer_power(const Tensor& x, const Tensor& e) {
  Tensor result = x.ones_like(), square = x;
  const int digits = bits(e.dtype()) - (is_unsigned(e.dtype()) ? 0 : 1);
  for (int bit = 0; bit < digits; ++bit) {
    result = result * (((e >> bit) & 1) != 0).where(square, 1);
    square = square * square;
  }
  if (is_unsigned(x.dtype())) return result;
  const Tensor inverse = (x.abs() == 1).where(((e & 1) != 0).where(x, 1), 0);
  return (e < 0).where(inverse, result);
}

/// x^(1/2): of -0 it is +0 and of -inf inf (C99 F.9.4.4), where sqrt has -0 and NaN.
Tensor root_power(const Tensor& x) { return (x == -INFINITY).where(INFINITY, x + 0).sqrt(); }

}  // namespace

Tensor Tensor::pow(const Operand& exponent, CallSite at) const {
  const CallSiteScope site(at);
  const DType dtype = meet("pow", *this, exponent);
  if (!exponent.tensor()) {
    const double e = exponent.scalar().as(DType::F64).as_double();
    if (e == 0.5) return root_power(cast(float_or_default(dtype)));
    if (e < 0 && !is_float(dtype))
      fail("pow", "{} to the power {} is no integer: cast to a float first", weft::name(dtype), e);
    if (e == std::trunc(e) && std::fabs(e) <= 64)
      return whole_power(cast(dtype), static_cast<int64_t>(e));
  }
  const Tensor e =
      exponent.tensor() ? *exponent.tensor() : Tensor::full({}, exponent.scalar(), dtype);
  if (is_bool(dtype)) return cast(DType::I32).pow(e.cast(DType::I32)).cast(dtype);
  if (!is_float(dtype)) return integer_power(cast(dtype), e.cast(dtype));
  return general_power(cast(sum_dtype(dtype)), e.cast(sum_dtype(dtype))).cast(dtype);
}

}  // namespace weft
