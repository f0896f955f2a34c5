// Random kernels on every device, machine code at every level of instruction sets: what they mean.
#include "tests/device/programs.h"
#include "tests/lower/random_groups.h"
#include "tests/lower/random_kernel.h"
#include "tests/support/compiler/isa_levels.h"
#include "tests/support/compiler/ptx_machine.h"
#include "tests/support/device_here.h"
#include "weft/base/format.h"
#include "weft/optimize/optimize.h"

namespace weft::test {
namespace {

std::vector<std::byte> bytes_of(const std::vector<Value>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(int32_t));
  for (size_t i = 0; i < values.size(); ++i) values[i].store(&bytes[i * sizeof(int32_t)]);
  return bytes;
}

/// Kernels of integers with what they are run on, compiled together.
class Batch {
 public:
  explicit Batch(Device& device) : device_(device) {}

  /// Small with bindings of its own, or larger and optimized for the device.
  void add(uint32_t seed, bool optimized) {
    RandomKernel random(seed, !optimized);
    const Kernel kernel = random.kernel();
    add(seed, optimized, optimized ? optimize_kernel(kernel, device_.target(), {}) : kernel,
        random.buffers());
  }
  void add_groups(uint32_t seed) {
    RandomGroups random(seed);
    add(seed, false, random.kernel(), random.buffers());
  }

  /// A product of which groups stage blocks, and a sum of rows that they fold, whether or not that
  /// pays on the device.
  void add_staged() {
    Target target = device_.target();
    target.groups.local_is_near = true;
    target.groups.emulated = false;
    const auto product = [](int64_t m, int64_t n, int64_t k) {
      KernelBuilder b;
      NodeRef i = b.range(m, 0), j = b.range(n, 1), r = b.range(k, 2);
      const auto at = [&](NodeRef row, NodeRef column, int64_t width) {
        return b.g.add(b.g.mul(row, b.index(width)), column);
      };
      NodeRef x = b.load(b.param(1, DType::I32, m * k), at(i, r, k));
      NodeRef y = b.load(b.param(2, DType::I32, k * n), at(r, j, n));
      b.store(b.param(0, DType::I32, m * n), at(i, j, n), b.reduce(Fold::Add, b.g.mul(x, y), {r}));
      return b.kernel();
    };
    const auto rows = [](int64_t m, int64_t k) {
      KernelBuilder b;
      NodeRef i = b.range(m, 0), r = b.range(k, 1);
      NodeRef x = b.load(b.param(1, DType::I32, m * k), b.g.add(b.g.mul(i, b.index(k)), r));
      b.store(b.param(0, DType::I32, m), i, b.reduce(Fold::Add, x, {r}));
      return b.kernel();
    };
    const auto add_one = [&](const Kernel& kernel, const Buffers& buffers) {
      add(0, true, optimize_kernel(kernel, target, {}), buffers);
      EXPECT_TRUE(programs_.back().launch.grouped);
    };
    const auto given = [](int64_t n, int64_t seed) { return numbers(DType::I32, n, seed); };
    add_one(product(70, 90, 33), {zeros(DType::I32, 6300), given(70 * 33, 1), given(33 * 90, 2)});
    add_one(rows(5, 700), {zeros(DType::I32, 5), given(3500, 3)});
    // As few waves as one folds.
    target.groups.items = target.groups.wave * target.groups.wave;
    if (target.groups.shuffled == 0) return;
    add_one(rows(5, 700), {zeros(DType::I32, 5), given(3500, 3)});
    EXPECT_GT(count(programs_.back(), Op::Shuffle), 0U);
  }

  void expect_meanings() {
    testing::Loaded loaded(device_, programs_);
    for (size_t i = 0; i < cases_.size(); ++i) {
      SCOPED_TRACE(strformat("{}, seed {}, optimized {}", device_.name(), cases_[i].seed,
                             cases_[i].optimized));
      expect_meaning(loaded, i);
      if (::testing::Test::HasFailure()) return;
    }
  }

 private:
  void add(uint32_t seed, bool optimized, const Kernel& kernel, const Buffers& buffers) {
    programs_.push_back(lower_kernel(kernel, device_.target()));
    cases_.push_back({seed, optimized, buffers, run_kernel(kernel.sink, buffers, {})});
  }

  struct Case {
    uint32_t seed;
    bool optimized;
    Buffers given, expected;
  };

  void expect_meaning(testing::Loaded& loaded, size_t i) {
    const Case& c = cases_[i];
    std::vector<std::shared_ptr<Buffer>> buffers;
    std::vector<BufferSlice> slices;
    for (const std::vector<Value>& values : c.given) {
      const std::vector<std::byte> bytes = bytes_of(values);
      buffers.push_back(device_.allocate(static_cast<int64_t>(bytes.size())));
      device_.copy_in({buffers.back().get()}, bytes);
      slices.push_back({buffers.back().get()});
    }
    slices.resize(programs_[i].params.size());
    const NodeRef items = programs_[i].core_size;
    std::array<int64_t, 3> grid{1, 1, 1};
    for (size_t axis = 0; axis < 3; ++axis)
      if (NodeRef size = programs_[i].launch.grid[axis]) grid[axis] = size->vmin;
    loaded.run(i, slices, {}, items ? items->vmin : 1, grid);
    for (size_t slot = 0; slot < slices.size(); ++slot) {
      std::vector<std::byte> got(static_cast<size_t>(buffers[slot]->bytes()));
      device_.copy_out(got, slices[slot]);
      EXPECT_TRUE(got == bytes_of(c.expected[slot])) << "p" << slot << "\n"
                                                     << print_program(programs_[i]);
    }
  }

  Device& device_;
  std::vector<LinearProgram> programs_;
  std::vector<Case> cases_;
};

void check_device(const std::string& name, const std::string& level, uint32_t first,
                  uint32_t last) {
  Options options = testing::quiet_options();
  options.isa = level;
  Context context(options);
  ContextScope scope(context);
  constexpr uint32_t kEach = 100;
  for (uint32_t seed = first; seed < last && !::testing::Test::HasFailure(); seed += kEach) {
    Batch batch(context.get<DeviceTable>().open(name));
    for (uint32_t k = seed; k < std::min(seed + kEach, last); ++k) batch.add(k, k % 4 == 3);
    batch.expect_meanings();
  }
}

// Those with bindings of their own hold vectors, which work items have none of.
void check_groups(const char* name, uint32_t first, uint32_t last) {
  if (const std::string why = testing::missing(name); !why.empty()) GTEST_SKIP() << why;
  Context context(testing::quiet_options());
  ContextScope scope(context);
  const testing::OpenedDevice device(context, name);
  constexpr uint32_t kEach = 20;  // compilers take seconds
  for (uint32_t seed = first; seed < last && !::testing::Test::HasFailure(); seed += kEach) {
    Batch batch(device);
    for (uint32_t k = seed; k < std::min(seed + kEach, last); ++k)
      k % 4 == 3 ? batch.add(k, true) : batch.add_groups(k);
    batch.expect_meanings();
  }
}
void check_staged(const char* name) {
  if (const std::string why = testing::missing(name); !why.empty()) GTEST_SKIP() << why;
  Context context(testing::quiet_options());
  ContextScope scope(context);
  const testing::OpenedDevice device(context, name);
  Batch batch(device);
  batch.add_staged();
  batch.expect_meanings();
}
TEST(GroupsOptimize, OnOpencl) { check_staged("OPENCL"); }
TEST(GroupsOptimize, OnWebgpu) { check_staged("WEBGPU"); }
TEST(GroupsOptimize, OnCuda) { check_staged("CUDA"); }
TEST(GroupsOptimize, OnNvrtc) { check_staged("NVRTC"); }
TEST(GroupsOptimize, OnPtxMachine) { check_staged("PTX"); }

TEST(LowerRandom, OnOpencl) { check_groups("OPENCL", 0, 20); }
TEST(LowerRandom, OnWebgpu) { check_groups("WEBGPU", 0, 20); }
TEST(LowerRandom, OnCuda) { check_groups("CUDA", 0, 20); }
TEST(LowerRandom, OnNvrtc) { check_groups("NVRTC", 0, 20); }
TEST(LowerRandom, OnPtxMachine) { check_groups("PTX", 0, 100); }
TEST(LowerRandom, SlowOnPtxMachine) { check_groups("PTX", 100, 2000); }
TEST(LowerRandom, SlowOnOpencl) { check_groups("OPENCL", 20, 200); }
TEST(LowerRandom, SlowOnWebgpu) { check_groups("WEBGPU", 20, 200); }
TEST(LowerRandom, SlowOnCuda) { check_groups("CUDA", 20, 200); }
TEST(LowerRandom, SlowOnNvrtc) { check_groups("NVRTC", 20, 200); }

TEST(LowerRandom, OnDevices) {
  check_device(testing::device_here("CPU:INTERP"), "", 0, 200);
  if (!testing::simulated()) check_device("CPU:C", "", 0, 12);
  for (const std::string& level : testing::isa_levels())
    check_device(testing::device_here("CPU:X86"), level, 0, 200);
}
TEST(LowerRandom, SlowOnDevices) {
  for (const std::string& level : testing::isa_levels())
    check_device("CPU:X86", level, 200, 10'200);
}

}  // namespace
}  // namespace weft::test
