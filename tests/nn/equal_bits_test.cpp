// A training step gives the same bits whatever the number of threads and, where asked, whatever the
// instructions: loss, gradients and what the optimizer leaves, of whole networks.
#include <gtest/gtest.h>

#include <cstring>

#include "tests/nn/close.h"
#include "tests/support/compiler/isa_levels.h"
#include "weft/base/context.h"
#include "weft/base/thread_pool.h"
#include "weft/nn/adam.h"
#include "weft/nn/layers.h"
#include "weft/nn/recurrent.h"
#include "weft/tensor/training.h"
#include "weft/weft.h"

namespace weft::nn {
namespace {

using Bytes = std::vector<float>;
/// A loss of a network whose parameters it leaves in its argument.
using Network = Tensor (*)(std::vector<Tensor>& parameters);

/// Weights of no particular pattern: layers draw theirs.
Tensor weight(std::vector<Tensor>& parameters, const std::vector<int64_t>& shape) {
  const auto seed = static_cast<unsigned>(parameters.size() + 3);
  Tensor w = (some_tensor(shape, seed) * 0.2).realize();
  parameters.push_back(w.requires_grad_());
  return w;
}

Tensor labels(int64_t count, int64_t classes) {
  return (Tensor::arange(count) * 7 % classes).cast(DType::I32);
}

Tensor of_words(std::vector<Tensor>& parameters) {
  constexpr int64_t kLength = 37, kDim = 48, kWords = 211;
  const Tensor table = weight(parameters, {kWords, kDim});
  const Tensor ids = (Tensor::arange(2 * kLength) * 31 % kWords).reshape({2, kLength});
  const Tensor x = table[ids];
  const Tensor rows = x.layernorm() * weight(parameters, {kDim});
  const std::vector<Tensor> parts = rows.matmul(weight(parameters, {kDim, 3 * kDim})).chunk(3, -1);
  const auto heads = [&](const Tensor& t) {
    return t.reshape({2, kLength, 4, kDim / 4}).transpose(1, 2);
  };
  const Tensor mixed = heads(parts[0]).scaled_dot_product_attention(
      heads(parts[1]), heads(parts[2]), {.causal = true});
  const Tensor y = x + mixed.transpose(1, 2).reshape({2, kLength, kDim});
  const Tensor wide = y.layernorm().matmul(weight(parameters, {kDim, 4 * kDim})).gelu();
  const Tensor logits = (y + wide.matmul(weight(parameters, {4 * kDim, kDim}))).matmul(table.T());
  return logits.reshape({2 * kLength, kWords})
      .sparse_categorical_crossentropy(labels(2 * kLength, kWords));
}

Tensor of_images(std::vector<Tensor>& parameters) {
  const Tensor x = some_tensor({6, 3, 17, 19}, 1);
  const Tensor wide = x.conv2d(weight(parameters, {16, 3, 5, 5}), {}, {.padding = 2}).relu();
  const Tensor mean = wide.mean({0, 2, 3}, true), centred = wide - mean;
  const Tensor normal = centred * (centred.square().mean({0, 2, 3}, true) + 1e-5).rsqrt() *
                        weight(parameters, {1, 16, 1, 1});
  const Tensor small = normal.max_pool2d({2, 2}).conv2d(weight(parameters, {24, 16, 3, 3})).relu();
  const Tensor logits = small.mean({2, 3}).matmul(weight(parameters, {24, 10}));
  return logits.sparse_categorical_crossentropy(labels(6, 10));
}

Tensor of_a_sequence(std::vector<Tensor>& parameters) {
  LSTM lstm(20, 33);
  RecurrentCell& cell = lstm.cells[0];
  cell.weight_ih = weight(parameters, {4 * 33, 20}),
  cell.weight_hh = weight(parameters, {4 * 33, 33});
  cell.bias_ih = weight(parameters, {4 * 33}), cell.bias_hh = weight(parameters, {4 * 33});
  return lstm(some_tensor({9, 16, 20}, 1)).output.square().mean();
}

void append(Bytes& to, const Tensor& x) {
  const Bytes more = x.to_vector<float>();
  to.insert(to.end(), more.begin(), more.end());
}

/// Loss, gradients, and parameters after a step.
Bytes training_of(Network network, const Options& options) {
  Context context(options);
  const ContextScope scope(context);
  if (options.threads > 1) context.thread_pool().set_adverse(true);
  const TrainingScope training;
  std::vector<Tensor> parameters;
  const Tensor loss = network(parameters);
  Adam adam(parameters, {.lr = 0.01});
  loss.backward();
  Bytes all;
  std::vector<Tensor> gradients;
  for (const Tensor& p : parameters) gradients.push_back(p.grad());
  adam.step();
  append(all, loss);
  for (const Tensor& g : gradients) append(all, g);
  for (const Tensor& p : parameters) append(all, p);
  return all;
}

void expect_equal(const Bytes& got, const Bytes& wanted, const std::string& what) {
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_EQ(std::memcmp(&got[i], &wanted[i], sizeof(float)), 0)
        << what << ": number " << i << " is " << got[i] << ", not " << wanted[i];
}

class EqualBits : public ::testing::TestWithParam<Network> {};

TEST_P(EqualBits, ForAnyNumberOfThreads) {
  Options options = Options::from_environment();
  options.threads = 1;
  const Bytes one = training_of(GetParam(), options);
  for (const int64_t threads : {2, 8}) {
    options.threads = threads;
    expect_equal(training_of(GetParam(), options), one, std::to_string(threads) + " threads");
  }
}

TEST_P(EqualBits, SlowForAnyInstructionsWhereDeterministic) {
  Options options = Options::from_environment();
  options.dev = "CPU:X86";
  options.deterministic = true;
  const std::vector<std::string> levels = testing::isa_levels();
  options.isa = levels[0];
  const Bytes first = training_of(GetParam(), options);
  for (const std::string& level : levels) {
    options.isa = level;
    options.threads = 2;
    expect_equal(training_of(GetParam(), options), first, level + " and not " + levels[0]);
  }
}

INSTANTIATE_TEST_SUITE_P(Networks, EqualBits,
                         ::testing::Values(of_images, of_words, of_a_sequence));

}  // namespace
}  // namespace weft::nn
