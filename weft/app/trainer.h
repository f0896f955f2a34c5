// Trainer: one network, its data, its place in the training, and the checkpoint of all that.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/app/commands.h"
#include "weft/app/fashion.h"
#include "weft/nn/optim.h"

namespace weft {

// The course of a training so far; part of the checkpoint, so that a resumed one has whole curves.
struct TrainHistory {
  std::vector<float> loss;      // of every step
  std::vector<float> accuracy;  // on the test images after every epoch, 0 to 1
};

class Trainer {
 public:
  Trainer(const TrainOptions& options, Context& context);
  ~Trainer();

  int64_t batch() const { return options_.batch; }
  int64_t steps_per_epoch() const { return steps_per_epoch_; }
  int64_t epoch() const { return step_ / steps_per_epoch_; }  // that the next step belongs to
  int64_t step_in_epoch() const { return step_ % steps_per_epoch_; }

  float train_step();  // the loss of the next batch
  double evaluate();   // share of the test images classified rightly; noted in the history
  const TrainHistory& history() const { return history_; }
  double learning_rate() const;  // of the next step

  // Everything that the rest of the training depends on, replaced atomically.
  void save(const std::string& path);
  void resume(const std::string& path);

 private:
  struct Captured;

  StateDict state();
  Tensor loss_on(const Tensor& samples);
  Tensor backward_on(const Tensor& samples);  // the loss, of --accumulate micro-batches
  Tensor step_on(const Tensor& samples);
  Tensor right_answers(const Tensor& first);
  void shuffle();
  Metadata metadata() const;
  void restore_place(const Metadata& metadata, const std::string& path);

  TrainOptions options_;
  int64_t steps_per_epoch_, test_batch_;
  int64_t step_ = 0;
  TrainHistory history_;
  Tensor images_, labels_, test_images_, test_labels_;
  std::unique_ptr<FashionNet> net_;
  std::unique_ptr<nn::Optimizer> optimizer_;
  std::unique_ptr<Captured> captured_;
  std::vector<int32_t> order_;  // of the training images in order_epoch_
  int64_t order_epoch_ = -1;
};

}  // namespace weft
