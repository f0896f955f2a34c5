// Ema: an exponential moving average of a model's tensors, which often tests better than the model.
#pragma once

#include "weft/nn/state.h"

namespace weft::nn {

struct EmaOptions {
  double decay = 0.999;  // in [0, 1]
  // The decay is at most (1 + updates) / (10 + updates), so that the start is soon forgotten.
  bool warm_up = false;
};

//   nn::Ema ema(state_dict(net), {.decay = 0.999});
//   adam.step();
//   ema.update();
//   ...
//   ema.swap();  // test the average
//   ema.swap();  // train on
//
// Floating-point tensors are averaged, in f32 at least; of others it has the last values. Polyak
// and Juditsky 1992.
class Ema {
 public:
  explicit Ema(StateDict model, const EmaOptions& options = {}, CallSite at = CallSite::here());

  void update(CallSite = CallSite::here());
  // The same without running: realize these.
  std::vector<Tensor> schedule_update(CallSite = CallSite::here());
  // Exchanges the values of the model and the average.
  void swap(CallSite = CallSite::here());

  // The average under the names of the model, and "updates".
  void visit(StateVisitor& v);

 private:
  StateDict model_, average_;
  Tensor updates_;  // f32 ()
  EmaOptions options_;
};

}  // namespace weft::nn
