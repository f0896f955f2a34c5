// KeptValues: what the constant steps of a captured function have computed, and from which
// contents.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "weft/run/command_list.h"
#include "weft/run/constant_steps.h"

namespace weft {

/// Computed by the first call that asks, and again by the first one after something they are
/// computed from was written or replaced. State that is written between any two of a few calls is
/// no constant any more, nor is anything where there is no room.
class KeptValues {
 public:
  /// Nothing is computed yet. The plan must outlive it.
  explicit KeptValues(const ReplayPlan& plan);

  /// Of now: another one where take_new() says so, after update() or give_up().
  const DividedPlan& divided() const { return *divided_; }
  /// Whether the plan has been divided since this was last asked.
  bool take_new() { return std::exchange(new_, false); }
  /// For a call whose places have this memory, by buffer: puts what is kept there, too. An error of
  /// the steps leaves nothing computed.
  void update(std::vector<BufferSlice>& memory);
  /// Whether the plan may still be divided anew: by update() or give_up().
  bool may_divide() const { return !divided_->sources.empty() || !divided_->kept.empty(); }
  /// From here on every step runs in each call. False where nothing was kept.
  bool give_up();
  int64_t bytes() const;  ///< held

 private:
  struct Source {
    std::optional<Buffer::Contents> contents;  // at the last call
    int changes = 0;                           // between calls, in a row
  };

  void divide();
  bool note_changes(std::span<const BufferSlice> memory);
  void compute(std::vector<BufferSlice>& memory);
  std::vector<std::shared_ptr<Buffer>> allocate() const;

  const ReplayPlan& plan_;
  std::vector<bool> changing_;   // by place
  std::vector<Source> sources_;  // by place
  std::unique_ptr<const DividedPlan> divided_;
  std::vector<std::shared_ptr<Buffer>> memory_;  // of what is kept
  bool computed_ = false, new_ = false, off_ = false;
};

}  // namespace weft
