// Networks execute about as many operations as their graphs have, whatever their sizes are: no
// kernel computes in every iteration of a loop what that loop has no part in.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "tests/nn/random_network.h"
#include "tests/support/compiler/operation_counts.h"
#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/device/device.h"
#include "weft/optimize/optimize.h"
#include "weft/run/normalise.h"

namespace weft {
namespace {

struct NullContext {
  NullContext() : context(options()), scope(context) {}
  static Options options() {
    Options o;
    o.dev = "NULL:X86";
    return o;
  }
  Context context;
  ContextScope scope;
};

testing::Work work_of(const std::vector<Tensor>& values) {
  Graph g;
  std::vector<NodeRef> nodes;
  for (const Tensor& t : values) nodes.push_back(t.node());
  Device& device = Context::current().get<DeviceTable>().default_device();
  const NormalForm form = normalise(g, nodes, device.id());
  return testing::count_work(without_calls(g, form).values, device.target());
}

// What takes as long as launching one more kernel: 1500 cycles of 16 lanes.
constexpr double kNothing = 24000;

/// `most`: times the graph's operations. Elements that masks leave out count where a program runs
/// over them: gradients of convolutions have up to four times as many places as products.
void expect_lean(const testing::Work& work, double most) {
  for (const testing::StepWork& s : work.steps)
    EXPECT_LE(s.executed, 1.5 * s.needed + s.stores + kNothing) << s.kernel;
  const auto steps = static_cast<double>(work.steps.size());
  EXPECT_LE(work.executed(), most * work.graph + steps * kNothing);
}

void expect_lean_step(const std::string& name, nn::Sequential net,
                      const std::vector<int64_t>& input, double most, uint64_t optimizer = 0) {
  SCOPED_TRACE(name);
  expect_lean(work_of(training_step(std::move(net), input, optimizer)), most);
}

/// The network of tinygrad's beautiful_mnist example.
nn::Sequential beautiful_mnist() {
  const auto relu = [](const Tensor& x) { return x.relu(); };
  const auto pool = [](const Tensor& x) { return x.max_pool2d(); };
  return nn::Sequential(
      nn::Conv2d(1, 32, 5), relu, nn::Conv2d(32, 32, 5), relu, nn::BatchNorm(32), pool,
      nn::Conv2d(32, 64, 3), relu, nn::Conv2d(64, 64, 3), relu, nn::BatchNorm(64), pool,
      [](const Tensor& x) { return x.flatten(1); }, nn::Linear(576, 10));
}

void expect_lean_mnist(int64_t batch) {
  const NullContext null;
  expect_lean_step(strformat("batch {}", batch), beautiful_mnist(), {batch, 1, 28, 28}, 1.25);
}

TEST(Operations, BatchSizes) {
  for (int64_t batch : {1, 2, 7, 24, 32, 48, 56, 64, 72, 96, 101, 128}) expect_lean_mnist(batch);
}
TEST(Operations, SlowBatchSizesTo128) {
  for (int64_t batch = 1; batch <= 128; ++batch) expect_lean_mnist(batch);
}

void expect_lean_networks(uint64_t count) {
  for (uint64_t seed = 0; seed < count; ++seed) {
    const NullContext null;
    RandomNetwork r(seed);
    expect_lean_step(strformat("seed {}: {}", seed, r.text), std::move(r.net), r.input, 2.5, seed);
  }
}

TEST(Operations, RandomNetworks) { expect_lean_networks(50); }
TEST(Operations, SlowRandomNetworks) { expect_lean_networks(2000); }

/// Programs with boundaries that may be left out: `cut` is the identity, or asks for one.
using Program = std::function<Tensor(const std::function<Tensor(const Tensor&)>& cut)>;

std::vector<std::pair<const char*, Program>> programs() {
  const auto data = [](const std::vector<int64_t>& dims) {
    Tensor x = Tensor::zeros(Dims(dims)).contiguous();
    x.realize();
    return x;
  };
  const Tensor x = data({4, 32, 40, 40}), w = data({32, 32, 3, 3}), m = data({256, 256});
  const auto pooled = [](int64_t size, int64_t stride, bool largest) {
    return [=](const Tensor& t) {
      PoolOptions o;
      o.stride = stride;
      return largest ? t.max_pool2d(size, o) : t.avg_pool2d(size, o);
    };
  };
  std::vector<std::pair<const char*, Program>> all;
  for (const bool largest : {false, true})
    for (const auto& [size, stride] : {std::pair<int64_t, int64_t>{2, 1}, {3, 1}, {3, 2}, {2, 2}})
      all.emplace_back("a pool of a convolution", [=](const auto& cut) {
        return pooled(size, stride, largest)(cut(x.conv2d(w)));
      });
  all.emplace_back("an instance norm of a convolution",
                   [=](const auto& cut) { return nn::InstanceNorm(32)(cut(x.conv2d(w))); });
  all.emplace_back("a variance of variances",
                   [=](const auto& cut) { return cut(x.conv2d(w).var({2, 3})).var(1); });
  all.emplace_back("overlapping sums of sums", [=](const auto& cut) {
    return pooled(8, 1, false)(cut(m.reshape({4, 64, 16, 16}).sum(1)).reshape({4, 1, 16, 16}));
  });
  all.emplace_back("a repeated product", [=](const auto& cut) {
    return cut(m.matmul(m)).reshape({256, 256, 1}).expand({256, 256, 4}).sum(2);
  });
  all.emplace_back("a running sum of a product",
                   [=](const auto& cut) { return cut(m.matmul(m)).cumsum(0); });
  all.emplace_back("attention", [=](const auto& cut) {
    const Tensor q = m.reshape({4, 64, 256});
    return cut(cut(q.matmul(q.transpose(1, 2))).softmax(-1)).matmul(q);
  });
  return all;
}

TEST(Operations, NoMoreThanWithBoundaries) {
  const NullContext null;
  for (const auto& [name, program] : programs()) {
    const double fused = work_of({program([](const Tensor& t) { return t; })}).executed();
    const double staged =
        work_of({program([](const Tensor& t) { return t.contiguous(); })}).executed();
    EXPECT_LE(fused, 1.25 * staged) << name;
  }
}

bool has_lanes(NodeRef n) {
  const Toposort nodes(n);
  return std::ranges::any_of(nodes.nodes(), [](NodeRef r) {
    return r->op == Op::Range && range_binding(r) == Binding::Vector;
  });
}

/// Whether every sum runs in lanes of which none is asked whether it is to be done.
bool sums_in_free_lanes(const Kernel& kernel) {
  for (NodeRef sum : Toposort(kernel.sink)) {
    if (sum->op != Op::Reduce) continue;
    if (!has_lanes(sum)) return false;
    for (NodeRef n : Toposort(sum))
      if (n->op == Op::Load && n->nsrc > 2 && has_lanes(n->src(2))) return false;
  }
  return true;
}

TEST(Operations, GradientsOfStridesMaskNoLanes) {
  const NullContext null;
  Device& device = Context::current().get<DeviceTable>().default_device();
  const auto data = [](const std::vector<int64_t>& dims) {
    return Tensor::zeros(Dims(dims)).contiguous().realize();
  };
  for (const int64_t channels : {1, 3})
    for (const auto& [window, stride] : {std::pair<int64_t, int64_t>{3, 2}, {5, 2}, {7, 2}}) {
      SCOPED_TRACE(strformat("{} channels, {} by steps of {}", channels, window, stride));
      ConvOptions o;
      o.stride = stride;
      o.padding = window / 2;
      const int64_t size = 64 * stride;
      const Tensor x = data({2, channels, size, size}).requires_grad_();
      const Tensor y = x.conv2d(data({32, channels, window, window}), {}, o);
      (y * data({2, 32, y.size(2), y.size(3)})).sum().backward();
      Graph g;
      const NodeRef gradient[] = {x.grad().node()};
      const NodeRef value = normalise(g, gradient, device.id()).values[0];
      const ScheduleOutput output[] = {{value}};
      for (const Kernel& k : make_schedule(output, device.target()).kernels)
        EXPECT_TRUE(sums_in_free_lanes(optimize_kernel(k, device.target(), {}))) << k.name;
    }
}

TEST(Operations, TransposedConvolutionsMultiplyInputsAlone) {
  const NullContext null;
  const int64_t n = 24, in = 16, out = 8;
  for (const int64_t spatial : {1, 2, 3})
    for (const auto& [kernel, stride] :
         {std::pair<int64_t, int64_t>{2, 2}, {3, 2}, {4, 2}, {4, 3}, {5, 3}, {8, 4}}) {
      std::vector<int64_t> image{2, in}, filter{in, out};
      double operations = 2 * 2 * in * out;  // a product and a sum; images
      double steps = 1;
      for (int64_t i = 0; i < spatial; ++i) {
        image.push_back(n);
        filter.push_back(kernel);
        operations *= static_cast<double>(n * kernel);
        // Taps up to the next multiple of the stride, and the border.
        const auto taps = static_cast<double>((kernel + stride - 1) / stride);
        steps *= taps * static_cast<double>(stride) / static_cast<double>(kernel) *
                 (static_cast<double>(n) + taps - 1) / static_cast<double>(n);
      }
      const auto data = [](const std::vector<int64_t>& dims) {
        return Tensor::zeros(Dims(dims)).contiguous().realize();
      };
      ConvOptions o;
      o.stride = stride;
      const testing::Work work = work_of({data(image).conv_transpose2d(data(filter), {}, o)});
      EXPECT_LE(work.executed(), 1.5 * operations * steps) << spatial << kernel << stride;
    }
}

}  // namespace
}  // namespace weft
