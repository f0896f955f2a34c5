// The last step before a schedule runs: its commands get memory, and its variables values.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/run/arenas.h"
#include "weft/run/command_list.h"

namespace weft {

/// The memory of planned arenas.
struct Arenas {
  Arenas() = default;
  /// All of it, or an Error that says what the most of it is for.
  Arenas(const PlannedMemory& plan, StepLines lines);

  /// Where each intermediate lies, into `memory`, which is by buffer of the schedule.
  void place(const PlannedMemory& plan, std::span<BufferSlice> memory) const;

  std::vector<std::shared_ptr<Buffer>> memory;  ///< by arena
};

/// Calls `allocate`; where that fails for want of memory, the Error says what the most of it is
/// for.
void explain_failure(const ArenaPlan& arena, StepLines lines, FunctionRef<void()> allocate);
/// Where an arena's buffers lie in its memory.
void place_in(const PlannedMemory& plan, const ArenaPlan& arena, Buffer* memory,
              FunctionRef<void(int buffer, BufferSlice slice)> put);

/// Commands on their way to memory.
struct BindState {
  CommandList& list;
  std::span<const BufferSlice> memory;  ///< by buffer of the schedule; without one: unused
  std::span<const int64_t> values;      ///< of the schedule's variables

  std::string_view name() const { return "commands"; }
  PassView view() const;
  std::string text() const;  ///< the memory of each command's slots
};

/// In order.
std::span<const Pass<BindState>> bind_passes();

void bind_commands(CommandList& list, std::span<const BufferSlice> memory,
                   std::span<const int64_t> values);

}  // namespace weft
