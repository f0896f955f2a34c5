// Operators that compute each element from those at its place. Semantics:
// https://onnx.ai/onnx/operators
#include <algorithm>

#include "weft/base/error.h"
#include "weft/onnx/broadcast.h"
#include "weft/onnx/cast.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {

namespace {

// ---- one operand

template <Tensor (Tensor::*F)(CallSite) const>
Values unary(const NodeCall& call) {
  return {(call.tensor(0).*F)(CallSite())};
}

Values bitwise_not(const NodeCall& call) { return {~call.tensor(0)}; }

Values is_infinite(const NodeCall& call) {
  return {call.tensor(0).isinf(call.integer("detect_positive", 1) != 0,
                               call.integer("detect_negative", 1) != 0)};
}

// ---- two operands

struct Pair {
  Tensor a, b;
};
Pair operands(const NodeCall& call) {
  return {call.tensor(0), fitted(call, call.tensor(0), call.tensor(1))};
}

template <Tensor (*F)(const Pair&)>
Values binary(const NodeCall& call) {
  return {F(operands(call))};
}

Tensor add(const Pair& x) { return x.a + x.b; }
Tensor subtract(const Pair& x) { return x.a - x.b; }
Tensor multiply(const Pair& x) { return x.a * x.b; }
/// Integers towards zero.
Tensor divide(const Pair& x) {
  return is_float(x.a.dtype()) ? x.a / x.b : x.a.div(x.b, Rounding::Trunc);
}
/// In the base's type, whatever the exponent's.
Tensor power(const Pair& x) {
  if (x.a.dtype() == x.b.dtype()) return x.a.pow(x.b);
  if (is_float(x.a.dtype())) return x.a.pow(x.b.cast(x.a.dtype()));
  if (is_int(x.b.dtype())) return x.a.pow(x.b.cast(x.a.dtype()));
  const Tensor y = x.a.cast(DType::F64).pow(x.b.cast(DType::F64)), whole = y.round();
  return ((y - whole).abs() <= whole.abs() * 1e-12).where(whole, y).cast(x.a.dtype());
}
Tensor both(const Pair& x) { return x.a & x.b; }
Tensor either(const Pair& x) { return x.a | x.b; }
Tensor one_of(const Pair& x) { return x.a ^ x.b; }
Tensor greater(const Pair& x) { return x.a > x.b; }
Tensor greater_or_equal(const Pair& x) { return x.a >= x.b; }
Tensor less(const Pair& x) { return x.a < x.b; }
Tensor less_or_equal(const Pair& x) { return x.a <= x.b; }

Values equal(const NodeCall& call) {
  if (call.input(0).kind() == Value::Kind::Strings) return {equal_strings(call)};
  const Pair x = operands(call);
  return {x.a == x.b};
}

Values modulo(const NodeCall& call) {
  const Pair x = operands(call);
  return {call.integer("fmod", 0) != 0 ? x.a.fmod(x.b) : x.a % x.b};
}

/// Shifted past all bits, or by less than none, only the sign's copies are left.
Values bit_shift(const NodeCall& call) {
  const Pair x = operands(call);
  const std::string direction = call.text("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    call.refuse("the direction of a shift is LEFT or RIGHT, not '{}'", direction);
  const int width = bits(x.a.dtype());
  Tensor past = x.b >= width;
  if (is_signed_int(x.b.dtype())) past = past | (x.b < 0);
  const Tensor by = past.where(0, x.b).cast(x.b.dtype());
  if (direction == "LEFT") return {past.where(0, x.a << by).cast(x.a.dtype())};
  const Tensor sign = is_signed_int(x.a.dtype()) ? x.a >> (width - 1) : x.a * 0;
  return {past.where(sign, x.a >> by).cast(x.a.dtype())};
}

// ---- any number of operands

template <class F>
Values over_all(const NodeCall& call, const F& f) {
  Tensor all = call.tensor(0);
  for (size_t i = 1; i < call.inputs(); ++i) all = f(all, call.tensor(i));
  return {all};
}

Values sum(const NodeCall& call) {
  return over_all(call, [](const Tensor& a, const Tensor& b) { return a + b; });
}
Values maximum(const NodeCall& call) {
  return over_all(call, [](const Tensor& a, const Tensor& b) { return a.maximum(b); });
}
Values minimum(const NodeCall& call) {
  return over_all(call, [](const Tensor& a, const Tensor& b) { return a.minimum(b); });
}
Values mean(const NodeCall& call) {
  return {sum(call)[0].tensor() / static_cast<double>(call.inputs())};
}

Values clip(const NodeCall& call) {
  Tensor x = call.tensor(0);
  if (call.opset() < 11) {
    if (call.has("min")) x = x.clamp_min(call.number("min"));
    if (call.has("max")) x = x.clamp_max(call.number("max"));
    return {x};
  }
  if (call.has(1)) x = x.maximum(call.tensor(1));
  if (call.has(2)) x = x.minimum(call.tensor(2));
  return {x};
}

Values where(const NodeCall& call) {
  const ElementType type = call.input(1).type();
  if (call.input(1).kind() == Value::Kind::Strings) return {where_strings(call)};
  return {Value(call.tensor(0).where(call.tensor(1), call.tensor(2)), type)};
}

// ---- activations

Values celu(const NodeCall& call) { return {call.tensor(0).celu(call.number("alpha", 1))}; }
Values elu(const NodeCall& call) { return {call.tensor(0).elu(call.number("alpha", 1))}; }
Values gelu(const NodeCall& call) {
  const std::string form = call.text("approximate", "none");
  if (form != "none" && form != "tanh") call.refuse("approximate is none or tanh, not '{}'", form);
  return {call.tensor(0).gelu(form == "tanh")};
}
Values hard_sigmoid(const NodeCall& call) {
  return {call.tensor(0).hardsigmoid(call.number("alpha", 0.2f), call.number("beta", 0.5))};
}
Values leaky_relu(const NodeCall& call) {
  return {call.tensor(0).leaky_relu(call.number("alpha", 0.01f))};
}
Values selu(const NodeCall& call) {
  // The defaults of opset 1 were rounded differently.
  const bool old = call.opset() < 6;
  return {call.tensor(0).selu(call.number("alpha", old ? 1.6732 : 1.67326319217681884765625),
                              call.number("gamma", old ? 1.0507 : 1.05070102214813232421875))};
}
Values shrink(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const double limit = call.number("lambd", 0.5), bias = call.number("bias", 0);
  const Tensor below = (x < -limit).where(x + bias, x * 0);
  return {(x > limit).where(x - bias, below).cast(x.dtype())};
}
Values swish(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  const double alpha = call.number("alpha", 1);
  return {alpha == 1 ? x.silu() : x * (x * alpha).sigmoid()};
}
Values swiglu(const NodeCall& call) { return {swish(call)[0].tensor() * call.tensor(1)}; }
Values thresholded_relu(const NodeCall& call) {
  return {call.tensor(0).threshold(call.number("alpha", 1), 0)};
}
/// One slope per channel before opset 7.
Values prelu(const NodeCall& call) {
  const Tensor& x = call.tensor(0);
  Tensor slope = call.tensor(1);
  if (call.opset() < 7 && slope.ndim() == 1 && x.ndim() > 2)
    slope = slope.reshape(aligned(slope.dims(), 1, x.ndim()));
  return {(x < 0).where(x * slope, x).cast(x.dtype())};
}
Values softsign(const NodeCall& call) { return {call.tensor(0).softsign()}; }
Values softplus(const NodeCall& call) { return {call.tensor(0).softplus()}; }

constexpr Operator kRows[] = {
    {kOnnx, "Abs", 1, unary<&Tensor::abs>},
    {kOnnx, "Acos", 7, unary<&Tensor::acos>},
    {kOnnx, "Acosh", 9, unary<&Tensor::acosh>},
    {kOnnx, "Add", 1, binary<add>},
    {kOnnx, "And", 1, binary<both>},
    {kOnnx, "Asin", 7, unary<&Tensor::asin>},
    {kOnnx, "Asinh", 9, unary<&Tensor::asinh>},
    {kOnnx, "Atan", 7, unary<&Tensor::atan>},
    {kOnnx, "Atanh", 9, unary<&Tensor::atanh>},
    {kOnnx, "BitCast", 26, bit_cast},
    {kOnnx, "BitShift", 11, bit_shift},
    {kOnnx, "BitwiseAnd", 18, binary<both>},
    {kOnnx, "BitwiseNot", 18, bitwise_not},
    {kOnnx, "BitwiseOr", 18, binary<either>},
    {kOnnx, "BitwiseXor", 18, binary<one_of>},
    {kOnnx, "Cast", 1, cast},
    {kOnnx, "CastLike", 15, cast_like},
    {kOnnx, "Ceil", 1, unary<&Tensor::ceil>},
    {kOnnx, "Celu", 12, celu},
    {kOnnx, "Clip", 1, clip},
    {kOnnx, "Cos", 7, unary<&Tensor::cos>},
    {kOnnx, "Cosh", 9, unary<&Tensor::cosh>},
    {kOnnx, "Div", 1, binary<divide>},
    {kOnnx, "Elu", 1, elu},
    {kOnnx, "Equal", 1, equal},
    {kOnnx, "Erf", 9, unary<&Tensor::erf>},
    {kOnnx, "Exp", 1, unary<&Tensor::exp>},
    {kOnnx, "Floor", 1, unary<&Tensor::floor>},
    {kOnnx, "Gelu", 20, gelu},
    {kOnnx, "Greater", 1, binary<greater>},
    {kOnnx, "GreaterOrEqual", 12, binary<greater_or_equal>},
    {kOnnx, "HardSigmoid", 1, hard_sigmoid},
    {kOnnx, "HardSwish", 14, unary<&Tensor::hardswish>},
    {kOnnx, "IsInf", 10, is_infinite},
    {kOnnx, "IsNaN", 9, unary<&Tensor::isnan>},
    {kOnnx, "LeakyRelu", 1, leaky_relu},
    {kOnnx, "Less", 1, binary<less>},
    {kOnnx, "LessOrEqual", 12, binary<less_or_equal>},
    {kOnnx, "Log", 1, unary<&Tensor::log>},
    {kOnnx, "Max", 1, maximum},
    {kOnnx, "Mean", 1, mean},
    {kOnnx, "Min", 1, minimum},
    {kOnnx, "Mish", 18, unary<&Tensor::mish>},
    {kOnnx, "Mod", 10, modulo},
    {kOnnx, "Mul", 1, binary<multiply>},
    {kOnnx, "Neg", 1, unary<&Tensor::neg>},
    {kOnnx, "Not", 1, unary<&Tensor::logical_not>},
    {kOnnx, "Or", 1, binary<either>},
    {kOnnx, "PRelu", 1, prelu},
    {kOnnx, "Pow", 1, binary<power>},
    {kOnnx, "Reciprocal", 1, unary<&Tensor::reciprocal>},
    {kOnnx, "Relu", 1, unary<&Tensor::relu>},
    {kOnnx, "Round", 11, unary<&Tensor::round>},
    {kOnnx, "Selu", 1, selu},
    {kOnnx, "Shrink", 9, shrink},
    {kOnnx, "Sigmoid", 1, unary<&Tensor::sigmoid>},
    {kOnnx, "Sign", 9, unary<&Tensor::sign>},
    {kOnnx, "Sin", 7, unary<&Tensor::sin>},
    {kOnnx, "Sinh", 9, unary<&Tensor::sinh>},
    {kOnnx, "Softplus", 1, softplus},
    {kOnnx, "Softsign", 1, softsign},
    {kOnnx, "Sqrt", 1, unary<&Tensor::sqrt>},
    {kOnnx, "Sub", 1, binary<subtract>},
    {kOnnx, "Sum", 1, sum},
    {kOnnx, "SwiGLU", 28, swiglu},
    {kOnnx, "Swish", 24, swish},
    {kOnnx, "Tan", 7, unary<&Tensor::tan>},
    {kOnnx, "Tanh", 1, unary<&Tensor::tanh>},
    {kOnnx, "ThresholdedRelu", 1, thresholded_relu},
    {kOnnx, "Where", 9, where},
    {kOnnx, "Xor", 1, binary<one_of>},
};

}  // namespace

std::span<const Operator> elementwise_operators() { return kRows; }

}  // namespace weft::onnx
