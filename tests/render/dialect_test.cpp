// Kernels in every dialect of C but C itself, against tests/golden/<dialect>_<name>.txt; and what
// clang says of them where it knows the language. Run with GOLDEN_UPDATE=1 to rewrite the texts.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/device/samples.h"
#include "tests/source_dir.h"
#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {
namespace {

constexpr const char* kDialectNames[] = {"opencl", "cuda", "hip", "metal", "wgsl", "ptx"};

/// Work items one by one, and in groups.
std::vector<LinearProgram> device_samples(const Target& target) {
  std::vector<LinearProgram> all = testing::scalar_samples(target);
  if (target.groups.exist()) all.push_back(testing::group_reverse());
  if (target.groups.shuffled != 0) all.push_back(testing::group_fold());
  return all;
}

std::string all_texts(const char* dialect) {
  const Target target = make_target(dialect, CpuFeatures(), 1);
  return render(device_samples(target), target);
}

TEST(RenderDialects, Golden) {
  for (const char* dialect : kDialectNames) {
    const Target target = make_target(dialect, CpuFeatures(), 1);
    for (const LinearProgram& program : device_samples(target)) {
      const std::string path =
          strformat("{}/tests/golden/{}_{}.txt", source_dir(), dialect, program.name);
      const std::string text = render(program, target, "k_" + program.name);
      if (std::getenv("GOLDEN_UPDATE") != nullptr) atomic_write_file(path, text);
      EXPECT_EQ(text, MappedFile(path).text()) << path;
    }
  }
}

TEST(RenderDialects, LanesAreOurError) {
  for (const char* dialect : kDialectNames)
    EXPECT_THROW(render(testing::sample_add(), make_target(dialect, CpuFeatures(), 1), "k"),
                 InternalError);
}

TEST(RenderDialects, ADtypeTheMachineLacksIsSaid) {
  testing::ProgramBuilder b("halve");
  NodeRef out = b.param(DType::F64, true);
  b.store(out, b.i32(0), b.constant(DType::F64, 0.5));
  const LinearProgram program = b.build();
  EXPECT_NO_THROW(render(program, make_target("cuda", CpuFeatures(), 1), "k"));
  try {
    render(program, make_target("metal", CpuFeatures(), 1), "k");
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[dtype] kernel halve computes with f64, which the machine of target metal does "
                 "not have; cast to another dtype, or compute it on another device");
  }
}

TEST(RenderDialects, NumbersOf64BitsAndInfinities) {
  testing::ProgramBuilder b("limits");
  NodeRef out = b.param(DType::I64, true), x = b.param(DType::F64, true);
  b.store(out, b.i32(0), b.constant(Value::of(DType::I64, INT64_MIN)));
  b.store(x, b.i32(0), b.constant(DType::F64, INFINITY));
  const LinearProgram program = b.build();
  const auto text = [&](const char* dialect) {
    return render(program, make_target(dialect, CpuFeatures(), 1), "k");
  };
  EXPECT_NE(text("opencl").find("(-9223372036854775807l - 1)"), std::string::npos);
  EXPECT_NE(text("opencl").find("as_f64_u64(0x7ff0000000000000ul)"), std::string::npos);
  EXPECT_NE(text("cuda").find("(-9223372036854775807ll - 1)"), std::string::npos);
  EXPECT_NE(text("c").find("__builtin_inf()"), std::string::npos);
}

// ---- what a compiler says

/// A text in a file of its own, and what a command line makes of it.
class Compiled {
 public:
  Compiled(const std::string& text, const std::string& flags) {
    char folder[] = "/tmp/weft-test-XXXXXX";
    folder_ = ::mkdtemp(folder);
    atomic_write_file(folder_ + "/text", text);
    status_ = std::system(
        strformat("clang-19 {} {}/text -o {}/out > {}/said 2>&1", flags, folder_, folder_, folder_)
            .c_str());
  }
  ~Compiled() { std::system(("rm -r " + folder_).c_str()); }
  bool done() const { return status_ == 0; }
  std::string said() const { return std::string(MappedFile(folder_ + "/said").text()); }
  std::string out() const { return std::string(MappedFile(folder_ + "/out").text()); }

 private:
  std::string folder_;
  int status_ = 0;
};

bool has_clang() { return std::system("clang-19 --version > /dev/null 2>&1") == 0; }

TEST(RenderDialects, ClangTakesOpencl) {
  if (!has_clang()) GTEST_SKIP() << "there is no clang-19 on PATH";
  const Compiled unit(all_texts("opencl"),
                      "-x cl -cl-std=CL1.2 -target spir64 -Wall -Werror -Wno-unused-function "
                      "-Wno-unused-variable -fsyntax-only");
  EXPECT_TRUE(unit.done()) << unit.said();
}

// What CUDA's own headers would say of the names that the texts use.
constexpr std::string_view kCudaNames = R"(
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __forceinline__ __inline__ __attribute__((always_inline))
#define __shared__ __attribute__((shared))
#define __launch_bounds__(n) __attribute__((launch_bounds(n)))
struct Axis { unsigned x, y; };
#define blockIdx Axis{(unsigned)__nvvm_read_ptx_sreg_ctaid_x(), 0}
#define blockDim Axis{(unsigned)__nvvm_read_ptx_sreg_ntid_x(), 0}
#define threadIdx Axis{(unsigned)__nvvm_read_ptx_sreg_tid_x(), (unsigned)__nvvm_read_ptx_sreg_tid_y()}
#define __shfl_xor_sync(lanes, x, mask) __nvvm_shfl_sync_bfly_f32(lanes, x, mask, 31)
#define memcpy __builtin_memcpy
#define sqrtf __builtin_sqrtf
#define fmaf __builtin_fmaf
#define truncf __builtin_truncf
)";

TEST(RenderDialects, ClangMakesPtxOfCuda) {
  if (!has_clang()) GTEST_SKIP() << "there is no clang-19 on PATH";
  const std::string flags =
      "-x cuda -std=c++17 --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib -O2 -S "
      "-ffp-contract=off -Wno-unknown-cuda-version";
  const Compiled unit(std::string(kCudaNames) + all_texts("cuda"), flags);
  ASSERT_TRUE(unit.done()) << unit.said();
  const std::string ptx = unit.out();
  size_t entries = 0;
  for (size_t at = 0; (at = ptx.find(".visible .entry k_", at)) != std::string::npos; ++at)
    ++entries;
  EXPECT_EQ(entries, 8u) << "device_samples()";
  EXPECT_NE(ptx.find("fma.rn.f32"), std::string::npos) << "the product's";
  EXPECT_NE(ptx.find("%ctaid.x"), std::string::npos);
  EXPECT_NE(ptx.find("bar.sync"), std::string::npos) << "of the group";
  EXPECT_NE(ptx.find("shfl.sync.bfly"), std::string::npos) << "of the wave";
}

}  // namespace
}  // namespace weft
