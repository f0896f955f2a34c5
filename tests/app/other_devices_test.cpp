// Devices whose memory is their own and whose kernels are text, from above: what a program does
// there equals what it does on the CPU. Each is tested where it can be opened.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/device/programs.h"
#include "weft/app/fashion.h"
#include "weft/nn/optim.h"
#include "weft/tensor/training.h"
#include "weft/weft.h"

namespace weft {
namespace {

class OtherDevices : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const std::string why = testing::missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
  /// What `program` gives there.
  template <class F>
  static auto on(const char* device, F&& program) {
    Options options = testing::quiet_options();
    options.dev = device;
    Context context(options);
    const ContextScope scope(context);
    return program();
  }
};

/// Of these extents, the same on every machine.
Tensor numbers(const Dims& dims, uint32_t seed, double scale) {
  int64_t count = 1;
  for (const Dim& d : dims) count *= d.value();
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float& v : values)
    v = static_cast<float>((static_cast<double>(random() % 2048) / 1024 - 1) * scale);
  return Tensor::from_bytes(std::as_bytes(std::span(values)), DType::F32, dims);
}

/// One step of training: the loss, and everything the network has then.
std::vector<std::vector<float>> train_fashion() {
  const TrainingScope training;
  FashionNet net;
  uint32_t seed = 1;
  for (const NamedTensor& named : state_dict(net)) {
    Tensor t = named.tensor;
    if (t.dtype() == DType::F32 && t.shape().size() > 1)
      t.assign(numbers(t.dims(), seed++, 0.05)).realize();
  }
  nn::SGD sgd(parameters(net), {.lr = 0.01});
  std::vector<std::vector<float>> seen;
  const Tensor labels = Tensor::of({3, 1, 4, 1, 5, 9, 2, 6});
  const Tensor images = numbers({8, 1, 28, 28}, 100, 1);
  const Tensor loss = net(images).sparse_categorical_crossentropy(labels);
  loss.backward();
  sgd.step();
  seen.push_back(loss.to_vector<float>());
  for (const NamedTensor& named : state_dict(net)) seen.push_back(named.tensor.to_vector<float>());
  return seen;
}

TEST_P(OtherDevices, SlowLearnFashionAsTheCpuDoes) {
  const auto want = on("CPU", train_fashion), got = on(GetParam(), train_fashion);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) {
    ASSERT_EQ(got[i].size(), want[i].size());
    for (size_t e = 0; e < want[i].size(); ++e)
      ASSERT_NEAR(got[i][e], want[i][e], 2e-5F * (1 + std::fabs(want[i][e]))) << i << ", " << e;
  }
}

TEST_P(OtherDevices, ReplayAssignAndTakeAnySize) {
  const auto program = [] {
    std::vector<float> seen;
    Tensor counted = Tensor::zeros({4}).contiguous().realize();
    auto count = jit([&](const Tensor& x) {
      counted.assign(counted + x * 2);
      return (counted * counted).sum();
    });
    for (int i = 0; i < 5; ++i) seen.push_back(count(Tensor::full({4}, i)).item<float>());
    for (float x : counted.to_vector<float>()) seen.push_back(x);

    const Variable n("n", 1, 300);
    const Tensor x = Tensor::arange(300).cast(DType::F32).contiguous().realize();
    auto part = jit([&](const Dim& size) { return (x.shrink({{0, size}}) * 3 + 1).sum(); });
    for (const int64_t size : {1, 2, 63, 64, 65, 255, 300})
      seen.push_back(part(n.bind(size)).item<float>());

    Tensor w = Tensor::of({0.5f, -1.0f, 2.0f}).realize();
    w.requires_grad_();
    ((w * w).exp() + w.sin()).sum().backward();
    for (float g : w.grad().to_vector<float>()) seen.push_back(g);
    return seen;
  };
  const auto want = on("CPU", program), got = on(GetParam(), program);
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(got[i], want[i], 1e-6F * (1 + std::fabs(want[i]))) << i;
}

/// Neighbours in one word come from different work items.
TEST_P(OtherDevices, KeepBytesBesideBytes) {
  const auto program = [] {
    Tensor bytes = Tensor::arange(1001).cast(DType::U8).contiguous().realize();
    bytes.shrink({{3, 997}}).assign(bytes.shrink({{4, 998}}) * 3);
    const Tensor odd = (bytes % 2).cast(DType::Bool);
    const Tensor halves = (bytes.cast(DType::F16) * 0.25 + 1).contiguous();
    std::vector<float> seen = bytes.to_vector<float>();
    for (const Tensor& t : {odd.shrink({{5, 8}}), halves.shrink({{1, 4}}), halves}) {
      const auto more = t.to_vector<float>();
      seen.insert(seen.end(), more.begin(), more.end());
    }
    return seen;
  };
  EXPECT_EQ(on(GetParam(), program), on("CPU", program));
}

/// One span for each command, on the host's clock, in the tracks of the device's queues.
TEST_P(OtherDevices, SayWhenCommandsRan) {
  Options options = testing::quiet_options();
  options.dev = GetParam();
  Context context(options);
  const ContextScope scope(context);
  const Tensor x = Tensor::arange(5000).cast(DType::F32).contiguous().realize();
  const Tensor y = Tensor::arange(700).cast(DType::F32).contiguous().realize();
  const auto work = [&] { realize({(x.sin() * x.sum()).sum(), (y + 1).max(), y.cumsum()}); };
  work();  // untraced
  Tracer& tracer = context.tracer();
  const int64_t kernels = tracer.value(Counter::Kernels);
  tracer.start();
  const uint64_t begin = now_ns();
  for (int i = 0; i < 3; ++i) work();
  const uint64_t end = now_ns();
  const auto trace = nlohmann::json::parse(tracer.chrome_json());
  std::map<int, double> track_ends;
  int64_t seen = 0;
  double busy = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["pid"] != 2 || event["ph"] != "X") continue;
    constexpr double kRounding = 0.01;  // us are written
    const double from = event["ts"], duration = event["dur"];
    EXPECT_EQ(event["name"], "kernel");
    EXPECT_GE(duration, 0);
    EXPECT_GE(from, static_cast<double>(begin) / 1e3 - kRounding);
    EXPECT_LE(from + duration, static_cast<double>(end) / 1e3 + kRounding);
    double& last = track_ends[event["tid"]];
    EXPECT_GE(from, last - kRounding) << "a queue runs one after the other";
    last = from + duration;
    busy += duration;
    ++seen;
  }
  EXPECT_GT(seen, 3);
  EXPECT_GT(busy, 0);
  EXPECT_EQ(track_ends.size(),
            static_cast<size_t>(context.get<DeviceTable>().default_device().queues()));
  EXPECT_EQ(seen, tracer.value(Counter::Kernels) - kernels);
}

INSTANTIATE_TEST_SUITE_P(All, OtherDevices,
                         ::testing::Values("OPENCL", "WEBGPU", "CUDA", "NVRTC", "SIM"),
                         [](const auto& p) { return std::string(p.param); });

}  // namespace
}  // namespace weft
