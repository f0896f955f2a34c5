// code_manifest: a line for each kernel of fixed programs for fixed machines, with a hash of its
// code. Whatever machine it runs on, the lines are the same: tools/replay compares those of
// commits.
#include <cstdio>

#include "tests/support/compiler/graph_builder.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/run/translate.h"
#include "weft/schedule/schedule.h"
#include "weft/target/target.h"
#include "weft/trust/fuzz.h"

namespace weft {
namespace {

constexpr uint64_t kRandomPrograms = 40;

struct MachineRow {
  const char* target;
  const char* level;  // of instructions
};
constexpr MachineRow kMachines[] = {{"x86", "avx512"}, {"x86", "avx2"}, {"c", "avx2"},
                                    {"opencl", ""},    {"cuda", ""},    {"hip", ""},
                                    {"metal", ""},     {"wgsl", ""},    {"ptx", ""}};

/// Of a processor that has everything, what a level has.
CpuFeatures features(std::string_view level) {
  CpuFeatures all;
  for (int i = 0; i < static_cast<int>(CpuFeature::Count); ++i)
    all.set(static_cast<CpuFeature>(i), true);
  return all.up_to(level);
}

struct ProgramRow {
  const char* name;
  NodeRef (*root)(testing::GraphBuilder&);
};
constexpr ProgramRow kPrograms[] = {
    {"product", [](auto& b) { return b.matmul(b.param(0, {256, 300}), b.param(1, {300, 192})); }},
    {"product-of-words",
     [](auto& b) {
       Graph& g = b.graph();
       return b.matmul(g.cast(b.param(0, {64, 128}, DType::U8), DType::I32),
                       g.cast(b.param(1, {128, 64}, DType::I8), DType::I32));
     }},
    {"batched", [](auto& b) { return b.matmul(b.param(0, {4, 33, 65}), b.param(1, {4, 65, 17})); }},
    {"sum", [](auto& b) { return b.reduce(b.param(0, {1000, 1000}), Fold::Add, {0, 1}); }},
    {"rows", [](auto& b) { return b.reduce(b.param(0, {1000, 1000}), Fold::Max, {1}); }},
    {"columns", [](auto& b) { return b.reduce(b.param(0, {1000, 1000}), Fold::Add, {0}); }},
    {"softmax",
     [](auto& b) {
       Graph& g = b.graph();
       NodeRef x = b.param(0, {64, 512});
       NodeRef most = b.broadcast(b.reduce(x, Fold::Max, {1}), {64, 1}, {64, 512});
       NodeRef e = g.alu(Op::Exp2, {g.sub(x, most)});
       return g.alu(Op::Div, {e, b.broadcast(b.reduce(e, Fold::Add, {1}), {64, 1}, {64, 512})});
     }},
    {"convolution",
     [](auto& b) {
       Graph& g = b.graph();
       NodeRef x = b.pad(b.param(0, {2, 16, 30, 30}), {0, 0, 1, 1}, {0, 0, 1, 1});
       NodeRef windows = b.window(b.window(x, 2, 3), 3, 3);
       NodeRef w = b.param(1, {32, 16, 3, 3});
       const testing::GraphBuilder::Ints all{2, 32, 16, 30, 30, 3, 3};
       return b.reduce(g.mul(b.broadcast(windows, {2, 1, 16, 30, 30, 3, 3}, all),
                             b.broadcast(w, {1, 32, 16, 1, 1, 3, 3}, all)),
                       Fold::Add, {2, 5, 6});
     }},
    {"transposed", [](auto& b) { return b.permute(b.param(0, {300, 500}), {1, 0}); }},
    {"running", [](auto& b) { return b.scan(b.param(0, {20, 100}), Fold::Add, 1); }},
    {"gathered",
     [](auto& b) { return b.gather(b.param(0, {50, 64}), b.param(1, {9, 64}, DType::I32), 0); }},
};

/// What the machine cannot have is a line, too.
void print_kernels(const std::string& name, std::span<const NodeRef> roots, const Target& target) {
  std::vector<ScheduleOutput> outputs;
  for (NodeRef n : roots) outputs.push_back({n});
  const Schedule schedule = make_schedule(outputs, target);
  for (size_t i = 0; i < schedule.kernels.size(); ++i) {
    const Kernel& kernel = schedule.kernels[i];
    try {
      const Translation made = translate_kernel(kernel, target, "k");
      std::printf("%s %zu:%s %016llx %zu\n", name.c_str(), i, kernel.name.c_str(),
                  static_cast<unsigned long long>(hash_text(made.code)), made.code.size());
    } catch (const Error& error) {
      std::printf("%s %zu:%s refused %s\n", name.c_str(), i, kernel.name.c_str(),
                  error.code().c_str());
    }
  }
}

void print_all(const MachineRow& machine) {
  const Target target = make_target(machine.target, features(machine.level), 2);
  const std::string prefix =
      strformat("{}{}{}:", machine.target, *machine.level ? "-" : "", machine.level);
  for (const ProgramRow& row : kPrograms) {
    testing::GraphBuilder b;
    const NodeRef roots[] = {row.root(b)};
    print_kernels(prefix + row.name, roots, target);
  }
  for (uint64_t seed = 0; seed < kRandomPrograms; ++seed) {
    Graph g;
    print_kernels(strformat("{}random-{}", prefix, seed), trust::fuzz_program(g, seed).roots,
                  target);
  }
}

}  // namespace
}  // namespace weft

int main() {
  weft::Context context{weft::Options()};
  const weft::ContextScope scope(context);
  for (const weft::MachineRow& machine : weft::kMachines) weft::print_all(machine);
}
