// Orders and what is chosen by them, at sizes around each algorithm's limits, against stable sorts
// of the C++ library; and how many kernels they take.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/base/context.h"
#include "weft/dtype/value.h"
#include "weft/graph/graph.h"
#include "weft/run/stats.h"
#include "weft/tensor/access.h"
#include "weft/tensor/selection.h"
#include "weft/tensor/statistics.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

struct SortTest : TensorTest {};

constexpr DType kSorted[] = {DType::Bool, DType::U8,  DType::I8,  DType::I16,    DType::U16,
                             DType::I32,  DType::U32, DType::I64, DType::U64,    DType::F16,
                             DType::BF16, DType::F32, DType::F64, DType::F8E4M3, DType::F8E5M2};

/// Of all kinds: many equal, all equal, infinities and NaN and zeros of both signs, the ends of
/// what the dtype holds.
Value element(Random& random, DType d, int kind) {
  if (kind == 0) return Value::of(d, is_bool(d) ? 1 : 3);
  if (kind == 1 || is_bool(d)) return Value::of(d, random.below(is_bool(d) ? 2 : 5));
  if (is_float(d)) {
    constexpr double kAwkward[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1};
    const bool awkward = kind == 2 && random.chance(50);
    return Value::of(
        d, awkward ? random.pick(kAwkward) : static_cast<double>(random.between(-400, 400)) / 8);
  }
  if (kind == 2 && random.chance(50))
    return random.chance(50) ? Value::of(d, int_min(d)) : Value::of(d, int_max(d));
  return Value::of(d, static_cast<int64_t>(random.next()));
}

bool precedes(const Value& a, const Value& b) {
  if (is_float(a.dtype())) {
    const double x = a.as_double(), y = b.as_double();
    return std::isnan(y) ? !std::isnan(x) : x < y;
  }
  return is_signed_int(a.dtype()) ? a.as_int() < b.as_int() : a.as_uint() < b.as_uint();
}

struct Rows {
  std::vector<std::vector<Value>> rows;
  Tensor tensor;  ///< (rows, n)
};

Rows rows_of(Random& random, DType d, int64_t count, int64_t n, int kind) {
  Rows out;
  eval::Array all(d, {count, n});
  for (int64_t r = 0; r < count; ++r) {
    out.rows.emplace_back();
    for (int64_t i = 0; i < n; ++i) {
      out.rows.back().push_back(element(random, d, kind));
      all.set(r * n + i, out.rows.back().back());
    }
  }
  out.tensor = Tensor::from_bytes(all.bytes(), d, {count, n});
  return out;
}

std::vector<int64_t> order_of(const std::vector<Value>& row, bool descending) {
  std::vector<int64_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  const auto before = [&](int64_t i, int64_t j) {
    const Value &a = row[static_cast<size_t>(i)], &b = row[static_cast<size_t>(j)];
    return descending ? precedes(b, a) : precedes(a, b);
  };
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return before(i, j) || (!before(j, i) && i < j);  // equal ones stay in their order
  });
  return order;
}

std::vector<int64_t> first_of_orders(const Rows& x, bool descending, int64_t k) {
  std::vector<int64_t> all;
  for (const auto& row : x.rows) {
    const std::vector<int64_t> order = order_of(row, descending);
    all.insert(all.end(), order.begin(), order.begin() + k);
  }
  return all;
}

std::vector<int64_t> integers(const Tensor& x) { return x.cast(DType::I64).to_vector<int64_t>(); }

/// Along either axis, with the values that lie there.
void expect_orders(const Rows& x, bool descending, int64_t k) {
  const int64_t n = x.tensor.size(1);
  const std::string what = std::string(name(x.tensor.dtype())) + " of " + x.tensor.dims().text() +
                           (descending ? " descending" : "");
  const auto [values, order] = x.tensor.sort(1, descending);
  const std::vector<int64_t> expected = first_of_orders(x, descending, n);
  EXPECT_EQ(integers(order), expected) << what;
  EXPECT_EQ(integers(x.tensor.T().argsort(0, descending).T()), expected) << what << ", axis 0";
  const std::vector<double> sorted = values.cast(DType::F64).to_vector<double>();
  for (size_t i = 0; i < expected.size(); ++i) {
    const size_t row = i / static_cast<size_t>(n);
    const double wanted = x.rows[row][static_cast<size_t>(expected[i])].as_double();
    const bool same = std::isnan(wanted)
                          ? std::isnan(sorted[i])
                          : sorted[i] == wanted && std::signbit(sorted[i]) == std::signbit(wanted);
    EXPECT_TRUE(same) << what << " at " << i << ": " << sorted[i] << ", not " << wanted;
  }
  EXPECT_EQ(integers(x.tensor.topk(k, 1, descending).second), first_of_orders(x, descending, k))
      << what << ", first " << k;
  if (descending) return;
  for (const int64_t rank : {int64_t{0}, n / 3, n - 1}) {
    std::vector<int64_t> places;
    for (size_t row = 0; row < x.rows.size(); ++row)
      places.push_back(expected[row * static_cast<size_t>(n) + static_cast<size_t>(rank)]);
    EXPECT_EQ(integers(kthvalue(x.tensor, rank + 1, 1).positions), places) << what << rank;
  }
}

/// One element, few, the most that are compared with each other, for one rank and for all, several
/// blocks that fill or do not, passes of long digits.
constexpr int64_t kSizes[] = {1,   2,   63,  64,   65,   128,  129,  192,   193,
                              511, 512, 513, 4095, 8191, 8192, 8193, 20001, 40003};

/// Every dtype at a share of the sizes, long ones seldom where that is not all.
void expect_orders_at_limits(uint64_t seed, int percent) {
  Random random(seed);
  for (const DType d : kSorted)
    for (const int64_t n : kSizes) {
      if (!random.chance(n > 513 ? percent / 6 : percent)) continue;
      const int64_t ks[] = {1, std::min<int64_t>(n, 7), std::max<int64_t>(1, n / 16),
                            std::max<int64_t>(1, n / 3), n};
      const Rows x = rows_of(random, d, n > 513 ? 1 : 3, n, static_cast<int>(random.below(4)));
      expect_orders(x, random.chance(50), random.pick(ks));
    }
}

TEST_F(SortTest, EveryDTypeAtTheLimitsOfEachAlgorithm) { expect_orders_at_limits(1, 30); }
TEST_F(SortTest, SlowEveryDTypeAtAllLimits) {
  for (uint64_t seed = 10; seed < 15; ++seed) expect_orders_at_limits(seed, 600);
}

/// Integers that are at hand are told apart by fewer bits than they have.
TEST_F(SortTest, IntegersOfFewBits) {
  const struct {
    DType dtype;
    int64_t low, high;
  } kRanges[] = {{DType::I64, 0, 1},
                 {DType::I64, -128, 127},
                 {DType::I64, -129, 127},
                 {DType::I64, -1, 128},
                 {DType::I64, -1, -1},
                 {DType::I64, -70000, -255},
                 {DType::I64, (int64_t{1} << 40) - 7, (int64_t{1} << 40) + 300},
                 {DType::I64, -(int64_t{1} << 31), int64_t{1} << 31},
                 {DType::I64, INT64_MIN, INT64_MIN + 90000},
                 {DType::I64, INT64_MAX - 3, INT64_MAX},
                 {DType::I32, -5, 1000},
                 {DType::I32, INT32_MIN, INT32_MIN + 200},
                 {DType::U32, 0xFFFF0000, 0xFFFFFFFF}};
  Random random(7);
  for (const auto& [dtype, low, high] : kRanges)
    for (const int64_t n : {513, 4100, 33000}) {
      std::vector<int64_t> all;
      for (int64_t i = 0; i < n; ++i) all.push_back(random.between(low, high));
      all[static_cast<size_t>(n) / 2] = low, all.back() = high;
      const Tensor x = Tensor::from(all).cast(dtype).realize();
      for (const bool descending : {false, true}) {
        std::vector<int64_t> expected(all.size());
        std::iota(expected.begin(), expected.end(), 0);
        std::ranges::sort(expected, [&](int64_t i, int64_t j) {
          const auto a = all[static_cast<size_t>(i)], b = all[static_cast<size_t>(j)];
          return a == b ? i < j : (a < b) != descending;
        });
        EXPECT_EQ(integers(x.argsort(0, descending)), expected)
            << name(dtype) << " from " << low << " to " << high << ", " << n;
      }
    }
}

TEST_F(SortTest, ManyRowsOfSeveralBlocks) {
  Random random(2);
  for (const int64_t rows : {2, 5, 70})
    expect_orders(rows_of(random, DType::F32, rows, 9001 / rows + 600, 2), false, 9);
}

TEST_F(SortTest, OfNothing) {
  EXPECT_EQ(Tensor::zeros({3, 0}).sort(1).second.dims().text(), "(3, 0)");
  EXPECT_EQ(Tensor::zeros({0, 700}).sort(1).second.dims().text(), "(0, 700)");
  EXPECT_EQ(Tensor::zeros({700, 0}).sort(0).second.dims().text(), "(700, 0)");
  EXPECT_EQ(Tensor::zeros({2, 700}).topk(0).second.dims().text(), "(2, 0)");
  EXPECT_EQ(Tensor::zeros({0, 700}).topk(3).second.dims().text(), "(0, 3)");
}

/// The derivative goes to the elements that were chosen.
TEST_F(SortTest, GradientsOfWhatIsChosen) {
  Random random(3);
  for (const int64_t n : {40, 600, 9000}) {
    std::vector<float> data;
    for (int64_t i = 0; i < n; ++i) data.push_back(static_cast<float>(random.below(1000)));
    Tensor x = Tensor::from(data);
    x.requires_grad_();
    const auto [values, at] = x.topk(5, 0);
    const Tensor weight = Tensor::from(std::vector<float>{1, 2, 3, 4, 5});
    const std::vector<float> grad = (values * weight).sum().gradient({x})[0].to_vector<float>();
    std::vector<float> expected(static_cast<size_t>(n));
    const std::vector<int64_t> chosen = integers(at);
    for (size_t i = 0; i < chosen.size(); ++i)
      expected[static_cast<size_t>(chosen[i])] = static_cast<float>(i + 1);
    EXPECT_EQ(grad, expected);
  }
}

/// On a device that takes kernels and runs none.
int64_t kernels_of(DType d, int64_t n, int64_t k) {
  Options options = Options::from_environment();
  options.dev = "NULL:INTERP";
  Context context(options);
  const ContextScope scope(context);
  const Tensor x = Tensor::zeros({n}, d).contiguous().realize();
  reset_run_stats(context);
  realize({k > 0 ? x.topk(k).second : x.argsort(0)});
  return run_stats(context).kernels;
}

/// A pass for each digit in which integers at hand differ.
TEST_F(SortTest, FewBitsTakeFewPasses) {
  if (testing::simulated()) GTEST_SKIP() << "integers in a device's memory are not looked at";
  const auto kernels_below = [](int64_t most) {
    const Tensor x = (Tensor::arange(1000, DType::I64) * (most - 1)).floor_div(999).realize();
    reset_run_stats(Context::current());
    x.argsort(0).realize();
    return run_stats(Context::current()).kernels;
  };
  const int64_t one = kernels_below(256), two = kernels_below(257), eight = kernels_below(1L << 50);
  EXPECT_LT(one, two);
  EXPECT_LT(two, eight);
}

/// Nothing is put in order for one element of the order.
TEST(SortCost, ChoosesByCounting) {
  const auto moves = [](const Tensor& x) {
    return std::ranges::any_of(Toposort(x.node()), [](NodeRef n) { return n->op == Op::Scatter; });
  };
  const Tensor x = Tensor::rand({100000});
  EXPECT_TRUE(moves(x.argsort(0)));
  EXPECT_FALSE(moves(median(x, 0).positions));
  EXPECT_FALSE(moves(kthvalue(x, 40000, 0).values));
}

/// The number of passes is the key's, not the axis'.
TEST(SortCost, KernelsDoNotGrowWithTheAxis) {
  for (const DType d : {DType::F32, DType::I64}) {
    const int64_t most = 8 * (bits(d) / 8) + 6;
    EXPECT_LE(kernels_of(d, 10000, 0), most) << name(d);
    EXPECT_LT(kernels_of(d, 40000, 0), kernels_of(d, 10000, 0)) << name(d);  // longer digits
    // Two kernels each where the caches do not hold what is moved.
    EXPECT_LE(kernels_of(d, 10000000, 0), kernels_of(d, 2000000, 0) + bits(d) / 8) << name(d);
    EXPECT_LE(kernels_of(d, 10000000, 3), 2 * most + 10) << name(d);
  }
}

// ---- counting

TEST_F(SortTest, CumcountAddsToWhatWasThereBefore) {
  const Tensor first = Tensor::from(std::vector<int32_t>{10, 20, 30}),
               index = Tensor::from(std::vector<int32_t>{2, 0, 2, 7, 2, -1, 0});
  const Tensor place = cumcount(first, 0, index);
  const std::vector<int64_t> expected{30, 10, 31, 0, 32, 0, 11};
  EXPECT_EQ(integers(place), expected);
  EXPECT_EQ(evaluated(place).ints(), expected);
  EXPECT_EQ(integers(first), (std::vector<int64_t>{10, 20, 30})) << "counted in somebody's memory";
}

TEST_F(SortTest, CumcountOfRowsAgreesWithTheOracle) {
  Random random(4);
  for (int i = 0; i < 20; ++i) {
    const int64_t rows = random.between(1, 5), n = random.between(1, 200), axis = random.below(2);
    const Dims shape = axis == 1 ? Dims{rows, n} : Dims{n, rows},
               counts = axis == 1 ? Dims{rows, 9} : Dims{9, rows};
    const Tensor index = Tensor::randint(-1, 11, shape).realize();
    const Tensor first = Tensor::randint(0, 100, counts).realize();
    const Tensor place = cumcount(first, axis, index) + cumcount(first * 2, axis, index % 4);
    EXPECT_EQ(integers(place), evaluated(place).ints());
  }
}

/// Where there is one counter alone, places depend on no data, and several are counted at once.
TEST_F(SortTest, CumcountOfAnAxisOfOne) {
  for (const DType dtype : {DType::I32, DType::I64, DType::U8})
    for (const int64_t rows : {1, 3})
      for (const int64_t n : {1, 2, 4, 7, 16, 37, 130})
        for (const int64_t axis : {0, 1}) {
          const Dims shape = axis == 0 ? Dims{rows, n} : Dims{n, rows},
                     counts = axis == 0 ? Dims{1, n} : Dims{n, 1};
          const Tensor index = Tensor::randint(-1, 2, shape).cast(DType::I8).realize();
          const Tensor first = Tensor::randint(0, 100, counts).cast(dtype).realize();
          const Tensor place = cumcount(first, axis, index);
          EXPECT_EQ(integers(place), evaluated(place).ints()) << n << " along " << axis;
        }
}

TEST_F(SortTest, UniqueOfBlocks) {
  Random random(5);
  for (const int64_t n : {1, 500, 9000, 30001}) {
    std::vector<int32_t> data;
    for (int64_t i = 0; i < n; ++i) data.push_back(static_cast<int32_t>(random.below(n / 3 + 1)));
    const Unique u = unique(Tensor::from(data));
    std::vector<int64_t> distinct(data.begin(), data.end());
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    EXPECT_EQ(integers(u.values), distinct);
    std::vector<int64_t> inverse, counts(distinct.size());
    for (const int32_t x : data) {
      inverse.push_back(std::lower_bound(distinct.begin(), distinct.end(), x) - distinct.begin());
      ++counts[static_cast<size_t>(inverse.back())];
    }
    EXPECT_EQ(integers(u.inverse), inverse);
    EXPECT_EQ(integers(u.counts), counts);
  }
}

/// At the ends of what a dtype holds, with and without a size, and from a view.
TEST_F(SortTest, UniqueOfIntegersThatLieTogether) {
  constexpr int64_t kCount = 3000, kDistinct = 23;
  const auto expect = [](const Unique& u, int64_t least, int64_t size) {
    std::vector<int64_t> values(static_cast<size_t>(size), 5), counts(values.size()), inverse;
    for (int64_t i = 0; i < kDistinct; ++i) values[static_cast<size_t>(i)] = least + i;
    for (int64_t i = 0; i < kCount; ++i) inverse.push_back(i * 7 % kDistinct);
    for (const int64_t i : inverse) ++counts[static_cast<size_t>(i)];
    EXPECT_EQ(integers(u.values), values);
    EXPECT_EQ(integers(u.inverse.flatten()), inverse);
    EXPECT_EQ(integers(u.counts), counts);
  };
  const Tensor step = Tensor::arange(kCount, DType::I64) * 7 % kDistinct;
  for (const DType d : {DType::I8, DType::U8, DType::I16, DType::I32, DType::U32, DType::I64})
    for (const int64_t least :
         {int_min(d), int64_t{0}, static_cast<int64_t>(int_max(d)) - kDistinct + 1}) {
      SCOPED_TRACE(std::string(name(d)) + " from " + std::to_string(least));
      const Tensor x = (step + least).cast(d).realize();
      expect(unique(x), least, kDistinct);
      expect(unique(x.reshape({30, 100}), kDistinct + 3, 5), least, kDistinct + 3);
      expect(unique(Tensor::stack({x, x}, 1).realize().index({Slice(), 1})), least, kDistinct);
      EXPECT_EQ(unique(x).values.dtype(), d);
    }
  const Tensor far = Tensor::from(std::vector<int64_t>{INT64_MAX, INT64_MIN, 0, INT64_MIN});
  EXPECT_EQ(integers(unique(far).values), (std::vector<int64_t>{INT64_MIN, 0, INT64_MAX}));
}

TEST_F(SortTest, UniqueCountsWhatLiesTogether) {
  if (testing::simulated()) GTEST_SKIP() << "integers in a device's memory are not looked at";
  const auto sorts = [](const Tensor& x) {
    return std::ranges::any_of(Toposort(x.node()), [](NodeRef n) { return n->op == Op::CumCount; });
  };
  const Tensor x = (Tensor::arange(5000) % 37 - 11).realize();
  EXPECT_FALSE(sorts(unique(x, 40).inverse));
  EXPECT_TRUE(sorts(unique((x * 1000).realize(), 40).inverse));
}

TEST_F(SortTest, BincountOfBlocks) {
  Random random(6);
  for (const int64_t n : {0, 1, 4095, 8191, 8192, 30001})
    for (const int64_t bins : {1, 300, 9000}) {
      std::vector<int64_t> data, expected(static_cast<size_t>(bins));
      for (int64_t i = 0; i < n; ++i) data.push_back(random.below(bins));
      for (const int64_t x : data) ++expected[static_cast<size_t>(x)];
      const Tensor x = n == 0 ? Tensor::zeros({0}, DType::I64) : Tensor::from(data);
      EXPECT_EQ(integers(bincount(x, {}, bins)), expected) << n << " in " << bins;
      EXPECT_EQ(integers(bincount(x.cast(DType::I32), {}, bins)), expected) << n << " in " << bins;
    }
}

}  // namespace
}  // namespace weft
