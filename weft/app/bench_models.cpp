#include "weft/app/bench_models.h"

#include "weft/app/fashion.h"
#include "weft/app/gpt2.h"
#include "weft/base/error.h"
#include "weft/nn/optim.h"
#include "weft/tensor/training.h"

namespace weft {

namespace {

void realize_state(const StateDict& state) {
  std::vector<Tensor> all;
  for (const NamedTensor& named : state) all.push_back(named.tensor);
  realize(all);
}

// Everything that a step changed: parameters, their moments, running statistics, the loss.
std::vector<Tensor> changed_by(nn::Optimizer& optimizer, const StateDict& model,
                               const Tensor& loss) {
  loss.backward();
  std::vector<Tensor> changed = optimizer.schedule_step();
  optimizer.zero_grad();
  for (const NamedTensor& named : model) changed.push_back(named.tensor);
  changed.push_back(loss);
  return changed;
}

class MnistModel : public BenchModel {
 public:
  MnistModel() : adam_(parameters(net_)) {
    realize_state(state_dict(net_));
    realize_state(state_dict(adam_));
    realize({images_, labels_, samples_});
  }
  std::vector<Tensor> step() override {
    const TrainingScope training;
    adam_.zero_grad();
    const Tensor x = images_[samples_].cast(DType::F32) * (1.0 / 255);
    const Tensor loss = net_(x).sparse_categorical_crossentropy(labels_[samples_]);
    return changed_by(adam_, state_dict(net_), loss);
  }

 private:
  static constexpr int64_t kImages = 60000, kBatch = 512;
  FashionNet net_;
  nn::Adam adam_;
  Tensor images_ = Tensor::zeros({kImages, 1, 28, 28}, DType::U8).contiguous();
  Tensor labels_ = Tensor::zeros({kImages}, DType::I32).contiguous();
  Tensor samples_ = Tensor::zeros({kBatch}, DType::I32).contiguous();
};

class Gpt2Model : public BenchModel {
 public:
  Gpt2Model() : adam_(parameters(net_)) {
    realize_state(state_dict(net_));
    realize_state(state_dict(adam_));
    realize({ids_, next_});
  }
  std::vector<Tensor> step() override {
    const TrainingScope training;
    adam_.zero_grad();
    const Tensor logits = net_(ids_).reshape({kTokens, -1});
    const Tensor loss = logits.sparse_categorical_crossentropy(next_);
    return changed_by(adam_, state_dict(net_), loss);
  }

 private:
  static constexpr int64_t kTokens = 32;
  Gpt2 net_;
  nn::Adam adam_;
  Tensor ids_ = Tensor::zeros({1, kTokens}, DType::I32).contiguous();
  Tensor next_ = Tensor::zeros({kTokens}, DType::I32).contiguous();
};

}  // namespace

std::unique_ptr<BenchModel> make_bench_model(const std::string& name) {
  if (name == "mnist") return std::make_unique<MnistModel>();
  if (name == "gpt2") return std::make_unique<Gpt2Model>();
  fail("bench", "there is no model '{}'; mnist and gpt2 exist", name);
}

bool is_bench_model(std::string_view name) { return name == "mnist" || name == "gpt2"; }

}  // namespace weft
