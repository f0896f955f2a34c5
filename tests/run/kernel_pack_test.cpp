// Schedules and machine code that one process leaves on disk for the next.
#include "weft/run/kernel_pack.h"

#include <filesystem>
#include <fstream>

#include "tests/run/fixture.h"
#include "weft/base/version.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class KernelPackTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("weft_packs_" + std::to_string(::getpid()));
    fs::remove_all(folder_);
    if (!has_build_id()) GTEST_SKIP() << "this build has no id";
    Options options = here();
    Context context(options);
    if (!context.get<DeviceTable>().default_device().target().machine_code)
      GTEST_SKIP() << "no machine code on this machine";
  }
  void TearDown() override { fs::remove_all(folder_); }

  Options here() const {
    Options options = Options::from_environment();
    options.threads = 2;
    options.cache = true;
    options.cache_dir = folder_.string();
    return options;
  }

  struct Result {
    Floats values;
    int64_t found;
  };
  /// Enough kernels that keeping them is worth a file, in a context that knows none.
  Result run() const {
    Context context(here());
    const ContextScope scope(context);
    Tensor sum;
    for (int64_t n = 1; n <= 24; ++n) {
      const Tensor x = Tensor::arange(16 * n, DType::F32).reshape({16, n}) / 64;
      const Tensor y = x.T().matmul((x * 0.125).sin()).softmax(-1).contiguous().sum();
      sum = sum.defined() ? sum + y : y;
    }
    return {sum.to_vector<float>(), context.tracer().value(Counter::CacheHits)};
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_))
      if (entry.is_regular_file()) all.push_back(entry.path());
    return all;
  }

  fs::path folder_;
};

/// A schedule, and the code of its kernels.
constexpr size_t kFiles = 2;

TEST_F(KernelPackTest, TheNextProcessFindsThem) {
  const Result first = run();
  ASSERT_EQ(files().size(), kFiles);
  const Result second = run();
  EXPECT_EQ(first.found, 0);
  EXPECT_EQ(second.found, int64_t{kFiles});
  EXPECT_EQ(first.values, second.values);
  EXPECT_EQ(files().size(), kFiles);
}

TEST_F(KernelPackTest, DamagedOnesAreCompiledAgain) {
  const Result first = run();
  ASSERT_EQ(files().size(), kFiles);
  for (const fs::path& file : files()) fs::resize_file(file, fs::file_size(file) / 2);
  const Result again = run();
  EXPECT_EQ(again.found, 0);
  EXPECT_EQ(first.values, again.values);
  EXPECT_EQ(run().found, int64_t{kFiles}) << "written anew";
}

TEST_F(KernelPackTest, OtherOptionsAreOtherKernels) {
  run();
  Options options = here();
  options.deterministic = true;
  EXPECT_NE(Context(options).get<DeviceTable>().default_device().target().key(),
            Context(here()).get<DeviceTable>().default_device().target().key());
}

TEST(KernelPack, RefusesWhatIsNone) {
  const auto graph = std::make_shared<Graph>();
  Translation t;
  t.program.graph = graph;
  t.program.name = "each_8";
  t.program.params = {{DType::F32, false, true}, {DType::I8, true, false}};
  t.program.variables = {graph->variable("n", 1, 64)};
  t.program.core_size = graph->add(t.program.variables[0], graph->index(3));
  t.code = "machine code";
  const Translation* made[] = {&t, &t};
  const std::string pack = pack_kernels(made);
  const auto kernels = unpack_kernels(pack, 2);
  ASSERT_TRUE(kernels);
  const PackedKernel& k = (*kernels)[1];
  EXPECT_EQ(k.code, t.code);
  EXPECT_EQ(k.program.name, "each_8");
  ASSERT_EQ(k.program.params.size(), 2U);
  EXPECT_TRUE(k.program.params[0].written && k.program.params[1].read);
  EXPECT_EQ(k.program.params[1].dtype, DType::I8);
  EXPECT_EQ(IndexProgram(k.program.core_size, k.program.variables)(std::vector<int64_t>{4}), 7);
  EXPECT_FALSE(unpack_kernels(pack, 1)) << "of other kernels";
  EXPECT_FALSE(unpack_kernels(pack, 3));
  for (size_t n = 0; n < pack.size(); ++n) EXPECT_FALSE(unpack_kernels(pack.substr(0, n), 2)) << n;
}

}  // namespace
}  // namespace weft
