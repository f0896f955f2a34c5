#include <cmath>

#include "tests/tensor/tensor_test.h"
#include "weft/base/context.h"
#include "weft/run/stats.h"
#include "weft/tensor/random.h"
#include "weft/tensor/training.h"

namespace weft {
namespace {

class Creation : public TensorTest {};

TEST_F(Creation, ConstantsAndSequences) {
  EXPECT_EQ(shown(Tensor::zeros({2})), "f32 (2) [0, 0]");
  EXPECT_EQ(shown(Tensor::ones({1, 2}, DType::I8)), "i8 (1, 2) [1, 1]");
  EXPECT_EQ(shown(Tensor::full({2}, 7)), "i32 (2) [7, 7]");
  EXPECT_EQ(shown(Tensor::full({}, 1.5)), "f32 () [1.5]");
  EXPECT_EQ(shown(Tensor::arange(3)), "i32 (3) [0, 1, 2]");
  EXPECT_EQ(shown(Tensor::arange(2, 9, 3)), "i32 (3) [2, 5, 8]");
  EXPECT_EQ(shown(Tensor::arange(5, 0, -2)), "i32 (3) [5, 3, 1]");
  EXPECT_EQ(shown(Tensor::arange(0.0, 1.0, 0.25)), "f32 (4) [0, 0.25, 0.5, 0.75]");
  EXPECT_EQ(shown(Tensor::arange(3, 1)), "i32 (0) []");
  EXPECT_EQ(shown(Tensor::linspace(0, 1, 5)), "f32 (5) [0, 0.25, 0.5, 0.75, 1]");
  EXPECT_EQ(shown(Tensor::eye(2)), "f32 (2, 2) [1, 0, 0, 1]");
  EXPECT_EQ(shown(Tensor::eye(1, 2, DType::I32)), "i32 (1, 2) [1, 0]");
  EXPECT_EQ(shown((Tensor::of({1, -1, 4}) + 1).one_hot(3)),
            "i32 (3, 3) [0, 0, 1, 1, 0, 0, 0, 0, 0]");
  EXPECT_EQ(shown(Tensor::of({1.5f}).full_like(2)), "f32 (1) [2]");
}

TEST_F(Creation, DataFromTheHost) {
  EXPECT_EQ(shown(Tensor::of({{1, 2}, {3, 4}})), "i32 (2, 2) [1, 2, 3, 4]");
  EXPECT_EQ(Tensor::of({1.0, 2.0}).dtype(), DType::F32);
  EXPECT_EQ(Tensor::from(std::vector<double>{1.0}).dtype(), DType::F64);
  EXPECT_EQ(Tensor::from(std::vector<uint16_t>{1}).dtype(), DType::U16);
  EXPECT_EQ(Tensor::from(std::vector<int64_t>{5}).item<int>(), 5);
  EXPECT_EQ(Tensor::of({1.5f, -2.5f}).to_vector<float>(), (std::vector<float>{1.5f, -2.5f}));
  EXPECT_EQ(Tensor::of({1.5f, -2.5f}).to_vector<int32_t>(), (std::vector<int32_t>{1, -2}));
  EXPECT_EQ(Tensor::of({true, false}).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(Tensor::of({0.5f}).cast(DType::F16).item<float>(), 0.5f);
}

TEST_F(Creation, VectorsKeepTheirDtype) {
  const std::vector<float> numbers = {1.5f, 2.5f};
  EXPECT_EQ(shown(Tensor::of(numbers)), "f32 (2) [1.5, 2.5]");
  EXPECT_EQ(Tensor::of(std::vector<double>{1.0}).dtype(), DType::F64);
  EXPECT_EQ(shown(Tensor::of(std::vector<int8_t>{})), "i8 (0) []");
  const std::vector<bool> packed = {true, false, true};
  EXPECT_EQ(Tensor::of(packed).to_vector<bool>(), packed);
  EXPECT_EQ(Tensor::from(packed, {3, 1}).dtype(), DType::Bool);
  const std::vector<std::vector<int64_t>> rows = {{1, 2}, {3, 4}, {5, 6}};
  EXPECT_EQ(shown(Tensor::of(rows)), "i64 (3, 2) [1, 2, 3, 4, 5, 6]");
  EXPECT_EQ(shown(Tensor::of(std::vector<std::vector<bool>>{{true}, {false}})),
            "bool (2, 1) [true, false]");
  EXPECT_EQ(shown(Tensor::of(std::vector<std::vector<float>>{})), "f32 (0, 0) []");
}

TEST_F(Creation, RowsHaveOneLength) {
  const auto says = [](const std::string& message, const char* part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says(message_of([] { Tensor::of({{1, 2}, {3}, {4, 5, 6}}); }),  // as many as 3 rows of 2 have
       "row 1 has 1 elements, row 0 has 2");
  const std::vector<std::vector<float>> rows = {{1}, {2, 3}};
  says(message_of([&] { Tensor::of(rows); }), "row 1 has 2 elements, row 0 has 1");
}

TEST_F(Creation, AsText) {
  EXPECT_EQ(Tensor::of({{1, 2}, {3, 4}}).T().text(), "i32 (2, 2) [[1, 3], [2, 4]]");
  EXPECT_EQ(Tensor(2.5).text(), "f32 () 2.5");
  EXPECT_EQ(Tensor::arange(1000).text(), "i32 (1000,) [0, 1, 2, ..., 997, 998, 999]");
}

// ---- random numbers

Tensor word(uint32_t w) { return Tensor::full({1}, w, DType::U32); }

TEST_F(Creation, ThreefryEqualsRandom123) {
  // Known answers of threefry2x32, 20 rounds, from the Random123 distribution (kat_vectors).
  struct {
    uint32_t key[2], counter[2], expected[2];
  } const kVectors[] = {
      {{0, 0}, {0, 0}, {0x6b200159, 0x99ba4efe}},
      {{~0u, ~0u}, {~0u, ~0u}, {0x1cb996fc, 0xbb002be7}},
      {{0x13198a2e, 0x03707344}, {0x243f6a88, 0x85a308d3}, {0xc4923a9c, 0x483df7a0}},
  };
  for (const auto& v : kVectors) {
    const auto [x, y] = Tensor::threefry2x32(word(v.key[0]), word(v.key[1]), word(v.counter[0]),
                                             word(v.counter[1]));
    EXPECT_EQ(evaluated(x).ints()[0], v.expected[0]);
    EXPECT_EQ(evaluated(y).ints()[0], v.expected[1]);
  }
}

TEST_F(Creation, DrawsFollowFromTheSeed) {
  Tensor::manual_seed(5);
  const Tensor a = Tensor::rand({4}), b = Tensor::rand({4});
  EXPECT_NE(shown(a), shown(b));
  Tensor::manual_seed(5);
  EXPECT_EQ(shown(Tensor::rand({4})), shown(a));
  EXPECT_EQ(shown(Tensor::rand({4})), shown(b));
  Tensor::manual_seed(6);
  EXPECT_NE(shown(Tensor::rand({4})), shown(a));
}

TEST_F(Creation, RealizingDoesNotChangeDraws) {
  Tensor::manual_seed(9);
  Tensor::rand({2});
  const std::string lazily = shown(Tensor::rand({3}));
  Tensor::manual_seed(9);
  Tensor::rand({2}).realize();
  EXPECT_EQ(shown(Tensor::rand({3})), lazily);
}

TEST_F(Creation, TheCounterStaysOneAddition) {
  for (int i = 0; i < 50; ++i) Tensor::rand({1});
  NodeRef n = context_.get<Generator>().next().number.node();
  ASSERT_EQ(n->op, Op::Add);
  EXPECT_EQ(n->src(0)->rank(), 0u);
  EXPECT_TRUE(is_int_const(n->src(1), 50));
}

TEST_F(Creation, DistributionsHaveTheirMoments) {
  constexpr int kCount = 20000;
  auto moments = [](const Tensor& x) {
    double mean = 0, square = 0, low = INFINITY, high = -INFINITY;
    for (const double v : values(x)) {
      mean += v / kCount, square += v * v / kCount;
      low = std::min(low, v), high = std::max(high, v);
    }
    return std::array{mean, square - mean * mean, low, high};
  };
  const auto u = moments(Tensor::rand({kCount}));
  EXPECT_NEAR(u[0], 0.5, 0.01);
  EXPECT_NEAR(u[1], 1.0 / 12, 0.003);
  EXPECT_GE(u[2], 0);
  EXPECT_LT(u[3], 1);
  const auto n = moments(Tensor::randn({kCount}));
  EXPECT_NEAR(n[0], 0, 0.03);
  EXPECT_NEAR(n[1], 1, 0.04);
  const auto i = moments(Tensor::randint(-3, 4, {kCount}));
  EXPECT_NEAR(i[0], 0, 0.06);
  EXPECT_EQ(i[2], -3);
  EXPECT_EQ(i[3], 3);
  for (const DType d : {DType::F16, DType::BF16, DType::F64}) {
    const auto w = moments(Tensor::rand({kCount}, d));
    EXPECT_NEAR(w[0], 0.5, 0.01);
    EXPECT_LT(w[3], 1);
  }
}

TEST_F(Creation, PermutationsAndWeights) {
  std::vector<int64_t> p = evaluated(Tensor::randperm(50)).ints();
  EXPECT_NE(p, evaluated(Tensor::arange(50)).ints());
  std::sort(p.begin(), p.end());
  EXPECT_EQ(p, evaluated(Tensor::arange(50)).ints());
  const double bound = std::sqrt(6.0 / (1 + 0.01 * 0.01) / 12);
  for (const double v : values(Tensor::kaiming_uniform({8, 3, 2, 2})))
    EXPECT_LE(std::fabs(v), bound);
}

TEST_F(Creation, DropoutOnlyWhileTraining) {
  const Tensor x = Tensor::ones({1000});
  EXPECT_EQ(x.dropout(0.25).node(), x.node());
  const TrainingScope training;
  double kept = 0;
  for (const double v : values(x.dropout(0.25))) {
    EXPECT_TRUE(v == 0 || std::fabs(v - 4.0 / 3) < 1e-6);
    kept += v != 0;
  }
  EXPECT_NEAR(kept / 1000, 0.75, 0.05);
}

TEST_F(Creation, ManyZerosAreWrittenByNobody) {
  Options options = Options::from_environment();
  options.dev = "CPU";
  Context context(options);
  const ContextScope scope(context);
  const int64_t many = int64_t{1} << 22;
  Tensor zeros = Tensor::zeros({many, 4}).realize();
  EXPECT_EQ(run_stats(context).kernels, 0);
  zeros.index({Slice(many - 2, many)}).assign(Tensor::full({2, 4}, 3.0F));
  EXPECT_EQ(zeros.sum().item<float>(), 24);
  EXPECT_TRUE(std::signbit(Tensor::full({many}, -0.0F).realize().index({5}).item<float>()));
}

}  // namespace
}  // namespace weft
