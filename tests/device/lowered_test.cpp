// Lowered kernels on every device: decomposed functions and tiled reductions give the same bits
// wherever they run, scalar or vector.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "tests/device/programs.h"
#include "tests/device/setups.h"
#include "tests/lower/kernels.h"

namespace weft {
namespace {

using testing::Loaded;

using testing::Setup;

/// Runs `make(target)` on every device with these inputs; the outputs, one per device.
template <class Make>
std::vector<std::vector<uint32_t>> on_every_device(Make make, const std::vector<float>& x,
                                                   int64_t outputs, int64_t items) {
  std::vector<std::vector<uint32_t>> all;
  for (const Setup& setup : testing::setups()) {
    Context context(testing::options_for(setup));
    ContextScope scope(context);
    Device& device = context.get<DeviceTable>().open(setup.device);
    Loaded k(device, {lower_kernel(make(), device.target())});
    auto in = device.allocate(static_cast<int64_t>(x.size()) * 4),
         out = device.allocate(outputs * 4);
    device.copy_in({in.get()}, std::as_bytes(std::span(x)));
    k.run(0, {{out.get()}, {in.get()}}, {}, items);
    std::vector<uint32_t> got(static_cast<size_t>(outputs));
    device.copy_out(std::as_writable_bytes(std::span(got)), {out.get()});
    for (uint32_t& u : got)
      if (std::isnan(std::bit_cast<float>(u))) u = 0x7fc00000;
    all.push_back(std::move(got));
  }
  return all;
}

// Steps through all of f32: signs, subnormals, infinities, NaNs.
std::vector<float> all_over_f32(size_t count) {
  std::vector<float> x(count);
  for (size_t i = 0; i < count; ++i)
    x[i] = std::bit_cast<float>(static_cast<uint32_t>(i * (0x100000000 / count) + i % 977));
  return x;
}

TEST(Lowered, FunctionsGiveTheSameBitsEverywhere) {
  constexpr int64_t kCount = 1 << 16;
  const std::vector<float> x = all_over_f32(kCount);
  for (Op op :
       {Op::Trunc, Op::Rint, Op::Sqrt, Op::Neg, Op::Exp2, Op::Log2, Op::Sin, Op::Cos, Op::Tan}) {
    std::vector<uint32_t> first;
    for (int64_t lanes : {1, 8}) {
      const auto make = [&] {
        test::KernelBuilder b;
        NodeRef r = b.range(kCount / lanes, 0, Binding::Core);
        NodeRef i = r;
        if (lanes > 1) i = b.g.add(b.g.mul(r, b.index(lanes)), b.range(lanes, 1, Binding::Vector));
        b.store(b.param(0, DType::F32, kCount), i,
                b.g.alu(op, {b.load(b.param(1, DType::F32, kCount), i)}));
        return b.kernel();
      };
      for (const auto& got : on_every_device(make, x, kCount, kCount / lanes)) {
        if (first.empty()) first = got;
        for (size_t e = 0; e < got.size(); ++e)
          ASSERT_EQ(got[e], first[e]) << info(op).mnemonic << " of " << x[e] << ", lanes " << lanes;
      }
    }
  }
}

TEST(Lowered, ReductionsGiveTheSameBitsEverywhere) {
  constexpr int64_t kRows = 64, kColumns = 96;
  std::vector<float> x(kRows * kColumns);
  for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i)) * 3;
  for (Fold fold : {Fold::Add, Fold::Max, Fold::Mul}) {
    const auto make = [&] {
      test::KernelBuilder b;
      NodeRef row = b.range(kRows, 0, Binding::Core), outer = b.range(kColumns / 16, 1);
      NodeRef inner = b.range(16, 2, Binding::Vector);
      NodeRef column = b.g.add(b.g.mul(outer, b.index(16)), inner);
      NodeRef at = b.g.add(b.g.mul(row, b.index(kColumns)), column);
      NodeRef v = b.load(b.param(1, DType::F32, kRows * kColumns), at);
      b.store(b.param(0, DType::F32, kRows), row, b.reduce(fold, v, {outer, inner}));
      return b.kernel();
    };
    const auto all = on_every_device(make, x, kRows, kRows);
    for (const auto& got : all) EXPECT_EQ(got, all[0]) << fold_name(fold);
    double want = fold == Fold::Mul ? 1 : fold == Fold::Max ? -1e30 : 0;
    for (int64_t i = 0; i < kColumns; ++i) {
      const double v = static_cast<double>(x[static_cast<size_t>(i)]);
      want = fold == Fold::Mul ? want * v : fold == Fold::Max ? std::max(want, v) : want + v;
    }
    EXPECT_NEAR(std::bit_cast<float>(all[0][0]), want, std::abs(want) * 1e-4 + 1e-5);
  }
}

}  // namespace
}  // namespace weft
