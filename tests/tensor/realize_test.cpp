// Schedule, kernels and devices against the oracle, for everything the tensor room offers.
#include <cmath>

#include "tests/tensor/differentiable.h"
#include "weft/tensor/distributions.h"
#include "weft/tensor/hash.h"
#include "weft/tensor/linalg.h"
#include "weft/tensor/selection.h"

namespace weft {
namespace {

using Make = Tensor (*)();

struct Whole {
  const char* name;
  Make make;
};

Tensor counting(const Dims& shape) { return Tensor::arange(shape.product()).reshape(shape); }
Tensor mixed() { return Tensor::from(std::vector<int32_t>{5, -3, 7, 0, 5, 2, -3, 8}, {2, 4}); }
Tensor holes() { return Tensor::of({2.0f, NAN, -1.0f, 2.0f, INFINITY, -0.0f}); }

const Whole kWhole[] = {
    {"arange", [] { return Tensor::arange(3, 20, 4); }},
    {"eye", [] { return Tensor::eye(3); }},
    {"linspace", [] { return Tensor::linspace(-1, 1, 5); }},
    {"one_hot", [] { return (mixed() % 8).one_hot(8); }},
    {"tril", [] { return counting({3, 4}).tril(1); }},
    {"triu", [] { return counting({3, 4}).triu(-1); }},
    {"argmax", [] { return mixed().argmax(1); }},
    {"argmin all", [] { return mixed().argmin(); }},
    {"argmax nan", [] { return holes().argmax(0); }},
    {"max of ints", [] { return mixed().max(0); }},
    {"any", [] { return (mixed() > 6).any(1); }},
    {"all", [] { return (mixed() > -9).all(); }},
    {"sum of bools", [] { return (mixed() > 0).sum(1); }},
    {"sum of bytes", [] { return mixed().cast(DType::I8).sum(0); }},
    {"prod", [] { return mixed().prod(1); }},
    {"cumsum", [] { return mixed().cumsum(1); }},
    {"cumprod", [] { return mixed().cumprod(0); }},
    {"cummax", [] { return mixed().cummax(1); }},
    {"cummin", [] { return mixed().cummin(1); }},
    {"sort", [] { return holes().sort().first; }},
    {"argsort", [] { return mixed().argsort(1, true); }},
    {"long sort", [] { return (counting({1100}) * 7919 % 97).argsort(); }},
    {"topk", [] { return mixed().topk(2).second; }},
    {"index", [] { return mixed()[{Slice(), Tensor::of({3, -1, 0})}]; }},
    {"index pair", [] { return mixed()[{Tensor::of({1, 0}), Tensor::of({2, 2})}]; }},
    {"gather", [] { return mixed().gather(1, Tensor::of({{0, 3}, {1, -2}})); }},
    {"scatter",
     [] {
       return mixed().scatter(1, Tensor::of({{0, 0}, {1, 3}}), mixed()[{Slice(), Slice(0, 2)}]);
     }},
    {"scatter add", [] { return mixed().scatter(1, Tensor::of({{0, 0}, {1, 3}}), 7, Fold::Add); }},
    {"scatter max", [] { return mixed().scatter(1, Tensor::of({{0, 0}, {1, 3}}), 6, Fold::Max); }},
    {"index_put",
     [] {
       Tensor x = counting({3, 3});
       x.index_put({Tensor::of({0, 2}), Tensor::of({1, 1})}, -5);
       return x;
     }},
    {"assign to views",
     [] {
       Tensor x = counting({3, 4});
       x[{Slice(), 1}] += 100;
       x.T()[0].assign(x[{kEllipsis, 1}]);
       x[{Slice(1, 3), Slice(std::nullopt, std::nullopt, -2)}] *= 2;
       return x;
     }},
    {"cat", [] { return Tensor::cat({mixed(), counting({1, 4}), mixed() * 2}); }},
    {"stack", [] { return Tensor::stack({mixed(), mixed() + 1}, -1); }},
    {"pad", [] { return mixed().pad({{1, 0}, {-1, 2}}, 9); }},
    {"roll", [] { return mixed().roll(3, 1); }},
    {"repeat", [] { return mixed().repeat({2, 2}); }},
    {"diagonal", [] { return counting({3, 3}).diagonal(); }},
    {"window", [] { return mixed().window(1, 2); }},
    {"remainders", [] { return mixed() % 3 + mixed().floor_div(-2) + mixed().fmod(3); }},
    {"shifts", [] { return (counting({3, 20}) - 30) >> 3; }},
    {"bits", [] { return ((mixed() & 6) | (mixed() << 2)) ^ (~mixed() >> 1); }},
    {"rounding",
     [] { return (counting({9}) * 0.5 - 2).round() + (counting({9}) * 0.3 - 1).floor(); }},
    {"casts", [] { return (counting({5}) * 70.5 - 100).cast(DType::I8); }},
    {"bitcast", [] { return (counting({3}) * 0.7).bitcast(DType::U32); }},
    {"tests",
     [] {
       return holes().isnan().cast(DType::I32) + holes().isinf() * 2 + holes().isfinite() * 4;
     }},
    {"half", [] { return (counting({64}).cast(DType::F16) * 1.5).sum(); }},
    {"bf16",
     [] { return counting({4, 4}).cast(DType::BF16).matmul(counting({4, 4}).cast(DType::BF16)); }},
    {"i8 matmul", [] { return mixed().cast(DType::I8).matmul(mixed().cast(DType::I8).T()); }},
    {"i64", [] { return (counting({3}).cast(DType::I64) << 40).sum(); }},
    {"pow", [] { return mixed().pow(3); }},
    {"where", [] { return (mixed() > 2).where(mixed(), Tensor::of({{1}, {2}})); }},
    {"random words", [] { return Tensor::randint(-1000000, 1000000, {64}); }},
    {"rand", [] { return Tensor::rand({33}); }},
    {"long sort", [] { return (counting({2, 70}) * 37 % 23 - 11).sort(1, true).second; }},
    {"nonzero", [] { return nonzero(counting({3, 4}) % 3, 10, -1); }},
    {"unique", [] { return unique(counting({3, 4}) % 5, 7).values; }},
    {"unique inverse", [] { return unique(counting({3, 4}) % 5, 7).inverse; }},
    {"searchsorted",
     [] { return searchsorted(counting({9}) * 2, counting({2, 5}) * 3 - 4, true); }},
    {"masked write",
     [] {
       Tensor x = counting({4, 4}) * 1;
       return x.index_put({x % 3 == 0}, Tensor::arange(6));
     }},
    {"keccak", [] { return keccak(counting({2, 150}).cast(DType::U8), "shake_128", 200); }},
    {"sha256", [] { return sha256(counting({2, 70}).cast(DType::U8)); }},
    {"elimination", [] { return linalg::lu(counting({4, 4}).cast(DType::F32).sin()).rows; }},
    {"multinomial", [] { return multinomial(Tensor::ones({5}), 9, true); }},
    {"rand f64", [] { return Tensor::rand({5}, DType::F64); }},
    {"randperm", [] { return Tensor::randperm(20); }},
};

class TensorKernels : public TensorTest {
 protected:
  /// The value and the gradients of sum(f * weights) for every differentiable function.
  void add_differentiable() {
    for (const Differentiable& c : differentiable()) {
      const std::vector<Tensor> inputs = c.inputs(DType::F32);
      const Tensor y = c.f(inputs);
      for (const Tensor& g : (y * sample(y.dims(), 7).cast(DType::F32)).sum().gradient(inputs))
        add(std::string(c.name) + " gradient", g);
      add(c.name, y);
    }
  }
  void add_whole() {
    for (const Whole& w : kWhole) add(w.name, w.make());
  }
  void add(std::string name, const Tensor& x) {
    names_.push_back(std::move(name));
    expected_.push_back(evaluated(x));
    tensors_.push_back(x);
  }

  void check() {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      SCOPED_TRACE(names_[i]);
      const eval::Array& expected = expected_[i];
      std::vector<std::byte> bytes(expected.bytes().size());
      try {
        tensors_[i].copy_to(bytes);
      } catch (const Error& error) {
        ADD_FAILURE() << error.what();
        continue;
      }
      const auto got = eval::Array::copy_of(expected.dtype(), expected.extents(), bytes.data());
      if (!is_float(expected.dtype())) {
        EXPECT_EQ(got.text(), expected.text());
        continue;
      }
      expect_close(got.doubles(), expected.doubles(), expected.dtype());
    }
  }
  /// Sums may run in another order than the oracle's.
  static void expect_close(const std::vector<double>& got, const std::vector<double>& expected,
                           DType dtype) {
    const double tolerance = 200 * std::ldexp(1.0, -float_digits(dtype));
    for (size_t i = 0; i < got.size(); ++i) {
      if (got[i] == expected[i] || (std::isnan(got[i]) && std::isnan(expected[i]))) continue;
      EXPECT_NEAR(got[i], expected[i], tolerance * std::max(1.0, std::fabs(expected[i])))
          << "element " << i;
    }
  }

  std::vector<std::string> names_;
  std::vector<eval::Array> expected_;
  std::vector<Tensor> tensors_;
};

TEST_F(TensorKernels, OneByOneEqualTheOracle) {
  add_differentiable();
  add_whole();
  check();
}

TEST_F(TensorKernels, AllTogetherEqualTheOracle) {
  add_differentiable();
  add_whole();
  realize(tensors_);
  check();
}

TEST_F(TensorKernels, CompiledEqualTheOracle) {
  context_.mutable_options().dev = "CPU:C";
  context_.mutable_options().threads = 2;
  add_differentiable();
  add_whole();
  realize(tensors_);
  check();
}

// A kernel over a matrix that also writes a number runs the number's store once per row, say: the
// old number may not be read there, as Adam reads its powers of beta.
TEST_F(TensorKernels, NumberUpdatedBesideTheMatrixThatReadsIt) {
  Tensor beta = Tensor::of({0.5f}).reshape({}).contiguous().realize();
  Tensor w = Tensor::zeros({4, 4}).contiguous().realize();
  const Tensor a = Tensor::ones({4, 4}).contiguous().realize();
  const Tensor b = (Tensor::ones({4, 4}) * 2).contiguous().realize();
  beta.assign(beta * 0.5);
  w.assign(w + a.matmul(b) * beta);
  realize({w, beta});
  EXPECT_EQ(beta.item<float>(), 0.25f);
  EXPECT_EQ(w.to_vector<float>(), std::vector<float>(16, 2.0f));
}

// A tensor that gets the value of another one, which is then updated further: the first value has
// memory of its own, in whatever order they are asked for.
TEST_F(TensorKernels, ValueAssignedElsewhereBetweenTwoUpdates) {
  for (const bool updated_first : {false, true}) {
    for (const bool read : {false, true}) {
      Tensor x = Tensor::of({1, 2, 3, 4}).realize(), y = Tensor::of({5, 6, 7, 8}).realize();
      x.index_put({Slice(2, std::nullopt)}, 0);
      const Tensor z = read ? y + 1 : Tensor::of({6, 7, 8, 9});
      y.assign(x);
      x.index_put({0}, 9);
      realize(updated_first ? std::vector<Tensor>{x, y, z} : std::vector<Tensor>{y, z, x});
      EXPECT_EQ(x.to_vector<int>(), (std::vector{9, 2, 0, 0}));
      EXPECT_EQ(y.to_vector<int>(), (std::vector{1, 2, 0, 0}));
      EXPECT_EQ(z.to_vector<int>(), (std::vector{6, 7, 8, 9}));
    }
  }
}

}  // namespace
}  // namespace weft
