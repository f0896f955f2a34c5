// Sums and products of floats in random graphs: within n eps of the exact value (docs/dtypes.md),
// and everything else has the oracle's bits, given those sums.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/array_printer.h"
#include "tests/support/compiler/schedule_runner.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/rewrite/driver.h"
#include "weft/trust/random_graph.h"

namespace weft {
namespace {

/// What is known of a dtype's rounding: the distance from 1 to the next number, and the smallest.
struct Precision {
  double eps, tiny;
};
Precision precision_of(DType d) {
  switch (d) {
    case DType::F16: return {0x1p-10, 0x1p-24};
    case DType::BF16: return {0x1p-7, 0x1p-133};
    case DType::F32: return {0x1p-23, 0x1p-149};
    default: return {0x1p-52, 0x1p-1074};
  }
}

/// A fold of floats, term by term.
class ExactFold {
 public:
  ExactFold(Fold kind, DType dtype) : kind_(kind), dtype_(dtype), value_(kind == Fold::Mul) {}

  void add(double term) {
    ++terms_;
    value_ = kind_ == Fold::Mul ? value_ * term : value_ + term;
    if (!std::isfinite(term)) {
      infinite_ = infinite_ || std::isinf(term);
      return;
    }
    const long double size = std::fabs(static_cast<long double>(term));
    magnitudes_ += size;
    (size > 1 ? growth_ : decay_) *= size == 0 ? 1 : size;
  }
  int64_t terms() const { return terms_; }
  bool infinite() const { return infinite_; }
  /// True where some order of the fold leaves the range of the dtype, or of the one it is stored
  /// in: any result is then as good.
  bool may_overflow(DType stored) const {
    const long double most = std::min(float_max(dtype_), float_max(stored)) / 2;
    return kind_ == Fold::Add ? magnitudes_ > most : growth_ > most || decay_ < 1 / most;
  }
  /// n eps of the dtype the fold is carried in, and one rounding to the dtype it is stored in; a
  /// NaN or an infinity has to be just that.
  bool is_close(double got, DType stored) const {
    const auto exact = static_cast<double>(value_);
    if (!std::isfinite(exact)) return std::isnan(exact) ? std::isnan(got) : got == exact;
    const Precision carried = precision_of(dtype_), end = precision_of(stored);
    const long double size = kind_ == Fold::Add ? magnitudes_ : std::fabs(value_);
    long double bound = static_cast<long double>(terms_) * (carried.eps * size + carried.tiny);
    if (stored != dtype_) bound += end.eps * std::fabs(value_) + end.tiny;
    return std::fabs(static_cast<long double>(got) - value_) <= bound;
  }
  std::string text() const {
    return strformat("{} of {} terms is {}, their magnitudes {}", fold_name(kind_), terms_,
                     static_cast<double>(value_), static_cast<double>(magnitudes_));
  }

 private:
  Fold kind_;
  DType dtype_;
  int64_t terms_ = 0;
  // The exact value, and of the finite terms: the sum of their magnitudes, the products of those
  // above and below 1.
  long double value_, magnitudes_ = 0, growth_ = 1, decay_ = 1;
  bool infinite_ = false;
};

bool is_rounded_fold(NodeRef n) {
  return n->op == Op::Reduce && is_float(n->dtype) &&
         (fold_of(n) == Fold::Add || fold_of(n) == Fold::Mul);
}

/// The exact folds behind the elements of a Reduce, from its operand's elements.
std::vector<ExactFold> exact_folds(NodeRef reduce, const eval::Array& x, int64_t results) {
  std::vector<ExactFold> folds(static_cast<size_t>(results), {fold_of(reduce), reduce->dtype});
  const auto axes = reduce_axes(reduce);
  for (int64_t i = 0; i < x.count(); ++i) {
    int64_t at = 0, step = 1, left = i;
    for (size_t a = x.rank(); a-- > 0; left /= x.extents()[a]) {
      if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(a)) != axes.end()) continue;
      at += left % x.extents()[a] * step;
      step *= x.extents()[a];
    }
    folds[static_cast<size_t>(at)].add(x.at(i).as_double());
  }
  return folds;
}

class Checker {
 public:
  Checker(Context& context, const testing::RunOptions& options, bool folds_are_results)
      : context_(context), options_(options), folds_are_results_(folds_are_results) {}

  int64_t compared() const { return compared_; }

  /// What is wrong with the graph's results; empty where nothing is.
  std::string problem(Graph& g, const RandomGraph& r) try {
    for (const eval::Inputs& binding : r.bindings) {
      std::string text = folds_are_results_ ? problem_given_folds(g, r.roots, binding)
                                            : problem_of_roots(r.roots, binding);
      if (!text.empty()) return text;
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }

 private:
  /// Every fold is a result, too: with those results in its place, all else is pinned.
  std::string problem_given_folds(Graph& g, std::span<const NodeRef> roots, eval::Inputs inputs) {
    std::vector<NodeRef> all(roots.begin(), roots.end());
    for (NodeRef n : Toposort(roots))
      if (is_rounded_fold(n)) all.push_back(n);
    const std::vector<eval::Array> got = run(all, inputs);
    NodeMap<NodeRef> given;
    for (size_t i = roots.size(); i < all.size(); ++i) {
      given[all[i]] =
          g.param(static_cast<int64_t>(inputs.params.size()), all[i]->dtype, all[i]->shape->span());
      inputs.params.push_back(got[i]);
    }
    for (size_t i = 0; i < roots.size(); ++i) {
      const eval::Array wanted = eval::evaluate(substitute(g, roots[i], given), inputs);
      if (wanted != got[i])
        return strformat("root {}: expected {}\ngot {}", i, wanted.text(), got[i].text());
    }
    std::string text;
    for (size_t i = roots.size(); i < all.size() && text.empty(); ++i)
      text =
          problem_of(all[i], eval::evaluate(substitute(g, all[i]->src(0), given), inputs), got[i]);
    return text;
  }

  /// The roots are sums, or sums that were cast to what they are stored in; nothing else is one.
  std::string problem_of_roots(std::span<const NodeRef> roots, const eval::Inputs& inputs) {
    const std::vector<eval::Array> got = run(roots, inputs);
    std::string text;
    for (size_t i = 0; i < roots.size() && text.empty(); ++i) {
      NodeRef fold = roots[i]->op == Op::Cast ? roots[i]->src(0) : roots[i];
      if (is_rounded_fold(fold))
        text = problem_of(fold, eval::evaluate(fold->src(0), inputs), got[i]);
    }
    return text;
  }

  std::vector<eval::Array> run(std::span<const NodeRef> values, const eval::Inputs& inputs) {
    std::vector<ScheduleOutput> outputs;
    for (NodeRef n : values) outputs.push_back({n});
    std::vector<eval::Array> params = inputs.params;
    return testing::run_graph(context_, outputs, params, inputs.variables, options_);
  }

  std::string problem_of(NodeRef fold, const eval::Array& x, const eval::Array& got) {
    const std::vector<ExactFold> exact = exact_folds(fold, x, got.count());
    // A product fused into its sum does not overflow by itself.
    const Toposort terms(fold->src(0));
    const bool fused = std::any_of(terms.begin(), terms.end(), [](NodeRef n) {
      return n->op == Op::Mul && is_float(n->dtype);
    });
    for (int64_t i = 0; i < got.count(); ++i) {
      const ExactFold& e = exact[static_cast<size_t>(i)];
      if (e.may_overflow(got.dtype()) || (fused && e.infinite())) continue;
      compared_ += e.terms() > 1;
      if (!e.is_close(got.at(i).as_double(), got.dtype()))
        return strformat("{} as {}: {}, got {}", name(fold->dtype), name(got.dtype()), e.text(),
                         got.at(i).text());
    }
    return "";
  }

  Context& context_;
  const testing::RunOptions& options_;
  bool folds_are_results_;
  int64_t compared_ = 0;
};

/// Checks `count` graphs that end in sums; the first with a problem is shrunk and shown.
void expect_close(uint64_t count, RandomGraphOptions graphs, const testing::RunOptions& options) {
  graphs.transcendental = false;
  graphs.dtypes = {DType::F16, DType::BF16, DType::F32, DType::F32, DType::F64, DType::I32};
  Context context;
  Checker checker(context, options, graphs.float_sums);
  for (uint64_t seed = 0; seed < count; ++seed) {
    Graph g;
    RandomGraph r = random_graph(g, seed, graphs);
    end_in_sums(g, r, seed);
    if (checker.problem(g, r).empty()) continue;
    r = shrink(g, r, [&](const RandomGraph& x) { return !checker.problem(g, x).empty(); });
    FAIL() << "seed " << seed << "\n" << describe(r) << checker.problem(g, r);
  }
  EXPECT_GE(checker.compared(), static_cast<int64_t>(count / 4));
}

RandomGraphOptions with_sums(bool anywhere, int variables = 0) {
  RandomGraphOptions graphs;
  graphs.float_sums = anywhere;
  graphs.variables = variables;
  graphs.longest = 30;
  graphs.largest = 2000;
  return graphs;
}

TEST(RandomSums, OptimizedKernelsAreWithinTheBound) {
  for (const bool anywhere : {true, false}) {
    expect_close(150, with_sums(anywhere), {});
    expect_close(50, with_sums(anywhere, 2), {});
  }
}

TEST(RandomSums, CompiledKernelsAreWithinTheBound) {
  testing::RunOptions options;
  options.device = "C";
  for (const bool anywhere : {true, false}) expect_close(16, with_sums(anywhere), options);
}

TEST(RandomSums, MachineCodeIsWithinTheBound) {
  testing::RunOptions options;
  options.device = "X86";
  for (const bool anywhere : {true, false}) expect_close(60, with_sums(anywhere), options);
}

TEST(RandomSums, SlowHundredThousandGraphs) {
  for (const bool anywhere : {true, false}) {
    expect_close(40000, with_sums(anywhere), {});
    if (!HasFailure()) expect_close(10000, with_sums(anywhere, 2), {});
  }
}

}  // namespace
}  // namespace weft
