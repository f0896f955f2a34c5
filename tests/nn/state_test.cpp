#include "weft/nn/state.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/nn/close.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"

namespace weft {
namespace {

struct Net {
  Tensor operator()(const Tensor& x) { return head(norm(conv(x)).relu().mean({2, 3})); }
  void visit(StateVisitor& v) {
    v("conv", conv);
    v("norm", norm);
    v("blocks", blocks);
    v("head", head);
  }
  nn::Conv2d conv{1, 2, {3, 3}};
  nn::BatchNorm norm{2};
  std::vector<nn::Linear> blocks;
  nn::Linear head{2, 3, false};
};

std::string names_of(const StateDict& state) {
  std::string names;
  for (const NamedTensor& named : state) names += named.name + " ";
  return names;
}

class StateTest : public ScratchDir {};

TEST_F(StateTest, NamesArePyTorchs) {
  Net net;
  net.blocks.emplace_back(2, 2);
  EXPECT_EQ(names_of(state_dict(net)),
            "conv.weight conv.bias norm.weight norm.bias norm.running_mean norm.running_var "
            "norm.num_batches_tracked blocks.0.weight blocks.0.bias head.weight ");
  EXPECT_EQ(parameters(net).size(), 7u);
  net.conv.weight.requires_grad_(false);
  EXPECT_EQ(parameters(net).size(), 6u);
}

TEST_F(StateTest, LoadsByName) {
  Net a, b;
  save_tensors(at("m"), state_dict(a), {{"note", "x"}});
  const LoadedTensors loaded = load_tensors(at("m"));
  EXPECT_EQ(loaded.metadata.at("note"), "x");
  load_state_dict(b, loaded.tensors);
  const Tensor x = some_tensor({2, 1, 5, 5});
  EXPECT_EQ(a(x).to_vector<float>(), b(x).to_vector<float>());
}

TEST_F(StateTest, WhatDoesNotFitIsListedAndNothingIsLoaded) {
  Net net;
  const std::vector<float> before = net.conv.weight.to_vector<float>();
  StateDict wrong = state_dict(net);
  wrong[0].tensor = Tensor::ones({2, 1, 3, 3});
  wrong[1].name = "conv.biass";
  wrong[2].tensor = Tensor::ones({5});
  const std::string text = error_of([&] { load_state_dict(net, wrong); });
  EXPECT_NE(text.find("'conv.bias' is missing"), std::string::npos) << text;
  EXPECT_NE(text.find("'norm.weight' is (5,) in the file but (2,) in the model"), std::string::npos)
      << text;
  EXPECT_NE(text.find("'conv.biass' is unexpected; did you mean conv.bias"), std::string::npos)
      << text;
  EXPECT_EQ(net.conv.weight.to_vector<float>(), before);
  EXPECT_ERROR(load_state_dict(net, {{"x", Tensor::ones({1})}}), "and 4 more");
  load_state_dict(net, {wrong[0], {"x", Tensor::ones({1})}}, false);
  EXPECT_EQ(net.conv.weight.to_vector<float>(), std::vector<float>(18, 1));
}

TEST_F(StateTest, DtypesAreConverted) {
  Net net;
  StateDict half;
  for (const NamedTensor& named : state_dict(net)) {
    half.push_back({named.name, Tensor::ones(named.tensor.dims(), DType::F16)});
  }
  load_state_dict(net, half);
  EXPECT_EQ(net.conv.weight.dtype(), DType::F32);
  EXPECT_EQ(net.conv.weight.to_vector<float>(), std::vector<float>(18, 1));
}

void train(Net& net, nn::Optimizer& optimizer, int steps) {
  for (int i = 0; i < steps; ++i) {
    const TrainingScope training;
    optimizer.zero_grad();
    net(some_tensor({2, 1, 5, 5}, static_cast<unsigned>(i))).square().sum().backward();
    optimizer.step();
  }
}

TEST_F(StateTest, AResumedTrainingIsBitEqual) {
  Net a, b;
  load_state_dict(b, state_dict(a));
  nn::Adam adam_a(parameters(a)), adam_b(parameters(b));
  train(a, adam_a, 2);
  save_tensors(at("model"), state_dict(a));
  save_tensors(at("optimizer"), state_dict(adam_a));
  load_state_dict(b, load_tensors(at("model")).tensors);
  load_state_dict(adam_b, load_tensors(at("optimizer")).tensors);
  train(a, adam_a, 2);
  train(b, adam_b, 2);
  for (size_t i = 0; i < state_dict(a).size(); ++i) {
    EXPECT_EQ(state_dict(a)[i].tensor.to_vector<float>(),
              state_dict(b)[i].tensor.to_vector<float>())
        << state_dict(a)[i].name;
  }
}

TEST_F(StateTest, EveryDtypeGoesThroughAFile) {
  StateDict all;
  for (const DTypeRow& row : kDTypes) {
    if (!row.safetensors_name.empty()) {
      all.push_back({std::string(row.name), Tensor::of({0, 1, 1, 0}).cast(row.dtype)});
    }
  }
  save_tensors(at("m"), all);
  for (const NamedTensor& named : load_tensors(at("m")).tensors) {
    EXPECT_EQ(name(named.tensor.dtype()), named.name);
    EXPECT_EQ(named.tensor.to_vector<int>(), (std::vector<int>{0, 1, 1, 0})) << named.name;
  }
}

}  // namespace
}  // namespace weft
