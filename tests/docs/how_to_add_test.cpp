// The promises of docs/how_to_add: the examples are patches that still apply, touch as many files
// as the pages say, and work.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "tests/docs/pages.h"
#include "tests/source_dir.h"
#include "weft/base/format.h"

namespace weft {
namespace {

/// Runs a line of shell at the top of the checkout.
struct Shell {
  int status;
  std::string output;
};
Shell shell(const std::string& line) {
  const std::string whole = strformat("cd '{}' && {{ {}; }} 2>&1", source_dir(), line);
  std::FILE* pipe = ::popen(whole.c_str(), "r");
  std::string output;
  char buffer[4096];
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) output.append(buffer, n);
  return {::pclose(pipe), output};
}

std::string patch_path(const std::string& name) { return "tests/docs/patches/" + name + ".patch"; }

/// The lines that a patch adds, by file.
std::map<std::string, std::string> added_lines(const std::string& patch) {
  std::map<std::string, std::string> files;
  std::string* file = nullptr;
  std::istringstream lines(repository_file(patch_path(patch)));
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("+++ b/")) {
      file = &files[line.substr(6)];
    } else if (file && line.starts_with("+")) {
      *file += line.substr(1) + "\n";
    }
  }
  return files;
}

std::set<std::string> touched_files(const std::string& patch) {
  std::set<std::string> files;
  for (const auto& [file, lines] : added_lines(patch)) files.insert(file);
  return files;
}

bool has_patch_program() { return shell("patch --version").status == 0; }

void expect_applies(const std::string& name) {
  const Shell s = shell("patch -p1 --dry-run --force --fuzz=0 < " + patch_path(name));
  EXPECT_EQ(s.status, 0) << patch_path(name) << " no longer applies; apply it by hand and write it "
                         << "again with\n  git add -N weft && git diff -U2 -- weft > "
                         << patch_path(name) << "\n"
                         << s.output;
}

TEST(HowToAdd, APrimitiveOpTouchesTwoFiles) {
  using Files = std::set<std::string>;
  EXPECT_EQ(touched_files("op"), (Files{"weft/graph/ops.def", "weft/lower/decompose_int.cpp"}));
  EXPECT_EQ(touched_files("binary_op"),
            (Files{"weft/graph/ops.def", "weft/lower/decompose_float.cpp"}));
  if (!has_patch_program()) GTEST_SKIP() << "patch (Debian: patch) is not installed";
  expect_applies("op");
  expect_applies("binary_op");
}

TEST(HowToAdd, ADerivedOpTouchesOneFile) {
  EXPECT_EQ(touched_files("derived_op"), (std::set<std::string>{"weft/tensor/derived.def"}));
  if (!has_patch_program()) GTEST_SKIP() << "patch (Debian: patch) is not installed";
  expect_applies("derived_op");
}

TEST(HowToAdd, AGpuTouchesThreeFiles) {
  EXPECT_EQ(touched_files("gpu"),
            (std::set<std::string>{"weft/device/drivers/toy.cpp", "weft/render/dialect.cpp",
                                   "weft/target/target.cpp"}));
  const std::string page = repository_file("docs/how_to_add/gpu.md");
  for (const auto& [file, lines] : added_lines("gpu"))
    EXPECT_NE(page.find("`" + file + "`:\n\n```cpp\n" + lines + "```\n"), std::string::npos)
        << "docs/how_to_add/gpu.md does not show what " << patch_path("gpu") << " adds to " << file
        << ":\n"
        << lines;
  if (!has_patch_program()) GTEST_SKIP() << "patch (Debian: patch) is not installed";
  expect_applies("gpu");
}

/// Uses the new ops as a user would: on every device that runs here, against plain arithmetic.
constexpr const char* kProgram = R"(
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>

#include "weft/weft.h"
using namespace weft;

template <class T>
int wrong_counts(const char* device) {
  using L = std::numeric_limits<T>;
  const std::vector<T> v = {0, 1, 2, 3, 7, 64, 85, 127, L::max(), L::min(), T(-1), T(L::max() / 3), T(-100)};
  const Tensor counts = Tensor::from(v).to(device).popcount();
  const std::vector<T> got = counts.to_vector<T>();
  int wrong = 0;
  for (size_t i = 0; i < v.size(); ++i)
    wrong += static_cast<int>(got[i]) != std::popcount(static_cast<std::make_unsigned_t<T>>(v[i]));
  return wrong;
}

/// All pairs of awkward numbers, halves in their own rounding, and both gradients.
int wrong_differences(const char* device) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const std::vector<float> v = {0, -0.f, 1, 1.5f, -2.25f, 3e38f, -3e38f, 1e-40f, 65504, kInf, -kInf, NAN};
  const auto n = static_cast<int64_t>(v.size());
  int wrong = 0;
  for (const DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const Tensor a = Tensor::from(v).cast(dtype).to(device);
    const std::vector<double> x = a.to_vector<double>();
    const std::vector<double> got = a.reshape({n, 1}).fdim(a).to_vector<double>();
    for (size_t i = 0; i < got.size(); ++i) {
      const double p = x[i / v.size()], q = x[i % v.size()];
      const double exact = dtype == DType::F64 ? std::fdim(p, q) : std::fdim(float(p), float(q));
      const double expected = Tensor::full({}, exact, DType::F64).cast(dtype).item<double>();
      wrong += got[i] != expected && !(std::isnan(got[i]) && std::isnan(expected));
    }
  }
  Tensor x = Tensor::of({1.f, 2.f, 3.f}).to(device).requires_grad_();
  Tensor y = Tensor::of({2.f}).to(device).requires_grad_();
  x.fdim(y).sum().backward();
  wrong += x.grad().to_vector<float>() != std::vector<float>{0, 0, 1};
  wrong += y.grad().to_vector<float>() != std::vector<float>{-1};
  return wrong + (Tensor::of({5, 1}).fdim(2).to_vector<float>() != std::vector<float>{3, 0});
}

int wrong_on(const char* device) {
  int wrong = wrong_counts<int8_t>(device) + wrong_counts<int16_t>(device) +
              wrong_counts<int32_t>(device) + wrong_counts<int64_t>(device) +
              wrong_counts<uint8_t>(device) + wrong_counts<uint16_t>(device) +
              wrong_counts<uint32_t>(device) + wrong_counts<uint64_t>(device) +
              wrong_differences(device);
  Tensor x = Tensor::of({0.25f, 0.5f, 0.75f}).to(device).requires_grad_();
  const std::vector<float> y = x.logit().to_vector<float>();
  x.logit().sum().backward();
  const std::vector<float> slope = x.grad().to_vector<float>();
  for (int i = 0; i < 3; ++i) {
    const double p = 0.25 * (i + 1);
    wrong += std::fabs(y[i] - std::log(p / (1 - p))) > 1e-6;
    wrong += std::fabs(slope[i] - 1 / (p * (1 - p))) > 1e-5;
  }
  std::printf("%s: %d wrong\n", device, wrong);
  return wrong;
}

/// Products, folds and gradients: kernels of several loops.
Tensor attention(const char* device) {
  const Tensor x = (Tensor::arange(0, 24 * 16).reshape({24, 16}).to(device) * 0.37f).sin();
  const Tensor weights = x.matmul(x.transpose(0, 1)).softmax(1).requires_grad_();
  const Tensor out = weights.matmul(x).cumsum(0);
  (out * out).sum().backward();
  return weights.grad().matmul(out);
}

int toy_against_cpu() {
  const Tensor toy = attention("TOY"), cpu = attention("CPU");
  const std::vector<float> a = toy.to_vector<float>(), b = cpu.to_vector<float>();
  int wrong = toy.device() != "TOY" || a.size() != 24 * 16;
  for (size_t i = 0; i < a.size(); ++i)
    wrong += !(std::fabs(a[i] - b[i]) <= 1e-4f * std::fabs(b[i]) + 1e-3f);
  std::printf("TOY against CPU: %d wrong\n", wrong);
  return wrong;
}

int main() {
  return wrong_on("CPU:INTERP") + wrong_on("CPU") + wrong_on("TOY") + toy_against_cpu();
}
)";

/// A folder of its own for every run: two at once do not build in one tree. What one run compiled
/// the next finds all the same where ccache is installed, which is told paths relative to the tree.
class PatchedTree {
 public:
  PatchedTree() : path_(::testing::TempDir() + "weft_patched_XXXXXX") {
    if (::mkdtemp(path_.data()) == nullptr) path_.clear();
  }
  ~PatchedTree() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(HowToAdd, SlowThePatchedTreeBuildsAndItsOpsWork) {
  if (!has_patch_program()) GTEST_SKIP() << "patch (Debian: patch) is not installed";
  const PatchedTree tree;
  ASSERT_FALSE(tree.path().empty()) << "no folder can be made in " << ::testing::TempDir();
  const Shell copied = shell(strformat(
      "cp -r CMakeLists.txt README.md cmake docs examples weft tests '{0}' && "
      "for p in op binary_op derived_op gpu; do "
      "patch -s -p1 -d '{0}' < tests/docs/patches/$p.patch || exit 1; done && "
      "printf 'add_executable(use use.cpp)\\ntarget_link_libraries(use PRIVATE weft_tensor)\\n' "
      ">> '{0}/CMakeLists.txt'",
      tree.path()));
  ASSERT_EQ(copied.status, 0) << copied.output;
  std::ofstream(tree.path() + "/use.cpp") << kProgram;
  const Shell s = shell(strformat(
      "cd '{0}' && cmake -S . -B build -G Ninja && "
      "cmake --build build --target use compiler_tests core_tests run_tests && "
      "build/use && "
      "build/compiler_tests '--gtest_filter=LowerDecompose.*aryOps' --gtest_brief=1 && "
      "build/run_tests '--gtest_filter=Functions.*' --gtest_brief=1 && "
      "WEFT_DEV=TOY build/run_tests --gtest_brief=1 "
      "'--gtest_filter=Elementwise.*:Reductions.*:Products.*:Indexing.*:SortTest.*-*Slow*' && "
      "build/core_tests '--gtest_filter=RandomGraphs.*' --gtest_brief=1",
      tree.path()));
  EXPECT_EQ(s.status, 0) << s.output.substr(s.output.size() > 4000 ? s.output.size() - 4000 : 0);
}

}  // namespace
}  // namespace weft
