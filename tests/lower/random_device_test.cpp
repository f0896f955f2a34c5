// Random kernels on every device, machine code at every level of instruction sets: what they mean.
#include "tests/device/programs.h"
#include "tests/lower/random_groups.h"
#include "tests/lower/random_kernel.h"
#include "tests/support/compiler/isa_levels.h"
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
    add(seed, optimized, random.kernel(), random.buffers());
  }
  void add_groups(uint32_t seed) {
    RandomGroups random(seed);
    add(seed, false, random.kernel(), random.buffers());
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
  void add(uint32_t seed, bool optimized, Kernel kernel, const Buffers& buffers) {
    if (optimized) kernel = optimize_kernel(kernel, device_.target(), {});
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

void check_device(const char* name, const std::string& level, uint32_t first, uint32_t last) {
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
void check_opencl(uint32_t first, uint32_t last) {
  if (const std::string why = testing::missing("OPENCL"); !why.empty()) GTEST_SKIP() << why;
  Context context(testing::quiet_options());
  ContextScope scope(context);
  constexpr uint32_t kEach = 20;  // its compiler takes seconds
  for (uint32_t seed = first; seed < last && !::testing::Test::HasFailure(); seed += kEach) {
    Batch batch(context.get<DeviceTable>().open("OPENCL"));
    for (uint32_t k = seed; k < std::min(seed + kEach, last); ++k)
      k % 4 == 3 ? batch.add(k, true) : batch.add_groups(k);
    batch.expect_meanings();
  }
}
TEST(LowerRandom, OnOpencl) { check_opencl(0, 20); }
TEST(LowerRandom, SlowOnOpencl) { check_opencl(20, 200); }

TEST(LowerRandom, OnDevices) {
  check_device("CPU:INTERP", "", 0, 200);
  check_device("CPU:C", "", 0, 12);
  for (const std::string& level : testing::isa_levels()) check_device("CPU:X86", level, 0, 200);
}
TEST(LowerRandom, SlowOnDevices) {
  for (const std::string& level : testing::isa_levels())
    check_device("CPU:X86", level, 200, 10'200);
}

}  // namespace
}  // namespace weft::test
