// Machine code as a device loads it: by many threads at once, many times over, with names for perf.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "tests/device/programs.h"
#include "tests/lower/kernels.h"
#include "weft/base/sanitizers.h"
#include "weft/device/perf_map.h"

namespace weft {
namespace {

using testing::Loaded;

constexpr int64_t kCount = 64, kLanes = 8;

/// out[i] = in[i] * 3 + n.
Kernel plus(double n, const char* name = "test") {
  test::KernelBuilder b;
  NodeRef r = b.range(kCount / kLanes, 0, Binding::Core);
  NodeRef i = b.g.add(b.g.mul(r, b.index(kLanes)), b.range(kLanes, 1, Binding::Vector));
  NodeRef x = b.load(b.param(1, DType::F32, kCount), i);
  b.store(b.param(0, DType::F32, kCount), i, b.g.add(b.g.mul(x, b.f32(3)), b.f32(n)));
  Kernel k = b.kernel();
  k.name = name;
  return k;
}

/// Memory of one user of a device, and a kernel compiled for it and run.
class User {
 public:
  explicit User(Device& device)
      : device_(device), in_(device.allocate(kCount * 4)), out_(device.allocate(kCount * 4)) {
    std::vector<float> x(kCount);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
    device_.copy_in({in_.get()}, std::as_bytes(std::span(x)));
  }
  /// True if compiled, run and dropped, the kernel gave what it should.
  bool try_kernel(double n) {
    Loaded k(device_, {lower_kernel(plus(n), device_.target())});
    k.run(0, {{out_.get()}, {in_.get()}}, {}, kCount / kLanes);
    std::vector<float> got(kCount);
    device_.copy_out(std::as_writable_bytes(std::span(got)), {out_.get()});
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != static_cast<float>(i) * 3 + static_cast<float>(n)) return false;
    return true;
  }

 private:
  Device& device_;
  std::shared_ptr<Buffer> in_, out_;
};

int64_t resident() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0, in_memory = 0;
  file >> pages >> in_memory;
  return in_memory * ::sysconf(_SC_PAGESIZE);
}

/// Stored as it is, a sum needs its low bits alone; widened, it has wrapped before.
TEST(X86Kernels, SumsWrapInMemoryAndBeforeTheyAreWidened) {
  Context context(testing::quiet_options());
  const ContextScope scope(context);
  Device& device = context.get<DeviceTable>().open("CPU:X86");
  for (const DType narrow :
       {DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32}) {
    testing::ProgramBuilder b("sums");
    NodeRef sums = b.param(narrow, true), wide = b.param(DType::I64, true), x = b.param(narrow);
    NodeRef i = b.open(b.i32(4), Binding::Core);
    NodeRef sum = b.alu(Op::Add, {b.load(x, i), b.load(x, i)});
    b.store(sums, i, sum);
    b.store(wide, i, b.emit(Op::Cast, DType::I64, {sum}));
    b.close(i);
    const int64_t most = static_cast<int64_t>(int_max(narrow));
    const int64_t given[] = {1, most, most - 1, int_min(narrow)};
    const int64_t bytes = bits(narrow) / 8;
    const auto in = device.allocate(4 * bytes), out = device.allocate(4 * bytes),
               out_wide = device.allocate(4 * 8);
    std::vector<std::byte> data(static_cast<size_t>(4 * bytes)), got = data;
    for (size_t k = 0; k < 4; ++k) Value::of(narrow, given[k]).store(&data[k * bytes]);
    device.copy_in({in.get()}, data);
    testing::Loaded(device, {b.build()}).run(0, {{out.get()}, {out_wide.get()}, {in.get()}}, {}, 4);
    int64_t got_wide[4];
    device.copy_out(got, {out.get()});
    device.copy_out(std::as_writable_bytes(std::span(got_wide)), {out_wide.get()});
    for (size_t k = 0; k < 4; ++k) {
      SCOPED_TRACE(std::string(name(narrow)) + " " + std::to_string(given[k]));
      const int64_t expected = Value::of(narrow, 2 * given[k]).as_int();
      EXPECT_EQ(Value::load(narrow, &got[k * bytes]).as_int(), expected);
      EXPECT_EQ(got_wide[k], expected);
    }
  }
}

TEST(X86Kernels, EightThreadsCompileAndRunAtOnce) {
  Context context(testing::quiet_options());
  const ContextScope scope(context);
  Device& device = context.get<DeviceTable>().open("CPU:X86");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&, t] {
      const ContextScope inner(context);
      User user(device);
      for (int n = 0; n < 40; ++n)
        if (!user.try_kernel(t * 1000 + n)) ++wrong;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(X86Kernels, SlowHundredThousandKernelsInFlatMemory) {
  Context context(testing::quiet_options());
  const ContextScope scope(context);
  User user(context.get<DeviceTable>().open("CPU:X86"));
  int64_t early = 0;
  for (int n = 0; n < 100'000; ++n) {
    ASSERT_TRUE(user.try_kernel(n)) << n;
    if (n == 10'000) early = resident();
  }
  if (!kSanitized) {
    EXPECT_LE(resident(), early + (int64_t{4} << 20));
  }
}

TEST(X86Kernels, PerfFindsTheirNames) {
  Options options = testing::quiet_options();
  options.perf_map = true;
  Context context(options);
  const ContextScope scope(context);
  Device& device = context.get<DeviceTable>().open("CPU:X86");
  const Loaded k(device, {lower_kernel(plus(1, "named_for_perf"), device.target())});
  std::ifstream map(perf_map_path());
  int found = 0;
  for (std::string line; std::getline(map, line);) {
    uintptr_t entry = 0;
    size_t bytes = 0;
    char name[200] = {};
    ASSERT_EQ(std::sscanf(line.c_str(), "%zx %zx %199s", &entry, &bytes, name), 3) << line;
    if (std::string_view(name) != "k_0_named_for_perf") continue;
    ++found;
    EXPECT_GT(bytes, 20U);
    EXPECT_EQ(entry % 64, 0U);
  }
  EXPECT_EQ(found, 1);
  std::remove(perf_map_path().c_str());
}

TEST(X86Kernels, NoFileWithoutTheOption) {
  Context context(testing::quiet_options());
  const ContextScope scope(context);
  Device& device = context.get<DeviceTable>().open("CPU:X86");
  const Loaded k(device, {lower_kernel(plus(1), device.target())});
  EXPECT_FALSE(std::ifstream(perf_map_path()).good());
}

}  // namespace
}  // namespace weft
