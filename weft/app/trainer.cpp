#include "weft/app/trainer.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/tensor/jit.h"
#include "weft/tensor/training.h"
#include "weft/tensor/transforms.h"

namespace weft {

namespace {

constexpr int64_t kTestBatch = 1000;

Tensor device_images(const HostArray& images) {
  const int64_t n = images.shape[0];
  return Tensor::from_bytes(images.bytes, images.dtype, {n, 1, kFashionSide, kFashionSide});
}

// Pixels as the network takes them.
Tensor scaled(const Tensor& images) { return images.cast(DType::F32) * (1.0 / 255); }

int64_t number_in(const Metadata& metadata, const std::string& key, const std::string& path) {
  const auto found = metadata.find(key);
  int64_t value = 0;
  if (found != metadata.end()) {
    const std::string& text = found->second;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && stop == text.data() + text.size() && value >= 0) return value;
  }
  fail_runtime("resume.metadata",
               "{}: its metadata has no number '{}'; it is not a checkpoint of "
               "`weft train`",
               path, key);
}

std::vector<float> floats_named(const StateDict& state, const std::string& name) {
  for (const NamedTensor& named : state) {
    if (named.name == name) return named.tensor.to_vector<float>();
  }
  return {};
}

}  // namespace

// The functions that are captured once and replayed.
struct Trainer::Captured {
  using Function = std::function<Tensor(const Tensor&)>;
  Jit<Function> step, test;
};

Trainer::Trainer(const TrainOptions& options, Context& context) : options_(options) {
  const FashionData data = load_fashion(options.data, options.limit, context);
  steps_per_epoch_ = data.train.count() / options.batch;
  if (steps_per_epoch_ == 0) {
    fail("train.batch", "a batch of {} is more than the {} training images; use a smaller --batch",
         options.batch, data.train.count());
  }
  if (options.batch % options.accumulate != 0) {
    fail("train.accumulate",
         "a batch of {} cannot be cut into {} equal micro-batches; make --batch a multiple of "
         "--accumulate",
         options.batch, options.accumulate);
  }
  test_batch_ = std::gcd(kTestBatch, data.test.count());
  images_ = device_images(data.train.images);
  labels_ = tensor_of(data.train.labels);
  test_images_ = device_images(data.test.images);
  test_labels_ = tensor_of(data.test.labels);

  Tensor::manual_seed(static_cast<uint64_t>(options.seed));
  net_ = std::make_unique<FashionNet>();
  optimizer_ = std::make_unique<nn::Adam>(parameters(*net_), nn::AdamOptions{.lr = options.lr});
  std::vector<Tensor> all;
  for (const NamedTensor& named : state()) all.push_back(named.tensor);
  realize(all);
  Captured::Function step = [this](const Tensor& samples) { return step_on(samples); };
  Captured::Function test = [this](const Tensor& first) { return right_answers(first); };
  captured_ = std::make_unique<Captured>(
      Captured{jit(std::move(step), "train step"), jit(std::move(test), "test step")});
}

Trainer::~Trainer() = default;

StateDict Trainer::state() {
  StateDict all;
  const auto leaf = [&](const std::string& name, Tensor& t) { all.push_back({name, t}); };
  StateVisitor visitor(leaf);
  visitor("model", *net_);
  visitor("optimizer", *optimizer_);
  return all;
}

Tensor Trainer::loss_on(const Tensor& samples) {
  const Tensor logits = (*net_)(scaled(images_[samples]));
  return logits.sparse_categorical_crossentropy(labels_[samples].cast(DType::I32));
}

Tensor Trainer::backward_on(const Tensor& samples) {
  if (options_.accumulate > 1)
    return accumulate_gradients([this](const Tensors& x) { return loss_on(x[0]); }, {samples},
                                options_.accumulate);
  Tensor loss = loss_on(samples);
  loss.backward();
  return loss;
}

Tensor Trainer::step_on(const Tensor& samples) {
  const TrainingScope training;
  optimizer_->zero_grad();
  const Tensor loss = backward_on(samples);
  std::vector<Tensor> changed = optimizer_->schedule_step();
  optimizer_->zero_grad();  // what still has a name would be computed for its own sake
  changed.push_back(loss);
  for (const NamedTensor& named : state_dict(*net_)) changed.push_back(named.tensor);
  realize(changed);
  return loss;
}

// Of the test images first, first + 1, ...: how many are classified rightly.
Tensor Trainer::right_answers(const Tensor& first) {
  const Tensor samples = Tensor::arange(test_batch_) + first;
  const Tensor answers = (*net_)(scaled(test_images_[samples])).argmax(1);
  Tensor right = (answers == test_labels_[samples].cast(DType::I32)).cast(DType::I32).sum();
  return right.realize();
}

// The order depends on the seed and the epoch only, so that a resumed training has the same.
void Trainer::shuffle() {
  if (order_epoch_ == epoch()) return;
  order_epoch_ = epoch();
  const auto n = static_cast<size_t>(labels_.size(0));
  Tensor::manual_seed(
      hash_combine(static_cast<uint64_t>(options_.seed), static_cast<uint64_t>(order_epoch_) + 1));
  const auto keys = Tensor::rand({n}).to_vector<float>();
  order_.resize(n);
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::sort(order_, {},
                    [&](int32_t i) { return std::pair(keys[static_cast<size_t>(i)], i); });
}

// Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017, without any.
double Trainer::learning_rate() const {
  if (options_.schedule == "constant") return options_.lr;
  const auto steps = static_cast<double>(options_.epochs * steps_per_epoch_);
  return options_.lr * (1 + std::cos(std::numbers::pi * static_cast<double>(step_) / steps)) / 2;
}

float Trainer::train_step() {
  shuffle();
  optimizer_->set_lr(learning_rate());
  const auto at = static_cast<size_t>(step_in_epoch() * options_.batch);
  const auto samples =
      std::span<const int32_t>(order_).subspan(at, static_cast<size_t>(options_.batch));
  const float loss = captured_->step(Tensor::from(samples, {options_.batch})).item<float>();
  ++step_;
  history_.loss.push_back(loss);
  return loss;
}

double Trainer::evaluate() {
  int64_t right = 0;
  const int64_t count = test_labels_.size(0);
  for (int64_t first = 0; first < count; first += test_batch_) {
    const auto at = static_cast<int32_t>(first);
    right += captured_->test(Tensor::from(std::span(&at, 1), {1})).item<int64_t>();
  }
  const double share = static_cast<double>(right) / static_cast<double>(count);
  history_.accuracy.push_back(static_cast<float>(share));
  return share;
}

Metadata Trainer::metadata() const {
  return {{"task", options_.task},
          {"step", std::to_string(step_)},
          {"seed", std::to_string(options_.seed)},
          {"batch", std::to_string(options_.batch)},
          {"images", std::to_string(labels_.size(0))}};
}

void Trainer::save(const std::string& path) {
  StateDict all = state();
  all.push_back({"history.loss", Tensor::from(history_.loss)});
  all.push_back({"history.accuracy", Tensor::from(history_.accuracy)});
  save_tensors(path, all, metadata());
}

void Trainer::restore_place(const Metadata& metadata, const std::string& path) {
  for (const auto& [key, now] : {std::pair{"batch", options_.batch}, {"images", labels_.size(0)}}) {
    const int64_t then = number_in(metadata, key, path);
    if (then == now) continue;
    fail("resume.options",
         "{}: was trained with {} = {}, this run has {}; its place in the epoch "
         "would be another. Use the same, or start without --resume",
         path, key, then, now);
  }
  options_.seed = number_in(metadata, "seed", path);
  step_ = number_in(metadata, "step", path);
}

void Trainer::resume(const std::string& path) {
  const LoadedTensors saved = load_tensors(path);
  restore_place(saved.metadata, path);
  load_state_dict(*net_, with_prefix(saved.tensors, "model."));
  load_state_dict(*optimizer_, with_prefix(saved.tensors, "optimizer."));
  history_.loss = floats_named(saved.tensors, "history.loss");
  history_.accuracy = floats_named(saved.tensors, "history.accuracy");
}

}  // namespace weft
