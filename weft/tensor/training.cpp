#include "weft/tensor/training.h"

namespace weft {

namespace {
thread_local bool t_training = false;
}

bool is_training() { return t_training; }
void set_training(bool on) { t_training = on; }
TrainingScope::TrainingScope(bool on) : outer_(t_training) { t_training = on; }
TrainingScope::~TrainingScope() { t_training = outer_; }

}  // namespace weft
