// ResNet-50 (He, Zhang, Ren and Sun 2016, with the stride in the middle of a block) for benchmarks:
// random weights, no pictures of anything.
#pragma once

#include <vector>

#include "weft/nn/layers.h"

namespace weft {

/// A convolution without a bias, then a batch norm.
struct NormedConv {
  NormedConv(int64_t in, int64_t out, int64_t kernel, int64_t stride = 1);
  Tensor operator()(const Tensor& x);
  void visit(StateVisitor& v);

  nn::Conv2d conv;
  nn::BatchNorm norm;
};

struct ResNetBlock {
  ResNetBlock(int64_t in, int64_t width, int64_t stride, bool widens);
  Tensor operator()(const Tensor& x);
  void visit(StateVisitor& v);

  NormedConv first, second, third;
  std::vector<NormedConv> around;  // none or one
};

struct ResNet50 {
  ResNet50();
  // (n, 3, 224, 224) to (n, 1000).
  Tensor operator()(const Tensor& images);
  void visit(StateVisitor& v);

  NormedConv stem{3, 64, 7, 2};
  std::vector<ResNetBlock> blocks;
  nn::Linear head{2048, 1000};
};

}  // namespace weft
