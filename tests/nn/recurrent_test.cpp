#include "weft/nn/recurrent.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/nn/pytorch.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"

namespace weft::nn {
namespace {

using Inputs = std::vector<Tensor>;

// Output and state as one vector.
Tensor flat(const Recurrent::Result& r) {
  std::vector<Tensor> parts = {r.output.flatten(), r.state.h.flatten()};
  if (r.state.c.defined()) parts.push_back(r.state.c.flatten());
  return Tensor::cat(parts);
}

TEST(RecurrentLikePyTorch, Cells) {
  RNNCell rnn(3, 2);
  expect_like_pytorch("rnn_cell", rnn, {{2, 3}, {2, 2}},
                      [&](const Inputs& in) { return rnn(in[0], {in[1], {}}).h; });
  GRUCell gru(3, 2);
  expect_like_pytorch("gru_cell", gru, {{2, 3}, {2, 2}},
                      [&](const Inputs& in) { return gru(in[0], {in[1], {}}).h; });
  LSTMCell lstm(3, 2);
  expect_like_pytorch("lstm_cell", lstm, {{2, 3}, {2, 2}, {2, 2}}, [&](const Inputs& in) {
    const RecurrentState next = lstm(in[0], {in[1], in[2]});
    return Tensor::cat({next.h, next.c}, -1);
  });
}

TEST(RecurrentLikePyTorch, OneLayer) {
  RNN rnn(3, 2);
  expect_like_pytorch("rnn", rnn, {{4, 2, 3}}, [&](const Inputs& in) { return flat(rnn(in[0])); });
  Recurrent relu(Recurrence::Relu, 3, 2, {.bias = false});
  expect_like_pytorch("rnn_relu", relu, {{3, 2, 3}},
                      [&](const Inputs& in) { return flat(relu(in[0])); });
}

TEST(RecurrentLikePyTorch, ManyLayers) {
  GRU gru(3, 2, {.layers = 2, .batch_first = true});
  expect_like_pytorch("gru", gru, {{2, 3, 3}, {2, 2, 2}},
                      [&](const Inputs& in) { return flat(gru(in[0], {in[1], {}})); });
  LSTM lstm(3, 2, {.layers = 2, .bidirectional = true});
  expect_like_pytorch("lstm", lstm, {{3, 2, 3}},
                      [&](const Inputs& in) { return flat(lstm(in[0])); });
}

TEST(Recurrent, TheStateContinuesASequence) {
  LSTM lstm(2, 3);
  const Tensor x = some_tensor({5, 1, 2});
  const Tensor whole = lstm(x).output;
  const Recurrent::Result first = lstm(x[Slice(2)]);
  const Tensor rest = lstm(x[Slice(2, 5)], first.state).output;
  expect_close(Tensor::cat({first.output, rest}), whole.to_vector<double>());
}

TEST(Recurrent, DropoutBetweenLayersOnlyWhileTraining) {
  RNN net(2, 4, {.layers = 2, .dropout = 0.5});
  const Tensor x = some_tensor({3, 2, 2});
  const std::vector<float> plain = net(x).output.to_vector<float>();
  EXPECT_EQ(net(x).output.to_vector<float>(), plain);
  const TrainingScope training;
  EXPECT_NE(net(x).output.to_vector<float>(), plain);
}

// The first of four numbers, held over the others.
TEST(Recurrent, AGruLearnsToRemember) {
  Tensor::manual_seed(1);
  GRU gru(1, 6);
  Linear head(6, 1);
  std::vector<Tensor> all = parameters(gru);
  for (const Tensor& p : parameters(head)) all.push_back(p);
  Adam adam(all, {.lr = 0.03});
  const Tensor x = some_tensor({4, 16, 1});
  float first = 0, last = 0;
  for (int step = 0; step < 60; ++step) {
    adam.zero_grad();
    const Tensor loss = head(gru(x).state.h[0]).mse_loss(x[0]);
    loss.backward();
    adam.step();
    last = loss.item<float>();
    if (step == 0) first = last;
  }
  EXPECT_LT(last, 0.1f * first);
}

TEST(Recurrent, ErrorsSayWhatDoesNotFit) {
  EXPECT_ERROR(LSTM(0, 2), "in must be at least 1, not 0");
  EXPECT_ERROR(GRUCell(2, 0), "hidden must be at least 1, not 0");
  EXPECT_ERROR(RNN(2, 2, {.layers = 0}), "layers must be at least 1, not 0");
  EXPECT_ERROR(RNN(2, 2)(Tensor::ones({3, 2})), "three axes (steps, batch, in), got shape (3, 2)");
  EXPECT_ERROR(RNN(2, 2)(Tensor::ones({0, 1, 2})), "the number of steps must be at least 1, not 0");
  EXPECT_ERROR(LSTMCell(2, 2)(Tensor::ones({2})), "needs an input (batch, in), got shape (2,)");
}

}  // namespace
}  // namespace weft::nn
