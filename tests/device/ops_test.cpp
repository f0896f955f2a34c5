// Every op on every dtype, scalar and vector, through the C compiler and the interpreter, against
// constant folding.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "tests/device/op_cases.h"
#include "tests/support/compiler/isa_levels.h"
#include "tests/support/device_here.h"
#include "weft/base/format.h"
#include "weft/graph/fold.h"

namespace weft {
namespace {

using testing::all_cases;
using testing::Case;
using testing::kCount;
using testing::Loaded;

// Edges of the dtype, then random bits, then random small values.
std::vector<Value> inputs(DType dtype, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Value> values;
  const double limits[] = {0,
                           -0.0,
                           1,
                           -1,
                           2,
                           3,
                           -7,
                           0.5,
                           127,
                           128,
                           255,
                           256,
                           -129,
                           -128.9,
                           -0.9,
                           -1.1,
                           127.9,
                           255.9,
                           -32768.9,
                           -32769,
                           32767.9,
                           65535.9,
                           2147483520.0,
                           2147483647.9,
                           -2147483648.9,
                           4294967040.0,
                           4294967295.9,
                           9223371487098961920.0,
                           9223372036854774784.0,
                           9223372036854775808.0,
                           -9223372036854775808.0,
                           18446742974197923840.0,
                           18446744073709549568.0,
                           18446744073709551616.0,
                           65504,
                           65519.99,
                           65520,
                           65536,
                           1e-8,
                           -6e-8,
                           3e-8,
                           2147483648.0,
                           4294967296.0,
                           -2147483649.0,
                           9.3e18,
                           1.9e19,
                           -1e19,
                           1e38,
                           -1e300,
                           1e-40,
                           1e-310,
                           INFINITY,
                           -INFINITY,
                           NAN};
  for (double x : limits) values.push_back(Value::of(dtype, x));
  for (int64_t x : {INT64_MIN, INT64_MAX, int64_t{1} << 53 | 1, (int64_t{1} << 62) + 1,
                    (int64_t{0x101} << 40) + 1})
    values.push_back(Value::of(dtype, x));
  while (static_cast<int64_t>(values.size()) < kCount) {
    uint64_t raw = random();
    if (values.size() % 2) {
      values.push_back(Value::load(dtype, &raw));
    } else {
      values.push_back(Value::of(dtype, static_cast<int64_t>(raw % 41) - 20));
    }
  }
  std::shuffle(values.begin(), values.end(), random);
  return values;
}

std::shared_ptr<Buffer> upload(Device& device, const std::vector<Value>& values) {
  const auto width = static_cast<size_t>(bytes_for(values[0].dtype(), 1));
  std::vector<std::byte> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) values[i].store(&bytes[i * width]);
  auto buffer = device.allocate(static_cast<int64_t>(bytes.size()));
  device.copy_in({buffer.get()}, bytes);
  return buffer;
}

// No zeros, and the quotient that overflows.
void divisors(std::vector<Value>& x, std::vector<Value>& y) {
  const DType d = y[0].dtype();
  for (Value& v : y)
    if (v.is_zero()) v = Value::of(d, 3);
  x[5] = Value::of(d, int_min(d));
  y[5] = Value::of(d, -1);
}

// Zeros of both signs, either one first.
void zeros(std::vector<Value>& x, std::vector<Value>& y) {
  const DType d = y[0].dtype();
  for (size_t i = 6; i < 8; ++i) {
    x[i] = Value::of(d, i % 2 ? 0.0 : -0.0);
    y[i] = Value::of(d, i % 2 ? -0.0 : 0.0);
  }
}

bool same(Value a, Value b) { return a == b || (a.is_nan() && b.is_nan()); }

void check_device(std::initializer_list<int> widths, const std::string& device_name,
                  const char* cc = "", const std::string& isa_level = "") {
  Options options = testing::quiet_options();
  options.cc = cc;
  options.isa = isa_level;
  Context context(options);
  ContextScope scope(context);
  const testing::OpenedDevice opened(context, device_name);
  Device& device = opened;
  const std::vector<Case> cases = all_cases(device.target(), widths);
  ASSERT_GT(cases.size(), widths.size() * 300);
  std::vector<LinearProgram> programs;
  for (const Case& c : cases) programs.push_back(program_of(c));
  Loaded loaded(device, programs);
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    std::vector<std::vector<Value>> in;
    std::vector<std::shared_ptr<Buffer>> buffers{device.allocate(bytes_for(c.to, kCount), "out")};
    for (int k = 0; k < c.arity; ++k) {
      const DType d = c.op == Op::Where && k == 0 ? DType::Bool : c.from;
      in.push_back(inputs(d, 7 + static_cast<uint64_t>(k)));
      if ((c.op == Op::CDiv || c.op == Op::CMod) && k == 1) divisors(in[0], in[1]);
      if ((c.op == Op::Max || c.op == Op::Min) && k == 1) zeros(in[0], in[1]);
    }
    for (const auto& values : in) buffers.push_back(upload(device, values));
    std::vector<BufferSlice> slices;
    for (auto& b : buffers) slices.push_back({b.get()});
    loaded.run(i, slices, {}, kCount / c.lanes);
    int wrong = 0;
    std::vector<std::byte> out(static_cast<size_t>(buffers[0]->bytes()));
    device.copy_out(out, {buffers[0].get()});
    for (int64_t e = 0; e < kCount && wrong < 3; ++e) {
      Value operands[3];
      for (size_t k = 0; k < in.size(); ++k) operands[k] = in[k][static_cast<size_t>(e)];
      const auto want = fold_constants(c.op, c.to, {operands, in.size()});
      ASSERT_TRUE(want.has_value()) << c.text();
      const Value got = Value::load(c.to, out.data() + bytes_for(c.to, e));
      if (same(*want, got)) continue;
      ++wrong;
      ADD_FAILURE() << device_name << ": " << c.text() << " of " << operands[0].text() << ", "
                    << operands[1].text() << ": " << got.text() << ", not " << want->text();
    }
  }
}

TEST(DeviceOps, Interp) { check_device({1, 4, 16}, testing::device_here("CPU:INTERP")); }
TEST(DeviceOps, Clang) { check_device({1, 16}, "CPU:C", "clang-19"); }
TEST(DeviceOps, X86) {
  for (const std::string& level : testing::isa_levels()) {
    SCOPED_TRACE(level);
    check_device({1, 2, 4, 8, 16, 32, 64}, testing::device_here("CPU:X86"), "", level);
  }
}
TEST(DeviceOps, Opencl) {
  if (const std::string why = testing::missing("OPENCL"); !why.empty()) GTEST_SKIP() << why;
  check_device({1}, "OPENCL");
}
TEST(DeviceOps, Webgpu) {
  if (const std::string why = testing::missing("WEBGPU"); !why.empty()) GTEST_SKIP() << why;
  check_device({1}, "WEBGPU");
}
TEST(DeviceOps, Cuda) {
  if (const std::string why = testing::missing("CUDA"); !why.empty()) GTEST_SKIP() << why;
  check_device({1}, "CUDA");
}
TEST(DeviceOps, Nvrtc) {
  if (const std::string why = testing::missing("NVRTC"); !why.empty()) GTEST_SKIP() << why;
  check_device({1}, "NVRTC");
}
TEST(DeviceOps, PtxMachine) { check_device({1}, "PTX"); }
TEST(DeviceOps, Gcc) { check_device({1, 8}, "CPU:C", "gcc"); }

}  // namespace
}  // namespace weft
