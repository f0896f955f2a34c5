#include "weft/app/resnet50.h"

namespace weft {

NormedConv::NormedConv(int64_t in, int64_t out, int64_t kernel, int64_t stride)
    : conv(in, out, kernel, {.stride = stride, .padding = kernel / 2}, /*with_bias=*/false),
      norm(out) {}

Tensor NormedConv::operator()(const Tensor& x) { return norm(conv(x)); }

void NormedConv::visit(StateVisitor& v) {
  v("conv", conv);
  v("norm", norm);
}

ResNetBlock::ResNetBlock(int64_t in, int64_t width, int64_t stride, bool widens)
    : first(in, width, 1), second(width, width, 3, stride), third(width, 4 * width, 1) {
  if (widens) around.emplace_back(in, 4 * width, 1, stride);
}

Tensor ResNetBlock::operator()(const Tensor& x) {
  const Tensor y = third(second(first(x).relu()).relu());
  return (y + (around.empty() ? x : around[0](x))).relu();
}

void ResNetBlock::visit(StateVisitor& v) {
  v("first", first);
  v("second", second);
  v("third", third);
  v("around", around);
}

ResNet50::ResNet50() {
  struct Stage {
    int64_t blocks, width, stride;
  };
  int64_t in = 64;
  for (const Stage& stage : {Stage{3, 64, 1}, {4, 128, 2}, {6, 256, 2}, {3, 512, 2}})
    for (int64_t i = 0; i < stage.blocks; ++i) {
      blocks.emplace_back(in, stage.width, i == 0 ? stage.stride : 1, i == 0);
      in = 4 * stage.width;
    }
}

Tensor ResNet50::operator()(const Tensor& images) {
  Tensor x = stem(images).relu().max_pool2d({3, 3}, {.stride = 2, .padding = 1});
  for (ResNetBlock& block : blocks) x = block(x);
  return head(x.mean({2, 3}));
}

void ResNet50::visit(StateVisitor& v) {
  v("stem", stem);
  v("blocks", blocks);
  v("head", head);
}

}  // namespace weft
