// Elementwise functions, reductions, running folds and normalisations.
#include <algorithm>

#include "weft/app/bench_cases.h"
#include "weft/base/format.h"
#include "weft/tensor/reductions.h"

namespace weft {
namespace {

using Fill = BenchOperand::Fill;

const std::vector<int64_t> kSizes = {1 << 10, 1 << 16, 1 << 22};

/// What differs below 0: PyTorch leaves the part out that no element of a vector needs.
constexpr std::string_view kOfBothSigns[] = {
    "celu",       "elu",        "gelu",     "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "leaky_relu", "logsigmoid", "mish",     "quick_gelu", "relu",        "relu6",     "selu",
    "sigmoid",    "silu",       "softplus", "softshrink", "softsign",    "swish",     "tanhshrink"};

/// Of one operand, or of two.
void add_function(std::vector<BenchCase>& cases, std::string_view name, int operands,
                  std::function<BenchValues(const BenchValues&)> compute) {
  // (0.1, 1.1): where most functions are neither 0 nor NaN.
  const bool both = std::ranges::find(kOfBothSigns, name) != std::end(kOfBothSigns);
  BenchOperand one{{0}, DType::F32, both ? Fill::Normal : Fill::Positive};
  if (name.starts_with("bitwise") || name.ends_with("shift"))
    one = {{0}, DType::I32, Fill::Below, 8};
  cases.push_back({.group = "elementwise",
                   .name = strformat("{} of {{}}", name),
                   .sizes = {1 << 10, 1 << 16, 1 << 22},
                   .operands = [=](int64_t n) -> BenchOperands {
                     BenchOperands all(static_cast<size_t>(operands), one);
                     for (BenchOperand& operand : all) operand.dims = {n};
                     return all;
                   },
                   .compute = std::move(compute),
                   .torch = strformat("f('{}')({})", name, operands == 1 ? "a" : "a, b")});
}

/// What can be called without numbers is a case.
template <class Unary, class Binary>
void add_method(std::vector<BenchCase>& cases, std::string_view name, Unary unary, Binary binary) {
  if constexpr (std::is_invocable_v<Unary, const Tensor&>)
    add_function(cases, name, 1,
                 [unary](const BenchValues& v) -> BenchValues { return {unary(v[0])}; });
  else if constexpr (std::is_invocable_v<Binary, const Tensor&, const Tensor&>)
    add_function(cases, name, 2,
                 [binary](const BenchValues& v) -> BenchValues { return {binary(v[0], v[1])}; });
}

/// Every function of ops.def and derived.def, by these lists.
void add_every_function(std::vector<BenchCase>& cases) {
#define WEFT_CASE(method)                                                               \
  add_method(                                                                           \
      cases, #method, [](const auto& x) -> decltype(x.method()) { return x.method(); }, \
      [](const auto& x, const auto& y) -> decltype(x.method(y)) { return x.method(y); });
#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, ...) WEFT_CASE(method)
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
#define WEFT_DERIVED(name, ...) WEFT_CASE(name)
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
#undef WEFT_CASE
}

/// Of a matrix with 4096 columns and `size` rows.
struct Rows {
  const char *group, *name;
  Tensor (*compute)(const Tensor& x);
  const char *torch, *numpy = "";
};

constexpr Rows kRows[] = {
    {"reductions", "sum", [](const Tensor& x) { return x.sum(); }, "a.sum()", "a.sum()"},
    {"reductions", "sum over rows", [](const Tensor& x) { return x.sum(0); }, "a.sum(0)",
     "a.sum(0)"},
    {"reductions", "sum over columns", [](const Tensor& x) { return x.sum(1); }, "a.sum(1)",
     "a.sum(1)"},
    {"reductions", "prod over columns", [](const Tensor& x) { return x.prod(1); }, "a.prod(1)"},
    {"reductions", "max over columns", [](const Tensor& x) { return x.max(1); }, "a.amax(1)"},
    {"reductions", "min over rows", [](const Tensor& x) { return x.min(0); }, "a.amin(0)"},
    {"reductions", "mean over columns", [](const Tensor& x) { return x.mean(1); }, "a.mean(1)"},
    {"reductions", "var over columns", [](const Tensor& x) { return x.var(1); }, "a.var(1)"},
    {"reductions", "std over rows", [](const Tensor& x) { return x.std(0); }, "a.std(0)"},
    {"reductions", "any", [](const Tensor& x) { return (x > 9).any(); }, "(a > 9).any()"},
    {"reductions", "argmax", [](const Tensor& x) { return x.argmax(); }, "a.argmax()",
     "a.argmax()"},
    {"reductions", "argmax over columns", [](const Tensor& x) { return x.argmax(1); },
     "a.argmax(1)"},
    {"reductions", "argmin over rows", [](const Tensor& x) { return x.argmin(0); }, "a.argmin(0)"},
    {"reductions", "logsumexp over columns", [](const Tensor& x) { return x.logsumexp(1); },
     "a.logsumexp(1)"},
    {"running", "cumsum along rows", [](const Tensor& x) { return x.cumsum(1); }, "a.cumsum(1)",
     "a.cumsum(1)"},
    {"running", "cumsum down columns", [](const Tensor& x) { return x.cumsum(0); }, "a.cumsum(0)",
     "a.cumsum(0)"},
    {"running", "cumprod along rows", [](const Tensor& x) { return x.cumprod(1); }, "a.cumprod(1)"},
    {"running", "cummax along rows", [](const Tensor& x) { return x.cummax(1); },
     "a.cummax(1).values"},
    {"running", "logcumsumexp along rows", [](const Tensor& x) { return logcumsumexp(x, 1); },
     "a.logcumsumexp(1)"},
    {"normalisation", "softmax", [](const Tensor& x) { return x.softmax(); }, "a.softmax(-1)"},
    {"normalisation", "softmax down columns", [](const Tensor& x) { return x.softmax(0); },
     "a.softmax(0)"},
    {"normalisation", "log_softmax", [](const Tensor& x) { return x.log_softmax(); },
     "a.log_softmax(-1)"},
    {"normalisation", "layernorm", [](const Tensor& x) { return x.layernorm(); },
     "F.layer_norm(a, (4096,))"},
};

void add_rows(std::vector<BenchCase>& cases) {
  for (const Rows& row : kRows)
    cases.push_back({.group = row.group,
                     .name = strformat("{}, {{}} x 4096", row.name),
                     .sizes = {16, 256, 4096},
                     .operands = [](int64_t n) -> BenchOperands { return {{{n, 4096}}}; },
                     .compute = [compute = row.compute](const BenchValues& v) -> BenchValues {
                       return {compute(v[0])};
                     },
                     .torch = row.torch,
                     .numpy = row.numpy});
}

}  // namespace

void add_functions(std::vector<BenchCase>& cases) {
  add_every_function(cases);
  add_rows(cases);
  cases.push_back({"normalisation",
                   "batchnorm with statistics, {} x 64 x 56 x 56",
                   {1, 8},
                   [](int64_t n) -> BenchOperands { return {{{n, 64, 56, 56}}}; },
                   [](const BenchValues& v) -> BenchValues {
                     const Axes axes = {0, 2, 3};
                     return {v[0].batchnorm({}, {}, v[0].mean(axes),
                                            (v[0].var(axes, false, 0) + 1e-5).rsqrt())};
                   },
                   "F.batch_norm(a, None, None, training=True)"});
}

}  // namespace weft
