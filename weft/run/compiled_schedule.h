// CompiledSchedule: a schedule whose kernels are loaded and whose sizes are ready to be evaluated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "weft/device/device.h"
#include "weft/graph/index_value.h"
#include "weft/schedule/schedule.h"

namespace weft {

/// What a recording calls something (recorder.h); stream 0: it is in none.
struct RecordedAs {
  uint64_t stream = 0, number = 0;
};

/// A kernel loaded on a device; shared by every schedule that has it.
struct CompiledKernel {
  std::unique_ptr<Executable> executable;
  std::string name;
  std::vector<std::string> variables;  ///< in the order they are passed
  IndexProgram items;                  ///< of the core range, over `variables`
  /// Of a program of groups, its grid: empty where that is none, or 1 along every axis.
  std::vector<IndexProgram> grid;
  std::vector<ProgramParam> params;
  double flops = 0, bytes = 0;  ///< where sizes are static
  RecordedAs recorded;

  /// About what it takes: its code, and what says how it is called.
  size_t bytes_held() const { return static_cast<size_t>(executable->code_bytes()) + 512; }
};

/// `program` is what was loaded.
std::shared_ptr<const CompiledKernel> compiled_kernel(std::string name,
                                                      const LinearProgram& program,
                                                      std::unique_ptr<Executable> executable,
                                                      RecordedAs recorded = {});

/// Values of a variable: of a schedule that has steps for short lengths and others for long ones.
struct Lengths {
  int variable = -1;  ///< position among the schedule's; -1: all values of all of them
  int64_t least = 0, most = 0;

  bool all() const { return variable < 0; }
  bool contain(std::span<const int64_t> values) const {
    if (all()) return true;
    const int64_t value = values[static_cast<size_t>(variable)];
    return least <= value && value <= most;
  }
  /// The same over other positions: variable i is variable positions[i].
  Lengths renumbered(std::span<const int> positions) const {
    return {all() ? -1 : positions[static_cast<size_t>(variable)], least, most};
  }
};

struct CompiledBuffer {
  DType dtype;
  Device* device;
  IndexProgram numel;    ///< over the schedule's variables
  int input = -1;        ///< slot, or -1
  int output = -1;       ///< output it is, or -1
  int copies = 1;        ///< one for each worker, where rounds run side by side
  Lengths lengths = {};  ///< it is there for; of others it has no bytes

  bool intermediate() const { return input < 0 && output < 0; }
};

struct CompiledStep {
  ScheduleStep::Kind kind;
  std::shared_ptr<const CompiledKernel> kernel;  ///< Run
  std::vector<int> buffers;                      ///< Run: by kernel slot. Copy: {from, to}
  /// Of each of the kernel's: its position among the schedule's, or what it always is here.
  struct Variable {
    int position;  ///< -1: fixed
    int64_t fixed;
  };
  std::vector<Variable> variables;
  Device* device;                 ///< that runs it
  std::vector<uint64_t> origins;  ///< ScheduleStep::origins
  int64_t round = -1;             ///< ScheduleStep::round
  int loop = -1, asks = -1;       ///< ScheduleStep::loop, asks
  Lengths lengths = {};           ///< it runs for

  /// Whether it writes the buffer of that slot. Simplifying a kernel may have left its last slots
  /// unused; they have no param.
  bool writes(size_t slot) const {
    if (!kernel) return slot == 1;
    return slot < kernel->params.size() && kernel->params[slot].written;
  }
};

struct CompiledSchedule {
  std::vector<std::string> variables;
  std::vector<CompiledBuffer> buffers;
  std::vector<CompiledStep> steps;
  std::vector<int> outputs;          ///< buffer of each output
  int loops = 0;                     ///< that may end early
  mutable RecordedAs recorded = {};  ///< under RunState::mutex

  int64_t bytes_of(int buffer, std::span<const int64_t> values) const;
  /// About what it takes, with the kernels that it keeps alive.
  size_t bytes_held() const;
};

/// The buffers and steps of a schedule; its steps have no kernels yet.
CompiledSchedule outline(const Schedule& schedule, DeviceTable& devices);

}  // namespace weft
