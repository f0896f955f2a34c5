// docs/tour.md: (a + b).sum() at every stage of run/pipeline.cpp, as the stages really leave it.
#include <gtest/gtest.h>

#include "tests/docs/pages.h"
#include "weft/base/format.h"
#include "weft/codegen/codegen.h"
#include "weft/graph/print.h"
#include "weft/lower/lower.h"
#include "weft/optimize/optimize.h"
#include "weft/render/render.h"
#include "weft/run/normalise.h"
#include "weft/schedule/schedule.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr const char* kIntro = R"(# A tour: `(a + b).sum()` from a Tensor to its number

Every step below is what the real stage made of the step before; `tests/docs/tour_test.cpp` writes this
page. The order is that of `weft/run/pipeline.cpp`. To see the same for a program of yours, run it with
`WEFT_DEBUG=3` (decisions), `4` (C text or machine code), `5` (kernels) or `6` (linear programs).

```
Tensor ──> graph ──> schedule ──> optimize ──> lower ──> render ──> device
         nodes     kernels      faster       list of   machine    loaded, run
                                kernels      instruc-  code, or
                                             tions     C text
```

The program:

```cpp
#include "weft/weft.h"
using namespace weft;
Tensor a = Tensor::arange(4096, DType::F32).reshape({64, 64}).contiguous();
Tensor b = Tensor::ones({64, 64}).contiguous();
realize({a, b});
Tensor c = (a + b).sum();
```

)";

constexpr const char* kTensor = R"(## 1. Tensor: a graph of nodes (`weft/tensor`, `weft/graph`)

Nothing has run. `c` is a handle to the last of these nodes; each is interned, so building the same
expression again gives the same nodes. A line is a node: op, dtype, sources, integers by name; the
comment is its shape. `buffer` is memory that holds values.

)";
constexpr const char* kNormal = R"(
## 2. Normal form (`weft/run/normalise.h`)

Buffers become numbered parameters: the same program on other data is the same graph, which is what
caches are keyed by.

)";
constexpr const char* kSchedule = R"(
## 3. Schedule: kernels over buffers (`weft/schedule`)

Which values are computed together, and why:

)";
constexpr const char* kKernel = R"(
Shapes are gone. Every node has one element; ranges are loops, and each access says which flat element
it touches. The sum needs no place for `a + b`:

)";
constexpr const char* kOptimize = R"(
## 4. Optimize: the same kernel, faster (`weft/optimize`)

Ranges are split and bound to cores, vector lanes and copies. What was done for a machine with AVX2:

)";
constexpr const char* kLower = R"(
## 5. Lower: a list of instructions (`weft/lower`)

Loops are brackets, the reduction is a register (`acc`) that is read and set, lanes are vectors, the
mathematical `index` has become a machine integer.

)";
constexpr const char* kMachine = R"(
## 6. Machine code (`weft/codegen`)

Each instruction of the list becomes a few of the machine's over as many registers as it takes; what
nobody needs goes, registers are given out, and the rest is bytes. `begin` and `end` are the share of
one thread.

)";
constexpr const char* kRender = R"(
The device `CPU:C` has text rendered instead and a compiler make the same of it (`weft/render`);
`CPU:INTERP` runs the list above as it is.

)";
constexpr const char* kOpencl = R"(
A device with text of its own gets the kernel lowered for its target: here `OPENCL`, whose values have no
lanes and whose items work in groups: each of 64 adds up a part, and a tree in local memory adds up the parts, with
barriers in between (`weft/lower/stage_local.cpp`). C, OpenCL C, CUDA, HIP and Metal have one writer (`weft/render/c_writer.cpp`) and a row each of what differs.

)";
constexpr const char* kWgsl = R"(
`WEBGPU` takes WGSL, which shares no syntax with C and has a writer of its own (`weft/render/wgsl_writer.cpp`): texts of
ops from `wgsl_ops.h`, functions from `wgsl_prelude.cpp`. Its compilers may reassociate; `keep` is why they do not. Where the adapter is a
CPU, as lavapipe is, local memory is no nearer than any other, and each item works alone, as here:

)";

constexpr const char* kPtx = R"(
NVIDIA's GPUs take PTX, which is statements on registers: `ptx_ops.h` has them for each op, with a writer of their own again
(`weft/render/ptx_writer.cpp`). The driver makes machine code of it; `NULL:PTX` makes the text without a GPU. The same kernel, its waves folded by shuffles:

)";

std::string block(const std::string& text, const char* language = "") {
  const bool ends = !text.empty() && text.back() == '\n';
  return strformat("```{}\n{}{}```\n", language, text, ends ? "" : "\n");
}

Target tour_target(std::string_view name) {
  CpuFeatures cpu;
  for (CpuFeature f : {CpuFeature::Avx, CpuFeature::Avx2, CpuFeature::Fma}) cpu.set(f, true);
  return make_target(name, cpu, 2);
}

std::string decisions(const Schedule& schedule) {
  std::string out;
  for (const Decision& d : schedule.decisions)
    append_format(out, "{} {}: {}\n", d.staged ? "stage" : "fuse", summary(d.node), d.reason);
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    const ScheduleStep& s = schedule.steps[i];
    append_format(out, "step {}: {} on buffers", i,
                  s.kernel < 0 ? "copy" : schedule.kernels[static_cast<size_t>(s.kernel)].name);
    for (const int b : s.buffers) append_format(out, " {}", b);
    out += '\n';
  }
  return out;
}

/// A machine whose local memory is as far as any other: lavapipe, and other CPUs.
Target item_by_item(Target target) {
  target.groups.local_is_near = false;
  return target;
}

/// The text that a device gets whose target is this.
std::string text_for(const Kernel& kernel, const Target& target) {
  return render(lower_kernel(optimize_kernel(kernel, target, {}), target), target,
                entry_name(0, kernel.name));
}

/// Steps 4 to 6 of one kernel.
std::string kernel_pages(const Kernel& kernel) {
  const Target target = tour_target("x86"), compiled = tour_target("c");
  OptimizeReport report;
  OptimizeOptions options;
  options.report = &report;
  const Kernel fast = optimize_kernel(kernel, target, options);
  std::string applied;
  for (const std::string& line : report.applied) applied += line + "\n";
  const LinearProgram program = lower_kernel(fast, target);
  const std::string listing =
      back_end_of(target).list(generate_code(program, target).program, Core::Unknown);
  const std::string text =
      render(lower_kernel(fast, compiled), compiled, entry_name(0, kernel.name));
  return kOptimize + block(applied) + "\n" + block(print_graph(fast.sink)) + kLower +
         block(print_program(program)) + kMachine + block(listing) + kRender + block(text, "c") +
         kOpencl + block(text_for(kernel, tour_target("opencl")), "c") + kWgsl +
         block(text_for(kernel, item_by_item(tour_target("wgsl"))), "wgsl") + kPtx +
         block(text_for(kernel, tour_target("ptx")), "asm");
}

TEST(Pages, Tour) {
  Options options;
  options.dev = "CPU:INTERP";
  options.threads = 2;
  Context context(options);
  const ContextScope scope(context);
  const Tensor a = Tensor::arange(4096, DType::F32).reshape({64, 64}).contiguous();
  const Tensor b = Tensor::ones({64, 64}).contiguous();
  realize({a, b});
  const Tensor c = (a + b).sum();

  std::string page = kIntro;
  page += kTensor + block(print_graph(c.node()));
  Graph graph;
  const NodeRef values[] = {c.node()};
  const NormalForm form = normalise(graph, values, c.node()->device);
  page += kNormal + block(print_graph(form.values[0]));
  ScheduleOptions schedule_options;
  schedule_options.explain = true;
  const ScheduleOutput output{form.values[0]};
  const Schedule schedule = make_schedule({&output, 1}, tour_target("c"), schedule_options);
  ASSERT_EQ(schedule.kernels.size(), 1u);
  page += kSchedule + block(decisions(schedule)) + kKernel;
  page += block(print_graph(schedule.kernels[0].sink));
  page += kernel_pages(schedule.kernels[0]);
  page += strformat(
      "\n## 7. Run (`weft/device`, `weft/run`)\n\nThe code is loaded, memory is bound "
      "to the parameters, and the kernel runs. `c.item<float>()` is\n{}: 0 + 1 + ... + 4095 and "
      "4096 ones.\n",
      c.item<double>());
  expect_page("tour.md", page);
}

}  // namespace
}  // namespace weft
