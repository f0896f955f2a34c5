// Elementwise methods: those of the tables without arguments as they come, the others by name.

#include <limits>

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/tensor/reductions.h"

namespace weft::python {

namespace {

/// Rows of the tables that take nothing but the tensor. The others are bound below, where Python's
/// names of their arguments stand.
void bind_row(TensorClass& c, const char* name, Tensor (Tensor::*m)(CallSite) const,
              const char* doc) {
  method(c, name, [m](const Tensor& x) { return (x.*m)(CallSite()); }, doc);
}
template <class M>
void bind_row(TensorClass&, const char*, M, const char*) {}

/// What the table says about a row that is bound by name.
const char* doc_of(std::string_view wanted) {
  constexpr std::pair<std::string_view, const char*> kDocs[] = {
#define WEFT_DERIVED(name, declared, params, doc, ...) {#name, doc},
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
  };
  for (const auto& [name, doc] : kDocs)
    if (name == wanted) return doc;
  internal_error("python.row", "derived.def has no {}", wanted);
}

Tensor divide(const Tensor& x, const Operand& other, std::optional<std::string> mode,
              bool reverse) {
  Rounding rounding = Rounding::None;
  if (mode == "trunc") {
    rounding = Rounding::Trunc;
  } else if (mode == "floor") {
    rounding = Rounding::Floor;
  } else if (mode) {
    fail("div", "rounding_mode \"{}\": use None, \"trunc\" or \"floor\"", *mode);
  }
  const Operand self(x, CallSite());
  if (!mode) return reverse ? quotient(other, self) : quotient(self, other);
  if (!reverse) return x.div(other, rounding, CallSite());
  const DType met = other.tensor() ? DType::Void : promote_weak(x.dtype(), other.scalar());
  return (other.tensor() ? *other.tensor() : Tensor::full({}, other.scalar(), met))
      .div(x, rounding, CallSite());
}

Tensor clamped(const Tensor& x, nb::handle least, nb::handle most) {
  const HeldOperand low(least), high(most);
  if (!low.operand && !high.operand) fail("clamp", "neither min_ nor max_ is given: give one");
  const Tensor raised = low.operand ? x.clamp_min(*low.operand, CallSite()) : x;
  return high.operand ? raised.clamp_max(*high.operand, CallSite()) : raised;
}

Tensor finite(const Tensor& x, double nan, std::optional<double> high, std::optional<double> low) {
  constexpr double kLargest = std::numeric_limits<double>::max();  // cut to that of the dtype
  return x.nan_to_num(nan, high.value_or(kLargest), low.value_or(-kLargest), CallSite());
}

Tensor gelu(const Tensor& x, const std::string& approximate) {
  if (approximate != "tanh" && approximate != "none")
    fail("gelu", "approximate \"{}\": use \"tanh\" or \"none\"", approximate);
  return x.gelu(approximate == "tanh", CallSite());
}

using OfTwo = Tensor (Tensor::*)(const Operand&, CallSite) const;
constexpr std::pair<const char*, OfTwo> kOfTwo[] = {{"logical_and", &Tensor::logical_and},
                                                    {"logical_or", &Tensor::logical_or},
                                                    {"logical_xor", &Tensor::logical_xor},
                                                    {"fmax", &Tensor::fmax},
                                                    {"fmin", &Tensor::fmin},
                                                    {"logaddexp2", &Tensor::logaddexp2},
                                                    {"xlogy", &Tensor::xlogy},
                                                    {"hypot", &Tensor::hypot},
                                                    {"atan2", &Tensor::atan2}};

void bind_binary(TensorClass& c) {
  method(c, "div", divide, "x"_a, "rounding_mode"_a = nb::none(), "reverse"_a = false,
         "x / other; of integers in float32. rounding_mode: None, \"trunc\" or \"floor\".");
  method(
      c, "idiv",
      [](const Tensor& x, const Operand& y) { return x.div(y, Rounding::Trunc, CallSite()); },
      "x"_a, "x / other rounded towards 0, as C divides; integers by 0 give 0.");
  method(c, "fmod", plain(&Tensor::fmod), "x"_a, "x - y * trunc(x / y): the sign of x.");
  method(c, "maximum", plain(&Tensor::maximum), "x"_a,
         "The larger; NaN wins; ties share gradients.");
  method(c, "minimum", plain(&Tensor::minimum), "x"_a, "The smaller; NaN wins.");
  method(c, "copysign", plain(&Tensor::copysign), "other"_a, "|x| with the sign of other.");
  method(c, "logaddexp", plain(&Tensor::logaddexp), "other"_a, "log(e^x + e^other).");
  for (const auto& [name, m] : kOfTwo) method(c, name, plain(m), "other"_a, doc_of(name));
  method(c, "heaviside", plain(&Tensor::heaviside), "values"_a, doc_of("heaviside"));
  method(c, "isclose", plain(&Tensor::isclose), "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8,
         "equal_nan"_a = false, "|x - other| <= atol + rtol * |other|, or equal.");
  computing_method(
      c, "allclose",
      [](const Tensor& x, const Operand& y, double rtol, double atol, bool equal_nan) {
        return allclose(x, y, rtol, atol, equal_nan, CallSite()).item<bool>(CallSite());
      },
      "other"_a, "rtol"_a = 1e-5, "atol"_a = 1e-8, "equal_nan"_a = false,
      "Whether all elements are close: a bool.");
}

void bind_ternary(TensorClass& c) {
  method(c, "where", plain(&Tensor::where), "x"_a, "y"_a, "x where this is not 0, else y.");
  method(c, "lerp", plain(&Tensor::lerp), "end"_a, "weight"_a, "x + (end - x) * weight.");
  method(c, "masked_fill", plain(&Tensor::masked_fill), "mask"_a, "value"_a,
         "value where mask, else this.");
  method(c, "addcmul", plain(&Tensor::addcmul), "tensor1"_a, "tensor2"_a, "value"_a = 1.0,
         doc_of("addcmul"));
  method(c, "addcdiv", plain(&Tensor::addcdiv), "tensor1"_a, "tensor2"_a, "value"_a = 1.0,
         doc_of("addcdiv"));
  method(c, "nan_to_num", finite, "nan"_a = 0.0, "posinf"_a = nb::none(), "neginf"_a = nb::none(),
         doc_of("nan_to_num"));
  for (const char* name : {"clamp", "clip"})
    method(c, name, clamped, "min_"_a = nb::none(), "max_"_a = nb::none(),
           "No less than min_, no more than max_.");
}

void bind_activations(TensorClass& c) {
  const auto row = [&c](const char* name, auto m, const auto&... arguments) {
    method(c, name, plain(m), arguments..., doc_of(name));
  };
  row("leaky_relu", &Tensor::leaky_relu, "neg_slope"_a = 0.01);
  row("hardtanh", &Tensor::hardtanh, "min_val"_a = -1.0, "max_val"_a = 1.0);
  row("threshold", &Tensor::threshold, "threshold"_a, "value"_a);
  row("hardshrink", &Tensor::hardshrink, "lambd"_a = 0.5);
  row("softshrink", &Tensor::softshrink, "lambd"_a = 0.5);
  row("hardsigmoid", &Tensor::hardsigmoid, "alpha"_a = 1.0 / 6, "beta"_a = 0.5);
  row("elu", &Tensor::elu, "alpha"_a = 1.0);
  row("celu", &Tensor::celu, "alpha"_a = 1.0);
  row("selu", &Tensor::selu, "alpha"_a = 1.6732632423543772, "gamma"_a = 1.0507009873554805);
  row("isinf", &Tensor::isinf, "detect_positive"_a = true, "detect_negative"_a = true);
  row("softplus", &Tensor::softplus, "beta"_a = 1.0);
  method(c, "gelu", gelu, "approximate"_a = "tanh", doc_of("gelu"));
}

void bind_casts(TensorClass& c) {
  method(c, "cast", plain(&Tensor::cast), "dtype"_a,
         "The same values: floats to integers truncate and saturate, NaN gives 0.");
  method(c, "bitcast", plain(&Tensor::bitcast), "dtype"_a, "The same bits as another dtype.");
  const auto shortcut = [&c](const char* name, DType dtype) {
    method(
        c, name, [dtype](const Tensor& x) { return x.cast(dtype, CallSite()); },
        "cast() to this dtype.");
  };
  shortcut("half", DType::F16);
  shortcut("bfloat16", DType::BF16);
  shortcut("double", DType::F64);
  shortcut("long", DType::I64);
  shortcut("short", DType::I16);
  shortcut("bool", DType::Bool);
  method(
      c, "float", [](const Tensor& x) { return x.cast(default_dtypes().floats, CallSite()); },
      "cast() to dtypes.default_float.");
  method(
      c, "int", [](const Tensor& x) { return x.cast(default_dtypes().ints, CallSite()); },
      "cast() to dtypes.default_int.");
  c.def("is_floating_point", [](const Tensor& x) { return is_float(x.dtype()); });
  method(c, "contiguous", plain(&Tensor::contiguous), "Asks for memory of its own.");
  method(c, "trunc", plain(&Tensor::trunc), "Rounded towards 0.");
}

}  // namespace

void bind_elementwise(TensorClass& c) {
#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, m, value, doc, ...) \
  bind_row(c, #m, &Tensor::m, doc);
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
#define WEFT_DERIVED(name, declared, params, doc, ...) bind_row(c, #name, &Tensor::name, doc);
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
  bind_binary(c);
  bind_ternary(c);
  bind_activations(c);
  bind_casts(c);
}

}  // namespace weft::python
