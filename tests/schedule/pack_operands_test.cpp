// Operands in the order in which vectors read them.
#include <map>

#include "tests/schedule/schedule_test.h"

namespace weft {
namespace {

class PackOperands : public ScheduleTest {
 protected:
  static Target cpu(bool wide) {
    CpuFeatures features;
    features.set(CpuFeature::Avx2, true);
    features.set(CpuFeature::Fma, true);
    for (const CpuFeature f :
         {CpuFeature::Avx512f, CpuFeature::Avx512bw, CpuFeature::Avx512dq, CpuFeature::Avx512vl})
      features.set(f, wide);
    return make_target("x86", features, 2);
  }

  /// The gradient of depthwise weights of 3 x 3, zeros around images of `size` x `size`: rows are
  /// too short for vectors, and each element is read nine times.
  NodeRef depthwise_gradient(int64_t size, int64_t stride = 1) {
    const int64_t n = 2, c = 64, places = (size + 2 - 3) / stride + 1;
    NodeRef x = b_.pad(b_.param(0, {n, c, size, size}), {0, 0, 1, 1}, {0, 0, 1, 1});
    x = b_.window(b_.window(x, 2, 3, stride, 1), 3, 3, stride, 1);
    const GraphBuilder::Ints all{n, c, places, places, 3, 3};
    NodeRef g = b_.param(1, {n, c, places, places});
    return b_.reduce(g_.mul(x, b_.broadcast(g, {n, c, places, places, 1, 1}, all)), Fold::Add,
                     {0, 2, 3});
  }

  int64_t copying_kernels(NodeRef y, const Target& target) {
    const ScheduleOutput out[] = {{y}};
    const Schedule s = make_schedule(out, target);
    return std::ranges::count_if(s.kernels,
                                 [](const Kernel& k) { return k.name.starts_with("each"); });
  }
};

TEST_F(PackOperands, TransposesInRegistersPayWhereElementsAreReadAFewTimes) {
  EXPECT_EQ(copying_kernels(depthwise_gradient(7), cpu(true)), 1)
      << "of both operands, by one kernel";
  EXPECT_EQ(copying_kernels(depthwise_gradient(7), cpu(false)), 0) << "one element at a time";
  EXPECT_EQ(copying_kernels(depthwise_gradient(7, 2), cpu(true)), 0) << "read twice";
}

/// Keys lie as they were given, and each is read once: vectors run along the sum, whatever would
/// fill them otherwise.
TEST_F(PackOperands, OneQueryOfEachHeadStaysInRows) {
  const int64_t batch = 4, heads = 16, keys = 1000, width = 64;
  NodeRef q = g_.cast(b_.param(0, {batch, heads, width}, DType::BF16), DType::F32);
  NodeRef k = b_.param(1, {batch, heads, keys, width});
  const GraphBuilder::Ints all{batch, heads, keys, width};
  NodeRef y = b_.reduce(g_.mul(b_.broadcast(q, {batch, heads, 1, width}, all), k), Fold::Add, {3});
  const ScheduleOutput out[] = {{y}};
  const Target target = cpu(true);
  const Schedule s = make_schedule(out, target);
  ASSERT_EQ(s.kernels.size(), 2u);
  EXPECT_EQ(s.kernels[0].name, "each_4_16_64");
}

/// Sums of 32 products take as long as adding up the lanes that they leave.
TEST_F(PackOperands, RowsOfShortSumsAreTurned) {
  const auto copies = [&](int64_t rows, int64_t sum) {
    NodeRef y = b_.matmul(b_.param(0, {64, rows, sum}),
                          b_.permute(b_.param(1, {64, rows, sum}), {0, 2, 1}));
    return copying_kernels(y, cpu(true));
  };
  EXPECT_EQ(copies(32, 32), 1);
  EXPECT_EQ(copies(32, 256), 0);
  EXPECT_EQ(copies(4, 32), 0) << "of few rows";
}

TEST_F(PackOperands, KeepValues) {
  for (const bool wide : {false, true}) {
    const Target target = cpu(wide);
    for (const int64_t size : {7, 9, 14})
      check({{depthwise_gradient(size)}}, 1e-5, {.schedule = {}, .target = &target});
  }
}

/// A product that is summed block by block over a matrix, in a machine of small caches.
class BlocksOfOperands : public PackOperands {
 protected:
  static constexpr int64_t kRows = 96, kSum = 256, kColumns = 256;
  BlocksOfOperands() { target_.machine.caches[1].bytes = 16 << 10; }

  NodeRef product() { return b_.matmul(b_.param(0, {kRows, kSum}), b_.param(1, {kSum, kColumns})); }

  /// By size: how many intermediates there are of the matrix's rows.
  std::map<int64_t, int> copies(NodeRef y) {
    std::map<int64_t, int> rows;
    for (const BufferSpec& b : make_schedule(std::vector<ScheduleOutput>{{y}}, target_).buffers)
      if (b.input < 0 && b.output < 0 && b.layout.find("panels") != std::string::npos)
        ++rows[b.numel->vmax / kColumns];
    return rows;
  }

  Target target_ = cpu(true);
};

TEST_F(BlocksOfOperands, AreCopiedOneAtATimeWhereNoCacheHoldsAll) {
  const std::map<int64_t, int> whole{{kSum, 1}}, blocks{{kSum / 16, 16}};
  EXPECT_EQ(copies(product()), whole);
  target_.machine.caches[2].bytes = 64 << 10;
  EXPECT_EQ(copies(product()), blocks);
  check({{product()}}, 1e-5, {.device = "CPU", .schedule = {}, .target = &target_});
}

/// What two products read of a matrix, they share.
TEST_F(BlocksOfOperands, AreShared) {
  target_.machine.caches[2].bytes = 64 << 10;
  NodeRef w = b_.param(1, {kSum, kColumns});
  NodeRef y = b_.matmul(b_.param(0, {kRows, kSum}), w),
          z = b_.matmul(b_.param(2, {kRows, kSum}), w);
  EXPECT_EQ(copies(g_.add(y, z)), (std::map<int64_t, int>{{kSum / 16, 16}}));
  check({{g_.add(y, z)}}, 1e-5, {.device = "CPU", .schedule = {}, .target = &target_});
}

/// x @ w.T of a matrix that no cache holds: a copy of x and results that are stored apart cost less
/// than the matrix in another order.
TEST_F(PackOperands, ThatNoCacheHoldsAreNotTurnedWhereResultsAreAsFew) {
  Target target = cpu(true);
  const auto largest_copy = [&](int64_t rows, int64_t l3) {
    target.machine.caches[2].bytes = l3;
    NodeRef w = b_.permute(b_.param(1, {1008, 96}), {1, 0});
    int64_t most = 0;
    NodeRef y = b_.matmul(b_.param(0, {rows, 96}), w);
    for (const BufferSpec& b : make_schedule(std::vector<ScheduleOutput>{{y}}, target).buffers)
      if (b.input < 0 && b.output < 0) most = std::max(most, b.numel->vmax);
    return most;
  };
  EXPECT_EQ(largest_copy(112, 32 << 20), 1008 * 96) << "it stays in L3";
  EXPECT_EQ(largest_copy(112, 64 << 10), 112 * 96);
  EXPECT_EQ(largest_copy(320, 64 << 10), 1008 * 96) << "results are more than it";
}

/// Both operands lie along outputs, as those of a layer's gradient do: vectors run along panels of
/// one, and rows of the other, which they share, lie along the sum. Nothing turns halves.
TEST_F(PackOperands, OneOfTwoThatLieAlongOutputsIsInPanels) {
  Target target = cpu(true);
  target.machine.caches[1].bytes = 48 << 10;
  for (const auto& [dtype, turned] : {std::pair(DType::F32, 1), {DType::F16, 0}}) {
    NodeRef x = b_.permute(b_.param(0, {128, 96}, dtype), {1, 0});
    const std::vector<ScheduleOutput> y{{b_.matmul(x, b_.param(1, {128, 160}, dtype))}};
    const Schedule s = make_schedule(y, target);
    const auto lie = [&](const char* how) {
      return std::ranges::count_if(s.buffers, [&](const BufferSpec& b) { return b.layout == how; });
    };
    EXPECT_EQ(lie("axes 1,0"), turned) << name(dtype);
    EXPECT_EQ(lie("axes 0,1, panels of 16"), turned) << name(dtype);
    check(y, turned == 1 ? 1e-5 : 2e-2, {.device = "CPU", .schedule = {}, .target = &target});
  }
}

/// All lanes of vectors along few rows would take one half after the other of the matrix, and widen
/// each for itself: rows stay as they came, and vectors run along the sum.
TEST_F(PackOperands, HalvesAreWidenedInVectors) {
  const auto product = [&](int64_t m, int64_t k, int64_t n, DType dtype, bool transposed) {
    const auto as_f32 = [&](NodeRef x) { return g_.cast(x, DType::F32); };
    NodeRef w = transposed ? b_.permute(as_f32(b_.param(1, {n, k}, dtype)), {1, 0})
                           : as_f32(b_.param(1, {k, n}, dtype));
    return b_.matmul(as_f32(b_.param(0, {m, k}, dtype)), w);
  };
  for (const int64_t rows : {8, 16, 48}) {
    const ScheduleOutput y[] = {{product(rows, 512, 1024, DType::F16, true)}};
    for (const BufferSpec& b : make_schedule(y, cpu(true)).buffers)
      EXPECT_EQ(b.layout, "row-major") << rows;
  }
  EXPECT_EQ(copying_kernels(product(4096, 64, 32, DType::F16, false), cpu(true)), 2);
  EXPECT_EQ(copying_kernels(product(4096, 64, 8, DType::F16, false), cpu(true)), 1)
      << "vectors run along the sum";
}

/// Where windows move by two, or rows are shorter than half a vector, halves would be gathered: the
/// image is widened first. Read often, it is transposed meanwhile; else it lies as it came.
TEST_F(PackOperands, HalvesThatWouldBeGatheredAreWidenedFirst) {
  const auto layout = [&](int64_t channels, int64_t size, int64_t stride) {
    const int64_t n = 4, places = (size + 2 - 3) / stride + 1;
    NodeRef x = g_.cast(b_.param(0, {n, channels, size, size}, DType::F16), DType::F32);
    x = b_.pad(x, {0, 0, 1, 1}, {0, 0, 1, 1});
    x = b_.window(b_.window(x, 2, 3, stride, 1), 3, 3, stride, 1);
    const GraphBuilder::Ints all{n, channels, places, places, 3, 3};
    NodeRef w = b_.expand(b_.param(1, {1, channels, 1, 1, 3, 3}), all);
    const ScheduleOutput y[] = {{b_.reduce(g_.mul(x, w), Fold::Add, {4, 5})}};
    for (const BufferSpec& b : make_schedule(y, cpu(true)).buffers)
      if (b.input < 0 && b.output < 0 && b.numel->vmax == n * channels * size * size)
        return b.layout;
    return std::string("none");
  };
  EXPECT_EQ(layout(64, 28, 2), "row-major");
  EXPECT_EQ(layout(64, 12, 2), "row-major");
  EXPECT_EQ(layout(256, 7, 1), "axes 0,2,3,1");
  EXPECT_EQ(layout(64, 28, 1), "none") << "rows fill vectors, and are copied with zeros";
  EXPECT_EQ(layout(16, 7, 1), "none") << "takes less than a launch";
}

/// A convolution whose vectors run along rows of the image reads it as it lies, also where weights
/// could be put in any order for nothing: results side by side cost less than weights side by side.
TEST_F(PackOperands, ImagesStayInRowsWhereVectorsRunAlongThem) {
  const int64_t n = 4, in = 64, out = 32, size = 64, k = 5;
  NodeRef x = b_.pad(b_.param(0, {n, in, size, size}), {0, 0, 2, 2}, {0, 0, 2, 2});
  x = b_.window(b_.window(x, 2, k, 1, 1), 3, k, 1, 1);
  const GraphBuilder::Ints all{n, out, size, size, in, k, k};
  NodeRef windows = b_.permute(x, {0, 2, 3, 1, 4, 5});
  NodeRef w = b_.param(1, {out, in, k, k});
  NodeRef product = g_.mul(b_.broadcast(windows, {n, 1, size, size, in, k, k}, all),
                           b_.broadcast(w, {1, out, 1, 1, in, k, k}, all));
  const ScheduleOutput y[] = {{b_.reduce(product, Fold::Add, {4, 5, 6})}};
  for (const std::vector<bool>& constants : {std::vector<bool>{}, {false, true}}) {
    ScheduleOptions options;
    options.constants = constants;
    for (const BufferSpec& b : make_schedule(y, cpu(true), options).buffers)
      if (b.input < 0 && b.output < 0) {
        EXPECT_EQ(b.layout, "row-major");
      }
  }
}

}  // namespace
}  // namespace weft
