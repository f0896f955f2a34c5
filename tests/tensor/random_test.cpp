// Random numbers against what others publish: Random123's stream, JAX's bits, and every
// distribution's own distribution function by Kolmogorov and Smirnov's test. Seeds are fixed:
// nothing here can flake.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numbers>

#include "tests/tensor/tensor_test.h"
#include "weft/tensor/distributions.h"
#include "weft/tensor/random_keys.h"

namespace weft {
namespace {

class Random : public TensorTest {};

TEST_F(Random, RandIsThreefryOfElementAndDraw) {
  // Known answers of Random123 (https://github.com/DEShawResearch/random123, tests/kat_vectors):
  // threefry2x32 20 rounds, key 0 0, counter 0 0.
  Tensor::manual_seed(0);
  const Tensor first = Tensor::rand({1});
  EXPECT_EQ(first.item<double>(), (0x6b200159u >> 8) * 0x1p-24);
  Tensor::manual_seed(0);
  EXPECT_EQ(Tensor::rand({1}, DType::F64).item<double>(),
            ((0x6b200159u >> 5) * 67108864.0 + (0x99ba4efeu >> 6)) * 0x1p-53);
  // Element e of draw d of seed s: threefry2x32((low s, high s), (e, d)).
  Tensor::manual_seed(0x1122334455667788);
  Tensor::rand({3});
  const Tensor second = Tensor::rand({5}, DType::F32);
  const auto word = [](uint32_t w) { return Tensor::full({}, Scalar(w), DType::U32); };
  const Tensor bits = Tensor::threefry2x32(word(0x55667788), word(0x11223344),
                                           Tensor::arange(5, DType::U32), word(1))
                          .first;
  EXPECT_EQ(values(second), values((bits >> 8).cast(DType::F32) * 0x1p-24));
}

// ---- JAX's bits. Made by jax 0.6.2 with jax_enable_x64 and jax_threefry_partitionable on:
// jax.random.PRNGKey(seed), bits(k, (5,), uint32), bits(k, (3,), uint64), bits(k, (4,), uint16),
// uniform(k, (4,), float32), uniform(k, (3,), float64), split(k, 3), fold_in(k, 7); and sum and xor
// of bits(k, (1000, 7), uint32).
struct FromJax {
  uint64_t seed;
  std::vector<double> bits;
  std::vector<uint64_t> bits64;
  std::vector<double> bits16, uniform, uniform64, split, folded;
  uint64_t sum, exclusive_or;
};
const FromJax kFromJax[] = {
    {0,
     {0xf29a4fa7, 0xfa843692, 0x55110e28, 0x77faa835, 0x91e43bb7},
     {0x6b20015999ba4efe, 0x375f238fcddb151d, 0xf71f4ea9a20e4081},
     {0x4fa7, 0x3692, 0xe28, 0xa835},
     {0x1.e5349cp-1, 0x1.f5086cp-1, 0x1.544438p-2, 0x1.dfeaap-2},
     {0x1.ac80056666e90p-2, 0x1.baf91c7e6ed88p-3, 0x1.ee3e9d53441c8p-1},
     {0x6b200159, 0x99ba4efe, 0x375f238f, 0xcddb151d, 0xf71f4ea9, 0xa20e4081},
     {0xa1ef7a4d, 0x116eb6b3},
     0xda4c43aaf89,
     0xcb22875d},
    {42,
     {0x7d1c13a2, 0xae0730d9, 0x9dc3f9f9, 0x8f9ec1d7, 0x735d7315},
     {0x6d3e048f1022172d, 0x03d7b32dadd083f4, 0x92fb20ea0f38d913},
     {0x13a2, 0x30d9, 0xf9f9, 0xc1d7},
     {0x1.f47048p-2, 0x1.5c0e6p-1, 0x1.3b87fp-1, 0x1.1f3d8p-1},
     {0x1.b4f8123c40884p-2, 0x1.ebd996d6e8400p-7, 0x1.25f641d41e71ap-1},
     {0x6d3e048f, 0x1022172d, 0x3d7b32d, 0xadd083f4, 0x92fb20ea, 0xf38d913},
     {0x97d0552f, 0x51bf719f},
     0xd9713bf1012,
     0xba5a88d2},
    {0x123456789abcdef0,
     {0x4d9370ba, 0x2510c99e, 0xc940ecb8, 0x8bff39d1, 0x1b5d82b4},
     {0xed280379a0bb73c3, 0x7c4d1fd5595dd64b, 0x612ee2fda86e0e45},
     {0x70ba, 0xc99e, 0xecb8, 0x39d1},
     {0x1.364dcp-2, 0x1.28864p-3, 0x1.9281d8p-1, 0x1.17fe7p-1},
     {0x1.da5006f34176ep-1, 0x1.f1347f5565774p-2, 0x1.84bb8bf6a1b80p-2},
     {0xed280379, 0xa0bb73c3, 0x7c4d1fd5, 0x595dd64b, 0x612ee2fd, 0xa86e0e45},
     {0x3ab29d8e, 0x13e8830e},
     0xd9342af92c2,
     0xc411619a},
};

TEST_F(Random, KeysGiveTheBitsOfJax) {
  for (const FromJax& jax : kFromJax) {
    const Tensor key = random_key(jax.seed);
    EXPECT_EQ(values(keyed_bits(key, {5})), jax.bits);
    EXPECT_EQ(keyed_bits(key, {3}, DType::U64).to_vector<uint64_t>(), jax.bits64);
    EXPECT_EQ(values(keyed_bits(key, {2, 2}, DType::U16)), jax.bits16);
    EXPECT_EQ(values(keyed_uniform(key, {4})), jax.uniform);
    EXPECT_EQ(values(keyed_uniform(key, {3}, DType::F64)), jax.uniform64);
    EXPECT_EQ(values(split_key(key, 3)), jax.split);
    EXPECT_EQ(values(fold_in(key, 7)), jax.folded);
    uint64_t sum = 0, exclusive_or = 0;
    for (const uint32_t w : keyed_bits(key, {1000, 7}).to_vector<uint32_t>())
      sum += w, exclusive_or ^= w;
    EXPECT_EQ(sum, jax.sum);
    EXPECT_EQ(exclusive_or, jax.exclusive_or);
  }
}

TEST_F(Random, KeysAreChecked) {
  const Tensor key = random_key(1);
  EXPECT_NE(message_of([&] { keyed_bits(Tensor::ones({2}), {3}); }).find("got f32 of shape (2,)"),
            std::string::npos);
  EXPECT_NE(message_of([&] { keyed_bits(key, {3}, DType::I32); }).find("not i32"),
            std::string::npos);
  EXPECT_NE(message_of([&] { keyed_uniform(key, {3}, DType::F16); }).find("not f16"),
            std::string::npos);
  EXPECT_NE(message_of([&] { fold_in(key, -1); }).find("-1"), std::string::npos);
  EXPECT_NE(message_of([&] { split_key(key, -1); }).find("-1 keys"), std::string::npos);
  EXPECT_NE(message_of([&] { keyed_bits(key, {1 << 16, 1 << 16}); }).find("in parts"),
            std::string::npos);
  EXPECT_EQ(split_key(key, 0).dims().text(), "(0, 2)");
}

// ---- Kolmogorov and Smirnov

/// sqrt(n) times the largest distance of the samples' distribution function from `cdf`. Above 1.95
/// once in a thousand samples of that distribution (Kolmogorov 1933).
double ks_statistic(const Tensor& x, const std::function<double(double)>& cdf) {
  std::vector<double> all = x.cast(DType::F64).to_vector<double>();
  std::sort(all.begin(), all.end());
  const auto n = static_cast<double>(all.size());
  double most = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const double f = cdf(all[i]), at = static_cast<double>(i);
    most = std::max({most, f - at / n, (at + 1) / n - f});
  }
  return most * std::sqrt(n);
}

constexpr int64_t kSamples = 20000;
constexpr double kOnceInAThousand = 1.95;

double normal_cdf(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }
double unit_cdf(double x) { return std::clamp(x, 0.0, 1.0); }
/// Of the gamma distribution of shape 1/2, 3/2, 5/2, ...: P(a + 1, x) = P(a, x) - x^a e^-x / a!.
double half_gamma_cdf(double shape, double x) {
  double p = std::erf(std::sqrt(x));
  for (double a = 0.5; a < shape; ++a) p -= std::pow(x, a) * std::exp(-x) / std::tgamma(a + 1);
  return p;
}
double student4_cdf(double t) {  // 4 degrees of freedom
  const double s = 1 + t * t / 4;
  return 0.5 + 0.375 * t / std::sqrt(s) * (1 - t * t / (12 * s));
}

struct Claim {
  const char* name;
  Tensor (*draw)();
  double (*cdf)(double);
};
const Dims kShape{kSamples};
Tensor filled(double x) { return Tensor::full(kShape, x, DType::F32); }
const Claim kClaims[] = {
    {"rand", [] { return Tensor::rand(kShape); }, unit_cdf},
    {"rand f64", [] { return Tensor::rand(kShape, DType::F64); }, unit_cdf},
    {"rand f16", [] { return Tensor::rand({1000}, DType::F16); }, unit_cdf},
    {"keyed_uniform", [] { return keyed_uniform(random_key(3), kShape); }, unit_cdf},
    {"uniform", [] { return Tensor::uniform(kShape, -2, 6); },
     [](double x) { return unit_cdf((x + 2) / 8); }},
    {"kaiming_uniform", [] { return Tensor::kaiming_uniform({100, 200}, 0); },
     [](double x) { return unit_cdf((x / std::sqrt(6.0 / 200) + 1) / 2); }},
    {"glorot_uniform", [] { return Tensor::glorot_uniform({100, 200}); },
     [](double x) { return unit_cdf((x / std::sqrt(6.0 / 300) + 1) / 2); }},
    {"scaled_uniform", [] { return scaled_uniform(kShape); },
     [](double x) { return unit_cdf((x * std::sqrt(double{kSamples}) + 1) / 2); }},
    {"randn", [] { return Tensor::randn(kShape); }, normal_cdf},
    {"randn f64", [] { return Tensor::randn(kShape, DType::F64); }, normal_cdf},
    {"normal", [] { return Tensor::normal(kShape, 3, 2); },
     [](double x) { return normal_cdf((x - 3) / 2); }},
    {"kaiming_normal", [] { return Tensor::kaiming_normal({100, 200}, 0); },
     [](double x) { return normal_cdf(x / std::sqrt(2.0 / 200)); }},
    {"exponential", [] { return exponential(kShape, 2); },
     [](double x) { return 1 - std::exp(-2 * x); }},
    {"gumbel", [] { return gumbel(kShape, 1, 2); },
     [](double x) { return std::exp(-std::exp(-(x - 1) / 2)); }},
    {"log_normal", [] { return log_normal(kShape, 1, 0.5); },
     [](double x) { return normal_cdf((std::log(x) - 1) / 0.5); }},
    {"laplace", [] { return laplace(kShape, 3, 2); },
     [](double x) {
       const double tail = std::exp(-std::fabs(x - 3) / 2) / 2;
       return x < 3 ? tail : 1 - tail;
     }},
    {"cauchy", [] { return cauchy(kShape, 1, 2); },
     [](double x) { return 0.5 + std::atan((x - 1) / 2) / std::numbers::pi; }},
    {"gamma 1/2", [] { return gamma(filled(0.5)); },
     [](double x) { return half_gamma_cdf(0.5, x); }},
    {"gamma 5/2, rate 2", [] { return gamma(filled(2.5), 2); },
     [](double x) { return half_gamma_cdf(2.5, 2 * x); }},
    {"beta 2 3", [] { return beta(filled(2), filled(3)); },
     [](double x) { return x * x * (6 + x * (3 * x - 8)); }},
    {"dirichlet, one share",
     [] { return dirichlet(Tensor::of({1.0f, 2.0f, 3.0f}).expand({kSamples, 3}))[{Slice(), 2}]; },
     [](double x) { return x * x * x * (10 + x * (6 * x - 15)); }},
    {"student_t 4", [] { return student_t(filled(4)); }, student4_cdf},
};

TEST_F(Random, EveryDistributionIsItsOwn) {
  Tensor::manual_seed(11);
  for (const Claim& claim : kClaims)
    EXPECT_LT(ks_statistic(claim.draw(), claim.cdf), kOnceInAThousand) << claim.name;
}

TEST_F(Random, TheTestSeesAWrongDistribution) {
  Tensor::manual_seed(12);
  EXPECT_GT(ks_statistic(Tensor::randn(kShape) * 1.05, normal_cdf), kOnceInAThousand);
  EXPECT_GT(ks_statistic(Tensor::rand(kShape) * 0.98, unit_cdf), kOnceInAThousand);
  EXPECT_GT(ks_statistic(student_t(filled(9)), student4_cdf), kOnceInAThousand);
}

// ---- whole numbers, and what one number says of others

/// Pearson's statistic of counts that should be equal, in standard deviations from its mean.
double excess(const std::vector<int64_t>& drawn, int64_t classes) {
  std::vector<double> counts(static_cast<size_t>(classes));
  for (const int64_t c : drawn) counts.at(static_cast<size_t>(c)) += 1;
  const double expected = static_cast<double>(drawn.size()) / static_cast<double>(classes);
  double sum = 0;
  for (const double c : counts) sum += (c - expected) * (c - expected) / expected;
  const auto freedom = static_cast<double>(classes - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

TEST_F(Random, WholeNumbersAreEquallyLikely) {
  Tensor::manual_seed(13);
  const auto excess_of = [](const Tensor& x, int64_t classes) {
    return excess(x.to_vector<int64_t>(), classes);
  };
  EXPECT_LT(excess_of(Tensor::randint(-3, 97, kShape) + 3, 100), 4);
  EXPECT_LT(excess_of(random_bits(kShape) % 251, 251), 4);  // low bits
  EXPECT_LT(excess_of(random_bits(kShape) >> 24, 256), 4);  // high bits
  EXPECT_LT(excess_of(keyed_bits(random_key(1), kShape, DType::U8), 256), 4);
  EXPECT_LT(excess_of(multinomial(Tensor::ones({20}), kSamples, true), 20), 4);
  EXPECT_LT(excess_of(bernoulli(filled(0.5)), 2), 4);
  std::vector<int64_t> firsts;
  for (int i = 0; i < 400; ++i) firsts.push_back(Tensor::randperm(5)[{0}].item<int64_t>());
  EXPECT_LT(excess(firsts, 5), 4);
}

TEST_F(Random, NeighboursDrawsAndKeysAreUncorrelated) {
  Tensor::manual_seed(14);
  const auto correlation = [](const Tensor& x, const Tensor& y) {
    return ((x - 0.5) * (y - 0.5)).mean().item<double>() * 12 * std::sqrt(double{kSamples - 1});
  };
  const Tensor a = Tensor::rand(kShape), b = Tensor::rand(kShape);
  EXPECT_LT(std::fabs(correlation(a[{Slice(0, kSamples - 1)}], a[{Slice(1, kSamples)}])), 4);
  EXPECT_LT(std::fabs(correlation(a, b)), 4);
  const Tensor keys = split_key(random_key(5));
  EXPECT_LT(std::fabs(correlation(keyed_uniform(keys[0], kShape), keyed_uniform(keys[1], kShape))),
            4);
}

// ---- threads

std::vector<float> drawn_with(int64_t threads) {
  Options options;
  options.threads = threads;
  Context context(options);
  const ContextScope scope(context);
  Tensor::manual_seed(21);
  std::vector<float> all;
  for (const Tensor& x : {Tensor::rand({70001}), Tensor::randn({301, 203}), gumbel({4099}),
                          keyed_uniform(random_key(2), {65537})}) {
    const std::vector<float> some = x.to_vector<float>();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

TEST(RandomAcrossThreads, TheSameBitsForEveryNumber) {
  const std::vector<float> one = drawn_with(1);
  for (const int64_t threads : {2, 8}) {
    const std::vector<float> more = drawn_with(threads);
    ASSERT_EQ(more.size(), one.size());
    EXPECT_EQ(std::memcmp(more.data(), one.data(), one.size() * sizeof(float)), 0) << threads;
  }
}

}  // namespace
}  // namespace weft
