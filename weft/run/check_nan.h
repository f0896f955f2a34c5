// WEFT_CHECK_NAN: when a realized value has a NaN, the operation in which the first one appeared.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/run/storage.h"

namespace weft {

/// Made before values are realized, whose expressions it keeps.
class NanCheck {
 public:
  using Realize = FunctionRef<void(std::span<const std::shared_ptr<Storage>>)>;

  NanCheck(Context& context, std::span<const std::shared_ptr<Storage>> storages);
  ~NanCheck();
  NanCheck(const NanCheck&) = delete;
  NanCheck& operator=(const NanCheck&) = delete;

  /// Afterwards: an Error where one of them has a NaN. It computes what they were made of again,
  /// operation by operation, to name the first that gave one, its line, and what it was given.
  void run(Realize realize);

 private:
  [[noreturn]] void report(NodeRef n, const Storage& result, Realize realize) const;

  Context& context_;
  std::vector<std::shared_ptr<Storage>> storages_;
  std::vector<NodeRef> values_;  // rooted
};

}  // namespace weft
