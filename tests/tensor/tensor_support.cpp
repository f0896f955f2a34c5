#include <cmath>

#include "tests/support/compiler/buffer_bytes.h"
#include "tests/support/device_here.h"
#include "tests/tensor/tensor_test.h"
#include "weft/device/buffer.h"
#include "weft/eval/evaluate.h"
#include "weft/graph/verify.h"
#include "weft/run/storage.h"

namespace weft {

namespace {

Options without_compiler() {
  Options options = Options::from_environment();
  options.dev = testing::device_here("CPU:INTERP");
  options.threads = 1;
  return options;
}

}  // namespace

TensorTest::TensorTest() : context_(without_compiler()), scope_(context_) {}

eval::Array evaluated(const Tensor& x) {
  const Graph::Building building(tensor_graph(x.context()));
  NodeRef root = x.node();
  verify_tensor_graph({&root, 1}, "tensor");
  eval::Inputs inputs;
  const auto& table = x.context().get<BufferTable>();
  for (NodeRef n : Toposort(root)) {
    if (n->op != Op::Buffer) continue;
    eval::Extents extents;
    for (NodeRef d : n->shape->span()) extents.push_back(d->vmin);
    inputs.buffers[buffer_id(n)] =
        eval::Array::copy_of(n->dtype, extents, testing::bytes_of(table.find(buffer_id(n))).data());
  }
  return eval::evaluate(root, inputs);
}

std::vector<double> values(const Tensor& x) { return evaluated(x).doubles(); }
std::string shown(const Tensor& x) { return evaluated(x).text(); }

void expect_near(const Tensor& x, const std::vector<double>& expected, double tolerance) {
  const std::vector<double> got = values(x);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isnan(expected[i]) && std::isnan(got[i])) continue;
    if (expected[i] == got[i]) continue;
    EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i])))
        << "element " << i;
  }
}

Tensor sample(const Dims& shape, int seed) {
  std::vector<double> data(static_cast<size_t>(shape.product().value()));
  // Multiples of the golden ratio modulo 1 are spread out and distinct.
  for (size_t i = 0; i < data.size(); ++i) {
    const double turn = static_cast<double>(i + 1) * 0.6180339887498949 + seed * 0.37;
    const double u = turn - std::floor(turn);
    data[i] = (u < 0.5 ? -0.3 : 0.3) + 2 * (u - 0.5);
  }
  return Tensor::from(data, shape);
}

void expect_gradients(const std::vector<Tensor>& inputs, TensorFunction f, double tolerance) {
  constexpr double kStep = 1e-5;
  const Tensor y = f(inputs);
  const Tensor weights = sample(y.dims(), 7);
  const auto grads = (y * weights).sum().gradient(inputs);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const std::vector<double> at = values(inputs[k]), got = values(grads[k]);
    ASSERT_EQ(got.size(), at.size());
    for (size_t i = 0; i < at.size(); ++i) {
      double ends[2];
      for (int side = 0; side < 2; ++side) {
        std::vector<double> moved = at;
        moved[i] += side == 0 ? kStep : -kStep;
        std::vector<Tensor> there = inputs;
        there[k] = Tensor::from(moved, inputs[k].dims());
        ends[side] = values((f(there) * weights).sum())[0];
      }
      const double expected = (ends[0] - ends[1]) / (2 * kStep);
      EXPECT_NEAR(got[i], expected, tolerance * std::max(1.0, std::fabs(expected)))
          << "input " << k << ", element " << i;
    }
  }
}

}  // namespace weft
