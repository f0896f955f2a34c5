// An ONNX model of pictures and a picture in, the five best classes out. Any model that takes
// (1, 3, height, width), normalised as ImageNet's models want it, and gives (1, classes) logits.
#include <algorithm>
#include <cstdio>
#include <exception>

#include "weft/io/pictures.h"
#include "weft/io/tensors.h"
#include "weft/onnx/runner.h"
#include "weft/weft.h"

using namespace weft;

/// What the model declares for an axis of its input; 224 where it takes any size.
static int64_t side(const onnx::DeclaredValue& input, size_t axis) {
  return input.type.shape ? input.type.shape->at(axis).size.value_or(224) : 224;
}

/// (1, 3, height, width) with the mean 0 and the deviation 1 that ImageNet's pictures would have.
static Tensor prepared(const std::string& picture, int64_t height, int64_t width) {
  const HostArray pixels = resized(read_picture(picture, Channels::Rgb), height, width);
  const Tensor x = tensor_of(with_8_bits(pixels)).cast(DType::F32) / 255;
  const Tensor mean = Tensor::of({0.485f, 0.456f, 0.406f}),
               std = Tensor::of({0.229f, 0.224f, 0.225f});
  return ((x - mean) / std).permute({2, 0, 1}).unsqueeze(0).contiguous();
}

int main(int count, char** arguments) {
  if (count != 3) {
    std::fprintf(stderr, "usage: %s MODEL.onnx PICTURE\n", arguments[0]);
    return 2;
  }
  try {
    onnx::OnnxRunner model(arguments[1]);
    const onnx::DeclaredValue input = model.inputs().at(0);
    const Tensor x = prepared(arguments[2], side(input, 2), side(input, 3));
    const Tensor logits = model({{input.name, x}}).at(model.outputs()[0].name).tensor();
    const auto [probabilities, classes] =
        logits.softmax(1)[0].topk(std::min<int64_t>(5, logits.size(1)));
    const auto p = probabilities.to_vector<float>();
    const auto c = classes.to_vector<int32_t>();
    for (size_t i = 0; i < p.size(); ++i)
      std::printf("%5.1f %%  class %d\n", 100 * static_cast<double>(p[i]), c[i]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
