// Functions captured for any length give what the same give for one, and need no more kernels for
// another.
#include "tests/support/device_here.h"
#include "tests/tensor/near.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/reductions.h"

namespace weft {
namespace {

class Lengths : public ::testing::Test {
 protected:
  Lengths() : context_(options()), scope_(context_) {}

  using Values = std::vector<Tensor>;
  /// Of tensors as long as they may be, and a length.
  using Function = std::function<Tensor(const Values&, const Dim&)>;

  void check(const Function& f, const Values& values, int64_t longest,
             std::initializer_list<int64_t> lengths, double tolerance) {
    const Variable length("n", 1, longest);
    auto any = jit([&](const Values& v, const Dim& n) { return f(v, n); }, "any length");
    for (int i = 0; i < 2; ++i) any(values, length.bind(longest));
    for (const int64_t n : lengths) {
      SCOPED_TRACE(n);
      const auto got = any(values, length.bind(n)).to_vector<double>();
      const auto wanted = f(values, n).to_vector<double>();
      ASSERT_EQ(got.size(), wanted.size());
      for (size_t i = 0; i < got.size(); ++i)
        ASSERT_NEAR(got[i], wanted[i], tolerance * (1 + std::fabs(wanted[i]))) << i;
    }
  }

  static Tensor rows(const Tensor& x, const Dim& n) {
    std::vector<DimPair> parts{{0, n}};
    for (size_t a = 1; a < x.shape().size(); ++a) parts.push_back({0, x.shape()[a]});
    return x.shrink(parts);
  }
  static Tensor columns(const Tensor& x, const Dim& n) {
    return rows(x.transpose(0, 1), n).transpose(0, 1);
  }

 private:
  static Options options() {
    Options options = Options::from_environment();
    options.dev = testing::device_here("CPU");
    return options;
  }
  Context context_;
  ContextScope scope_;
};

TEST_F(Lengths, ProductsOverALength) {
  const Values values{sample({96, 1000}, 1, DType::F32), sample({1000, 512}, 2, DType::F32)};
  check([](const Values& v, const Dim& n) { return columns(v[0], n).matmul(rows(v[1], n)); },
        values, 1000, {1, 7, 8, 64, 333, 1000}, 1e-4);
  const Values more{sample({512, 1000}, 3, DType::F32), values[1]};
  check([](const Values& v, const Dim& n) { return columns(v[0], n).matmul(rows(v[1], n)); }, more,
        1000, {1, 100, 999}, 1e-4);
}

TEST_F(Lengths, TwoLengthsOfOneOperand) {
  const Values values{sample({512, 1000}, 1, DType::F32), sample({1000, 512}, 2, DType::F32)};
  const auto f = [](const Values& v, const Dim& n) {
    const Dim more = n + 8;
    return columns(v[0], n).matmul(rows(v[1], n)) +
           columns(v[0], more).matmul(rows(v[1], more)) * 0.5;
  };
  check(f, values, 992, {1, 64, 500, 992}, 1e-4);
}

TEST_F(Lengths, SumsAndSoftmax) {
  const std::initializer_list<int64_t> lengths = {1, 2, 15, 16, 17, 64, 299, 300};
  const Values values{sample({300, 96}, 1, DType::F32), sample({96, 300}, 2, DType::F32)};
  check([](const Values& v, const Dim& n) { return rows(v[0], n).sum(0); }, values, 300, lengths,
        1e-5);
  const auto weighted = [](const Values& v, const Dim& n) {
    return columns(v[1], n).softmax().matmul(rows(v[0], n));
  };
  check(weighted, values, 300, lengths, 1e-5);
  check([](const Values& v, const Dim& n) { return columns(v[1], n).max(1); }, values, 300, lengths,
        0);
}

}  // namespace
}  // namespace weft
