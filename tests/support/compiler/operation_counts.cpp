#include "tests/support/compiler/operation_counts.h"

#include <map>

#include "weft/lower/lower.h"
#include "weft/lower/range_deps.h"
#include "weft/optimize/optimize.h"

namespace weft::testing {
namespace {

using lower::RangeDeps;

class Counter {
 public:
  explicit Counter(const Target& target) : target_(target) {}

  /// Operations of one element of `n`, which is no reduction.
  double operations(NodeRef n) {
    if (!is_alu(n->op) || !is_float(n->src(0)->dtype)) return 0;
    const auto key = std::pair(n->op, n->dtype);
    const auto known = known_.find(key);
    return known != known_.end() ? known->second : known_[key] = expanded(n);
  }

  StepWork step(const Kernel& kernel) {
    const Kernel better = optimize_kernel(kernel, target_, {});
    const NumberedOrder order(better.sink);
    const RangeDeps deps(order);
    StepWork work{kernel.name, lower_kernel(better, target_).flops, 0, 0};
    for (NodeRef n : deps.order()) {
      const double here = times(deps, deps.of(n));
      if (n->op == Op::Store) work.stores += here;
      if (n->op == Op::Reduce && is_float(n->dtype))
        work.needed += times(deps, all_around(deps, n));
      else
        work.needed += operations(n) * here;
    }
    return work;
  }

 private:
  static double times(const RangeDeps& deps, const RangeSet& ranges) {
    double n = 1;
    ranges.each([&](size_t r) { n *= static_cast<double>(deps.ranges()[r]->src(0)->vmax); });
    return n;
  }
  /// The ranges it folds over and those outside of them.
  static RangeSet all_around(const RangeDeps& deps, NodeRef reduce) {
    RangeSet all = deps.set_of(listed_ranges(reduce));
    all |= deps.of(reduce);
    return all;
  }

  /// What lower/ makes of the op: polynomials for those that are not exact.
  double expanded(NodeRef like) {
    constexpr int64_t kElements = 1024;
    Kernel k{std::make_shared<Graph>(), nullptr, "one"};
    Graph& g = *k.graph;
    NodeRef size = g.index(kElements), at = g.range(size, 0);
    std::vector<NodeRef> src;
    for (NodeRef s : like->src()) {
      NodeRef param = g.param(static_cast<int64_t>(src.size()) + 1, s->dtype, {&size, 1});
      src.push_back(g.make(Op::Load, s->dtype, {param, at}));
    }
    NodeRef value = g.make({like->op, like->dtype, src, like->ints()});
    NodeRef store =
        g.make(Op::Store, DType::Void, {g.param(0, like->dtype, {&size, 1}), at, value}, {0, 1});
    k.sink = g.make(Op::Sink, DType::Void, {store});
    return lower_kernel(k, target_).flops / kElements;
  }

  const Target& target_;
  std::map<std::pair<Op, DType>, double> known_;
};

double elements(NodeRef n) {
  double product = 1;
  for (NodeRef d : n->shape->span()) product *= static_cast<double>(d->vmax);
  return product;
}

}  // namespace

double Work::executed() const {
  double sum = 0;
  for (const StepWork& s : steps) sum += s.executed;
  return sum;
}

Work count_work(std::span<const NodeRef> values, const Target& target) {
  Counter counter(target);
  Work work;
  for (NodeRef n : Toposort(values))
    work.graph += n->op == Op::Reduce ? is_float(n->dtype) * elements(n->src(0))
                                      : counter.operations(n) * elements(n);
  std::vector<ScheduleOutput> outputs;
  for (NodeRef n : values) outputs.push_back({n});
  const Schedule schedule = make_schedule(outputs, target);
  std::vector<StepWork> of_kernel;
  for (const Kernel& k : schedule.kernels) of_kernel.push_back(counter.step(k));
  for (const ScheduleStep& s : schedule.steps)
    if (s.kernel >= 0) work.steps.push_back(of_kernel[static_cast<size_t>(s.kernel)]);
  return work;
}

}  // namespace weft::testing
