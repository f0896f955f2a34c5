#include "weft/run/tensor_names.h"

#include <algorithm>

namespace weft {

void TensorNames::set(const std::shared_ptr<Storage>& storage, std::string_view name) {
  const std::lock_guard lock(mutex_);
  names_[storage.get()] = {storage, std::string(name)};
  if (names_.size() < most_) return;
  std::erase_if(names_, [](const auto& entry) { return entry.second.storage.expired(); });
  most_ = std::max<size_t>(1024, 2 * names_.size());
}

std::string TensorNames::find(const std::shared_ptr<Storage>& storage) const {
  const std::lock_guard lock(mutex_);
  const auto at = names_.find(storage.get());
  return at != names_.end() && !at->second.storage.expired() ? at->second.name : std::string();
}

}  // namespace weft
