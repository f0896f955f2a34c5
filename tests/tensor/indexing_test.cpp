#include "tests/io/scratch_dir.h"
#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

class Indexing : public TensorTest {};

Tensor counting(const Dims& shape) { return Tensor::arange(shape.product()).reshape(shape); }

TEST_F(Indexing, NumbersAndSlices) {
  const Tensor x = counting({3, 4});
  EXPECT_EQ(shown(x[1]), "i32 (4) [4, 5, 6, 7]");
  EXPECT_EQ(shown(x[-1]), "i32 (4) [8, 9, 10, 11]");
  EXPECT_EQ(shown(x[{1, -2}]), "i32 () [6]");
  EXPECT_EQ(shown(x[{Slice(1, 3), 0}]), "i32 (2) [4, 8]");
  EXPECT_EQ(shown(x[{Slice(), Slice(std::nullopt, std::nullopt, 2)}]),
            "i32 (3, 2) [0, 2, 4, 6, 8, 10]");
  EXPECT_EQ(shown(x[{kEllipsis, -1}]), "i32 (3) [3, 7, 11]");
  EXPECT_EQ((x[{kNewAxis, 0, kNewAxis}].shape()), (std::vector<int64_t>{1, 1, 4}));
  EXPECT_EQ((x[{kEllipsis, kNewAxis}].shape()), (std::vector<int64_t>{3, 4, 1}));
}

TEST_F(Indexing, SlicesAreClampedAndReversedAsInPython) {
  const Tensor x = Tensor::arange(6);
  struct {
    std::optional<Dim> start, stop;
    int64_t step;
    const char* expected;
  } const kCases[] = {
      {-2, std::nullopt, 1, "i32 (2) [4, 5]"},
      {-100, 2, 1, "i32 (2) [0, 1]"},
      {4, 100, 1, "i32 (2) [4, 5]"},
      {4, 2, 1, "i32 (0) []"},
      {7, 9, 1, "i32 (0) []"},
      {1, 6, 2, "i32 (3) [1, 3, 5]"},
      {std::nullopt, std::nullopt, -1, "i32 (6) [5, 4, 3, 2, 1, 0]"},
      {4, 1, -1, "i32 (3) [4, 3, 2]"},
      {4, 1, -2, "i32 (2) [4, 2]"},
      {5, std::nullopt, -2, "i32 (3) [5, 3, 1]"},
      {1, 4, -1, "i32 (0) []"},
      {-1, -4, -1, "i32 (3) [5, 4, 3]"},
      {100, -100, -3, "i32 (2) [5, 2]"},
      {-100, std::nullopt, -1, "i32 (0) []"},
      {0, std::nullopt, -1, "i32 (1) [0]"},
  };
  for (const auto& c : kCases)
    EXPECT_EQ(shown(x[{Slice(c.start, c.stop, c.step)}]), c.expected)
        << (c.start ? c.start->text() : "") << ":" << (c.stop ? c.stop->text() : "") << ":"
        << c.step;
}

TEST_F(Indexing, IndexTensorsFollowNumpy) {
  const Tensor x = counting({3, 4});
  const Tensor i = Tensor::of({2, 0, -1}), j = Tensor::of({1, 3, 0});
  EXPECT_EQ(shown(x[i]), "i32 (3, 4) [8, 9, 10, 11, 0, 1, 2, 3, 8, 9, 10, 11]");
  EXPECT_EQ(shown(x[{i, j}]), "i32 (3) [9, 3, 8]");
  EXPECT_EQ(shown(x[{Slice(), j}]), "i32 (3, 3) [1, 3, 0, 5, 7, 4, 9, 11, 8]");
  EXPECT_EQ(shown(x[{i.unsqueeze(1), Tensor::of({0, 1})}]), "i32 (3, 2) [8, 9, 0, 1, 8, 9]");
  const Tensor y = counting({2, 3, 4});
  EXPECT_EQ(((y[{Slice(), Tensor::of({0, 1}), Tensor::of({1, 2})}]).shape()),
            (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(shown(y[{Slice(), Tensor::of({0, 1}), Tensor::of({1, 2})}]),
            "i32 (2, 2) [1, 6, 13, 18]");
  // Index tensors that are apart put their axes first.
  EXPECT_EQ(shown(y[{Tensor::of({0, 1}), Slice(1, 3), Tensor::of({1, 2})}]),
            "i32 (2, 2) [5, 9, 18, 22]");
  EXPECT_EQ((y[{Tensor::of({0}), Slice(), Tensor::of({{1}, {2}})}].shape()),
            (std::vector<int64_t>{2, 1, 3}));
}

TEST_F(Indexing, OutsidePositionsReadZeroAndWriteNothing) {
  const Tensor x = Tensor::of({5, 6, 7});
  EXPECT_EQ(shown(x[Tensor::of({4, -3, 3}) - 1]), "i32 (3) [0, 0, 7]");
  const Tensor y = counting({2, 2}) + 1;
  EXPECT_EQ(shown(y[{Tensor::of({0, 0}), Tensor::of({1, 0}) + 1}]), "i32 (2) [0, 2]");
  Tensor z = Tensor::of({5, 6, 7});
  z.index_put({Tensor::of({2, 0}) + 1}, 0);
  EXPECT_EQ(shown(z), "i32 (3) [5, 0, 7]");
}

/// Nor do those that have other low bits than high ones: they are not narrowed before they are
/// looked at.
TEST_F(Indexing, OutsidePositionsOf64BitsStayOutside) {
  const Tensor x = Tensor::of({5, 6, 7});
  const int64_t far[] = {int64_t{1} << 32,      (int64_t{1} << 32) - 1,  (int64_t{1} << 31),
                         -(int64_t{1} << 32),   -(int64_t{1} << 32) + 1, -3,
                         (int64_t{1} << 33) + 2};
  const Tensor known = Tensor::from(std::vector<int64_t>(std::begin(far), std::end(far))).realize();
  const Tensor at = (known * Tensor::ones({7}, DType::I64)).contiguous() + 0;
  const char* const kOnlyTheSixth = "i32 (7) [0, 0, 0, 0, 0, 5, 0]";
  EXPECT_EQ(shown(x[at]), kOnlyTheSixth);
  EXPECT_EQ(shown(x.gather(0, at)), kOnlyTheSixth);
  EXPECT_EQ(shown(x.scatter(0, at, 9)), "i32 (3) [9, 6, 7]");
  for (const DType d : {DType::U32, DType::U64}) {
    const Tensor last = (Tensor::full({2}, -1, DType::I64).contiguous() + 0).cast(d).contiguous();
    EXPECT_EQ(shown(x.gather(0, last + 0)), "i32 (2) [0, 0]") << name(d);
  }
}

/// What the host can read is not tested again where it is inside; what is computed is.
TEST_F(Indexing, KnownAndComputedPositionsGiveTheSame) {
  constexpr DType kInts[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                             DType::U8, DType::U16, DType::U32, DType::U64};
  for (const DType d : kInts)
    for (const int64_t low : {0, -7})
      for (const int64_t n : {1, 16, 37, 2050}) {
        if (low < 0 && is_unsigned(d)) continue;
        std::vector<int64_t> at;
        std::vector<int32_t> expected, sums(7);
        for (int64_t i = 0; i < n; ++i) {
          at.push_back(low + i * 5 % (low < 0 ? 14 : 7));
          expected.push_back(static_cast<int32_t>((at.back() + 7) % 7) * 10);
          sums[static_cast<size_t>((at.back() + 7) % 7)] += 3;
        }
        const Tensor known = Tensor::from(at).cast(d).realize();
        const Tensor computed = (known * Tensor::ones({n}, d)).contiguous() + 0;
        const Tensor x = Tensor::of({0, 10, 20, 30, 40, 50, 60}), none = x * 0;
        for (const Tensor& index : {known, computed}) {
          EXPECT_EQ(x.gather(0, index).to_vector<int32_t>(), expected)
              << name(d) << " from " << low;
          EXPECT_EQ(none.scatter(0, index, 3, Fold::Add).to_vector<int32_t>(), sums) << name(d);
        }
      }
}

/// Of a later assignment, a gather sees nothing.
TEST_F(Indexing, KnownPositionsAreThoseOfTheCall) {
  Tensor index = Tensor::of({2, 0, 1}).contiguous().realize();
  const Tensor chosen = Tensor::of({5, 6, 7}).gather(0, index);
  index.assign(Tensor::of({-1, 900, 1}));
  EXPECT_EQ(shown(chosen), "i32 (3) [7, 5, 6]");
  EXPECT_EQ(shown(index), "i32 (3) [-1, 900, 1]");
}

TEST_F(Indexing, KnownPositionsOutsideAreErrors) {
  if (testing::simulated()) GTEST_SKIP() << "positions in a device's memory are not looked at";
  Tensor x = Tensor::of({5, 6, 7});
  const Tensor table = Tensor::of({{9, 0}, {3, 2}, {9, -3}});
  for (const Tensor& outside :
       {Tensor::of({3}), Tensor::of({0, -4}), table[{1}], table.T()[{0, Slice(1, 2)}],
        table[{Slice(), 0}].flip(0), table.expand({3, 2}).detach()[2],
        Tensor::of({7}).cast(DType::I64), Tensor::full({2}, -4)}) {
    EXPECT_ERROR(x[outside], "out of bounds for axis 0 of shape (3,): it must be from -3 to 2");
    EXPECT_ERROR(x.index_put({outside}, 0), "out of bounds");
    EXPECT_ERROR(x.gather(0, outside), "out of bounds");
    EXPECT_ERROR(x.scatter(0, outside, 1), "out of bounds");
    EXPECT_ERROR(x.index_select(0, outside), "out of bounds");
    EXPECT_ERROR(take(x, outside), "out of bounds");
    EXPECT_ERROR(outside.one_hot(2), "out of bounds for 2 classes");
  }
  // What a view does not show does not count.
  EXPECT_EQ(shown(x[table[{Slice(), 1}]]), "i32 (3) [5, 7, 5]");
  EXPECT_EQ(shown(x[table[{Slice(0, 0), 0}]]), "i32 (0) []");
  EXPECT_EQ(shown(x[table.reshape({6})[{Slice(1, std::nullopt, 2)}]]), "i32 (3) [5, 7, 5]");
}

/// Positions are looked at in blocks, which a difference may leave that wraps.
TEST_F(Indexing, KnownPositionsOutsideAmongMany) {
  if (testing::simulated()) GTEST_SKIP() << "positions in a device's memory are not looked at";
  const Tensor x = Tensor::of({5, 6, 7});
  const auto gathered = [&](int64_t odd) {
    std::vector<int64_t> at(5000, 1);
    at[1030] = -3, at[1500] = odd, at[2500] = 2;
    return x[Tensor::from(at)];
  };
  for (const int64_t odd : {-3, 2})
    EXPECT_EQ(gathered(odd).sum().item<int64_t>(), 5000 * 6 + (odd == 2 ? 1 : -1));
  for (const int64_t odd : {int64_t{3}, int64_t{-4}, INT64_MIN, INT64_MIN + 3, INT64_MAX,
                            INT64_MAX - 2, int64_t{1} << 32, -(int64_t{1} << 32)})
    EXPECT_ERROR(gathered(odd), "position " + std::to_string(odd) + " is out of bounds");
}

/// Threads share the search; of several outside the first is named, and what a view leaves out is
/// not looked at.
TEST_F(Indexing, TheFirstKnownPositionOutsideIsNamed) {
  if (testing::simulated()) GTEST_SKIP() << "positions in a device's memory are not looked at";
  constexpr int64_t kRows = 300, kColumns = 401;
  const Tensor x = Tensor::arange(7).expand({kRows, 7});
  std::vector<int64_t> at(kRows * kColumns, 6);
  const auto index = [&] { return Tensor::from(at, {kRows, kColumns}); };
  EXPECT_EQ(x.gather(1, index()).sum().item<int64_t>(), 6 * kRows * kColumns);
  const Slice but_last(0, kColumns - 1);
  at[kColumns - 1] = 9;
  EXPECT_EQ(x.gather(1, index()[{Slice(), but_last}]).sum().item<int64_t>(),
            6 * kRows * (kColumns - 1));
  EXPECT_ERROR(x.gather(1, index()), "position 9 is out of bounds");
  at[kColumns - 1] = 6, at[100000] = 9, at[40000] = 8, at[119999] = -8;
  EXPECT_ERROR(x.gather(1, index()), "position 8 is out of bounds for axis 1 of shape (300, 7)");
  EXPECT_ERROR(x.gather(1, index().flip({0, 1})), "position -8 is out of bounds");
  at[40000] = -1;
  EXPECT_ERROR(x.gather(1, index()), "position 9 is out of bounds");
}

TEST_F(Indexing, WritingByIndex) {
  Tensor x = counting({3, 3});
  x.index_put({Slice(), 1}, Tensor::of({10, 20, 30}));
  EXPECT_EQ(shown(x), "i32 (3, 3) [0, 10, 2, 3, 20, 5, 6, 30, 8]");
  x.index_put({Tensor::of({0, 2}), Tensor::of({0, 2})}, -1);
  EXPECT_EQ(shown(x), "i32 (3, 3) [-1, 10, 2, 3, 20, 5, 6, 30, -1]");
  x.index_put({Slice(1, 3), Tensor::of({0, 0})}, Tensor::of({{1, 2}, {3, 4}}));  // the last wins
  EXPECT_EQ(shown(x), "i32 (3, 3) [-1, 10, 2, 2, 20, 5, 4, 30, -1]");
  x[{Slice(std::nullopt, std::nullopt, -1), 0}].assign(Tensor::of({7, 8, 9}));
  EXPECT_EQ(shown(x[{Slice(), 0}]), "i32 (3) [9, 8, 7]");
}

/// Quarters that are added in bfloats one by one stop at 64.
TEST_F(Indexing, ManyNarrowFloatsAreAddedAsWideOnes) {
  for (const DType d : {DType::BF16, DType::F16, DType::F8E4M3}) {
    const Tensor x = Tensor::ones({2}, d), at = Tensor::arange(1024) % 2;
    const Tensor sums = x.scatter(0, at, Tensor::full({1024}, 0.25, d), Fold::Add);
    EXPECT_EQ(sums.dtype(), d);
    expect_near(sums.cast(DType::F32), {129, 129}, d == DType::F8E4M3 ? 8 : 1);
  }
}

TEST_F(Indexing, GatherAndScatter) {
  const Tensor x = counting({2, 3});
  const Tensor at = Tensor::of({{0, 0}, {2, -1}});
  EXPECT_EQ(shown(x.gather(1, at)), "i32 (2, 2) [0, 0, 5, 5]");
  EXPECT_EQ(shown(x.gather(0, Tensor::of({{1, 0, 1}}))), "i32 (1, 3) [3, 1, 5]");
  const Tensor zero = Tensor::zeros({4}, DType::I32), i = Tensor::of({1, 3, 1});
  const Tensor src = Tensor::of({5, 6, 7});
  EXPECT_EQ(shown(zero.scatter(0, i, src)), "i32 (4) [0, 7, 0, 6]");
  EXPECT_EQ(shown(zero.scatter(0, i, src, Fold::Add)), "i32 (4) [0, 12, 0, 6]");
  EXPECT_EQ(shown((zero + 2).scatter(0, i, src, Fold::Mul)), "i32 (4) [2, 70, 2, 12]");
  EXPECT_EQ(shown((zero + 6).scatter(0, i, src, Fold::Max)), "i32 (4) [6, 7, 6, 6]");
  EXPECT_EQ(shown((zero + 6).scatter(0, i, src, Fold::Min)), "i32 (4) [6, 5, 6, 6]");
  EXPECT_EQ(shown(zero.scatter(0, i, 1)), "i32 (4) [0, 1, 0, 1]");
  EXPECT_EQ(shown(x.index_select(1, Tensor::of({2, 0}))), "i32 (2, 2) [2, 0, 5, 3]");
}

}  // namespace
}  // namespace weft
