#include "weft/tensor/training.h"

#include "weft/base/context.h"
#include "weft/tensor/access.h"

namespace weft {

namespace {
thread_local bool t_training = false;
}

void PendingLosses::note(const std::shared_ptr<TensorCell>& cell) {
  std::lock_guard lock(mutex_);
  std::erase_if(cells_, [](const Noted& c) { return c.gone(); });
  cells_.emplace_back(cell);
}

std::vector<std::shared_ptr<TensorCell>> PendingLosses::take() {
  std::vector<std::shared_ptr<TensorCell>> alive;
  std::lock_guard lock(mutex_);
  for (const Noted& c : cells_)
    if (auto held = std::dynamic_pointer_cast<TensorCell>(c.taken());
        held && !held->lost() && !held->realized())
      alive.push_back(std::move(held));
  std::erase_if(cells_, [](const Noted& c) { return c.is_mine() || c.gone(); });
  return alive;
}

std::vector<Tensor> take_pending_losses(Context& context) {
  std::vector<Tensor> losses;
  for (auto& cell : context.get<PendingLosses>().take())
    losses.push_back(TensorAccess::whole(std::move(cell)));
  return losses;
}

bool is_training() { return t_training; }
void set_training(bool on) { t_training = on; }
TrainingScope::TrainingScope(bool on) : outer_(t_training) { t_training = on; }
TrainingScope::~TrainingScope() { t_training = outer_; }

}  // namespace weft
