// Random small networks: blocks of a product, a norm, an activation and a pool, of any sizes.
#pragma once
#include <string>
#include <vector>

#include "weft/nn/layers.h"
#include "weft/nn/sequential.h"
#include "weft/trust/random.h"

namespace weft {

class RandomNetwork {
 public:
  explicit RandomNetwork(uint64_t seed);

  nn::Sequential net;  ///< to ten classes
  std::vector<int64_t> input;
  std::string text;

 private:
  template <class Layer>
  void add(const std::string& name, Layer layer) {
    text += " " + name;
    net.add(std::move(layer));
  }
  void dense_block();
  void image_block();
  void norm_of_images();
  void activation();
  void pool();
  void end_images();

  Random random_;
  int64_t batch_, channels_, size_;
};

/// What a training step with one of several optimizers changes, and the loss: lazy, over realized
/// parameters and state.
std::vector<Tensor> training_step(nn::Sequential net, const std::vector<int64_t>& input,
                                  uint64_t optimizer = 0);

}  // namespace weft
