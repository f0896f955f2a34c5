// Operations that make tensors: constants, ranges, random numbers.
#include "weft/c/functions.h"
#include "weft/tensor/distributions.h"
#include "weft/tensor/fft.h"
#include "weft/tensor/random_keys.h"

namespace weft::c {

namespace {

Tensor full(const Dims& shape, Scalar value, std::optional<DType> dtype) {
  return Tensor::full(shape, value, dtype.value_or(value.default_dtype()), CallSite());
}

Tensor arange(Scalar start, std::optional<Scalar> stop, Scalar step, std::optional<DType> dtype) {
  const Tensor x = stop ? Tensor::arange(start, *stop, step, CallSite())
                        : Tensor::arange(Scalar(0), start, step, CallSite());
  return dtype ? x.cast(*dtype, CallSite()) : x;
}

Tensor eye(Dim rows, std::optional<Dim> columns, DType dtype) {
  return Tensor::eye(rows, columns.value_or(rows), dtype, CallSite());
}

Tensor key_of_seed(int64_t seed) { return random_key(static_cast<uint64_t>(seed), CallSite()); }

constexpr Function kFunctions[] = {
    row<&Tensor::zeros>("zeros", "shape, dtype = f32"),
    row<&Tensor::ones>("ones", "shape, dtype = f32"),
    row<&Tensor::empty>("empty", "shape, dtype = f32"),
    row<full>("full", "shape, value, dtype = none"),
    row<&Tensor::zeros_like>("zeros_like", "x"),
    row<&Tensor::ones_like>("ones_like", "x"),
    row<&Tensor::full_like>("full_like", "x, value"),
    row<arange>("arange", "start, stop = none, step = 1, dtype = none",
                "one number is where 0, 1, ... stops"),
    row<&Tensor::linspace>("linspace", "start, stop, steps, dtype = f32"),
    row<eye>("eye", "rows, columns = none, dtype = f32"),

    row<&Tensor::rand>("rand", "shape, dtype = f32"),
    row<&Tensor::randn>("randn", "shape, dtype = f32"),
    row<&Tensor::randint>("randint", "low, high, shape, dtype = i32"),
    row<&Tensor::uniform>("uniform", "shape, low, high, dtype = f32"),
    row<&Tensor::normal>("normal", "shape, mean, std, dtype = f32"),
    row<&Tensor::kaiming_uniform>("kaiming_uniform", "shape, a = 0.01"),
    row<&Tensor::kaiming_normal>("kaiming_normal", "shape, a = 0.01"),
    row<&Tensor::glorot_uniform>("glorot_uniform", "shape"),
    row<&Tensor::randperm>("randperm", "n, dtype = i32"),
    row<&Tensor::threefry2x32>("threefry2x32", "key0, key1, counter0, counter1"),
    row<&Tensor::dropout>("dropout", "x, p = 0.5"),
    row<rand_like>("rand_like", "x"),
    row<randn_like>("randn_like", "x"),
    row<randint_like>("randint_like", "x, low, high"),
    row<random_bits>("random_bits", "shape"),
    row<scaled_uniform>("scaled_uniform", "shape"),
    row<bernoulli>("bernoulli", "p"),
    row<multinomial>("multinomial", "weights, samples = 1, replacement = false"),
    row<exponential>("exponential", "shape, rate = 1, dtype = f32"),
    row<gumbel>("gumbel", "shape, location = 0, scale = 1, dtype = f32"),
    row<log_normal>("log_normal", "shape, mean = 0, std = 1, dtype = f32"),
    row<laplace>("laplace", "shape, location = 0, scale = 1, dtype = f32"),
    row<cauchy>("cauchy", "shape, location = 0, scale = 1, dtype = f32"),
    row<gamma>("gamma", "alpha, rate = 1"),
    row<beta>("beta", "a, b"),
    row<dirichlet>("dirichlet", "alpha"),
    row<student_t>("student_t", "df"),
    row<gumbel_softmax>("gumbel_softmax", "logits, temperature = 1, hard = false, axis = -1"),

    row<key_of_seed>("random_key", "seed", "the seed's 64 bits"),
    row<split_key>("split_key", "key, count = 2"),
    row<fold_in>("fold_in", "key, data"),
    row<keyed_bits>("keyed_bits", "key, shape, dtype = u32"),
    row<keyed_uniform>("keyed_uniform", "key, shape, dtype = f32"),

    row<fft::hann_window>("hann_window", "n, periodic = true"),
    row<fft::hamming_window>("hamming_window", "n, periodic = true"),
    row<fft::fftfreq>("fftfreq", "n, spacing = 1"),
    row<fft::rfftfreq>("rfftfreq", "n, spacing = 1"),
};

}  // namespace

std::span<const Function> creation_functions() { return kFunctions; }

}  // namespace weft::c
