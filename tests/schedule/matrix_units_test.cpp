// Products of narrow numbers are scheduled for machines that have dot products of words, and
// compute what the oracle says on one that has none.
#include <gtest/gtest.h>

#include <deque>

#include "tests/support/compiler/graph_builder.h"
#include "tests/support/compiler/schedule_runner.h"
#include "weft/eval/evaluate.h"
#include "weft/target/target.h"

namespace weft {
namespace {

using eval::Array;
using testing::GraphBuilder;

Target target_with(std::initializer_list<CpuFeature> features) {
  CpuFeatures cpu;
  for (CpuFeature f : features) cpu.set(f, true);
  return make_target("x86", cpu, 2);
}
const Target kPlain = target_with({});
const Target kUnits = target_with({CpuFeature::AvxVnni, CpuFeature::Avx512bf16});
const Target kTiles = target_with({CpuFeature::AvxVnni, CpuFeature::Avx512bf16, CpuFeature::AmxTile,
                                   CpuFeature::AmxBf16, CpuFeature::AmxInt8});

struct Product {
  GraphBuilder b;
  NodeRef left, right, sum;
  Product(DType left_type, DType right_type, DType run, int64_t m, int64_t k, int64_t n)
      : left(b.param(0, {m, k}, left_type)), right(b.param(1, {k, n}, right_type)) {
    NodeRef x = b.graph().cast(left, run), y = b.graph().cast(right, run);
    sum = b.matmul(x, y);
  }
};

size_t count(const Schedule& made, Op op) {
  size_t n = 0;
  for (const Kernel& k : made.kernels)
    for (NodeRef node : Toposort(k.sink)) n += node->op == op;
  return n;
}
size_t dots(const Product& p, const Target& target) {
  const ScheduleOutput out[] = {{p.sum}};
  const Schedule made = make_schedule(out, target, {});
  return count(made, Op::Dot2) + count(made, Op::Dot4);
}

TEST(MatrixUnits, AreUsedWhereTheyPay) {
  const Product bytes(DType::U8, DType::I8, DType::I32, 128, 64, 128),
      signed_bytes(DType::I8, DType::I8, DType::I32, 128, 67, 160),
      halves(DType::BF16, DType::BF16, DType::F32, 128, 64, 128),
      few_rows(DType::U8, DType::I8, DType::I32, 8, 64, 128),
      wide_sums(DType::U8, DType::I8, DType::I64, 128, 64, 128),
      mixed(DType::BF16, DType::F16, DType::F32, 128, 64, 128);
  for (const Product* p : {&bytes, &signed_bytes, &halves}) {
    EXPECT_EQ(dots(*p, kUnits), 1U);
    EXPECT_EQ(dots(*p, kTiles), 1U);
    EXPECT_EQ(dots(*p, kPlain), 0U);
  }
  for (const Product* p : {&few_rows, &wide_sums, &mixed}) EXPECT_EQ(dots(*p, kUnits), 0U);
}

// Rows that lie along the sum in an input are read there; columns are copied into words.
TEST(MatrixUnits, CopyWhatDoesNotLieInWords) {
  const auto kernels = [](const Product& p, const Target& target) {
    const ScheduleOutput out[] = {{p.sum}};
    return make_schedule(out, target, {}).kernels.size();
  };
  EXPECT_EQ(kernels(Product(DType::BF16, DType::BF16, DType::F32, 128, 64, 128), kTiles), 2U);
  EXPECT_EQ(kernels(Product(DType::BF16, DType::BF16, DType::F32, 128, 63, 128), kTiles), 3U);
  EXPECT_EQ(kernels(Product(DType::U8, DType::I8, DType::I32, 128, 64, 128), kTiles), 2U);
  // However often they are read: the halves of a word are no elements that a stride leaves.
  EXPECT_EQ(kernels(Product(DType::BF16, DType::BF16, DType::F32, 1024, 64, 1024), kTiles), 2U);
  EXPECT_EQ(kernels(Product(DType::U8, DType::I8, DType::I32, 1024, 64, 1024), kTiles), 2U);
}

Array whole_numbers(NodeRef n) {
  Array a(n->dtype, {n->dim(0)->vmin, n->dim(1)->vmin});
  uint32_t state = 1;
  for (int64_t i = 0; i < a.count(); ++i) {
    state = state * 1664525 + 1013904223;
    const auto byte = static_cast<int64_t>(state >> 24);
    a.set(i, Value::of(n->dtype, n->dtype == DType::U8 ? byte : byte - 128));
  }
  return a;
}

// Whole numbers below 2^24 are exact, however they are added up.
TEST(MatrixUnits, GiveTheSameSums) {
  Context context;
  const ContextScope scope(context);
  constexpr DType kBytes[] = {DType::U8, DType::I8};
  std::deque<Product> products;
  for (const DType left : kBytes)
    for (const DType right : kBytes) products.emplace_back(left, right, DType::I32, 130, 19, 133);
  products.emplace_back(DType::BF16, DType::BF16, DType::F32, 128, 33, 129);
  for (const Product& p : products) {
    const NodeRef roots[] = {p.sum};
    std::vector<Array> params{whole_numbers(p.left), whole_numbers(p.right)};
    eval::Inputs oracle;
    oracle.params = params;
    const std::vector<Array> want = eval::evaluate(roots, oracle);
    for (const Target* target : {&kUnits, &kTiles}) {
      testing::RunOptions options;
      options.target = target;
      EXPECT_EQ(dots(p, *target), 1U);
      const ScheduleOutput out[] = {{p.sum}};
      const std::vector<Array> got = testing::run_graph(context, out, params, {}, options);
      for (int64_t i = 0; i < want[0].count(); ++i)
        ASSERT_EQ(got[0].at(i).text(), want[0].at(i).text()) << i;
    }
  }
}

}  // namespace
}  // namespace weft
