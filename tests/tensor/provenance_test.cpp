// What is printed and thrown while things run names the lines of the program that asked for them.
#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/base/format.h"
#include "weft/device/host_device.h"
#include "weft/run/command_list.h"
#include "weft/run/stats.h"

namespace weft {
namespace {

std::string here(int line) { return strformat("provenance_test.cpp:{}", line); }
std::string between(int first, int last) { return here(first) + " .. " + here(last); }
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class ProvenanceTest : public TensorTest {
 protected:
  ProvenanceTest() {
    context_.log_sink() = {[](void* user, std::string_view line) {
                             static_cast<std::string*>(user)->append(line).append("\n");
                           },
                           &log_};
  }
  /// What WEFT_DEBUG=level prints while `f` runs.
  template <class F>
  std::string printed(int level, F&& f) {
    log_.clear();
    context_.mutable_options().debug = level;
    f();
    context_.mutable_options().debug = 0;
    return log_;
  }
  /// The lines of kernels that ran, without their times: what stands behind the bandwidth.
  static std::vector<std::string> kernels(const std::string& log) {
    std::vector<std::string> found;
    for (size_t at = log.find("GB/s) "); at != std::string::npos; at = log.find("GB/s) ", at + 1))
      found.push_back(log.substr(at + 6, log.find('\n', at) - at - 6));
    return found;
  }
  using Lines = std::vector<std::string>;

  std::string log_;
};

Tensor ramp() { return Tensor::of({1.f, 2.f, 3.f, 4.f}).realize(); }

TEST_F(ProvenanceTest, KernelLinesNameTheFirstAndTheLastLine) {
  const Tensor x = ramp();
  const Tensor scaled = x * 2;
  const int first = __LINE__ - 1;
  const Tensor y = (scaled + 1).relu();
  const int last = __LINE__ - 1;
  EXPECT_EQ(kernels(printed(2, [&] { realize({y}); })), Lines{between(first, last)});
}

TEST_F(ProvenanceTest, AReductionIsWhatAKernelIsFirstOfAll) {
  const Tensor x = ramp();
  const Tensor scaled = x * 2;
  const Tensor total = scaled.sum();
  const int line = __LINE__ - 1;
  EXPECT_EQ(kernels(printed(2, [&] { realize({total}); })), Lines{here(line)});
}

TEST_F(ProvenanceTest, TwoLinesOfOneStructureShareAKernelAndKeepTheirNames) {
  const Tensor x = ramp(), y = (ramp() + 7).realize();
  const int64_t before = run_stats(context_).kernel_cache.misses;
  const Tensor a = x.sqrt();
  const int line_a = __LINE__ - 1;
  const Tensor b = y.sqrt();
  const int line_b = __LINE__ - 1;
  const std::string log = printed(2, [&] { realize({a, b}); });
  EXPECT_EQ(kernels(log), (Lines{here(line_a), here(line_b)})) << log;
  EXPECT_EQ(run_stats(context_).kernel_cache.misses, before + 1);
}

TEST_F(ProvenanceTest, ASchedulesSecondUserIsNamedToo) {
  const Tensor x = ramp(), y = (ramp() + 7).realize();
  x.exp().realize();
  const int64_t before = run_stats(context_).schedules.misses;
  const std::string log = printed(2, [&] { y.exp().realize(); });
  EXPECT_EQ(kernels(log), Lines{here(__LINE__ - 1)});
  EXPECT_EQ(run_stats(context_).schedules.misses, before);
}

TEST_F(ProvenanceTest, ALoopNamesItsLineEveryTime) {
  Tensor total = ramp();
  for (int i = 0; i < 3; ++i) {
    const std::string log = printed(2, [&] { (total += 1).realize(); });
    EXPECT_EQ(kernels(log), Lines{here(__LINE__ - 1)}) << log;
  }
}

TEST_F(ProvenanceTest, LargeReductionsInTwoStepsAreOneLine) {
  const Tensor x = Tensor::ones({512, 512}).contiguous().realize();
  const Tensor total = x.sum();
  const int line = __LINE__ - 1;
  EXPECT_EQ(kernels(printed(2, [&] { realize({total}); })), (Lines{here(line), here(line)}));
}

TEST_F(ProvenanceTest, InPlaceUpdatesAreTheLineThatWrites) {
  Tensor x = ramp();
  Tensor middle = x[Slice(1, 3)];
  middle.assign(5);
  const int line = __LINE__ - 1;
  EXPECT_EQ(kernels(printed(2, [&] { realize({x}); })).back(), here(line));
}

TEST_F(ProvenanceTest, AGradientBelongsToTheLineItIsOf) {
  Tensor w = Tensor::ones({4, 3}).contiguous().realize();
  w.requires_grad_();
  const Tensor x = Tensor::ones({2, 4}).contiguous().realize();
  const Tensor y = x.matmul(w);
  const int line = __LINE__ - 1;
  const Tensor loss = (y * y).sum();
  loss.backward();
  const std::string log = printed(2, [&] { realize({w.grad()}); });
  EXPECT_EQ(kernels(log).back(), here(line)) << log;
}

TEST_F(ProvenanceTest, DecisionsAndNewKernelsHaveTheirLines) {
  const Tensor x = ramp();
  const Tensor scaled = x * 2;
  const int line = __LINE__ - 1;
  const Tensor total = scaled.sum();
  const std::string log = printed(3, [&] { realize({total}); });
  EXPECT_TRUE(has(log, "fuse  mul f32 (4): used once at " + here(line) + "\n")) << log;
  EXPECT_TRUE(has(log, "stage reduce.add f32: asked for at " + here(line + 2) + "\n")) << log;
  EXPECT_TRUE(has(log, "kernel reduce_over_4 on " + testing::device_here("CPU:INTERP") + " at " +
                           here(line + 2)))
      << log;
}

TEST_F(ProvenanceTest, ReplaysNameTheLinesInsideOfTheFunction) {
  int line = 0;
  auto f = jit([&](const Tensor& x) {
    line = __LINE__ + 1;
    return (x * 3).exp2();
  });
  const Tensor x = ramp();
  for (int i = 0; i < 2; ++i) f(x);
  EXPECT_EQ(kernels(printed(2, [&] { f(x); })), Lines{here(line)});
}

// ---- errors

TEST_F(ProvenanceTest, ReplayRefusalsNameTheTensorPassed) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  const int line = __LINE__ - 1;
  for (int i = 0; i < 2; ++i) f(ramp());
  const Tensor other = Tensor::of({1.f, 2.f});
  const std::string made = here(__LINE__ - 1);
  EXPECT_EQ(
      message_of([&] { f(other); }),
      strformat("[jit] argument 0 ({}) has shape (2), had (4) when the function was captured; "
                "pass the same shape, or a Variable for the size that changes (tensor/{})",
                made, here(line)));
}

TEST_F(ProvenanceTest, MixedDevicesNameTheLine) {
  const Tensor x = ramp();
  const Tensor y = ramp().to(testing::device_here("CPU:INTERP:1")).realize();
  const Tensor sum = x + y;
  const std::string said = message_of([&] { realize({sum}); });
  EXPECT_TRUE(has(said, "kernel each_4 at " + here(__LINE__ - 2) + " would use")) << said;
}

TEST_F(ProvenanceTest, AFailedCompileSaysWhatItWasFor) {
  Options options = Options::from_environment();
  options.dev = "CPU:C";
  options.cc = "/bin/false";
  options.cache = false;
  Context broken(options);
  const ContextScope scope(broken);
  const Tensor y = ramp() + 1;
  const std::string said = message_of([&] { realize({y}); });
  EXPECT_TRUE(has(said, "; compiled for " + here(__LINE__ - 2) + " (")) << said;
}

TEST_F(ProvenanceTest, TheCapNamesTheLinesOfDataAndIntermediates) {
  Options options = Options::from_environment();
  options.dev = testing::device_here("CPU:INTERP");
  options.memory_cap = 20000;
  Context small(options);
  const ContextScope scope(small);
  const Tensor x = Tensor::from(std::vector<float>(2000, 1), {2000});
  const int data = __LINE__ - 1;
  const Tensor middle = (x + 1).contiguous();
  const int line = __LINE__ - 1;
  const Tensor y = middle + 1;
  const std::string said = message_of([&] { realize({y}); });
  EXPECT_TRUE(has(said, "data from the host at " + here(data) + " 7.8 KiB")) << said;
  EXPECT_TRUE(has(said, "; the largest of them: 8000 bytes for " + here(line))) << said;
}

/// A kernel that gives up.
class Stopping : public HostExecutable {
 public:
  explicit Stopping(uint32_t status = 7) : HostExecutable("each_4", {}, 1), status_(status) {}
  void run(const KernelArgs& args, uint32_t, uint32_t) const override { *args.status = status_; }

 private:
  uint32_t status_;
};

std::shared_ptr<CompiledKernel> kernel_of(std::unique_ptr<Stopping> executable) {
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->executable = std::move(executable);
  kernel->items = IndexProgram(1);
  return kernel;
}

TEST_F(ProvenanceTest, AKernelThatStopsSaysWhatItComputes) {
  const auto kernel = kernel_of(std::make_unique<Stopping>());
  Device& device = context_.get<DeviceTable>().default_device();
  CompiledSchedule schedule;
  schedule.steps.push_back({ScheduleStep::Kind::Run, kernel, {}, {}, &device, {}});
  CommandList list(schedule);
  const auto line_of = [](size_t step) { return strformat("net.cpp:{}", 40 + step); };
  EXPECT_EQ(message_of([&] { list.run(context_, line_of); }),
            "[device] launch failed with status 7 (" + device.name() +
                "): kernel each_4 stopped; it computes "
                "net.cpp:40");
}

/// A queue's work fails after it was submitted: whoever hears of it first, the line is the
/// kernel's.
TEST_F(ProvenanceTest, AKernelThatStopsLaterSaysWhatItComputed) {
  const auto fine = kernel_of(std::make_unique<Stopping>(0)),
             stops = kernel_of(std::make_unique<Stopping>());
  DeviceTable& devices = context_.get<DeviceTable>();
  Device &host = devices.open("CPU:INTERP"), &late = devices.open("SIM:INTERP:1");
  CompiledSchedule schedule;
  const auto add = [&](const auto& kernel, Device& device) {
    schedule.steps.push_back({ScheduleStep::Kind::Run, kernel, {}, {}, &device, {}});
  };
  add(fine, host);
  add(fine, late);
  add(stops, late);
  add(fine, host);  // waits for the other device, and is told
  CommandList list(schedule);
  const auto line_of = [](size_t step) { return strformat("net.cpp:{}", 40 + step); };
  EXPECT_EQ(message_of([&] { list.run(context_, line_of); }),
            "[device] launch failed with status 7 (" + late.name() +
                "): kernel each_4 stopped; it computes net.cpp:42");
}

}  // namespace
}  // namespace weft
