// PTX texts: what ptxas says of them, where it is installed. What they compute is tested without a
// GPU on tests/support/compiler/ptx_machine.h.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "tests/device/op_cases.h"
#include "tests/device/samples.h"
#include "tests/lower/random_groups.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/render/ptx.h"
#include "weft/run/translate.h"
#include "weft/schedule/schedule.h"
#include "weft/trust/fuzz.h"

namespace weft {
namespace {

Target ptx_target() { return make_target("ptx", CpuFeatures(), 1); }

/// A module of several texts.
class Module {
 public:
  void add(const LinearProgram& program) {
    add(render(program, target_, entry_name(count_, program.name)));
  }
  void add(std::string_view text) {
    ASSERT_TRUE(text.starts_with(kPtxHeader));
    text_ += text.substr(kPtxHeader.size());
    ++count_;
  }
  size_t next() const { return count_; }
  const Target& target() const { return target_; }
  std::string text() const { return std::string(kPtxHeader) + text_; }

 private:
  Target target_ = ptx_target();
  std::string text_;
  size_t count_ = 0;
};

std::string output_of(const std::string& command) {
  std::string out;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  ::pclose(pipe);
  return out;
}

/// On PATH, or where CUDA's packages put it; empty where there is none.
std::string find_ptxas() {
  std::string path = output_of(
      "command -v ptxas || ls /usr/local/cuda/bin/ptxas /usr/local/cuda*/bin/ptxas 2> /dev/null");
  return path.substr(0, path.find('\n'));
}

/// What it says of the module for a machine; empty where it takes it.
std::string ptxas_says(const std::string& ptxas, const std::string& module, const char* machine) {
  char folder[] = "/tmp/weft-test-XXXXXX";
  if (::mkdtemp(folder) == nullptr) return "no folder for the module";
  const std::string file = strformat("{}/module.ptx", folder);
  atomic_write_file(file, module);
  std::string said = output_of(strformat("{} -arch={} -o {}/module.cubin {} 2>&1 || echo failed",
                                         ptxas, machine, folder, file));
  std::system(strformat("rm -r {}", folder).c_str());
  return said;
}

void expect_assembled(const Module& module) {
  const std::string ptxas = find_ptxas();
  if (ptxas.empty()) GTEST_SKIP() << "there is no ptxas on PATH or in /usr/local/cuda*/bin";
  for (const char* machine : {"sm_80", "sm_90"})
    EXPECT_EQ(ptxas_says(ptxas, module.text(), machine), "") << machine;
}

TEST(Ptx, SamplesAssemble) {
  Module module;
  for (const LinearProgram& p : testing::scalar_samples(module.target())) module.add(p);
  module.add(testing::group_reverse());
  module.add(testing::group_fold());
  expect_assembled(module);
}

TEST(Ptx, SlowEveryOpAssembles) {
  Module module;
  for (const testing::Case& c : testing::all_cases(module.target(), {1}))
    module.add(testing::program_of(c));
  EXPECT_GT(module.next(), 300u);
  expect_assembled(module);
}

TEST(Ptx, RandomGroupsAssemble) {
  Module module;
  for (uint32_t seed = 0; seed < 40; ++seed)
    module.add(lower_kernel(test::RandomGroups(seed).kernel(), module.target()));
  expect_assembled(module);
}

/// Kernels of random programs as they would be run.
TEST(Ptx, RandomProgramsAssemble) {
  Context context(testing::quiet_options());
  const ContextScope scope(context);
  Module module;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    Graph g;
    std::vector<ScheduleOutput> outputs;
    for (NodeRef n : trust::fuzz_program(g, seed).roots) outputs.push_back({n});
    for (const Kernel& kernel : make_schedule(outputs, module.target()).kernels)
      module.add(
          translate_kernel(kernel, module.target(), entry_name(module.next(), kernel.name)).code);
  }
  EXPECT_GT(module.next(), 50u);
  expect_assembled(module);
}

TEST(Ptx, WhatIsNotPtxIsNotAssembled) {
  const std::string ptxas = find_ptxas();
  if (ptxas.empty()) GTEST_SKIP() << "there is no ptxas on PATH or in /usr/local/cuda*/bin";
  EXPECT_NE(ptxas_says(ptxas, std::string(kPtxHeader) + "this is none", "sm_80"), "");
}

// ---- texts

size_t count_of(std::string_view text, std::string_view word) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string_view::npos; ++at) ++count;
  return count;
}

TEST(Ptx, OnlyWhatNobodyWritesIsReadThroughTheOtherCache) {
  const LinearProgram program = testing::scalar_add();
  EXPECT_EQ(count_of(render(program, ptx_target(), "k"), "ld.global.nc.f32"), 2u);
  const std::string shared = render(program, ptx_target(), "k", {.distinct_params = false});
  EXPECT_EQ(count_of(shared, "ld.global.nc"), 0u);
  EXPECT_EQ(count_of(shared, "ld.global.f32"), 2u);
  // The table is written, too.
  const std::string scatter = render(testing::sample_scatter(), ptx_target(), "k");
  EXPECT_EQ(count_of(scatter, "ld.global.nc"), 2u);
  EXPECT_EQ(count_of(scatter, "ld.global.b16"), 1u);
}

TEST(Ptx, ConstantsInAnIndexAreOffsets) {
  testing::ProgramBuilder b("near");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32);
  NodeRef i = b.open(b.i32(100), Binding::Core);
  NodeRef at = b.alu(Op::Mul, {i, b.i32(8)}), next = b.alu(Op::Add, {at, b.i32(3)});
  b.store(out, next, b.load(x, next));
  b.store(out, b.i32(5), b.load(x, at));
  b.close(i);
  const std::string text = render(b.build(), ptx_target(), "k");
  EXPECT_EQ(count_of(text, "+12]"), 2u) << text;
  EXPECT_EQ(count_of(text, "+20]"), 1u) << text;
}

// Addresses are shared where they are known: not after the block that computed them.
TEST(Ptx, AddressesEndWithTheirBlock) {
  testing::ProgramBuilder b("guarded");
  NodeRef out = b.param(DType::I32, true), x = b.param(DType::I32);
  NodeRef i = b.open(b.i32(4), Binding::Core);
  NodeRef next = b.alu(Op::Add, {i, b.i32(1)}), second = b.alu(Op::Add, {i, b.i32(2)});
  NodeRef guard = b.emit(Op::If, DType::Void, {b.alu(Op::Lt, {i, b.i32(2)})});
  b.store(out, i, b.load(x, next));
  b.emit(Op::EndIf, DType::Void, {guard});
  b.store(out, b.alu(Op::Add, {i, b.i32(4)}), b.load(x, second));
  b.close(i);
  Context context(testing::quiet_options());
  const testing::OpenedDevice opened(context, "PTX");
  Device& device = opened;
  testing::Loaded k(device, {b.build()});
  const std::vector<int32_t> given = {10, 11, 12, 13, 14, 15};
  std::vector<int32_t> got(8, -1);
  auto from = device.allocate(24), to = device.allocate(32);
  device.copy_in({from.get()}, std::as_bytes(std::span(given)));
  device.copy_in({to.get()}, std::as_bytes(std::span(got)));
  k.run(0, {{to.get()}, {from.get()}}, {}, 4);
  device.copy_out(std::as_writable_bytes(std::span(got)), {to.get()});
  EXPECT_EQ(got, (std::vector<int32_t>{11, 12, -1, -1, 12, 13, 14, 15}));
}

TEST(Ptx, AnOpWithoutTextIsOurError) {
  testing::ProgramBuilder b("sine");
  NodeRef out = b.param(DType::F32, true), x = b.param(DType::F32);
  b.store(out, b.i32(0), b.alu(Op::Sin, {b.load(x, b.i32(0))}));
  try {
    render(b.build(), ptx_target(), "k");
    FAIL() << "nothing was thrown";
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("sine: sin on f32 has no PTX text"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace weft
