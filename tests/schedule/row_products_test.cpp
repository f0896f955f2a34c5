// Products of rows with a matrix that caches do not hold (schedule/row_products.cpp, and the
// streams of schedule/split_folds.cpp).
#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class RowProducts : public ScheduleTest {
 protected:
  RowProducts() {
    small_.vector_registers = 32;
    small_.machine.caches[1] = {4096, 4, 25};
    small_.machine.caches[2] = {1 << 15, 4, 15};
    options_.target = &small_;
  }

  /// Of the Repeat that it becomes; 0 where it becomes none.
  int64_t rounds(NodeRef product, const std::vector<bool>& constants = {}) {
    const Schedule s =
        make_schedule(std::vector<ScheduleOutput>{{product}}, small_, {.constants = constants});
    int64_t last = -1;
    for (const ScheduleStep& step : s.steps) last = std::max(last, step.round);
    return last + 1;
  }
  NodeRef product(int64_t m, int64_t k, int64_t n, DType dtype = DType::F32) {
    return b_.matmul(b_.param(0, {m, k}, dtype), b_.param(1, {k, n}, dtype));
  }

  Target small_ = kTarget;  // in its caches
  testing::RunOptions options_;
};

/// Few rows times a matrix that L2 does not hold: 32 rows of that are walked along side by side,
/// and the sums of all such chunks are summed. Not where sums lie along its rows; short ones follow
/// each other, and are in chunks for the cores (schedule_test.cpp).
TEST_F(RowProducts, FewRowsReadAMatrixInStreams) {
  const auto steps = [&](int64_t m, int64_t k, int64_t n) {
    return kernels({{b_.matmul(b_.param(0, {m, k}), b_.param(1, {k, n}))}});
  };
  EXPECT_EQ(steps(1, 4096, 4096), 2u);
  EXPECT_EQ(steps(16, 1024, 1024), 2u);
  EXPECT_EQ(steps(4, 1009, 2048), 2u);  // the last kernel sums what no chunk takes, too
  EXPECT_EQ(steps(4, 256, 256), 1u);    // in L2
  EXPECT_EQ(steps(1, 48, 65536), 1u);   // no more rows than streams
  EXPECT_EQ(
      kernels({{b_.matmul(b_.param(0, {4, 4096}), b_.permute(b_.param(1, {4096, 4096}), {1, 0}))}}),
      1u);
  for (const int64_t k : {512, 515})
    check({{b_.matmul(b_.param(0, {3, k}), b_.param(1, {k, 1031}))}}, 1e-4);
}

/// A matrix that L3 does not hold with those sums, or that would be packed for more rows, is read
/// once: in rounds, each with a block of its columns, that carry their sums from chunk to chunk.
TEST_F(RowProducts, FewRowsByAMatrixBeyondCachesCarryTheirSums) {
  EXPECT_EQ(rounds(product(1, 256, 512)), 0);                 // its sums are little in any case
  EXPECT_EQ(rounds(product(2, 256, 512)), 16);                // parts of the sum
  EXPECT_EQ(rounds(product(40, 256, 1024)), 4);               // blocks of columns
  EXPECT_EQ(rounds(product(9, 32, 2048)), 0);                 // no chunk
  EXPECT_EQ(rounds(product(2, 256, 1021)), 24);               // and a rest of 253
  EXPECT_EQ(rounds(product(2, 256, 255)), 0);                 // short runs
  EXPECT_EQ(rounds(product(2, 256, 512), {false, true}), 0);  // packed once
  NodeRef right = b_.matmul(b_.permute(b_.param(1, {200, 512}), {1, 0}),
                            b_.permute(b_.param(0, {5, 200}), {1, 0}));
  NodeRef x =
      g_.alu(Op::Max, {b_.matmul(b_.param(0, {5, 3}), b_.param(2, {3, 200})), b_.constant(0)});
  NodeRef bias = b_.broadcast(b_.param(3, {512}), {1, 512}, {5, 512});
  NodeRef layer = g_.add(b_.matmul(x, b_.param(1, {200, 512})), bias);
  for (NodeRef y : {right, layer, product(40, 130, 1024), product(3, 130, 515, DType::F64)}) {
    EXPECT_GT(rounds(y), 0);
    check({{y}}, 1e-4, options_);
  }
  small_.vector_registers = 16;  // it is packed
  EXPECT_EQ(rounds(product(40, 256, 1024)), 0);
  EXPECT_EQ(rounds(product(2, 256, 512)), 16);
  small_.canonical = true;  // sums as every machine takes them
  EXPECT_EQ(rounds(product(40, 256, 1024)), 4);
  // As far as memory: more rows carry their sums, whatever it holds.
  small_.canonical = false, small_.vector_registers = 32;
  small_.machine.caches[2] = {1 << 30, 4, 10};
  EXPECT_EQ(rounds(product(15, 256, 1024)), 0);
  EXPECT_EQ(rounds(product(16, 256, 1024)), 8);
}

/// What is multiplied by one number has no rows to tell apart: the gradient of a product's sum.
TEST_F(RowProducts, OneNumberTimesAMatrixIsNone) {
  NodeRef many = b_.broadcast(b_.param(1, {256, 512}), {1, 256, 512}, {40, 256, 512});
  NodeRef sum = b_.reduce(g_.mul(many, b_.constant(1.5)), Fold::Add, {1});
  EXPECT_EQ(rounds(sum), 0);
  check({{sum}}, 1e-4, options_);
}

/// More rows than that read a large matrix packed, block by block, as all of it would be written to
/// memory; columns that are no whole number of panels are never packed otherwise.
TEST_F(RowProducts, BlocksOfAMatrixBeyondCachesArePackedInTurn) {
  small_.vector_registers = 16;
  small_.machine.caches[1] = {1 << 16, 4, 25};
  small_.machine.caches[2] = {1 << 18, 4, 15};
  EXPECT_EQ(rounds(product(33, 600, 1024)), 16);                // blocks of four panels
  EXPECT_EQ(rounds(product(33, 511, 1024)), 0);                 // a short sum
  EXPECT_EQ(rounds(product(513, 600, 1024)), 0);                // copying it is little
  EXPECT_EQ(rounds(product(600, 600, 1010)), 21);               // but must be possible
  EXPECT_EQ(rounds(product(33, 600, 1024), {false, true}), 0);  // packed once
  EXPECT_EQ(rounds(product(33, 600, 1024, DType::I32)), 0);
  constexpr DType kF64 = DType::F64;
  NodeRef left = b_.matmul(b_.permute(b_.param(1, {515, 515}, kF64), {1, 0}),
                           b_.permute(b_.param(0, {33, 515}, kF64), {1, 0}));
  NodeRef bias = b_.broadcast(b_.param(3, {515}, kF64), {1, 515}, {33, 515});
  NodeRef layer = g_.add(product(33, 513, 515, kF64), bias);
  NodeRef down =
      b_.matmul(b_.permute(b_.param(0, {512, 33}, kF64), {1, 0}), b_.param(1, {512, 512}, kF64));
  for (NodeRef y : {left, layer, down}) {
    EXPECT_GT(rounds(y), 0);
    check({{y}}, 1e-4, options_);
  }
  // Rows of what it is multiplied by that are pages meet in the caches.
  const auto both_down = [&](int64_t rows) {
    return b_.matmul(b_.permute(b_.param(0, {600, rows}, kF64), {1, 0}),
                     b_.param(1, {600, 1024}, kF64));
  };
  EXPECT_GT(rounds(both_down(500)), 0);
  EXPECT_EQ(rounds(both_down(512)), 0);
}

/// Each of the products of a batch, and those that share the matrix.
TEST_F(RowProducts, FewRowsOfABatchByMatricesBeyondCaches) {
  NodeRef rows = b_.param(0, {3, 5, 130});
  for (const int64_t matrices : {3, 1})
    check({{b_.matmul(rows, b_.param(1, {matrices, 130, 512}))}}, 1e-4, options_);
}

}  // namespace
}  // namespace weft
