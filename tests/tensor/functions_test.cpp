// Every function of ops.def, and those of derived.def that can be called without arguments: kernels
// against the oracle, gradients against finite differences. A new row is tested by being there.
#include <cmath>
#include <type_traits>

#include "tests/tensor/tensor_test.h"

namespace weft {
namespace {

using Function = Tensor (*)(const Tensor& x);

struct Row {
  const char* name;
  Function call;  // null for functions that need arguments
};

template <class F>
constexpr Function caller(F f) {
  if constexpr (std::is_invocable_v<F, const Tensor&>)
    return f;
  else
    return nullptr;
}
#define CALLER(method)                       \
  caller([](const auto& x)                   \
           requires requires { x.method(); } \
         { return x.method(); })

/// Both operands vary, and are equal nowhere that is tested.
#define CALLER_Unary(method) [](const Tensor& x) { return x.method(); }
#define CALLER_Binary(method) [](const Tensor& x) { return x.method(1.35 - x); }

const Row kFunctions[] = {
#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, ...) \
  {#method, (traits) & kIntOnly ? nullptr : Function(CALLER_##group(method))},
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
#define WEFT_DERIVED(name, declared, params, doc, ...) {#name, CALLER(name)},
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
};

class Functions : public TensorTest {};

/// Away from kinks and poles, inside the domain of most functions or of acosh.
Tensor inside() { return Tensor::of({0.15f, 0.3f, 0.45f, 0.6f, 0.8f}).cast(DType::F64); }
Tensor above_one() { return Tensor::of({1.2f, 1.7f, 2.3f, 3.1f}).cast(DType::F64); }

TEST_F(Functions, KernelsEqualTheOracle) {
  size_t tested = 0;
  for (const Row& row : kFunctions) {
    if (!row.call) continue;
    SCOPED_TRACE(row.name);
    if (std::string_view(row.name) == "bitwise_not") continue;  // of integers, tested with them
    for (const DType dtype : {DType::F32, DType::F64}) {
      const Tensor x =
          Tensor::of({-2.5f, -1.0f, -0.4f, 0.0f, 0.15f, 0.5f, 1.0f, 1.7f, 60.0f, INFINITY, NAN});
      const Tensor y = row.call(x.cast(dtype));
      const std::vector<double> expected = values(y), got = y.cast(DType::F64).to_vector<double>();
      const double eps = std::ldexp(1.0, 4 - float_digits(dtype));
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_TRUE(got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i])) ||
                    std::fabs(got[i] - expected[i]) <= eps * std::max(1.0, std::fabs(expected[i])))
            << name(dtype) << " element " << i << ": " << got[i] << ", not " << expected[i];
    }
    ++tested;
  }
  EXPECT_GT(tested, 40u);
}

TEST_F(Functions, GradientsEqualFiniteDifferences) {
  for (const Row& row : kFunctions) {
    if (!row.call || std::string_view(row.name) == "bitwise_not") continue;
    SCOPED_TRACE(row.name);
    const bool needs_more = std::isnan(values(row.call(inside()))[0]);
    const Tensor x = needs_more ? above_one() : inside();
    if (!is_float(row.call(x).dtype())) continue;
    const double h = 1e-5;
    const std::vector<double> up = values(row.call(x + h)), down = values(row.call(x - h));
    const std::vector<double> got = values(row.call(x).sum().gradient({x})[0]);
    for (size_t i = 0; i < up.size(); ++i) {
      const double expected = (up[i] - down[i]) / (2 * h);
      EXPECT_NEAR(got[i], expected, 1e-5 * std::max(1.0, std::fabs(expected))) << "element " << i;
    }
  }
}

}  // namespace
}  // namespace weft
