// Replay::State: a replay plan bound to memory.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "weft/run/bind.h"
#include "weft/run/kept_values.h"
#include "weft/run/replay_plan.h"
#include "weft/run/save_repro.h"
#include "weft/run/shared_arenas.h"

namespace weft {

/// An Error when the same storage is passed twice.
void check_distinct(std::span<const ReplayArgument> arguments);

/// Copies a realized storage's contents to a fresh buffer that becomes its value.
void give_own_memory(Context& context, Storage& storage);

struct Replay::State {
  explicit State(std::unique_ptr<ReplayPlan> p);

  void run(std::span<const ReplayArgument> arguments, std::span<const ReplayVariable> variables,
           Take take);
  const CapturedSteps& each_call() const { return kept.divided().each_call; }

  std::unique_ptr<ReplayPlan> plan;
  KeptValues kept;
  std::optional<CommandList> list;  // of the steps of each call; none: to be made
  ArenaShares arenas;               // theirs
  std::vector<BufferSlice> memory;  // by buffer of the schedule
  std::vector<int64_t> values;      // the arenas are planned for; empty: not yet
  struct Bound {
    NodeRef node = nullptr;
    uint64_t key = 0;  // an address may be used again
    const Buffer* buffer = nullptr;
  };
  std::vector<Bound> bound;       // what each place was when it was last checked
  std::vector<NodeRef> to_write;  // nodes of the places written in place

 private:
  void make_list();
  void update_kept();
  void plan_for(std::span<const int64_t> values);
  std::vector<int64_t> intermediate_sizes(std::span<const int64_t> values) const;
  void record(const PlannedMemory& planned) const;
  void settle_leftovers();
  void check_frozen() const;
  void set_values(std::span<const ReplayVariable> variables);
  void bind_places(std::span<const ReplayArgument> arguments);
  NodeRef place_node(size_t i, Storage& storage);
  void check_form(const HeldPlace& place, const Storage& storage) const;
  void check_state(const ReplayArgument& argument) const;
  void make_exclusive(std::span<const ReplayArgument> arguments);
  Storage& storage_of(size_t place, std::span<const ReplayArgument> arguments) const;
  std::vector<std::shared_ptr<Buffer>> allocate_fresh();
  std::vector<std::shared_ptr<Buffer>> try_allocate_fresh();
  void give_back_spare_memory();
  void execute(std::span<const ReplayArgument> arguments);
  std::vector<std::unique_ptr<NotedRun>> noted();
  void commit(std::span<const ReplayArgument> arguments, std::vector<std::shared_ptr<Buffer>> made,
              Take take);
  std::vector<NodeRef> dims_of(const TensorForm& form) const;
  auto lines() const {
    return [this](size_t step) { return each_call().sites(step).text(); };
  }

  int64_t calls_ = 0;
  std::vector<int64_t> planned_sizes_;  // of intermediates, for which the arenas are; empty: none
  std::vector<std::unique_ptr<CrashNote>> notes_;  // with WEFT_REPRO: of each computation
};

}  // namespace weft
