#include "tests/viz/recorded.h"
#include "weft/base/context.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/training.h"

namespace weft::viz {

Options recording_to(const std::string& file, const std::string& device) {
  Options options = Options::from_environment();
  options.viz = 1;
  options.viz_file = file;
  options.dev = device;
  options.cache = false;
  return options;
}

void train_a_step(const Options& options) {
  Context context(options);
  const ContextScope scope(context);
  const TrainingScope training;
  const nn::Conv2d conv(1, 8, 3);
  const nn::Linear linear(8 * 13 * 13, 10);
  std::vector<Tensor> parameters = {conv.weight, conv.bias, linear.weight, linear.bias};
  nn::Adam adam(parameters);
  const Tensor images = Tensor::zeros({16, 1, 28, 28}).contiguous();
  const Tensor labels = Tensor::zeros({16}, DType::I32).contiguous();
  const Tensor hidden = conv(images).relu().max_pool2d(2).flatten(1);
  const Tensor loss = linear(hidden).sparse_categorical_crossentropy(labels);
  loss.backward();
  std::vector<Tensor> changed = adam.schedule_step();
  changed.push_back(loss);
  realize(changed);
}

void compute_little(const Options& options) {
  Context context(options);
  const ContextScope scope(context);
  const Tensor x = Tensor::arange(64).cast(DType::F32).reshape({8, 8});
  const Tensor y = (x * 2 + 1).exp2().sum(1);
  (y / y.max()).realize();
}

}  // namespace weft::viz
