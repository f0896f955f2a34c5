// CommandList: a compiled schedule bound to memory and variables, ready to be submitted again and
// again.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "weft/run/compiled_schedule.h"

namespace weft {

class Context;

class CommandList {
 public:
  /// The schedule must outlive the list. Nothing is bound yet.
  explicit CommandList(const CompiledSchedule& schedule);
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  /// The memory of a buffer, by its index in the schedule. Cheap: only the places that use it
  /// change.
  void set_buffer(int buffer, BufferSlice slice);
  /// Values in the schedule's order. Buffers' sizes are the caller's business.
  void set_variables(std::span<const int64_t> values);

  /// Runs everything. When it throws, left_in() says what the buffers hold.
  void run(Context& context);
  /// What the last run(), which threw, left in a buffer: nothing was written to it, all that was to
  /// be written was, or some of it may have been.
  enum class Left : uint8_t { Untouched, Finished, Broken };
  Left left_in(int buffer) const;

 private:
  /// Commands for one device in a row, or one copy between two.
  struct Segment {
    Device* device;
    size_t begin, end;  // of commands_; a copy between devices has one
    bool across = false;
  };
  struct Place {
    size_t command;
    int slot;
  };

  void add_step(const CompiledStep& step, size_t& slices, size_t& vars);
  void cut_segments();
  void run_segment(Context& context, const Segment& segment, std::vector<TimelinePoint>& reached);
  void run_one_by_one(Context& context, const Segment& segment,
                      std::span<const TimelinePoint> waits);
  void copy_across(const Command& command);
  void count(Context& context, double seconds) const;

  const CompiledSchedule& schedule_;
  std::vector<Command> commands_;     // one per step
  std::vector<BufferSlice> slices_;   // of all commands, slot by slot
  std::vector<int64_t> vars_;         // of all commands
  std::vector<uint32_t> uses_begin_;  // by buffer, into uses_
  std::vector<Place> uses_;
  std::vector<int64_t> values_;
  std::vector<Segment> segments_;
  double flops_ = 0, bytes_ = 0;
  int64_t kernels_ = 0;
  bool symbolic_ = false;
  size_t running_ = 0;  // segment that was last begun
};

/// Memory for one run of a schedule: what it binds beyond inputs and outputs.
struct Arenas {
  std::vector<std::shared_ptr<Buffer>> memory;
  /// Allocates and binds every intermediate for these values.
  void bind(CommandList& list, const CompiledSchedule& schedule, std::span<const int64_t> values);
  int64_t bytes() const;
};

}  // namespace weft
