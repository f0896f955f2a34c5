// A network of two layers learns exclusive or: layers, loss, optimizer, saving and loading.
#include <cstdio>

#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/nn/sequential.h"
#include "weft/weft.h"

using namespace weft;

int main() {
  Tensor::manual_seed(1);
  nn::Sequential net(
      nn::Linear(2, 16), [](const Tensor& x) { return x.tanh(); }, nn::Linear(16, 1));
  nn::Adam adam(parameters(net), {.lr = 0.05});
  const Tensor inputs = Tensor::of({{0.f, 0.f}, {0.f, 1.f}, {1.f, 0.f}, {1.f, 1.f}});
  const Tensor wanted = Tensor::of({{0.f}, {1.f}, {1.f}, {0.f}});

  for (int step = 0; step < 200; ++step) {
    adam.zero_grad();
    const Tensor loss = net(inputs).binary_crossentropy_logits(wanted);
    loss.backward();
    adam.step();
    if (step % 50 == 0) std::printf("step %3d  loss %.4f\n", step, loss.item<double>());
  }

  const std::string file = "/tmp/weft_example_xor.safetensors";
  save_tensors(file, state_dict(net));
  load_state_dict(net, load_tensors(file).tensors);
  const std::vector<float> answers = net(inputs).sigmoid().to_vector<float>();
  for (const float answer : answers) std::printf("%.2f ", static_cast<double>(answer));
  std::printf("\n");
  std::remove(file.c_str());
  return answers[0] < 0.5f && answers[1] > 0.5f && answers[2] > 0.5f && answers[3] < 0.5f ? 0 : 1;
}
