#include "weft/nn/attention.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/nn/pytorch.h"

namespace weft::nn {
namespace {

using Inputs = std::vector<Tensor>;

Tensor keys_seen() { return Tensor::of({{true, true, false}, {true, false, true}}); }

TEST(AttentionLikePyTorch, OfThreeInputs) {
  MultiheadAttention layer(4, 2);
  expect_like_pytorch("attention", layer, {{3, 2, 4}, {2, 2, 4}, {2, 2, 4}},
                      [&](const Inputs& in) { return layer(in[0], in[1], in[2]); });
  MultiheadAttention sizes(4, 2,
                           {.bias = false, .key_dim = 3, .value_dim = 2, .batch_first = true});
  expect_like_pytorch("attention_sizes", sizes, {{1, 2, 4}, {1, 3, 3}, {1, 3, 2}},
                      [&](const Inputs& in) { return sizes(in[0], in[1], in[2]); });
}

TEST(AttentionLikePyTorch, Masks) {
  MultiheadAttention layer(4, 2, {.batch_first = true}), single(4, 1, {.batch_first = true});
  expect_like_pytorch("attention_causal", layer, {{2, 3, 4}},
                      [&](const Inputs& in) { return layer(in[0], {.causal = true}); });
  const Tensor seen = Tensor::ones({3, 3}, DType::Bool).tril();
  expect_like_pytorch("attention_causal", layer, {{2, 3, 4}},
                      [&](const Inputs& in) { return layer(in[0], {.mask = seen}); });
  expect_like_pytorch("attention_padded", single, {{2, 3, 4}},
                      [&](const Inputs& in) { return single(in[0], {.keys = keys_seen()}); });
  expect_like_pytorch("attention_both", single, {{2, 3, 4}}, [&](const Inputs& in) {
    return single(in[0], {.keys = keys_seen(), .causal = true});
  });
}

TEST(Attention, NumbersAsMaskJoinBoolOnes) {
  MultiheadAttention layer(4, 1, {.batch_first = true});
  fill(layer);
  const Tensor x = some_tensor({2, 3, 4});
  const Tensor added = Tensor::ones({3, 3}, DType::Bool).tril().where(0, -INFINITY);
  const Tensor wanted = layer(x, {.keys = keys_seen(), .causal = true});
  expect_close(layer(x, {.mask = added, .keys = keys_seen()}), wanted.to_vector<double>());
  expect_close(layer(x, {.mask = Tensor::zeros({3, 3}), .keys = keys_seen(), .causal = true}),
               wanted.to_vector<double>());
}

TEST(AttentionLikePyTorch, TransformerLayers) {
  const TrainingScope training;
  const TransformerOptions small = {.feedforward = 6, .dropout = 0};
  expect_like_pytorch("encoder_layer", TransformerEncoderLayer(4, 2, small), {3, 2, 4});
  TransformerOptions first = small;
  first.activation = Activation::Gelu;
  first.batch_first = first.norm_first = true;
  expect_like_pytorch("encoder_layer_first", TransformerEncoderLayer(4, 2, first), {2, 3, 4});
  TransformerDecoderLayer decoder(4, 2, small);
  expect_like_pytorch("decoder_layer", decoder, {{3, 2, 4}, {2, 2, 4}},
                      [&](const Inputs& in) { return decoder(in[0], in[1]); });
}

TEST(AttentionLikePyTorch, Stacks) {
  const TransformerOptions small = {.feedforward = 6, .dropout = 0};
  expect_like_pytorch("encoder", TransformerEncoder(2, 4, 2, small, true), {3, 1, 4});
  TransformerDecoder decoder(2, 4, 2, small, true);
  expect_like_pytorch("decoder", decoder, {{3, 1, 4}, {2, 1, 4}},
                      [&](const Inputs& in) { return decoder(in[0], in[1]); });
}

TEST(Attention, NoBiasesAreAskedFor) {
  TransformerDecoder net(1, 4, 2, {.feedforward = 6, .bias = false}, true);
  for (const NamedTensor& named : state_dict(net)) {
    EXPECT_EQ(named.name.find("bias"), std::string::npos) << named.name;
  }
  EXPECT_EQ(net(some_tensor({3, 1, 4}), some_tensor({2, 1, 4})).dims().text(), "(3, 1, 4)");
}

TEST(Attention, LayersStartApartAndDropWhileTraining) {
  TransformerEncoder net(2, 4, 2, {.feedforward = 6});
  EXPECT_NE(net.layers[0].linear1.weight.to_vector<float>(),
            net.layers[1].linear1.weight.to_vector<float>());
  const Tensor x = some_tensor({3, 1, 4});
  const std::vector<float> plain = net(x).to_vector<float>();
  EXPECT_EQ(net(x).to_vector<float>(), plain);
  const TrainingScope training;
  EXPECT_NE(net(x).to_vector<float>(), plain);
}

TEST(Attention, ErrorsSayWhatDoesNotFit) {
  EXPECT_ERROR(MultiheadAttention(4, 3), "dim must be a multiple of heads: got 4 and 3");
  EXPECT_ERROR(MultiheadAttention(4, 0), "heads must be at least 1, not 0");
  EXPECT_ERROR(MultiheadAttention(4, 2, {.key_dim = -1}), "must be at least 1, not -1");
  MultiheadAttention layer(4, 2);
  EXPECT_ERROR(layer(Tensor::ones({3, 4})), "three axes (positions, batch, dim), got shape (3, 4)");
  EXPECT_ERROR(layer(Tensor::ones({3, 1, 4}), {.keys = Tensor::ones({1, 3})}),
               "the mask of keys must be bool (batch, keys), got f32 (1, 3)");
  EXPECT_ERROR(TransformerEncoder(0, 4, 2), "the number of layers must be at least 1, not 0");
}

}  // namespace
}  // namespace weft::nn
