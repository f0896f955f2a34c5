#include "tests/nn/random_network.h"

#include <memory>

#include "weft/base/format.h"
#include "weft/nn/optim.h"

namespace weft {
namespace {

constexpr int64_t kMostPlaces = 60000;  // of the input's images, so that compiling takes the time

std::string join(const std::vector<int64_t>& list) {
  std::string out;
  for (int64_t x : list) out += (out.empty() ? "" : ", ") + std::to_string(x);
  return out;
}

void realize_state(const StateDict& state) {
  std::vector<Tensor> all;
  for (const NamedTensor& named : state) all.push_back(named.tensor);
  realize(all);
}

std::unique_ptr<nn::Optimizer> make_optimizer(uint64_t which, std::vector<Tensor> params) {
  switch (which % 3) {
    case 0: return std::make_unique<nn::Adam>(std::move(params));
    case 1: return std::make_unique<nn::SGD>(std::move(params));
    default: return std::make_unique<nn::Adam>(nn::lamb(std::move(params)));
  }
}

}  // namespace

RandomNetwork::RandomNetwork(uint64_t seed) : random_(seed) {
  const bool images = random_.chance(75);
  batch_ = random_.between(1, random_.chance(50) ? 128 : 16);
  channels_ = random_.chance(30) ? random_.between(1, 4) : 8 * random_.between(1, 6);
  size_ = random_.between(8, 40);
  for (; batch_ * size_ * size_ > kMostPlaces; batch_ = batch_ * 2 / 3)
    size_ = std::max<int64_t>(6, size_ / 2);
  input = {batch_, channels_};
  if (images) input.insert(input.end(), {size_, size_});
  text = strformat("({})", join(input));
  for (int64_t i = random_.between(1, 3); i > 0; --i) images ? image_block() : dense_block();
  if (images) end_images();
  add(strformat("linear {}", channels_), nn::Linear(channels_, 10));
}

void RandomNetwork::dense_block() {
  const int64_t out = random_.chance(20) ? random_.between(1, 600) : 8 * random_.between(1, 40);
  add(strformat("linear {} to {}", channels_, out), nn::Linear(channels_, out));
  channels_ = out;
  switch (random_.below(4)) {
    case 0: add("batchnorm", nn::BatchNorm(channels_)); break;
    case 1: add("layernorm", nn::LayerNorm({channels_})); break;
    case 2: add("rmsnorm", nn::RMSNorm(channels_)); break;
    default: break;
  }
  activation();
}

void RandomNetwork::image_block() {
  const int64_t out = random_.chance(30) ? random_.between(1, 70) : 16 * random_.between(1, 4);
  const int64_t kernel = std::min(size_, random_.between(1, 3) * 2 - 1);
  const int64_t padding = random_.chance(50) ? kernel / 2 : 0, stride = random_.chance(25) ? 2 : 1;
  ConvOptions conv;
  conv.padding = padding;
  conv.stride = stride;
  add(strformat("conv {} to {}, {}, stride {}, padding {}", channels_, out, kernel, stride,
                padding),
      nn::Conv2d(channels_, out, kernel, conv));
  channels_ = out;
  size_ = (size_ + 2 * padding - kernel) / stride + 1;
  if (random_.chance(50)) activation();
  norm_of_images();
  if (random_.chance(50)) activation();
  if (random_.chance(40) && size_ >= 2) pool();
}

void RandomNetwork::norm_of_images() {
  switch (random_.below(6)) {
    case 0:
    case 1: return add("batchnorm", nn::BatchNorm(channels_));
    case 2: return add("instancenorm", nn::InstanceNorm(channels_, 1e-5, random_.chance(50)));
    case 3: return add("groupnorm", nn::GroupNorm(channels_ % 4 == 0 ? 4 : 1, channels_));
    case 4: return add("layernorm2d", nn::LayerNorm2d(channels_));
    default: return;
  }
}

void RandomNetwork::activation() {
  switch (random_.below(4)) {
    case 0: return add("gelu", [](const Tensor& x) { return x.gelu(); });
    case 1: return add("silu", [](const Tensor& x) { return x.silu(); });
    default: return add("relu", [](const Tensor& x) { return x.relu(); });
  }
}

void RandomNetwork::pool() {
  const int64_t stride = random_.between(1, 2);
  PoolOptions options;
  options.stride = stride;
  if (random_.chance(50))
    add(strformat("max pool, stride {}", stride),
        [options](const Tensor& x) { return x.max_pool2d(2, options); });
  else
    add(strformat("mean pool, stride {}", stride),
        [options](const Tensor& x) { return x.avg_pool2d(2, options); });
  size_ = (size_ - 2) / stride + 1;
}

void RandomNetwork::end_images() {
  if (random_.chance(50)) return add("mean", [](const Tensor& x) { return x.mean({2, 3}); });
  add("flatten", [](const Tensor& x) { return x.flatten(1); });
  channels_ *= size_ * size_;
}

std::vector<Tensor> training_step(nn::Sequential net, const std::vector<int64_t>& input,
                                  uint64_t optimizer) {
  const TrainingScope training;
  const std::unique_ptr<nn::Optimizer> steps = make_optimizer(optimizer, parameters(net));
  realize_state(state_dict(net));
  realize_state(state_dict(*steps));
  const Tensor x = Tensor::zeros(Dims(input)).contiguous();
  const Tensor labels = Tensor::zeros({input[0]}, DType::I32).contiguous();
  realize({x, labels});
  const Tensor loss = net(x).sparse_categorical_crossentropy(labels);
  loss.backward();
  std::vector<Tensor> changed = steps->schedule_step();
  for (const NamedTensor& named : state_dict(net)) changed.push_back(named.tensor);
  changed.push_back(loss);
  return changed;
}

}  // namespace weft
