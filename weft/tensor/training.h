// Whether this thread trains.
#pragma once

namespace weft {

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
