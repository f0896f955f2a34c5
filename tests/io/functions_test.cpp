// Captured functions, saved and loaded: the same results as going on with the original.
#include "weft/io/functions.h"

#include <cstring>

#include "tests/io/scratch_dir.h"
#include "tests/tensor/near.h"
#include "weft/base/context.h"
#include "weft/io/safetensors.h"
#include "weft/tensor/custom_kernel.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

class SavedFunction : public ScratchDir {};

Tensor ramp(float start) { return Tensor::of({start, start + 1, start + 2}); }

TEST_F(SavedFunction, ComputesTheSame) {
  auto f = jit([](const Tensor& x, const Tensor& y) {
    return std::pair((x.matmul(y) + 1).relu(), y.sort(0, true).first);
  });
  const Tensor x = sample({4, 3}, 1, DType::F32), y = sample({3, 2}, 2, DType::F32);
  for (int i = 0; i < 2; ++i) f(x, y);
  save_function(at("f.safetensors"), f.captured());
  LoadedFunction g = load_function(at("f.safetensors"));
  for (int i = 0; i < 4; ++i) {
    const Tensor a = x + i, b = y - i;
    const auto expected = f(a, b);
    const std::vector<Tensor> got = g(a, b);
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].to_vector<float>(), expected.first.to_vector<float>()) << "call " << i;
    EXPECT_EQ(got[1].to_vector<float>(), expected.second.to_vector<float>()) << "call " << i;
  }
  EXPECT_EQ(g.kernels(), f.kernels());
}

/// What is kept from call to call goes on from where it was, in a context that never saw it begin.
TEST_F(SavedFunction, StateGoesOn) {
  Tensor w = ramp(1), velocity = Tensor::zeros({3}), count = Tensor::zeros({1});
  w.realize(), velocity.realize(), count.realize();
  auto step = jit([&](const Tensor& x) {
    const Tensor slope = w * x;
    velocity.assign(velocity * 0.5 + slope);
    w.assign(w - velocity * 0.1);
    realize({w, velocity});
    count += 1;
    w.assign(w + count * 0);
    return (w * w).sum();
  });
  for (int i = 0; i < 3; ++i) step(ramp(static_cast<float>(i)));
  const std::vector<std::byte> bytes = function_bytes(step.captured());
  std::vector<float> expected, got;
  for (int i = 3; i < 6; ++i) expected.push_back(step(ramp(static_cast<float>(i))).item<float>());
  {
    Context other(Options::from_environment());
    const ContextScope scope(other);
    LoadedFunction loaded(parse_function(bytes, "bytes"));
    for (int i = 3; i < 6; ++i) got.push_back(loaded(ramp(static_cast<float>(i)))[0].item<float>());
  }
  EXPECT_EQ(got, expected);
  EXPECT_NE(expected[0], expected[1]);
}

TEST_F(SavedFunction, WritesToItsArguments) {
  auto f = jit([](Tensor x, const Tensor& y) {
    x += y;
    return x;
  });
  Tensor a = ramp(0);
  for (int i = 0; i < 2; ++i) f(a, ramp(1));
  LoadedFunction g(f.captured());
  for (int i = 0; i < 3; ++i) {
    Tensor b = ramp(5).contiguous();
    b.realize();
    EXPECT_EQ(g(b, ramp(1))[0].to_vector<float>(), (std::vector<float>{6, 8, 10}));
    EXPECT_EQ(b.to_vector<float>(), (std::vector<float>{6, 8, 10})) << "call " << i;
  }
}

/// Two states that swap their values: endings name what was there before.
TEST_F(SavedFunction, StatesMaySwap) {
  Tensor a = ramp(0), b = ramp(10);
  a.realize(), b.realize();
  auto f = jit([&](const Tensor& x) {
    const Tensor old = a * 1;
    a.assign(b + 0);
    b.assign(old);
    return a + x;
  });
  const Tensor zero = Tensor::zeros({3}).contiguous().realize();
  for (int i = 0; i < 2; ++i) f(zero);  // swapped twice
  LoadedFunction g = LoadedFunction(parse_function(function_bytes(f.captured()), "bytes"));
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(g(zero)[0].to_vector<float>(), f(zero).to_vector<float>()) << "call " << i;
}

TEST_F(SavedFunction, SizesStayFree) {
  const Variable n("n", 1, 8);
  const Tensor data = Tensor::arange(8).cast(DType::F32).contiguous().realize();
  auto f = jit([&](const Tensor& x, const Dim& size) {
    return (x.shrink({{0, size}}) * 2).sum() + data.shrink({{0, size}}).sum();
  });
  const Tensor x = (data + 1).realize();
  for (int i = 2; i < 4; ++i) f(x, n.bind(i));
  LoadedFunction g(parse_function(function_bytes(f.captured()), "bytes"));
  for (int i = 1; i <= 8; ++i)
    EXPECT_EQ(g(x, n.bind(i))[0].item<float>(), f(x, n.bind(i)).item<float>()) << "size " << i;
  EXPECT_NE(error_of([&] { g(x); }).find("given"), std::string::npos);
}

TEST_F(SavedFunction, LoopsKernelsAndRandomNumbers) {
  Tensor::manual_seed(3);
  const auto twice = [](KernelWriter& k) {
    const KernelNumber i = k.range(3);
    k.store(0, {i}, k.load(0, {i}) * 2);
  };
  auto f = jit([&](const Tensor& x) {
    const Tensor y = custom_kernel("twice", {x}, {{{3}, DType::F32}}, twice)[0];
    const ScanFunction body = [](const Tensors& carried, const Tensors& slices) {
      return ScanResult{{carried[0] * 0.5 + slices[0]}, {}};
    };
    return scan(body, {y}, {Tensor::ones({4, 3})}).carried[0] + Tensor::rand({3}) + y.cumsum(0);
  });
  for (int i = 0; i < 2; ++i) f(ramp(0));
  LoadedFunction g(parse_function(function_bytes(f.captured()), "bytes"));
  for (int i = 0; i < 4; ++i) {
    const Tensor x = ramp(static_cast<float>(i));
    const std::vector<float> expected = f(x).to_vector<float>();
    EXPECT_EQ(g(x)[0].to_vector<float>(), expected) << "call " << i;
    EXPECT_NE(f(x).to_vector<float>(), expected);
    g(x);
  }
}

TEST_F(SavedFunction, RefusesWhatItWasNotCapturedFor) {
  auto f = jit([](const Tensor& x, int by) { return x * by; }, "scale");
  EXPECT_NE(error_of([&] { f.captured(); }).find("second call"), std::string::npos);
  for (int i = 0; i < 2; ++i) f(ramp(0), 3);
  save_function(at("f.safetensors"), f.captured());
  LoadedFunction g = load_function(at("f.safetensors"));
  EXPECT_NE(error_of([&] { g(ramp(0), 4); }).find("was 3"), std::string::npos);
  EXPECT_NE(error_of([&] { g(Tensor::zeros({4}), 3); }).find("had (3)"), std::string::npos);
  const Tensor ints = Tensor::zeros({3}, DType::I32);
  EXPECT_NE(error_of([&] { g(ints, 3); }).find("is i32, was f32"), std::string::npos);
  EXPECT_NE(error_of([&] { g(Tensor::zeros({6}).index({Slice(0, 3)}), 3); }).find("view"),
            std::string::npos);
  EXPECT_NE(error_of([&] { g(ramp(0)); }).find("structure"), std::string::npos);
  EXPECT_EQ(g(ramp(0), 3)[0].to_vector<float>(), (std::vector<float>{0, 3, 6}));
}

TEST_F(SavedFunction, WithoutJitItRunsStepByStep) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  for (int i = 0; i < 2; ++i) f(ramp(0));
  LoadedFunction g(f.captured());
  Context::current().mutable_options().jit = false;
  EXPECT_EQ(g(ramp(4))[0].to_vector<float>(), (std::vector<float>{5, 6, 7}));
  EXPECT_EQ(g.kernels(), 0u);
  Context::current().mutable_options().jit = true;
}

// ---- files from elsewhere

/// The file with another plan: `at` is the place of a number in it.
std::vector<std::byte> with_number(std::span<const std::byte> file, size_t at, int64_t number) {
  SafetensorsContent content = parse_safetensors(file, "file");
  for (NamedArray& a : content.arrays) {
    if (a.name != "plan") continue;
    std::vector<std::byte> bytes(a.array.bytes.begin(), a.array.bytes.end());
    std::memcpy(bytes.data() + at * sizeof(number), &number, sizeof(number));
    a.array = HostArray::owned(DType::I64, a.array.shape, std::move(bytes));
  }
  return safetensors_bytes(content.arrays, content.metadata);
}

TEST_F(SavedFunction, EveryOtherNumberInItsPlanIsHarmless) {
  Tensor total = ramp(0);
  total.realize();
  auto f = jit([&](const Tensor& x) {
    total += x;
    return total * 2;
  });
  for (int i = 0; i < 2; ++i) f(ramp(0));
  const std::vector<std::byte> file = function_bytes(f.captured());
  const size_t numbers = parse_safetensors(file, "file").find("plan")->bytes.size() / 8;
  ASSERT_GT(numbers, 15u);
  int refused = 0;
  for (size_t at = 0; at < numbers; ++at)
    for (const int64_t number : {-2, -1, 0, 1, 2, 3, 1 << 20, INT32_MAX}) {
      try {
        LoadedFunction g(parse_function(with_number(file, at, number), "damaged"));
        for (int i = 0; i < 2; ++i)
          for (const Tensor& t : g(ramp(1))) t.to_vector<float>();
      } catch (const Error&) {
        ++refused;
      }
    }
  EXPECT_GT(refused, static_cast<int>(numbers) * 4);
  EXPECT_EQ(f(ramp(0)).numel(), 3);
}

TEST_F(SavedFunction, SaysWhatIsMissing) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  for (int i = 0; i < 2; ++i) f(ramp(0));
  const std::vector<std::byte> file = function_bytes(f.captured());
  const auto error_without = [&](auto&& change) {
    SafetensorsContent content = parse_safetensors(file, "file");
    change(content);
    const std::vector<std::byte> bytes = safetensors_bytes(content.arrays, content.metadata);
    return error_of([&] { parse_function(bytes, "changed"); });
  };
  EXPECT_NE(error_without([](auto& c) { c.metadata["weft.function"] = "3"; }).find("version"),
            std::string::npos);
  EXPECT_NE(error_without([](auto& c) { c.metadata.erase("name"); }).find("\"name\""),
            std::string::npos);
  EXPECT_NE(error_without([](auto& c) { c.arrays.erase(c.arrays.begin()); }).find("\"graph\""),
            std::string::npos);
}

}  // namespace
}  // namespace weft
