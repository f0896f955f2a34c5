// What captured functions keep of constants, where these are saved, loaded, borrowed or trained.
#include <gtest/gtest.h>
#include <array>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/io/functions.h"
#include "weft/io/host_memory.h"
#include "weft/nn/sgd.h"

namespace weft {
namespace {

/// (x + (3 w reversed)) as a kernel for what is in brackets and one for the sum.
Tensor shifted(const Tensor& x, const Tensor& w) { return x + (w * 3).flip({0}).contiguous(); }

TEST(KeptConstants, BorrowedMemoryMayChange) {
  if (Context::current().get<DeviceTable>().default_device().name().starts_with("SIM"))
    GTEST_SKIP() << "devices borrow no memory of the host's";
  const auto memory = std::make_shared<std::array<int32_t, 4>>(std::array<int32_t, 4>{1, 2, 3, 4});
  const int64_t shape[] = {4};
  const Tensor x = Tensor::of({4, 5, 6, 7}).realize();
  const Tensor w = borrowed_tensor(memory->data(), DType::I32, shape, memory);
  auto f = jit([&](const Tensor& a) { return shifted(a, w); });
  for (int i = 0; i < 4; ++i) {
    (*memory)[1] = i;
    EXPECT_EQ(f(x).to_vector<int32_t>(), shifted(x, w).to_vector<int32_t>());
  }
  EXPECT_EQ(f.kept_bytes(), 0);
}

TEST(KeptConstants, OfALoadedFunction) {
  const Tensor x = Tensor::of({4, 5, 6, 7}).realize();
  Tensor w = Tensor::of({1, 2, 3, 4}).realize();
  auto f = jit([&](const Tensor& a) { return shifted(a, w); });
  for (int i = 0; i < 3; ++i) f(x);
  LoadedFunction loaded(parse_function(function_bytes(f.captured()), "bytes"));
  LoadedFunction clone(f.captured());  // of the same state
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(loaded(x + i)[0].to_vector<int32_t>(),
              shifted(x + i, Tensor::of({1, 2, 3, 4})).to_vector<int32_t>());
    if (i == 2) (w += 7).realize();
    EXPECT_EQ(clone(x + i)[0].to_vector<int32_t>(), shifted(x + i, w).to_vector<int32_t>());
  }
  EXPECT_EQ(loaded.kernels(), 1u);
}

TEST(KeptConstants, OfWeightsThatAnOptimizerTrains) {
  Tensor w = Tensor::of({1.f, 2.f, 3.f}).realize();
  w.requires_grad_();
  nn::SGD optimizer({w});
  const auto model = [&](const Tensor& a) { return (a * (w * 3).detach().contiguous()).sum(); };
  auto f = jit(model);
  const Tensor a = Tensor::of({1.f, -1.f, 2.f}).realize();
  for (int i = 0; i < 12; ++i) {
    if (i % 3 == 2) {
      optimizer.zero_grad();
      (w * w).sum().backward();
      optimizer.step();
    }
    EXPECT_EQ(f(a).item<float>(), model(a).item<float>()) << i;
  }
}

}  // namespace
}  // namespace weft
