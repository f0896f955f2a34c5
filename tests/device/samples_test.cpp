// The sample programs through every device, against plain loops.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <optional>

#include "tests/device/samples.h"
#include "tests/device/setups.h"
#include "weft/base/format.h"
#include "weft/base/thread_pool.h"
#include "weft/dtype/convert.h"

namespace weft {
namespace {

using testing::Loaded;

template <class T>
std::shared_ptr<Buffer> upload(Device& device, const std::vector<T>& values) {
  auto buffer = device.allocate(static_cast<int64_t>(values.size() * sizeof(T)));
  device.copy_in({buffer.get()}, std::as_bytes(std::span(values)));
  return buffer;
}
template <class T>
std::vector<T> download(Buffer& buffer) {
  std::vector<T> values(static_cast<size_t>(buffer.bytes()) / sizeof(T));
  buffer.device().copy_out(std::as_writable_bytes(std::span(values)), {&buffer});
  return values;
}

std::vector<float> ramp(size_t n, float step) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<float>((i * 37) % 101) * step - 3;
  return v;
}

using testing::Setup;

class Samples : public ::testing::TestWithParam<Setup> {
 protected:
  Samples() : context_(testing::options_for(GetParam())), scope_(context_) {}
  Device& device() { return context_.get<DeviceTable>().open(GetParam().device); }

  Context context_;
  ContextScope scope_;
};

TEST_P(Samples, Add) {
  Loaded k(device(), {testing::sample_add()});
  const auto x = ramp(1024, 0.25f), y = ramp(1024, 1.5f);
  auto out = device().allocate(4096), a = upload(device(), x), b = upload(device(), y);
  k.run(0, {{out.get()}, {a.get()}, {b.get()}}, {}, 64);
  const auto got = download<float>(*out);
  for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], x[i] + y[i]) << i;
}

TEST_P(Samples, SumOfAVariableNumber) {
  Loaded k(device(), {testing::sample_sum()});
  const auto x = ramp(4096, 0.1f);
  auto out = device().allocate(4), a = upload(device(), x);
  for (int64_t n : {0, 1, 17, 4096}) {
    k.run(0, {{out.get()}, {a.get()}}, {n});
    float want = 0;
    for (int64_t i = 0; i < n; ++i) want += x[static_cast<size_t>(i)];
    EXPECT_EQ(download<float>(*out)[0], want) << n;
  }
}

TEST_P(Samples, Matmul) {
  if (!device().target().fma) GTEST_SKIP() << "this CPU has no FMA";
  Loaded k(device(), {testing::sample_matmul()});
  const auto x = ramp(16 * 32, 0.3f), y = ramp(32 * 8, 0.7f);
  auto out = device().allocate(16 * 8 * 4), a = upload(device(), x), b = upload(device(), y);
  k.run(0, {{out.get()}, {a.get()}, {b.get()}}, {}, 16);
  const auto got = download<float>(*out);
  for (size_t m = 0; m < 16; ++m) {
    for (size_t n = 0; n < 8; ++n) {
      float want = 0;
      for (size_t j = 0; j < 32; ++j) want = std::fma(x[m * 32 + j], y[j * 8 + n], want);
      ASSERT_EQ(got[m * 8 + n], want) << m << ", " << n;
    }
  }
}

TEST_P(Samples, GatherNeverTouchesWhatIsMaskedOff) {
  Loaded k(device(), {testing::sample_gather()});
  std::vector<uint16_t> x(50);
  for (size_t i = 0; i < 50; ++i) x[i] = f32_to_bf16(static_cast<float>(i) - 20);
  std::vector<int64_t> index(100);
  // Far outside: reading there would crash.
  for (size_t i = 0; i < 100; ++i)
    index[i] = i % 3 == 0 ? (int64_t{1} << 45) : i % 3 == 1 ? -(int64_t{1} << 45) : (7 * i) % 50;
  auto out = device().allocate(200), a = upload(device(), x), b = upload(device(), index);
  k.run(0, {{out.get()}, {a.get()}, {b.get()}}, {50}, 100);
  const auto got = download<uint16_t>(*out);
  for (size_t i = 0; i < 100; ++i) {
    const float v = i % 3 == 2 ? bf16_to_f32(x[static_cast<size_t>(index[i])]) : 0;
    ASSERT_EQ(got[i], f32_to_f16(2 * v)) << i;
  }
}

TEST_P(Samples, ArgmaxTakesTheFirst) {
  Loaded k(device(), {testing::sample_argmax()});
  for (size_t at : {0u, 5u, 37u, 63u}) {
    auto x = ramp(64, 0.5f);
    x[at] = 1000;
    if (at < 40) x[at + 9] = 1000;  // a tie in another lane
    auto value = device().allocate(4), position = device().allocate(4), a = upload(device(), x);
    k.run(0, {{value.get()}, {position.get()}, {a.get()}});
    EXPECT_EQ(download<float>(*value)[0], 1000);
    EXPECT_EQ(download<int32_t>(*position)[0], static_cast<int32_t>(at));
  }
}

TEST_P(Samples, ScatterCombinesInOrder) {
  Loaded k(device(), {testing::sample_scatter()});
  std::vector<uint16_t> table(64, f32_to_f16(1)), x(200);
  std::vector<int32_t> index(200);
  for (size_t i = 0; i < 200; ++i) {
    index[i] = static_cast<int32_t>(i * 31 % 70) - 6;  // some below 0, some above 49
    x[i] = f32_to_f16(static_cast<float>(i) * 0.37f);
  }
  std::vector<uint16_t> want = table;
  for (size_t i = 0; i < 200; ++i) {
    if (index[i] < 0 || index[i] >= 50) continue;
    uint16_t& t = want[static_cast<size_t>(index[i])];
    t = f32_to_f16(f16_to_f32(t) + f16_to_f32(x[i]));
  }
  auto t = upload(device(), table), last = device().allocate(4), i = upload(device(), index),
       v = upload(device(), x);
  k.run(0, {{t.get()}, {last.get()}, {i.get()}, {v.get()}});
  EXPECT_EQ(download<uint16_t>(*t), want);
  EXPECT_EQ(download<int32_t>(*last)[0], index[199]);
}

// The same where values have no lanes, out of memory that the host cannot address.
class OwnMemory : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  Device& device() {
    if (!opened_) opened_.emplace(context_, GetParam());
    return *opened_;
  }
  bool on_host() const { return std::string_view(GetParam()) == "PTX"; }

  Context context_{testing::quiet_options()};
  std::optional<testing::OpenedDevice> opened_;
};

TEST_P(OwnMemory, AddMatmulArgmax) {
  Loaded k(device(), testing::scalar_samples(device().target()));
  const auto x = ramp(1024, 0.25f), y = ramp(1024, 1.5f);
  auto out = device().allocate(4096), a = upload(device(), x), b = upload(device(), y);
  EXPECT_EQ(out->data() != nullptr, on_host());
  // From the second element on, where no memory object of its own could begin.
  k.run(0, {{out.get(), 4}, {a.get(), 4}, {b.get(), 4}}, {}, 1023);
  const auto sums = download<float>(*out);
  for (size_t i = 1; i < sums.size(); ++i) ASSERT_EQ(sums[i], x[i] + y[i]) << i;
  k.run(2, {{out.get()}, {a.get()}, {b.get()}}, {}, 128);
  const auto products = download<float>(*out);
  const bool fused = device().target().native(Op::MulAcc, DType::F32);
  for (size_t i = 0; i < 128; ++i) {
    float want = 0;
    for (size_t j = 0; j < 32; ++j) {
      const float left = x[i / 8 * 32 + j], right = y[j * 8 + i % 8], product = left * right;
      want = fused ? std::fma(left, right, want) : want + product;
    }
    ASSERT_EQ(products[i], want) << i;
  }
  auto position = device().allocate(4);
  k.run(4, {{out.get()}, {position.get()}, {a.get()}});
  const auto top = std::max_element(x.begin(), x.begin() + 64);
  EXPECT_EQ(download<int32_t>(*position)[0], static_cast<int32_t>(top - x.begin()));
}

TEST_P(OwnMemory, CopiesBeginAndEndAnywhere) {
  if (on_host()) GTEST_SKIP() << "its copies are the host's";
  std::vector<uint8_t> bytes(4000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i * 7 + i / 256);
  auto a = upload(device(), bytes), b = device().allocate(4000);
  // Within one buffer, overlapping; between two, at odd places; by words.
  const Command commands[] = {Command::copy({a.get(), 0}, {b.get(), 0}, 4000),
                              Command::copy({b.get(), 0}, {b.get(), 8}, 3992),
                              Command::copy({b.get(), 16}, {a.get(), 5}, 1001),
                              Command::copy({a.get(), 4}, {b.get(), 2000}, 400)};
  device().wait(device().submit(0, commands));
  std::vector<uint8_t> want_b(bytes);
  std::copy_n(bytes.begin(), 3992, want_b.begin() + 8);
  std::copy_n(want_b.begin() + 16, 1001, bytes.begin() + 5);
  std::copy_n(bytes.begin() + 4, 400, want_b.begin() + 2000);
  EXPECT_EQ(download<uint8_t>(*a), bytes);
  EXPECT_EQ(download<uint8_t>(*b), want_b);
  // From and to the host.
  std::vector<uint8_t> part(7, 0xee);
  device().copy_in({a.get(), 13}, std::as_bytes(std::span(part)));
  std::copy(part.begin(), part.end(), bytes.begin() + 13);
  EXPECT_EQ(download<uint8_t>(*a), bytes);
  device().copy_out(std::as_writable_bytes(std::span(part)), {a.get(), 1001});
  EXPECT_TRUE(std::equal(part.begin(), part.end(), bytes.begin() + 1001));
}

/// More than the 65535 groups of 64 that WebGPU promises of a grid; bytes that share words.
TEST_P(OwnMemory, GridsOfAnySize) {
  if (on_host()) GTEST_SKIP() << "its grids are loops";
  constexpr int64_t kItems = 65535 * 64 + 1001;
  testing::ProgramBuilder b("bytes");
  NodeRef out = b.param(DType::U8, true);
  NodeRef i = b.open(b.i32(kItems), Binding::Core);
  b.store(out, i, b.emit(Op::Cast, DType::U8, {b.alu(Op::Mul, {i, b.i32(3)})}));
  b.close(i);
  Loaded k(device(), {b.build()});
  auto bytes = device().allocate(kItems);
  k.run(0, {{bytes.get()}}, {}, kItems);
  const auto got = download<uint8_t>(*bytes);
  for (size_t j = 0; j < got.size(); ++j) ASSERT_EQ(got[j], static_cast<uint8_t>(j * 3)) << j;
}

TEST_P(OwnMemory, GroupsShareIt) {
  EXPECT_GE(device().target().groups.items, 1);
  EXPECT_GE(device().target().groups.local_bytes, 16 << 10) << "the least that WebGPU allows";
  Loaded k(device(), {testing::group_reverse()});
  const auto x = ramp(1024, 0.25f);
  auto out = device().allocate(4096), in = upload(device(), x);
  for (const int64_t groups : {int64_t{0}, int64_t{64}}) {
    k.run(0, {{out.get()}, {in.get()}}, {groups}, 1, {groups, 1, 1});
    if (groups == 0) continue;
    const auto got = download<float>(*out);
    for (size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], x[i / 8 * 8 + 7 - i % 8]) << i;
  }
}

TEST_P(OwnMemory, WavesShuffle) {
  const WorkGroups& groups = device().target().groups;
  if (groups.shuffled == 0) return;  // local memory is what there is
  const int64_t items = 2 * groups.wave;
  Loaded k(device(), {testing::group_fold(groups.wave)});
  const auto x = ramp(static_cast<size_t>(64 * items), 1);
  auto out = device().allocate(256), in = upload(device(), x);
  k.run(0, {{out.get()}, {in.get()}}, {64}, 1, {64, 1, 1});
  const auto got = download<float>(*out);
  for (size_t i = 0; i < got.size(); ++i) {
    const auto first = x.begin() + static_cast<int64_t>(i) * items;
    ASSERT_EQ(got[i], std::accumulate(first, first + items, 0.0f)) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, OwnMemory,
                         ::testing::Values("OPENCL", "WEBGPU", "CUDA", "NVRTC", "PTX"),
                         [](const auto& p) { return std::string(p.param); });

std::string what_loading_says(Device& device, const LinearProgram& program, std::string_view text) {
  const ProgramSource source{&program, text, "k"};
  try {
    device.load({&source, 1});
  } catch (const DeviceError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(OpenclSamples, WhatIsWrongSaysSo) {
  if (const std::string why = testing::missing("OPENCL"); !why.empty()) GTEST_SKIP() << why;
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("OPENCL");
  const std::string said =
      what_loading_says(device, testing::scalar_add(), "__kernel void k() { this is no C; }");
  EXPECT_NE(said.find("clBuildProgram"), std::string::npos) << said;
  EXPECT_NE(testing::missing("OPENCL:200").find("OpenCL has "), std::string::npos);
}

TEST(CudaSamples, WhatIsWrongSaysSo) {
  if (const std::string why = testing::missing("CUDA"); !why.empty()) GTEST_SKIP() << why;
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("CUDA");
  const std::string said = what_loading_says(device, testing::scalar_add(), "this is no PTX");
  EXPECT_NE(said.find("cuModuleLoadDataEx"), std::string::npos) << said;
  EXPECT_NE(testing::missing("CUDA:200").find("CUDA has "), std::string::npos);
  EXPECT_THROW(device.allocate(int64_t{1} << 50), Error);
  Loaded k(device, {testing::scalar_add()});  // it is as it was
}

TEST(NvrtcSamples, WhatIsWrongSaysSo) {
  if (const std::string why = testing::missing("NVRTC"); !why.empty()) GTEST_SKIP() << why;
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("NVRTC");
  const std::string said = what_loading_says(device, testing::scalar_add(),
                                             "extern \"C\" __global__ void k() { this is no C; }");
  EXPECT_NE(said.find("nvrtcCompileProgram"), std::string::npos) << said;
  EXPECT_NE(said.find("kernels.cu"), std::string::npos) << said;
}

TEST(WebgpuSamples, WhatIsWrongSaysSo) {
  if (const std::string why = testing::missing("WEBGPU"); !why.empty()) GTEST_SKIP() << why;
  Context context(testing::quiet_options());
  Device& device = context.get<DeviceTable>().open("WEBGPU");
  const std::string said = what_loading_says(device, testing::scalar_add(), "this is no WGSL");
  EXPECT_NE(said.find("wgpuDeviceCreateShaderModule"), std::string::npos) << said;
  EXPECT_NE(testing::missing("WEBGPU:200").find("WebGPU has "), std::string::npos);
  EXPECT_THROW(device.allocate(int64_t{1} << 40), Error);
  testing::ProgramBuilder b("wide");
  for (int i = 0; i < 2000; ++i) b.param(DType::F32, true);
  const LinearProgram wide = b.build();
  const std::string many = what_loading_says(device, wide, render(wide, device.target(), "k"));
  EXPECT_NE(many.find("uses 2000 buffers, and the adapter binds "), std::string::npos) << many;
  // What failed before leaves the device as it was.
  Loaded k(device, {testing::scalar_add()});
}

TEST(WebgpuSamples, LibrariesThatAreNoneSayWhatToInstall) {
  const auto opening_says = [](const char* file) {
    Options options = testing::quiet_options();
    options.webgpu_library = file;
    Context context(options);
    try {
      context.get<DeviceTable>().open("WEBGPU");
    } catch (const DeviceError& error) {
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  const std::string none = opening_says("/nowhere/libwgpu_native.so");
  EXPECT_NE(none.find("/nowhere/libwgpu_native.so"), std::string::npos) << none;
  EXPECT_NE(none.find("pip install wgpu"), std::string::npos) << none;
  const std::string other = opening_says("libm.so.6");
  EXPECT_NE(other.find("has no wgpuGetVersion"), std::string::npos) << other;
}

INSTANTIATE_TEST_SUITE_P(Devices, Samples, ::testing::ValuesIn(testing::setups()),
                         [](const auto& p) { return "Setup" + std::to_string(p.index); });

// Every 16-bit pattern to f32 and back; and f32 patterns around every rounding boundary of f16,
// bf16.
LinearProgram conversion(DType from, DType to, int64_t count) {
  testing::ProgramBuilder b(strformat("{}_{}", name(from), name(to)));
  NodeRef out = b.param(to, true), x = b.param(from);
  NodeRef r = b.open(b.i32(count / 16), Binding::Core);
  NodeRef i = b.alu(Op::Mul, {r, b.i32(16)});
  b.store(out, i, b.emit(Op::Cast, to, {b.load(x, i, 16)}, {}, 16));
  b.close(r);
  return b.build();
}

bool same_f16(uint16_t a, uint16_t b, uint16_t infinity) {
  const bool nan_a = (a & 0x7fff) > infinity, nan_b = (b & 0x7fff) > infinity;
  return nan_a || nan_b ? nan_a && nan_b : a == b;
}

TEST_P(Samples, HalvesExhaustively) {
  constexpr int64_t kAll = 65536, kAround = kAll * 8;
  std::vector<uint16_t> patterns(kAll);
  for (size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<uint16_t>(i);
  auto x = upload(device(), patterns), wide = device().allocate(kAround * 4);
  auto narrow = device().allocate(kAround * 2);
  Loaded k(
      device(),
      {conversion(DType::F16, DType::F32, kAll), conversion(DType::BF16, DType::F32, kAll),
       conversion(DType::F32, DType::F16, kAround), conversion(DType::F32, DType::BF16, kAround)});
  for (size_t kind : {0u, 1u}) {
    const auto widen = [&](uint16_t h) { return kind == 0 ? f16_to_f32(h) : bf16_to_f32(h); };
    const uint16_t infinity = kind == 0 ? 0x7c00 : 0x7f80;
    k.run(kind, {{wide.get()}, {x.get()}}, {}, kAll / 16);
    auto got = download<float>(*wide);
    for (size_t i = 0; i < kAll; ++i) {
      const float want = widen(patterns[i]);
      ASSERT_TRUE(std::isnan(want)
                      ? std::isnan(got[i])
                      : std::bit_cast<uint32_t>(want) == std::bit_cast<uint32_t>(got[i]))
          << i;
    }
    // The value itself, half-way to the next, and a little to each side.
    std::vector<float> near(kAround);
    for (size_t i = 0; i < kAll; ++i) {
      const uint32_t u = std::bit_cast<uint32_t>(widen(patterns[i]));
      const uint32_t half = kind == 0 ? 0x1000 : 0x8000;
      const uint32_t offsets[8] = {0, 1, half - 1, half, half + 1, 2 * half - 1, ~0u, half / 2};
      for (size_t j = 0; j < 8; ++j) near[i * 8 + j] = std::bit_cast<float>(u + offsets[j]);
    }
    auto source = upload(device(), near);
    k.run(2 + kind, {{narrow.get()}, {source.get()}}, {}, kAround / 16);
    const auto halves = download<uint16_t>(*narrow);
    for (size_t i = 0; i < near.size(); ++i) {
      const uint16_t want = kind == 0 ? f32_to_f16(near[i]) : f32_to_bf16(near[i]);
      ASSERT_TRUE(same_f16(halves[i], want, infinity)) << std::bit_cast<uint32_t>(near[i]);
    }
  }
}

// Which worker runs an item must not matter.
TEST(DeviceThreads, AnyNumberGivesTheSameBits) {
  std::vector<std::vector<float>> results;
  for (int64_t threads : {1, 2, 5}) {
    Options options = testing::quiet_options();
    options.threads = threads;
    Context context(options);
    ContextScope scope(context);
    Device& device = context.get<DeviceTable>().open("CPU");
    const bool fma = device.target().fma;
    Loaded k(device, {fma ? testing::sample_matmul() : testing::sample_add()});
    // Enough rows to be worth several threads.
    constexpr int64_t kRows = 8192;
    auto out = device.allocate(kRows * 16 * 4), a = upload(device, ramp(kRows * 32, 0.3f)),
         b = upload(device, ramp(kRows * 16, 0.7f));
    std::memset(out->data(), 0, static_cast<size_t>(out->bytes()));
    for (int repeat = 0; repeat < 5; ++repeat) {
      k.run(0, {{out.get()}, {a.get()}, {b.get()}}, {}, kRows);
      results.push_back(download<float>(*out));
    }
  }
  for (const auto& r : results) EXPECT_TRUE(r == results[0]);
}

}  // namespace
}  // namespace weft
