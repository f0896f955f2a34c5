// TensorNames: what programs call their tensors, for recordings.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

namespace weft {

class Storage;

/// A slot of the Context. Any thread may call.
class TensorNames {
 public:
  /// A parameter's name, as "block.0.conv.weight"; the last one counts.
  void set(const std::shared_ptr<Storage>& storage, std::string_view name);
  /// Empty where none was given.
  std::string find(const std::shared_ptr<Storage>& storage) const;

 private:
  struct Named {
    std::weak_ptr<Storage> storage;  // an address may be used again
    std::string name;
  };
  mutable std::mutex mutex_;
  std::unordered_map<const Storage*, Named> names_;
  size_t most_ = 1024;  // then the names of what is gone go, too
};

}  // namespace weft
