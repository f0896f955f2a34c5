// Fashion-MNIST: the images, and the network of tinygrad's beautiful_mnist that learns them.
#pragma once

#include <string>

#include "weft/io/host_array.h"
#include "weft/nn/layers.h"

namespace weft {

class Context;

struct ImageSet {
  HostArray images;  // u8 (n, 28, 28)
  HostArray labels;  // u8 (n,), each below kFashionClasses

  int64_t count() const { return labels.shape[0]; }
};

struct FashionData {
  ImageSet train, test;
};

constexpr int64_t kFashionSide = 28;
constexpr int64_t kFashionClasses = 10;

// Reads and checks the four files of `directory`. `limit` keeps the first images only; 0 is all.
FashionData load_fashion(const std::string& directory, int64_t limit, Context& context);

// conv 5x5 32, conv 5x5 32, batch norm, pool, conv 3x3 64, conv 3x3 64, batch norm, pool, linear.
struct FashionNet {
  // (n, 1, 28, 28) in [0, 1] to logits (n, 10).
  Tensor operator()(const Tensor& images);
  void visit(StateVisitor& v);

  nn::Conv2d conv1{1, 32, {5, 5}}, conv2{32, 32, {5, 5}};
  nn::BatchNorm norm1{32};
  nn::Conv2d conv3{32, 64, {3, 3}}, conv4{64, 64, {3, 3}};
  nn::BatchNorm norm2{64};
  nn::Linear head{576, kFashionClasses};
};

}  // namespace weft
