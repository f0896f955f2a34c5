// ConstantSteps: which steps of a captured function compute the same in every call, so that they
// need not run in every call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "weft/run/replay_plan.h"

namespace weft {

/// A plan in two: what depends on nothing that a call changes, and what runs in each call. A step
/// is constant where all it touches is: state that no step writes and that keeps its memory, and
/// what constant steps alone write, before anybody else looks. Arguments, results and whatever has
/// a symbolic size are not. Products are scheduled anew once it is known which operands are.
struct DividedPlan {
  /// Everything runs in each call.
  explicit DividedPlan(const ReplayPlan& plan);
  /// `changing`: by place, state that is taken to change as arguments do.
  DividedPlan(const ReplayPlan& plan, const std::vector<bool>& changing);

  CapturedSteps constant, each_call;  ///< over the same numbers of buffers
  std::vector<int> kept;              ///< buffers that the first part leaves to the second
  std::vector<size_t> sources;        ///< places that the first part reads
  std::vector<int> done_with;         ///< buffers of those that the second does not read
  int64_t kept_bytes = 0;

  std::string text() const;  ///< for people: what is kept; nothing where nothing is

 private:
  void divide(CapturedSteps steps, const std::vector<bool>& runs);
};

}  // namespace weft
