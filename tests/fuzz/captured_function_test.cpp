// Captured functions with other bytes in them: refused when read or when called, or harmless.
#include <gtest/gtest.h>

#include <functional>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/io/functions.h"
#include "weft/tensor/custom_kernel.h"
#include "weft/tensor/selection.h"
#include "weft/tensor/transforms.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

constexpr int kMutations = 400, kMutationsSlow = 20'000;

Tensor ramp(int64_t n) { return Tensor::arange(n).cast(DType::F32).contiguous().realize(); }

/// One kind of captured function: its bytes, and a call of what they are loaded as.
struct Sample {
  const char* name;
  std::vector<std::byte> bytes;
  std::function<Tensors(LoadedFunction&)> call;
};

template <class F>
std::vector<std::byte> captured(F f, const auto&... arguments) {
  auto jitted = jit(f);
  for (int i = 0; i < 2; ++i) jitted(arguments...);
  return function_bytes(jitted.captured());
}

template <class F, class... Arguments>
Sample sample(const char* name, F f, Arguments... arguments) {
  return {name, captured(f, arguments...),
          [arguments...](LoadedFunction& g) { return g(arguments...); }};
}

Tensor custom(const Tensor& x) {
  return custom_kernel("copy", {x}, {{{6}, DType::F32}}, [](KernelWriter& k) {
    const KernelNumber i = k.range(6);
    k.store(0, {i}, k.load(0, {i, 0}));
  })[0];
}

Tensor custom_sums(const Tensor& x) {
  return custom_kernel("sums", {x}, {{{6}, DType::F32}}, [](KernelWriter& k) {
    const KernelNumber i = k.range(6), j = k.range(7);
    k.store(0, {i}, k.reduce(Fold::Add, k.load(0, {i, j}) * 2, {j}));
  })[0];
}

Tensor scanned(const Tensor& x, const Tensor& rows) {
  const ScanFunction body = [](const Tensors& carried, const Tensors& slices) {
    return ScanResult{{(carried[0] * 0.5 + slices[0]).cumsum(0)}, {carried[0] + 1}};
  };
  const ScanResult r = scan(body, {x}, {rows});
  return r.carried[0] + r.stacked[0].sum(Axes{0});
}

std::vector<Sample> samples() {
  const Tensor matrix = ramp(42).reshape({6, 7}).contiguous().realize(), line = ramp(7);
  static const Variable n("n", 1, 8);
  std::vector<Sample> all;
  all.push_back(sample("custom kernel", [](const Tensor& x) { return custom(x); }, matrix));
  all.push_back(sample("sums", [](const Tensor& x) { return custom_sums(x) + 1; }, matrix));
  all.push_back(
      sample("scan", [](const Tensor& x, const Tensor& y) { return scanned(x, y); }, line, matrix));
  all.push_back(sample(
      "symbolic",
      [](const Tensor& x, const Dim& size) {
        const Tensor part = x.shrink({{0, size}});
        return (part * 2).sum() + part.max();
      },
      ramp(8), Dim(n.bind(5))));
  all.push_back(sample(
      "two devices", [](const Tensor& x) { return (x.to("CPU:INTERP") * 2).to(x.device()) + x; },
      line));
  Tensor total = ramp(7);
  all.push_back(sample(
      "state",
      [total](const Tensor& x) mutable {
        total += x;
        return total * 2;
      },
      line));
  all.push_back(sample(
      "loops", [](const Tensor& x) { return x.sort(0, true).first + x.argmax(1).sum(); }, matrix));
  all.push_back(sample(
      "windows",
      [](const Tensor& x) {
        const Tensor image = x.reshape({1, 1, 6, 7});
        return image.conv2d(Tensor::ones({2, 1, 3, 3})).pad({{0, 0}, {0, 0}, {1, 1}, {0, 2}});
      },
      matrix));
  all.push_back(sample(
      "assign",
      [](Tensor x, const Tensor& y) {
        x.index({Slice(1, 3)}).assign(y);
        return x.flip({0});
      },
      ramp(7), ramp(2)));
  return all;
}

struct Outcome {
  int refused = 0, ran = 0;
};

void read(const Tensor& t) {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(t.dtype(), t.numel())));
  t.copy_to(bytes);
}

void try_call(const Sample& s, const std::vector<std::byte>& bytes, Outcome& outcome) {
  try {
    LoadedFunction g(parse_function(bytes, "fuzz"));
    for (int i = 0; i < 3; ++i)
      for (const Tensor& t : s.call(g))
        if (t.numel() < 1 << 20) read(t);
    ++outcome.ran;
  } catch (const InternalError& error) {
    ADD_FAILURE() << s.name << ": " << error.what();
  } catch (const Error&) {
    ++outcome.refused;
  } catch (const std::bad_alloc&) {
    ++outcome.refused;
  }
}

void mutate_and_call(int mutations, uint64_t seed) {
  Random random(seed);
  for (const Sample& s : samples()) {
    Outcome untouched;
    try_call(s, s.bytes, untouched);
    EXPECT_EQ(untouched.ran, 1) << s.name;
    // Most bytes are the header's, whose reader has a test of its own; the graph comes after it.
    const auto size = static_cast<int64_t>(s.bytes.size());
    const int64_t header = std::min(size - 1, int64_t{8} + static_cast<int64_t>(s.bytes[0]) +
                                                  256 * static_cast<int64_t>(s.bytes[1]));
    Outcome outcome;
    for (int i = 0; i < mutations; ++i) {
      std::vector<std::byte> bytes = s.bytes;
      for (int64_t changes = random.between(1, 2); changes > 0; --changes) {
        const auto at =
            static_cast<size_t>(random.between(random.chance(90) ? header : 8, size - 1));
        bytes[at] =
            static_cast<std::byte>(random.chance(60) ? random.below(24) : random.below(256));
      }
      try_call(s, bytes, outcome);
    }
    EXPECT_GT(outcome.refused, mutations / 10) << s.name;
    EXPECT_GT(outcome.ran, 0) << s.name;
  }
}

TEST(CapturedFunctions, OtherBytesAreRefusedOrHarmless) { mutate_and_call(kMutations, 1); }
TEST(CapturedFunctions, ManyOtherBytesSlow) { mutate_and_call(kMutationsSlow, 2); }

}  // namespace
}  // namespace weft
