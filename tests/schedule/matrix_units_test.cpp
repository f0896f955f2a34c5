// Products of narrow numbers are scheduled for machines that have dot products of words, and
// compute what the oracle says on one that has none.
#include <gtest/gtest.h>

#include <deque>

#include "tests/schedule/tiles.h"
#include "tests/support/compiler/graph_builder.h"
#include "tests/support/compiler/schedule_runner.h"
#include "weft/eval/evaluate.h"

namespace weft {
namespace {

using eval::Array;
using testing::GraphBuilder;

const Target kPlain = target_with({});
const Target kUnits = target_with({CpuFeature::AvxVnni, CpuFeature::Avx512bf16});
const Target kPairs = target_with({CpuFeature::Avx2});
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
size_t dots(NodeRef sum, const Target& target) {
  const ScheduleOutput out[] = {{sum}};
  const Schedule made = make_schedule(out, target, {});
  return count(made, Op::Dot2) + count(made, Op::Dot4) + count(made, Op::Dot2I16);
}
size_t dots(const Product& p, const Target& target) { return dots(p.sum, target); }

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
  // Without products of bytes by those of 16 bits.
  for (const Product* p : {&bytes, &signed_bytes}) EXPECT_EQ(dots(*p, kPairs), 1U);
  for (const Product* p : {&few_rows, &wide_sums, &halves}) EXPECT_EQ(dots(*p, kPairs), 0U);
}

// Copies that stay in caches pay for few products each; rows that lie in words have none.
TEST(MatrixUnits, AreUsedForFewRowsAndFewColumnsOfBfloats) {
  Target target = kUnits;
  target.machine.caches[1].bytes = 1 << 20;
  const auto dots_of = [&](int64_t m, int64_t k, int64_t n) {
    return dots(Product(DType::BF16, DType::BF16, DType::F32, m, k, n), target);
  };
  EXPECT_EQ(dots_of(8, 256, 256), 1U);
  EXPECT_EQ(dots_of(4, 256, 256), 0U);
  EXPECT_EQ(dots_of(32, 2048, 1024), 1U);
  EXPECT_EQ(dots_of(16, 2048, 1024), 0U);
  EXPECT_EQ(dots_of(64, 4096, 4096), 1U);
  EXPECT_EQ(dots_of(32, 4096, 4096), 0U);
  EXPECT_EQ(dots_of(1 << 20, 64, 4), 1U);
  EXPECT_EQ(dots_of(1 << 20, 63, 4), 0U) << "every other row begins within a word";
  target.threads = 1;  // the same bits
  EXPECT_EQ(dots_of(8, 1024, 1024), 1U);
  EXPECT_EQ(dots_of(32, 2048, 1024), 1U);
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
  eval::Extents dims;
  for (NodeRef d : n->shape->span()) dims.push_back(d->vmin);
  Array a(n->dtype, dims);
  uint32_t state = 1;
  for (int64_t i = 0; i < a.count(); ++i) {
    state = state * 1664525 + 1013904223;
    const auto byte = static_cast<int64_t>(state >> 24);
    a.set(i, Value::of(n->dtype, n->dtype == DType::U8 ? byte : byte - 128));
  }
  return a;
}

/// Schedules for these targets compute what the oracle says, on devices that need have no units.
void expect_the_oracles(NodeRef sum, std::vector<Array> params,
                        std::initializer_list<const Target*> targets,
                        std::initializer_list<const char*> devices) {
  Context context;
  const ContextScope scope(context);
  const NodeRef roots[] = {sum};
  eval::Inputs oracle;
  oracle.params = params;
  const Array want = eval::evaluate(roots, oracle)[0];
  testing::RunOptions options;
  const ScheduleOutput out[] = {{sum}};
  for (const Target* target : targets)
    for (const char* device : devices) {
      options.target = target, options.device = device;
      const Array got = testing::run_graph(context, out, params, {}, options)[0];
      for (int64_t i = 0; i < want.count(); ++i)
        ASSERT_EQ(got.at(i).text(), want.at(i).text()) << device << ", " << i;
    }
}

// A number meets all elements as it is, without axes of its own.
TEST(MatrixUnits, LeaveNumbersThatScaleASum) {
  GraphBuilder b;
  for (const DType type : {DType::BF16, DType::U8}) {
    const DType run = type == DType::U8 ? DType::I32 : DType::F32;
    NodeRef scale = b.graph().cast(b.param(0, {}, type), run);
    NodeRef x = b.graph().cast(b.param(1, {64, 32}, type), run);
    NodeRef scaled = b.graph().make(Op::Mul, run, {scale, x});
    NodeRef sum = b.reduce(scaled, Fold::Add, {0});
    EXPECT_EQ(dots(sum, kUnits), 0U);
  }
}

// Whole numbers below 2^24 are exact, however they are added up.
TEST(MatrixUnits, GiveTheSameSums) {
  constexpr DType kBytes[] = {DType::U8, DType::I8};
  std::deque<Product> products;
  for (const DType left : kBytes)
    for (const DType right : kBytes) products.emplace_back(left, right, DType::I32, 130, 19, 133);
  products.emplace_back(DType::BF16, DType::BF16, DType::F32, 128, 33, 129);
  for (const Product& p : products) {
    for (const Target* target : {&kUnits, &kTiles}) EXPECT_EQ(dots(p, *target), 1U);
    expect_the_oracles(p.sum, {whole_numbers(p.left), whole_numbers(p.right)},
                       {&kUnits, &kTiles, &kPairs}, {"INTERP"});
  }
  for (const DType left : {DType::U8, DType::I8, DType::I16}) {
    const Product p(left, DType::I16, DType::I32, 130, 19, 133);
    EXPECT_EQ(dots(p, kPairs), 1U);
    expect_the_oracles(p.sum, {whole_numbers(p.left), whole_numbers(p.right)}, {&kPairs},
                       {"INTERP", "X86"});
  }
}

/// x^T y, as a weight's gradient is: summed over the first axis, or as a product of matrices.
struct WeightsGradient {
  GraphBuilder b;
  NodeRef x, y, flat, turned;
  WeightsGradient(int64_t k, int64_t m, int64_t n)
      : x(b.param(0, {k, m}, DType::BF16)), y(b.param(1, {k, n}, DType::BF16)) {
    Graph& g = b.graph();
    NodeRef left = g.cast(x, DType::F32), right = g.cast(y, DType::F32);
    NodeRef product =
        g.mul(b.broadcast(left, {k, m, 1}, {k, m, n}), b.broadcast(right, {k, 1, n}, {k, m, n}));
    flat = b.reduce(product, Fold::Add, {0});
    turned = b.matmul(b.permute(left, {1, 0}), right);
  }
  std::vector<Array> inputs() const { return {whole_numbers(x), whole_numbers(y)}; }
};
Target with_second_cache(int64_t bytes) {
  Target t = kWideTiles;
  t.machine.caches[1] = {bytes, 4, 25};
  return t;
}

// The words of both operands lie along outputs, as what they are made of does: they are stored so,
// and as tiles want one of them along the sum, that has a copy.
TEST(MatrixUnits, TurnOneOperandOfAWeightsGradient) {
  const WeightsGradient p(64, 128, 144);
  const Target small = with_second_cache(4096);  // one block of 16 words after the other
  for (NodeRef sum : {p.flat, p.turned}) {
    EXPECT_EQ(kernels_of(sum, kWideTiles), (Kernels{1, 4}));  // two make words, one turns them
    EXPECT_EQ(kernels_of(sum, small), (Kernels{2, 5}));
    expect_the_oracles(sum, p.inputs(), {&kWideTiles, &small}, {"X86"});
  }
  expect_the_oracles(p.flat, p.inputs(), {&small}, {"INTERP"});
}

// Of sequences and their places, which are one axis of words.
TEST(MatrixUnits, SumAlongNeighbouringAxes) {
  GraphBuilder b;
  NodeRef x = b.param(0, {3, 32, 48}, DType::BF16), y = b.param(1, {3, 32, 64}, DType::BF16);
  const auto wide = [&](NodeRef n, const GraphBuilder::Ints& dims) {
    return b.broadcast(b.graph().cast(n, DType::F32), dims, {3, 32, 48, 64});
  };
  NodeRef sum =
      b.reduce(b.graph().mul(wide(x, {3, 32, 48, 1}), wide(y, {3, 32, 1, 64})), Fold::Add, {0, 1});
  EXPECT_EQ(kernels_of(sum, kWideTiles).tiled, 1U);
  expect_the_oracles(sum, {whole_numbers(x), whole_numbers(y)}, {&kWideTiles}, {"X86", "INTERP"});
  // A number has no axes.
  NodeRef scaled =
      b.reduce(b.graph().mul(b.graph().cast(x, DType::F32), b.constant(0.5)), Fold::Add, {0, 1});
  expect_the_oracles(scaled, {whole_numbers(x)}, {&kWideTiles}, {"X86"});
}

TEST(MatrixUnits, SumTwoProductsByTiles) {
  GraphBuilder b;
  Graph& g = b.graph();
  std::vector<NodeRef> params;
  const auto factor = [&](const GraphBuilder::Ints& dims) {
    params.push_back(b.param(static_cast<int>(params.size()), dims, DType::BF16));
    return b.broadcast(g.cast(params.back(), DType::F32), dims, {128, 96, 128});
  };
  NodeRef first = g.mul(factor({128, 96, 1}), factor({1, 96, 128})),
          second = g.mul(factor({128, 96, 1}), factor({1, 96, 128}));
  NodeRef sum = b.reduce(g.add(first, second), Fold::Add, {1});
  EXPECT_EQ(kernels_of(sum, kWideTiles).tiled, 2U);
  std::vector<Array> inputs;
  for (NodeRef p : params) inputs.push_back(whole_numbers(p));
  expect_the_oracles(sum, inputs, {&kWideTiles}, {"X86"});
}

// The same where parts are summed side by side: which one it is, is no output's axis.
TEST(MatrixUnits, TurnOneOperandOfASumInChunks) {
  const WeightsGradient p(1024, 128, 128);
  const Target large = with_second_cache(240 << 10);
  Context context;
  const ContextScope scope(context);
  std::vector<Array> params = p.inputs();
  const auto run = [&](NodeRef sum, const Target& target) {
    testing::RunOptions options;
    options.device = "X86", options.target = &target;
    return testing::run_graph(context, std::vector<ScheduleOutput>{{sum}}, params, {}, options)[0];
  };
  const Array want = run(p.flat, kPlain);
  for (NodeRef sum : {p.flat, p.turned}) {
    EXPECT_EQ(kernels_of(sum, large), (Kernels{1, 5}));  // the last one adds two chunks up
    EXPECT_TRUE(run(sum, large) == want);
  }
}

// A layer's weights lie as words along the sum: they are copied as columns of tiles.
/// A softmax would have scores in the other order, where vectors run along queries; but tiles make
/// them along the keys, which are their columns.
TEST(MatrixUnits, MakeScoresAlongTheirColumns) {
  GraphBuilder b;
  Graph& g = b.graph();
  NodeRef q = b.param(0, {4, 256, 64}, DType::BF16), k = b.param(1, {4, 256, 64}, DType::BF16);
  NodeRef scores = b.matmul(g.cast(q, DType::F32), g.cast(b.permute(k, {0, 2, 1}), DType::F32));
  const GraphBuilder::Ints all{4, 256, 256};
  const auto along = [&](NodeRef row) { return b.broadcast(row, {4, 256, 1}, all); };
  NodeRef e =
      g.make(Op::Exp2, DType::F32, {g.sub(scores, along(b.reduce(scores, Fold::Max, {2})))});
  NodeRef shares = g.cast(g.mul(e, along(b.reduce(e, Fold::Add, {2}))), DType::BF16);
  NodeRef v = b.param(2, {4, 256, 64}, DType::BF16);
  const ScheduleOutput out[] = {{b.matmul(g.cast(shares, DType::F32), g.cast(v, DType::F32))}};
  for (const BufferSpec& buffer : make_schedule(out, kWideTiles, {}).buffers)
    if (buffer.numel->vmax == 4 * 256 * 256) {
      EXPECT_EQ(buffer.layout, "row-major");
    }
}

TEST(MatrixUnits, CopyColumnsThatLieInWords) {
  constexpr int64_t m = 128, k = 64, n = 144;
  GraphBuilder b;
  NodeRef x = b.param(0, {m, k}, DType::BF16), w = b.param(1, {n, k}, DType::BF16);
  NodeRef columns = b.permute(b.graph().cast(w, DType::F32), {1, 0});
  NodeRef sum = b.matmul(b.graph().cast(x, DType::F32), columns);
  EXPECT_EQ(kernels_of(sum, kWideTiles), (Kernels{1, 2}));
  expect_the_oracles(sum, {whole_numbers(x), whole_numbers(w)}, {&kWideTiles}, {"X86"});
}

/// x (m, k) and w, whose columns lie along the sum where it is transposed.
struct Layer {
  GraphBuilder b;
  NodeRef x, w, sum;
  Layer(int64_t m, int64_t k, int64_t n, bool transposed)
      : x(b.param(0, {m, k}, DType::BF16)),
        w(b.param(1, transposed ? GraphBuilder::Ints{n, k} : GraphBuilder::Ints{k, n},
                  DType::BF16)) {
    NodeRef columns = b.graph().cast(w, DType::F32);
    if (transposed) columns = b.permute(columns, {1, 0});
    sum = b.matmul(b.graph().cast(x, DType::F32), columns);
  }
};

// Rows of weights are read where they lie, and the few rows that they are multiplied by are copied;
// fewer rows or columns than a tile has are filled up.
TEST(MatrixUnits, FewRowsOrColumnsAreByTiles) {
  struct Case {
    int64_t m, k, n;
    bool transposed;
    Kernels wanted;
  };
  const Case cases[] = {
      {16, 256, 512, true, {1, 3}},   // x is copied, the sums are turned
      {16, 256, 512, false, {1, 2}},  // w is copied
      {7, 256, 512, true, {1, 3}},   {512, 256, 10, false, {1, 3}},
      {4, 256, 512, true, {0, 2}},   {256, 256, 512, true, {1, 2}},
  };
  for (const Case& c : cases) {
    const Layer layer(c.m, c.k, c.n, c.transposed);
    EXPECT_EQ(kernels_of(layer.sum, kWideTiles), c.wanted)
        << c.m << " x " << c.k << " x " << c.n << (c.transposed ? " transposed" : "");
  }
}

// A batch's, too, where each has rows enough; rows that end within a word's tile are copied as they
// lie, in one kernel.
TEST(MatrixUnits, FewColumnsOfABatchAreByTiles) {
  struct Batch {
    GraphBuilder b;
    NodeRef x, w, sum;
    Batch(int64_t batch, int64_t m, int64_t k, int64_t n)
        : x(b.param(0, {batch, m, k}, DType::BF16)), w(b.param(1, {batch, k, n}, DType::BF16)) {
      const GraphBuilder::Ints all{batch, m, k, n};
      NodeRef rows = b.broadcast(b.graph().cast(x, DType::F32), {batch, m, k, 1}, all);
      NodeRef columns = b.broadcast(b.graph().cast(w, DType::F32), {batch, 1, k, n}, all);
      sum = b.reduce(b.graph().mul(rows, columns), Fold::Add, {2});
    }
  };
  EXPECT_EQ(kernels_of(Batch(128, 32, 512, 8).sum, kWideTiles), (Kernels{1, 3}))
      << "words of columns, and their results";
  EXPECT_EQ(kernels_of(Batch(128, 128, 64, 16).sum, kWideTiles), (Kernels{1, 2}));
  EXPECT_EQ(kernels_of(Batch(128, 128, 50, 16).sum, kWideTiles), (Kernels{1, 3}))
      << "rows with zeros behind them";
  EXPECT_EQ(kernels_of(Batch(256, 16, 200, 8).sum, kWideTiles).tiled, 0U);
  for (const auto& [m, k, n] : {std::tuple{40, 33, 9}, {64, 64, 5}, {7, 96, 48}}) {
    const Batch few(3, m, k, n);
    expect_the_oracles(few.sum, {whole_numbers(few.x), whole_numbers(few.w)},
                       {&kWideTiles, &kTiles}, {"X86", "INTERP"});
  }
}

TEST(MatrixUnits, FewRowsAndColumnsGiveTheSameSums) {
  for (const bool transposed : {false, true})
    for (const auto& [m, k, n] :
         {std::tuple{5, 70, 160}, {15, 64, 130}, {33, 96, 15}, {40, 33, 9}}) {
      const Layer layer(m, k, n, transposed);
      expect_the_oracles(layer.sum, {whole_numbers(layer.x), whole_numbers(layer.w)},
                         {&kWideTiles, &kTiles}, {"X86", "INTERP"});
    }
}

}  // namespace
}  // namespace weft
