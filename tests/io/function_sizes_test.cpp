// Captured functions whose arguments bind variables, one of them to several values too: for all
// values they give what the functions give, however alike the sizes were when captured.
#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/io/functions.h"
#include "weft/trust/random.h"

namespace weft {
namespace {

constexpr int64_t kMost = 3;  // of a variable; all combinations are called

Options interpreter() {
  Options options = Options::from_environment();
  options.dev = "CPU:INTERP";
  return options;
}

class JitSizes : public testing::Test {
 protected:
  Context context_{interpreter()};
  ContextScope scope_{context_};
};

/// A function of `sizes` bound sizes over `variables` variables; some come as the sizes of tensors,
/// or as where these begin.
struct Sized {
  int64_t sizes, variables, views;
  Tensor data = (Tensor::arange(24) * 0.5 + 1).contiguous().realize();
  std::vector<Tensor> lent;  // arguments share no memory
  std::vector<Variable> of;

  Sized(int64_t s, int64_t v, Random& random) : sizes(s), variables(v) {
    views = random.between(0, sizes);
    for (int64_t i = 0; i < views; ++i) lent.push_back((data * (i + 1)).realize());
    for (int64_t i = 0; i < variables; ++i)
      of.emplace_back("n" + std::to_string(i), int64_t{1}, kMost);
  }

  Dim size(int64_t i, int64_t value) const {
    return of[static_cast<size_t>(i % variables)].bind(value);
  }
  std::vector<Tensor> views_of(const std::vector<int64_t>& values) const {
    std::vector<Tensor> out;
    for (int64_t i = 0; i < views; ++i) {
      const Dim n = size(i, values[static_cast<size_t>(i)]);
      const Tensor& x = lent[static_cast<size_t>(i)];
      out.push_back(i % 2 ? x.shrink({{n, n + 2}}) : x.shrink({{0, n}}));
    }
    return out;
  }
  std::vector<Dim> sizes_of(const std::vector<int64_t>& values) const {
    std::vector<Dim> out;
    for (int64_t i = views; i < sizes; ++i) {
      const Dim n = size(i, values[static_cast<size_t>(i)]);
      out.push_back(i % 2 ? n * 2 + 1 : n);
    }
    return out;
  }
  std::vector<Tensor> operator()(const std::vector<Tensor>& parts,
                                 const std::vector<Dim>& lengths) const {
    Tensor total = Tensor::zeros({}).cast(data.dtype());
    std::vector<Tensor> out;
    double weight = 1;
    for (const Tensor& p : parts) {
      total = total + p.sum() * (weight *= 3);
      out.push_back(p * 2);
    }
    for (const Dim& n : lengths) {
      const Tensor p = data.shrink({{n, n + n + 1}}).realize();  // more than one realization
      total = total + p.sum() * (weight *= 3);
      out.push_back(p + 1);
    }
    out.push_back(total);
    return out;
  }
  std::string text(const std::vector<int64_t>& values) const {
    std::string out = std::to_string(views) + " views,";
    for (int64_t i = 0; i < sizes; ++i) out += " " + size(i, values[static_cast<size_t>(i)]).text();
    return out;
  }
};

std::vector<int64_t> digits(int64_t number, int64_t count) {
  std::vector<int64_t> out;
  for (int64_t i = 0; i < count; ++i, number /= kMost) out.push_back(1 + number % kMost);
  return out;
}

int64_t combinations(int64_t count) {
  int64_t out = 1;
  for (int64_t i = 0; i < count; ++i) out *= kMost;
  return out;
}

template <class F>
void expect_same(F& captured, const Sized& f, const std::vector<int64_t>& values) {
  const std::vector<Tensor> views = f.views_of(values);
  const std::vector<Dim> lengths = f.sizes_of(values);
  const std::vector<Tensor> got = captured(views, lengths), wanted = f(views, lengths);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_EQ(got[i].dims().text(), wanted[i].dims().text()) << f.text(values);
    ASSERT_EQ(got[i].sum().item<float>(), wanted[i].sum().item<float>())
        << "result " << i << ", " << f.text(values);
  }
}

TEST_F(JitSizes, AllValuesGiveWhatTheFunctionGives) {
  Random random(1);
  for (int64_t sizes = 1; sizes <= 4; ++sizes)
    for (int64_t variables = 1; variables <= std::min<int64_t>(3, sizes); ++variables) {
      const Sized f(sizes, variables, random);
      const int64_t all = combinations(sizes);
      for (const int64_t first : {int64_t{0}, all - 1, all / 3, random.below(all)}) {
        auto captured = jit(f);
        for (int i = 0; i < 2; ++i) expect_same(captured, f, digits(first, sizes));
        for (int64_t n = 0; n < all; ++n) expect_same(captured, f, digits(n, sizes));
        const size_t kernels = captured.kernels();
        EXPECT_GT(kernels, 0u);
      }
    }
}

/// Where one variable has two values that were different, one capture serves for all.
TEST_F(JitSizes, DifferentOnesAreCapturedOnce) {
  const Variable n("n", 1, 8);
  const Tensor x = (Tensor::arange(8) + 1).realize();
  int runs = 0;
  auto f = jit([&](const Dim& a, const Dim& b) {
    ++runs;
    return x.shrink({{0, a}}).sum() * 100 + x.shrink({{0, b}}).sum();
  });
  const auto sum = [](int64_t m) { return m * (m + 1) / 2; };
  const auto check = [&](int64_t a, int64_t b) {
    EXPECT_EQ(f(n.bind(a), n.bind(b)).item<int64_t>(), 100 * sum(a) + sum(b)) << a << " " << b;
  };
  for (int64_t a = 1; a <= 8; ++a)
    for (int64_t b = 8; b >= 1; --b) check(a, b);
  EXPECT_EQ(runs, 2);
  // Alike at first: captured as one size, then once more.
  f.reset();
  runs = 0;
  for (int i = 0; i < 3; ++i) check(4, 4);
  EXPECT_EQ(runs, 2);
  for (int i = 0; i < 3; ++i) check(4, 3);
  EXPECT_EQ(runs, 4);
  for (int64_t a = 1; a <= 8; ++a) check(a, 4);
  EXPECT_EQ(runs, 4);
}

TEST_F(JitSizes, ShapesThatMustBeEqualMayBe) {
  const Variable n("n", 1, 8);
  const Tensor x = (Tensor::arange(8) + 1).realize();
  auto f = jit([&](const Tensor& a, const Dim& b) { return (a + x.shrink({{0, b}})).sum(); });
  for (int64_t k = 1; k <= 8; ++k)
    EXPECT_EQ(f(x.shrink({{0, n.bind(k)}}), n.bind(k)).item<int64_t>(), k * (k + 1));
  EXPECT_NE(error_of([&] { f(x.shrink({{0, n.bind(4)}}), n.bind(3)); }), "");
  EXPECT_EQ(f(x.shrink({{0, n.bind(5)}}), n.bind(5)).item<int64_t>(), 30);
}

TEST_F(JitSizes, SavedOnesKeepSizesApart) {
  Random random(2);
  for (int64_t variables = 1; variables <= 2; ++variables) {
    const Sized f(3, variables, random);
    auto captured = jit(f);
    for (int i = 0; i < 2; ++i) captured(f.views_of({1, 2, 3}), f.sizes_of({1, 2, 3}));
    for (const int64_t first : {0, 9, 26}) {
      LoadedFunction loaded(parse_function(function_bytes(captured.captured()), "bytes"));
      expect_same(loaded, f, digits(first, 3));
      for (int64_t n = 0; n < combinations(3); ++n) expect_same(loaded, f, digits(n, 3));
    }
  }
}

TEST_F(JitSizes, WhatASavedOneCannotTellApartIsSaid) {
  const Variable n("n", 1, 8);
  const Tensor x = Tensor::arange(8).contiguous().realize();
  auto f = jit([](const Tensor& y, const Dim& a,
                  const Dim& b) { return y.shrink({{0, a}}).sum() + y.shrink({{0, b}}).sum(); },
               "sums");
  for (int i = 0; i < 2; ++i) f(x, n.bind(4), n.bind(4));
  LoadedFunction g(parse_function(function_bytes(f.captured()), "bytes"));
  EXPECT_EQ(g(x, n.bind(5), n.bind(5))[0].item<int64_t>(), 20);
  EXPECT_EQ(g(x, n.bind(3), n.bind(3))[0].item<int64_t>(), 6);
  EXPECT_NE(error_of([&] {
              g(x, n.bind(5), n.bind(3));
            }).find("sums is called with the sizes n = 5, n = 3 and was captured with n = 4"),
            std::string::npos);
  EXPECT_NE(error_of([&] {
              g(x, n.bind(5) * 2, n.bind(3));
            }).find("argument 1 was n when sums was captured and is now mul(n, 2): keep"),
            std::string::npos);
}

/// What binds the same value inside is no argument: a replay would take it for one.
TEST_F(JitSizes, BoundInsideIsAnError) {
  const Variable n("n", 1, 8);
  const Tensor x = Tensor::arange(8).contiguous().realize();
  auto f = jit([&](const Dim& a, int64_t inside) {
    return x.shrink({{0, a}}).sum() + x.shrink({{0, n.bind(inside)}}).sum();
  });
  f(n.bind(4), 4);
  EXPECT_NE(error_of([&] {
              f(n.bind(4), 4);
            }).find("variable n is bound to 4 inside the captured function and by an argument"),
            std::string::npos);
  EXPECT_NE(error_of([&] { f(n.bind(4), 3); }).find("variable n is bound to 3 inside"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
