// Work groups: their loops cover what the kernel's cover, once; products are staged, rows folded,
// and both keep their values when a group's items run from barrier to barrier.
#include "weft/optimize/groups.h"

#include <random>

#include "tests/optimize/kernels.h"
#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::test {
namespace {

using optimize::bind_grid;
using optimize::KernelInfo;
using optimize::LoopNest;

/// A small GPU: groups of 64 items in waves of 4.
Target small_gpu() {
  Target t = make_target("cuda", CpuFeatures(), 1);
  t.groups.items = 64;
  t.groups.most_items = {64, 16, 4};
  t.groups.wave = 4;
  t.groups.local_bytes = 16 << 10;
  return t;
}

/// Optimised, lowered and run by groups; says what was done.
std::string expect_grouped(const Kernel& kernel, const Buffers& buffers,
                           const Variables& variables = {}, const Target& target = small_gpu()) {
  OptimizeReport report;
  const Kernel better = optimize_kernel(kernel, target, {true, &report});
  verify_kernel(better, "optimize");
  const LinearProgram program = lower_kernel(better, target);
  verify_program(program, "lower");
  EXPECT_TRUE(program.launch.grouped);
  const Buffers expected = run_kernel(kernel.sink, buffers, variables);
  const Buffers got = run_program(program, buffers, variables);
  for (size_t i = 0; i < expected[0].size(); ++i) {
    EXPECT_TRUE(same_value(got[0][i], expected[0][i], Zeros::Unsigned))
        << i << ": " << got[0][i].text() << ", not " << expected[0][i].text() << "\n"
        << joined(report.applied);
    if (::testing::Test::HasFailure()) break;
  }
  return joined(report.applied);
}

// ---- the grid

/// Adds 1 to one element for each iteration of all loops.
Kernel counting_kernel(const std::vector<int64_t>& sizes, int64_t& elements) {
  KernelBuilder b;
  NodeRef at = b.index(0);
  elements = 1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    at = b.g.add(b.g.mul(at, b.index(sizes[i])), b.range(sizes[i], static_cast<int64_t>(i)));
    elements *= sizes[i];
  }
  b.store(b.param(0, DType::I32, elements), at, b.g.constant(Value::of(DType::I32, 1)), nullptr,
          Fold::Add);
  return b.kernel();
}

void expect_bijection(const std::vector<int64_t>& sizes, const WorkGroups& groups) {
  int64_t elements = 0;
  Kernel kernel = counting_kernel(sizes, elements);
  const KernelInfo info(kernel.sink);
  LoopNest nest(*kernel.graph, info, false);
  const std::vector<LoopNest::Axis> loops = nest.loops();
  ASSERT_TRUE(bind_grid(nest, loops, groups));
  kernel.sink = nest.apply();
  verify_kernel(kernel, "bind_grid");
  for (NodeRef n : Toposort(kernel.sink)) {
    if (n->op != Op::Range) continue;
    ASSERT_EQ(range_binding(n), Binding::Grid);
    ASSERT_LE(n->src(0)->vmax, groups.most_groups[range_axis(n)]);
  }
  const Buffers got = run_kernel(kernel.sink, {zeros(DType::I32, elements)});
  for (const Value& v : got[0]) ASSERT_EQ(v.as_int(), 1);
}

TEST(GroupsOptimize, EveryIterationIsInOneGroup) {
  WorkGroups groups;
  groups.most_groups = {5, 4, 3};
  for (int64_t n = 1; n <= 60; ++n) expect_bijection({n}, groups);
  groups.most_groups = {7, 6, 30};
  for (int64_t m = 1; m <= 12; ++m)
    for (int64_t n = 1; n <= 12; ++n) expect_bijection({m, n}, groups);
  std::mt19937 random(1);
  groups.most_groups = {9, 9, 200};
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> sizes;
    for (size_t k = 1 + random() % 5; k > 0; --k) sizes.push_back(1 + random() % 5);
    if (sizes.size() > 3) sizes.back() = sizes[sizes.size() - 2] = 1 + random() % 9;
    SCOPED_TRACE(i);
    int64_t outer = 1;
    for (size_t k = 0; k + 2 < sizes.size(); ++k) outer *= sizes[k];
    if (outer <= 200) expect_bijection(sizes, groups);
    if (HasFatalFailure()) return;
  }
}

TEST(GroupsOptimize, AGridThatIsTooSmallIsSaid) {
  WorkGroups groups;
  groups.most_groups = {2, 2, 2};
  int64_t elements = 0;
  const Kernel kernel = counting_kernel({9}, elements);
  const KernelInfo info(kernel.sink);
  LoopNest nest(*kernel.graph, info, false);
  EXPECT_FALSE(bind_grid(nest, nest.loops(), groups));
}

TEST(GroupsOptimize, AsManyItemsAsKeepTheMachineBusy) {
  const auto items = [](int64_t enough) {
    Target t = make_target("c", CpuFeatures(), 1);
    t.enough_items = enough;
    const Kernel kernel = matmul_kernel(256, 256, 3, false, false);
    return lower_kernel(optimize_kernel(kernel, t, {}), t).core_size->vmin;
  };
  EXPECT_LT(items(1), 64) << "one loop";
  EXPECT_GE(items(64), 64) << "two";
}

// ---- products

TEST(GroupsOptimize, ProductsStageBothOperands) {
  for (const bool a_transposed : {false, true})
    for (const bool b_transposed : {false, true}) {
      const Kernel kernel = matmul_kernel(64, 64, 16, a_transposed, b_transposed);
      const std::string done =
          expect_grouped(kernel, {zeros(DType::F32, 64 * 64), numbers(DType::F32, 64 * 16, 2),
                                  numbers(DType::F32, 64 * 16, 3)});
      EXPECT_NE(done.find("stage load"), done.rfind("stage load")) << "two\n" << done;
    }
}

TEST(GroupsOptimize, ProductsOfAnySize) {
  std::mt19937 random(2);
  for (int i = 0; i < 4; ++i) {
    const int64_t m = 64 + random() % 20, n = 64 + random() % 20, k = 1 + random() % 20;
    SCOPED_TRACE(strformat("{} x {} x {}", m, n, k));
    expect_grouped(
        matmul_kernel(m, n, k, i % 2, i / 2 % 2),
        {zeros(DType::F32, m * n), numbers(DType::F32, m * k, 2), numbers(DType::F32, k * n, 3)});
    if (HasFailure()) return;
  }
}

TEST(GroupsOptimize, EmulatedGroupsHaveOneRowOfItems) {
  Target t = small_gpu();
  t.groups.emulated = true;
  const std::string done =
      expect_grouped(matmul_kernel(64, 70, 20, false, false),
                     {zeros(DType::F32, 64 * 70), numbers(DType::F32, 64 * 20, 2),
                      numbers(DType::F32, 20 * 70, 3)},
                     {}, t);
  EXPECT_EQ(done.find("to loop"), std::string::npos) << done;
}

TEST(GroupsOptimize, BlocksTakeTwoBuffersWhereThereIsMemoryAndGroupsAreNotEmulated) {
  const Kernel kernel = matmul_kernel(64, 64, 40, false, false);
  const Buffers buffers{zeros(DType::F32, 64 * 64), numbers(DType::F32, 64 * 40, 2),
                        numbers(DType::F32, 64 * 40, 3)};
  Target t = small_gpu();
  EXPECT_NE(expect_grouped(kernel, buffers, {}, t).find("in 2 buffers"), std::string::npos);
  t.groups.local_bytes = 2 << 10;
  EXPECT_EQ(expect_grouped(kernel, buffers, {}, t).find("in 2 buffers"), std::string::npos);
  t = small_gpu();
  t.groups.emulated = true;
  EXPECT_EQ(expect_grouped(kernel, buffers, {}, t).find("in 2 buffers"), std::string::npos);
}

TEST(GroupsOptimize, WhereSharedMemoryIsNoNearerNothingIsStaged) {
  Target t = small_gpu();
  t.groups.local_is_near = false;
  const Kernel better = optimize_kernel(matmul_kernel(64, 64, 16, false, false), t, {});
  EXPECT_FALSE(lower_kernel(better, t).launch.grouped);
}

TEST(GroupsOptimize, ElementsOfSharedMemoryAreAsLargeAsTheMachineSays) {
  Target t = small_gpu();
  const Kernel kernel = optimize_kernel(matmul_kernel(64, 64, 16, false, false), t, {});
  t.groups.least_local_bits = 1024;
  EXPECT_THROW(lower_kernel(kernel, t), InternalError) << "32 times as large, it does not fit";
  EXPECT_NO_THROW(lower_kernel(optimize_kernel(matmul_kernel(64, 64, 16, false, false), t, {}), t));
}

// ---- rows

/// out[row, c] = x[row, c] - max of the row, times its sum, or those alone.
Kernel row_kernel(int64_t rows, NodeRef columns, KernelBuilder& b, bool along) {
  NodeRef row = b.range(rows, 0), c = b.g.range(columns, 1);
  NodeRef all = b.g.mul(b.index(rows), columns);
  const NodeRef dims[] = {all};
  NodeRef in = b.g.param(1, DType::F32, dims), out = b.g.param(0, DType::F32, dims);
  const auto at = [&](NodeRef column) { return b.g.add(b.g.mul(row, columns), column); };
  NodeRef r1 = b.g.range(columns, 2), r2 = b.g.range(columns, 3);
  NodeRef most = b.reduce(Fold::Max, b.load(in, at(r1)), {r1});
  NodeRef sum = b.reduce(Fold::Add, b.g.sub(b.load(in, at(r2)), most), {r2});
  if (along)
    b.store(out, at(c), b.g.mul(sum, b.g.sub(b.load(in, at(c)), most)));
  else
    b.store(out, row, b.g.mul(sum, most));
  return b.kernel();
}

TEST(GroupsOptimize, RowsAreFoldedByAGroupInOneKernel) {
  for (const int64_t columns : {32, 64, 100, 130})
    for (const bool along : {true, false}) {
      SCOPED_TRACE(columns);
      KernelBuilder b;
      const Kernel kernel = row_kernel(2, b.index(columns), b, along);
      const std::string done = expect_grouped(
          kernel, {zeros(DType::F32, 2 * columns), numbers(DType::F32, 2 * columns)});
      EXPECT_NE(done.find("to group x"), std::string::npos) << done;
      if (HasFailure()) return;
    }
}

TEST(GroupsOptimize, SymbolicRows) {
  KernelBuilder b;
  NodeRef n = b.g.variable("n", 1, 200, 1);
  const Kernel kernel = row_kernel(2, n, b, true);
  for (const int64_t columns : {1, 31, 32, 33, 70})
    expect_grouped(kernel, {zeros(DType::F32, 2 * columns), numbers(DType::F32, 2 * columns)},
                   {{"n", columns}});
}

TEST(GroupsOptimize, WhatDoesNotPayRunsItemByItem) {
  const auto grouped = [](const Kernel& kernel, const Target& target) {
    return lower_kernel(optimize_kernel(kernel, target, {}), target).launch.grouped;
  };
  int64_t elements = 0;
  EXPECT_FALSE(grouped(counting_kernel({64, 64}, elements), small_gpu())) << "no reduction";
  EXPECT_FALSE(grouped(matmul_kernel(8, 8, 8, false, false), small_gpu())) << "a small product";
  EXPECT_FALSE(grouped(matmul_kernel(64, 64, 64, false, false), target_with_bits(512)))
      << "a machine without groups";
  Target emulated = small_gpu();
  emulated.groups.emulated = true;
  KernelBuilder b;
  EXPECT_FALSE(grouped(row_kernel(3, b.index(64), b, true), emulated));
}

}  // namespace
}  // namespace weft::test
