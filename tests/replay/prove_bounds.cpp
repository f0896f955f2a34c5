// prove_bounds FOLDER [PART/PARTS]: asks Z3 whether every access is in range, of each kernel that
// the repro files in the folder become; several processes take a part each. A test suite that runs
// with WEFT_REPRO=FOLDER and WEFT_REPRO_EVERY=1 leaves one of every program that it compiles.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/trust/bounds_support.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/run/repro_file.h"
#include "weft/target/target.h"

namespace weft {
namespace {

// Of the kernels' graphs: what is larger is larger in the number of its copies.
constexpr size_t kLongestText = 200'000;

struct Total {
  test::Bounds bounds;
  int64_t programs = 0, kernels = 0, refused = 0, refuted = 0;
};

class Prover {
 public:
  explicit Prover(const Target& target) : target_(target) {}

  void prove(const std::string& path) {
    ++total.programs;
    try {
      const Repro repro = read_repro(path);
      test::each_guarded_kernel(repro.roots, target_, [&](const std::string& name, NodeRef sink) {
        prove(path, name, sink);
      });
    } catch (const Error&) {  // no such program for this machine
      ++total.refused;
    }
  }

  Total total;

 private:
  void prove(const std::string& path, const std::string& name, NodeRef sink) {
    if (!seen_.insert(sink->hash).second || print_graph(sink).size() > kLongestText) return;
    ++total.kernels;
    const test::Bounds now = test::prove_bounds(sink, false);
    total.bounds.plain += now.plain;
    total.bounds.proved += now.proved;
    total.bounds.unknown += now.unknown;
    if (now.refuted.empty()) return;
    ++total.refuted;
    std::printf("%s: kernel %s: %s\n", path.c_str(), name.c_str(), now.refuted.c_str());
  }

  const Target& target_;
  std::set<uint64_t> seen_;
};

struct Part {
  unsigned number = 1, of = 1;
  bool valid() const { return number >= 1 && number <= of; }
};

std::vector<std::string> files_in(const std::string& folder, Part part) {
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".repro") paths.push_back(file.path().string());
  std::sort(paths.begin(), paths.end());
  return {paths.begin() + paths.size() * (part.number - 1) / part.of,
          paths.begin() + paths.size() * part.number / part.of};
}

int run(const std::string& folder, Part part) {
  Context context{Options()};
  const ContextScope scope(context);
  const Target target = make_target("x86", CpuFeatures::detect(), 2);
  Prover prover(target);
  for (const std::string& path : files_in(folder, part)) prover.prove(path);
  const Total& t = prover.total;
  std::printf(
      "%lld programs, %lld kernels: %lld accesses in range by their bounds, %lld by Z3, %lld "
      "unknown, "
      "%lld kernels refuted; %lld programs not for this machine\n",
      static_cast<long long>(t.programs), static_cast<long long>(t.kernels),
      static_cast<long long>(t.bounds.plain), static_cast<long long>(t.bounds.proved),
      static_cast<long long>(t.bounds.unknown), static_cast<long long>(t.refuted),
      static_cast<long long>(t.refused));
  return t.refuted > 0 || t.kernels == 0 ? 1 : 0;
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  weft::Part part;
  const bool parts = argc == 3 && std::sscanf(argv[2], "%u/%u", &part.number, &part.of) == 2;
  if ((argc != 2 && !parts) || !part.valid())
    return std::fprintf(stderr, "prove_bounds FOLDER [PART/PARTS], 1/2 and 2/2\n"), 2;
  if (!std::filesystem::is_directory(argv[1]))
    return std::fprintf(stderr, "prove_bounds: %s is no folder\n", argv[1]), 2;
  if (!weft::test::can_prove_bounds()) return std::puts("skipped: built without libz3"), 0;
  return weft::run(argv[1], part);
}
