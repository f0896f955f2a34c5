// The plan of a kernel that is about to be compiled: one that was found earlier, or, with
// WEFT_BEAM, found now.
#pragma once

#include <memory>
#include <string>

#include "weft/run/kernel_trials.h"
#include "weft/run/plan_cache.h"

namespace weft {

class Context;
class RunState;

class PlanSearch {
 public:
  explicit PlanSearch(Context& context);

  /// Whether there can be any plan but the cost model's.
  bool wanted() const { return wanted_; }
  /// Null: the cost model's. `structure`: the kernel's sink in the caches' graph. `lines`: the
  /// user's. Kernels of symbolic sizes are left alone. What ends the wait for a search is thrown
  /// after what it found so far is kept.
  std::shared_ptr<const LoopPlan> plan_of(const TrialSubject& subject, NodeRef structure,
                                          const std::string& lines);

 private:
  void search(const TrialSubject& subject, const PlanKey& key, const std::string& lines);

  Context& context_;
  RunState& run_;
  bool wanted_;
};

}  // namespace weft
