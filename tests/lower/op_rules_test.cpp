// The tables of rules by op: every rule of every step is used by some kernel.
#include <set>

#include "tests/lower/random_groups.h"
#include "tests/lower/random_kernel.h"
#include "tests/lower/tile_kernel.h"
#include "weft/rewrite/op_rules.h"

namespace weft::test {
namespace {

/// The largest of five, by a loop with state, and what it is added to on the way, in each lane or
/// copy: in one kernel what random ones do not have.
Kernel loops_with_state(DType d, Binding binding) {
  KernelBuilder k;
  NodeRef i = k.range(4, 0, binding), r = k.range(5, 1), t = k.range(5, 2);
  const auto row = [&](NodeRef column) { return k.g.add(k.g.mul(i, k.index(5)), column); };
  NodeRef x = k.load(k.param(0, d, 20), row(r));
  const int64_t carried[] = {0, 7}, loop[] = {7, 0, 1, 0};
  NodeRef best = k.g.make({Op::Carry, d, {}, carried});
  const NodeRef of_loop[] = {k.g.constant(Value::of(d, -1)), k.g.where(k.g.lt(best, x), x, best),
                             r};
  NodeRef largest = k.g.make(Op::Get, d, {k.g.make({Op::Loop, DType::Void, of_loop, loop})}, {0});
  NodeRef n = k.g.cast(k.g.cast(k.g.variable("n", 1, 5, 1), DType::I32), d);
  const NodeRef of_scan[] = {k.load(k.param(1, d, 20), row(t)), t};
  const int64_t sum[] = {static_cast<int64_t>(Fold::Add)};
  NodeRef sums = k.g.make({Op::Scan, d, of_scan, sum});
  if (is_float8(d)) sums = k.g.make(Op::Bitcast, d, {k.g.make(Op::Bitcast, DType::U8, {sums})});
  k.store(k.param(2, d, 20), row(t), k.g.add(sums, k.g.mul(largest, n)));
  return k.kernel();
}

/// Where the last positive number is: a loop that carries an index.
Kernel index_with_state() {
  KernelBuilder k;
  NodeRef r = k.range(5, 0), x = k.load(k.param(0, DType::F32, 5), r);
  const int64_t carried[] = {0, 3}, loop[] = {3, 0, 1, 0};
  NodeRef last = k.g.make({Op::Carry, DType::Index, {}, carried});
  const NodeRef src[] = {k.index(-1), k.g.where(k.g.lt(k.f32(0), x), r, last), r};
  NodeRef found =
      k.g.make(Op::Get, DType::Index, {k.g.make({Op::Loop, DType::Void, src, loop})}, {0});
  k.store(k.param(1, DType::I64, 1), k.index(0), k.g.cast(found, DType::I64));
  return k.kernel();
}

/// A store that adds to what is there.
Kernel scattered() {
  KernelBuilder k;
  NodeRef i = k.range(12, 0);
  NodeRef at = k.g.alu(Op::ToIndex, {k.load(k.param(0, DType::I32, 12), i), k.index(5)});
  k.store(k.param(1, DType::I32, 5), at, k.load(k.param(2, DType::I32, 12), i), nullptr, Fold::Add,
          0);
  return k.kernel();
}

/// Reads and writes that nothing says are inside.
Kernel unproved() {
  KernelBuilder k;
  NodeRef i = k.range(12, 0), at = k.g.add(k.g.variable("n", 0, 20, 1), i);
  k.store(k.param(0, DType::F32, 20), at, k.load(k.param(1, DType::F32, 16), at));
  return k.kernel();
}

/// A reduction of 11 rows, of which three have a loop of their own.
Kernel with_remainder(Fold fold) {
  KernelBuilder k;
  NodeRef main = k.range(8, 0), rest = k.range(3, 1), x = k.param(0, DType::I32, 11);
  NodeRef first = k.reduce(fold, k.load(x, main), {main});
  NodeRef second = k.reduce(fold, k.load(x, k.g.add(k.index(8), rest)), {rest});
  k.store(k.param(1, DType::I32, 1), k.index(0), k.g.alu(fold_op(fold), {first, second}));
  return k.kernel();
}

/// Names of the rules that lowering these kernels has used.
class Used {
 public:
  void lower(const Kernel& kernel, const char* target = "c") {
    lower(kernel, make_target(target, CpuFeatures::detect(), 2));
  }
  void lower(const Kernel& kernel, const Target& target) {
    const RewriteTrace trace;
    lower_kernel(kernel, target);
    for (const RewriteStep& step : trace.steps) names.insert(step.rule->name);
  }
  std::set<std::string> names;
};

/// Columns of 16 lanes, stored side by side.
Kernel columns_of_rows() {
  KernelBuilder k;
  NodeRef i = k.range(8, 0, Binding::Unroll), j = k.range(16, 1, Binding::Vector);
  NodeRef x = k.load(k.param(1, DType::F32, 128), k.g.add(k.g.mul(i, k.index(16)), j));
  k.store(k.param(0, DType::F32, 128), k.g.add(k.g.mul(j, k.index(8)), i), x);
  return k.kernel();
}

TEST(OpRules, AreAllUsed) {
  Used used;
  for (DType d : {DType::F32, DType::F8E4M3})
    for (Binding b : {Binding::Vector, Binding::Unroll}) used.lower(loops_with_state(d, b));
  used.lower(scattered());
  used.lower(index_with_state());
  used.lower(padded_window());
  used.lower(unproved());
  for (Fold fold : {Fold::Add, Fold::Mul, Fold::Max, Fold::Min, Fold::And, Fold::Or})
    used.lower(with_remainder(fold));
  used.lower(TileKernel{16, 16, 32}.bound(false), target_with_tiles());
  used.lower(columns_of_rows(), target_with_tiles());
  for (uint32_t seed = 0; seed < 60; ++seed) {
    used.lower(RandomKernel(seed).kernel());
    used.lower(RandomGroups(seed).kernel(), "opencl");
  }
  int rules = 0;
  for (const RuleSetRow& set : lower_rule_sets())
    for (const RuleEntry& e : set.entries) {
      rules += e.by_op;
      EXPECT_TRUE(!e.by_op || used.names.contains(e.rule->name)) << e.rule->name;
    }
  EXPECT_GT(rules, 50);
}

}  // namespace
}  // namespace weft::test
