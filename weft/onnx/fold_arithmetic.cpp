#include <algorithm>
#include <cmath>

#include "weft/onnx/broadcast.h"
#include "weft/onnx/fold.h"

namespace weft::onnx {

namespace {

/// How one operator computes an element: of whole numbers, of sizes where one is symbolic, of real
/// numbers. Unary ones are given their operand twice. Null, nothing: it does not fold.
struct Arithmetic {
  std::optional<int64_t> (*number)(int64_t, int64_t);
  std::optional<Dim> (*size)(const Dim&, const Dim&);
  double (*real)(double, double);
  bool gives_bool = false;
};

template <bool (*Overflows)(int64_t, int64_t, int64_t*)>
std::optional<int64_t> checked(int64_t a, int64_t b) {
  int64_t result = 0;
  if (Overflows(a, b, &result)) return std::nullopt;
  return result;
}
bool add_overflows(int64_t a, int64_t b, int64_t* r) { return __builtin_add_overflow(a, b, r); }
bool sub_overflows(int64_t a, int64_t b, int64_t* r) { return __builtin_sub_overflow(a, b, r); }
bool mul_overflows(int64_t a, int64_t b, int64_t* r) { return __builtin_mul_overflow(a, b, r); }

std::optional<Dim> known_if(bool yes, bool no) {
  if (yes) return Dim(1);
  if (no) return Dim(0);
  return std::nullopt;
}
std::optional<Dim> equal_sizes(const Dim& a, const Dim& b) {
  return known_if(a == b, a.max() < b.min() || b.max() < a.min());
}
std::optional<Dim> less_sizes(const Dim& a, const Dim& b) {
  return known_if(a.max() < b.min(), a == b || a.min() >= b.max());
}
std::optional<Dim> less_equal_sizes(const Dim& a, const Dim& b) {
  return known_if(a == b || a.max() <= b.min(), a.min() > b.max());
}

using N = std::optional<int64_t>;
using S = std::optional<Dim>;
using D = const Dim&;

constexpr Arithmetic kAdd = {checked<add_overflows>, [](D a, D b) -> S { return a + b; },
                             [](double a, double b) { return a + b; }};
constexpr Arithmetic kSub = {checked<sub_overflows>, [](D a, D b) -> S { return a - b; },
                             [](double a, double b) { return a - b; }};
constexpr Arithmetic kMul = {checked<mul_overflows>, [](D a, D b) -> S { return a * b; },
                             [](double a, double b) { return a * b; }};
constexpr Arithmetic kDiv = {
    [](int64_t a, int64_t b) -> N {
      if (b == 0 || b == -1) return b == 0 ? N() : checked<sub_overflows>(0, a);
      return a / b;
    },
    [](D a, D b) -> S { return a.min() >= 0 && b.min() > 0 ? S(a / b) : S(); },
    [](double a, double b) { return a / b; }};
constexpr Arithmetic kMod = {[](int64_t a, int64_t b) -> N {
                               if (b == 0 || b == -1) return b == 0 ? N() : N(0);
                               const int64_t rest = a % b;
                               return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
                             },
                             [](D a, D b) -> S { return b.min() > 0 ? S(a % b) : S(); }, nullptr};
constexpr Arithmetic kMax = {[](int64_t a, int64_t b) -> N { return std::max(a, b); },
                             [](D a, D b) -> S { return max(a, b); },
                             [](double a, double b) { return a < b || b != b ? b : a; }};
constexpr Arithmetic kMin = {[](int64_t a, int64_t b) -> N { return std::min(a, b); },
                             [](D a, D b) -> S { return min(a, b); },
                             [](double a, double b) { return b < a || b != b ? b : a; }};
constexpr Arithmetic kEqual = {[](int64_t a, int64_t b) -> N { return a == b; }, equal_sizes,
                               [](double a, double b) -> double { return a == b; }, true};
constexpr Arithmetic kLess = {[](int64_t a, int64_t b) -> N { return a < b; }, less_sizes,
                              [](double a, double b) -> double { return a < b; }, true};
constexpr Arithmetic kLessEqual = {[](int64_t a, int64_t b) -> N { return a <= b; },
                                   less_equal_sizes,
                                   [](double a, double b) -> double { return a <= b; }, true};
constexpr Arithmetic kGreater = {[](int64_t a, int64_t b) -> N { return a > b; },
                                 [](D a, D b) -> S { return less_sizes(b, a); },
                                 [](double a, double b) -> double { return a > b; }, true};
constexpr Arithmetic kGreaterEqual = {[](int64_t a, int64_t b) -> N { return a >= b; },
                                      [](D a, D b) -> S { return less_equal_sizes(b, a); },
                                      [](double a, double b) -> double { return a >= b; }, true};
constexpr Arithmetic kAnd = {[](int64_t a, int64_t b) -> N { return a & b; }, nullptr, nullptr,
                             true};
constexpr Arithmetic kOr = {[](int64_t a, int64_t b) -> N { return a | b; }, nullptr, nullptr,
                            true};
constexpr Arithmetic kXor = {[](int64_t a, int64_t b) -> N { return a ^ b; }, nullptr, nullptr,
                             true};
constexpr Arithmetic kNot = {[](int64_t a, int64_t) -> N { return !a; }, nullptr, nullptr, true};
constexpr Arithmetic kNeg = {[](int64_t a, int64_t) { return checked<sub_overflows>(0, a); },
                             [](D a, D) -> S { return Dim(0) - a; },
                             [](double a, double) { return -a; }};
constexpr Arithmetic kAbs = {
    [](int64_t a, int64_t) { return a < 0 ? checked<sub_overflows>(0, a) : N(a); },
    [](D a, D) -> S { return a.min() >= 0 ? S(a) : S(); },
    [](double a, double) { return std::fabs(a); }};
constexpr Arithmetic kFloor = {nullptr, nullptr, [](double a, double) { return std::floor(a); }};
constexpr Arithmetic kCeil = {nullptr, nullptr, [](double a, double) { return std::ceil(a); }};
constexpr Arithmetic kSqrt = {nullptr, nullptr, [](double a, double) { return std::sqrt(a); }};
constexpr Arithmetic kReciprocal = {nullptr, nullptr, [](double a, double) { return 1 / a; }};

/// Sizes whose arithmetic stays far from overflow.
bool is_small(const Dim& d) {
  constexpr int64_t kMost = int64_t{1} << 31;
  return d.min() > -kMost && d.max() < kMost;
}

S whole_element(const Arithmetic& op, const Dim& a, const Dim& b, DType d) {
  if (a.is_static() && b.is_static()) {
    const N x = op.number ? op.number(a.value(), b.value()) : N();
    if (!x ||
        (is_int(d) && (*x < int_min(d) || (*x > 0 && static_cast<uint64_t>(*x) > int_max(d)))))
      return std::nullopt;  // kernels wrap
    return Dim(*x);
  }
  return op.size && is_small(a) && is_small(b) ? op.size(a, b) : std::nullopt;
}

Folded both(const Arithmetic& op, const NodeCall& call, const KnownElements& a,
            const KnownElements& b) {
  const std::vector<int64_t> whole = broadcast_shape(call, {a.shape, b.shape});
  const int64_t count = checked_numel(whole).value_or(INT64_MAX);
  if (a.dtype != b.dtype || count > Value::kMostKnown || (a.is_real() && !op.real))
    return std::nullopt;
  KnownElements out{op.gives_bool ? DType::Bool : a.dtype, whole, {}, {}};
  const BroadcastPlaces in_a(a.shape, whole), in_b(b.shape, whole);
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const size_t x = in_a.of(i), y = in_b.of(i);
    if (a.is_real()) {
      const double z = op.real(a.real[x], b.real[y]);
      if (op.gives_bool)
        out.whole.emplace_back(z != 0);
      else
        out.real.push_back(weft::Value::of(out.dtype, z).as_double());
      continue;
    }
    const S z = whole_element(op, a.whole[x], b.whole[y], out.dtype);
    if (!z) return std::nullopt;
    out.whole.push_back(*z);
  }
  return Known{std::move(out)};
}

template <const Arithmetic& Op>
Folded elementwise(const NodeCall& call, const Known& in) {
  if ((call.opset() < 7 && call.has("axis")) || call.integer("fmod", 0) != 0) return std::nullopt;
  Folded all = both(Op, call, in[0], in.size() > 1 ? in[1] : in[0]);
  for (size_t i = 2; all && i < in.size(); ++i) all = both(Op, call, all->front(), in[i]);
  return all;
}

template <const Arithmetic& Op>
Folded reduction(const NodeCall& call, const Known& in) {
  const KnownElements& x = in[0];
  const bool as_input = call.node().op == "ReduceSum" ? call.opset() >= 13 : call.opset() >= 18;
  std::vector<int64_t> axes = call.ints_of(1, "axes", as_input ? 1 : 1000);
  if (axes.empty() && call.integer("noop_with_empty_axes", 0) != 0) return Known{x};
  std::vector<bool> gone(x.shape.size(), axes.empty());
  for (const int64_t axis : axes) gone[static_cast<size_t>(call.axis(axis, x.shape.size()))] = true;
  std::vector<int64_t> kept, shape;
  for (size_t i = 0; i < x.shape.size(); ++i) {
    kept.push_back(gone[i] ? 1 : x.shape[i]);
    if (!gone[i] || call.integer("keepdims", 1) != 0) shape.push_back(kept.back());
  }
  const BroadcastPlaces place(kept, x.shape);
  const auto count = static_cast<size_t>(checked_numel(kept).value_or(0));
  std::vector<std::optional<KnownElements>> sums(count);
  for (size_t i = 0; i < x.count(); ++i) {
    std::optional<KnownElements>& sum = sums[place.of(i)];
    const KnownElements one = x.at({i}, {});
    const Folded next = sum ? both(Op, call, *sum, one) : Known{one};
    if (!next) return std::nullopt;
    sum = next->front();
  }
  KnownElements out{x.dtype, std::move(shape), {}, {}};
  for (const auto& sum : sums) {
    if (!sum) return std::nullopt;  // of nothing
    out.append(*sum, 0);
  }
  return Known{std::move(out)};
}

Folded cast(const NodeCall& call, const Known& in) {
  if (call.opset() < 6) return std::nullopt;
  const auto to = static_cast<ElementType>(call.integer("to"));
  const DType d = dtype_of(to);
  if (d == DType::Void || element_type_of(d) != to || is_float8(d)) return std::nullopt;
  KnownElements out{d, in[0].shape, {}, {}};
  for (size_t i = 0; i < in[0].count(); ++i) {
    if (!in[0].is_real() && !in[0].whole[i].is_static()) {
      if (!is_int(d) || !is_small(in[0].whole[i]) || bits(d) < 32) return std::nullopt;
      out.whole.push_back(in[0].whole[i]);
      continue;
    }
    const auto from = in[0].is_real() ? weft::Value::of(in[0].dtype, in[0].real[i])
                                      : weft::Value::of(in[0].dtype, in[0].whole[i].value());
    const weft::Value x = from.cast(d);
    if (is_float(d))
      out.real.push_back(x.as_double());
    else
      out.whole.emplace_back(x.as_int());
  }
  return Known{std::move(out)};
}

Folded where(const NodeCall& call, const Known& in) {
  const std::vector<int64_t> whole = broadcast_shape(call, {in[0].shape, in[1].shape, in[2].shape});
  const int64_t count = checked_numel(whole).value_or(INT64_MAX);
  if (!in[0].is_static() || in[1].dtype != in[2].dtype || count > Value::kMostKnown)
    return std::nullopt;
  const BroadcastPlaces of_condition(in[0].shape, whole), of_a(in[1].shape, whole),
      of_b(in[2].shape, whole);
  KnownElements out{in[1].dtype, whole, {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    const bool first = in[0].whole[of_condition.of(i)].value() != 0;
    out.append(first ? in[1] : in[2], first ? of_a.of(i) : of_b.of(i));
  }
  return Known{std::move(out)};
}

constexpr FoldRow kRows[] = {
    {"Abs", elementwise<kAbs>},
    {"Add", elementwise<kAdd>},
    {"And", elementwise<kAnd>},
    {"Cast", cast},
    {"Ceil", elementwise<kCeil>},
    {"Div", elementwise<kDiv>},
    {"Equal", elementwise<kEqual>},
    {"Floor", elementwise<kFloor>},
    {"Greater", elementwise<kGreater>},
    {"GreaterOrEqual", elementwise<kGreaterEqual>},
    {"Less", elementwise<kLess>},
    {"LessOrEqual", elementwise<kLessEqual>},
    {"Max", elementwise<kMax>},
    {"Min", elementwise<kMin>},
    {"Mod", elementwise<kMod>},
    {"Mul", elementwise<kMul>},
    {"Neg", elementwise<kNeg>},
    {"Not", elementwise<kNot>},
    {"Or", elementwise<kOr>},
    {"Reciprocal", elementwise<kReciprocal>},
    {"ReduceMax", reduction<kMax>},
    {"ReduceMin", reduction<kMin>},
    {"ReduceProd", reduction<kMul>},
    {"ReduceSum", reduction<kAdd>},
    {"Sqrt", elementwise<kSqrt>},
    {"Sub", elementwise<kSub>},
    {"Where", where},
    {"Xor", elementwise<kXor>},
};

}  // namespace

std::span<const FoldRow> arithmetic_folds() { return kRows; }

}  // namespace weft::onnx
