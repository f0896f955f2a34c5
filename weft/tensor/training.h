// Whether this thread trains.
#pragma once

#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

/// The losses that backward() went through since the last call, as far as somebody still has them
/// and nobody has looked at them. An optimizer's step realizes them with what it changes: later
/// their whole graph would be computed again, from copies of the parameters as they were.
std::vector<Tensor> take_pending_losses(Context& context);

/// Whether dropout and batch norm train; a thread's innermost scope counts, the default is false.
bool is_training();
void set_training(bool on);  ///< until the scope ends that is innermost now
class TrainingScope {
 public:
  explicit TrainingScope(bool on = true);
  ~TrainingScope();
  TrainingScope(const TrainingScope&) = delete;
  TrainingScope& operator=(const TrainingScope&) = delete;

 private:
  bool outer_;
};

}  // namespace weft
