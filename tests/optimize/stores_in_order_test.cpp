// Stores whose place depends on data: which loops stay in order, and what vectors and cores share.
#include "tests/optimize/kernels.h"

namespace weft {
namespace {

using namespace test;

TEST(Optimize, stores_that_fold_stay_in_order) {
  KernelBuilder b;
  NodeRef i = b.range(40, 0), j = b.range(32, 1);
  NodeRef row =
      b.g.make(Op::ToIndex, DType::Index, {b.load(b.param(1, DType::I32, 40), i), b.index(5)});
  NodeRef value = b.load(b.param(2, DType::F32, 40 * 32), b.g.add(b.g.mul(i, b.index(32)), j));
  b.store(b.param(0, DType::F32, 5 * 32), b.g.add(b.g.mul(row, b.index(32)), j), value, nullptr,
          Fold::Add, 0);
  const Kernel k = b.kernel();
  const Kernel better = expect_kept(k, buffers_for(k));
  // Rows meet, columns do not: only columns may be vectors or shared.
  EXPECT_TRUE(has_binding(better, Binding::Vector));
  for (NodeRef n : Toposort(better.sink))
    if (n->op == Op::Range && n->src(0)->vmax == 40) {
      EXPECT_EQ(range_binding(n), Binding::Loop);
    }
}

/// Wide rows are written a run of columns at a time; what vectors do not divide comes by itself,
/// and once. Of rows whose halves or quarters of vectors do, these.
TEST(Optimize, rows_stored_in_order_are_vectors_in_runs) {
  for (const int64_t columns : {17, 96, 1000, 1001, 4096})
    for (const Fold fold : {Fold::Add, Fold::Set}) {
      SCOPED_TRACE(columns);
      KernelBuilder b;
      NodeRef i = b.range(12, 0), j = b.range(columns, 1), width = b.index(columns);
      NodeRef row =
          b.g.make(Op::ToIndex, DType::Index, {b.load(b.param(1, DType::I32, 12), i), b.index(5)});
      NodeRef value = b.load(b.param(2, DType::F32, 12 * columns), b.g.add(b.g.mul(i, width), j));
      b.store(b.param(0, DType::F32, 5 * columns), b.g.add(b.g.mul(row, width), j), value, nullptr,
              fold, 0);
      const Kernel k = b.kernel();
      const Kernel better = expect_kept(k, buffers_for(k));
      EXPECT_TRUE(has_binding(better, Binding::Vector)) << print_graph(better.sink);
      EXPECT_EQ(has_binding(better, Binding::Core), columns >= 96) << print_graph(better.sink);
      size_t stores = 0;
      for (NodeRef n : Toposort(better.sink)) stores += n->op == Op::Store;
      EXPECT_EQ(stores, columns % 2 == 1 ? 2U : 1U) << print_graph(better.sink);
      for (NodeRef n : Toposort(better.sink))
        if (n->op == Op::Range && is_int_const(n->src(0), 12)) {
          EXPECT_EQ(range_binding(n), Binding::Loop);
        }
    }
}

/// A number a row beside it is stored once, whatever becomes of the row.
TEST(Optimize, numbers_beside_rows_stored_in_order_are_stored_once) {
  KernelBuilder b;
  NodeRef i = b.range(12, 0), j = b.range(1001, 1), width = b.index(1001);
  NodeRef row =
      b.g.make(Op::ToIndex, DType::Index, {b.load(b.param(1, DType::I32, 12), i), b.index(5)});
  NodeRef value = b.load(b.param(2, DType::F32, 12 * 1001), b.g.add(b.g.mul(i, width), j));
  b.store(b.param(0, DType::F32, 5 * 1001), b.g.add(b.g.mul(row, width), j), value, nullptr,
          Fold::Add, 0);
  b.store(b.param(3, DType::F32, 5), row, b.load(b.param(4, DType::F32, 12), i), nullptr, Fold::Add,
          0);
  const Kernel k = b.kernel();
  expect_kept(k, buffers_for(k));
}

/// Counters of their own for each block: blocks meet nowhere, although what is counted depends on
/// the block, too.
TEST(Optimize, blocks_with_counters_of_their_own_are_shared_out) {
  for (const int64_t counters : {16, 17}) {  // of which each block has 16
    KernelBuilder b;
    NodeRef block = b.range(64, 0), i = b.range(500, 1);
    NodeRef at = b.g.add(b.g.mul(block, b.index(500)), i);
    NodeRef digit = b.load(b.param(1, DType::I32, 64 * 500), at);
    NodeRef counter = b.g.make(Op::ToIndex, DType::Index, {digit, b.index(counters)});
    b.store(b.param(0, DType::I32, 64 * 16 + 1), b.g.add(b.g.mul(block, b.index(16)), counter),
            b.g.constant(Value::of(DType::I32, 1)), nullptr, Fold::Add, 0);
    const Kernel k = b.kernel();
    EXPECT_EQ(has_binding(expect_kept(k, buffers_for(k)), Binding::Core), counters == 16);
  }
}

TEST(Optimize, last_write_wins_in_index_order) {
  KernelBuilder b;
  NodeRef i = b.range(64, 0);
  NodeRef at =
      b.g.make(Op::ToIndex, DType::Index, {b.load(b.param(1, DType::I32, 64), i), b.index(9)});
  b.store(b.param(0, DType::F32, 9), at, b.load(b.param(2, DType::F32, 64), i), nullptr, Fold::Set,
          0);
  const Kernel k = b.kernel();
  const Kernel better = expect_kept(k, buffers_for(k));
  EXPECT_FALSE(has_binding(better, Binding::Core));
}

/// A scatter along an axis of size 1: only the mask depends on data.
TEST(Optimize, last_row_wins_where_the_index_depends_on_no_data) {
  KernelBuilder b;
  NodeRef i = b.range(40, 0), j = b.range(32, 1), at = b.g.add(b.g.mul(i, b.index(32)), j);
  NodeRef chosen =
      b.g.lt(b.load(b.param(1, DType::I32, 40 * 32), at), b.g.constant(Value::of(DType::I32, 2)));
  b.store(b.param(0, DType::F32, 32), j, b.load(b.param(2, DType::F32, 40 * 32), at), chosen,
          Fold::Set, 0);
  const Kernel k = b.kernel();
  const Kernel better = expect_kept(k, buffers_for(k));
  int rows = 0;
  for (NodeRef n : Toposort(better.sink))
    rows += n->op == Op::Range && is_int_const(n->src(0), 40) && range_binding(n) == Binding::Loop;
  EXPECT_EQ(rows, 1) << print_graph(better.sink);
}

}  // namespace
}  // namespace weft
