// CommandList: a compiled schedule bound to memory and variables, ready to be submitted again and
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/base/small_vector.h"
#include "weft/run/compiled_schedule.h"
#include "weft/run/queue_plan.h"

namespace weft {

class Context;

/// The user's lines a step of the schedule comes from, for messages; empty where nothing is known.
using StepLines = FunctionRef<std::string(size_t step)>;

class CommandList {
 public:
  /// The schedule must outlive the list. Nothing is bound yet.
  explicit CommandList(const CompiledSchedule& schedule);
  CommandList(const CommandList&) = delete;
  CommandList& operator=(const CommandList&) = delete;

  const CompiledSchedule& schedule() const { return schedule_; }
  /// The memory of each of the schedule's buffers. Cheap: only what uses another one than before
  /// changes.
  void set_buffers(std::span<const BufferSlice> memory);
  /// Values in the schedule's order. Buffers' sizes are the caller's business.
  void set_variables(std::span<const int64_t> values);

  /// Runs everything and waits for its end: devices work while the host submits what follows, and
  /// what comes of the run is known when this returns. When it throws, nothing of it goes on, and
  /// left_in() says what the buffers hold.
  void run(Context& context, StepLines lines);
  /// What the last run(), which threw, left in a buffer: nothing was written to it, all that was to
  /// be written was, or some of it may have been.
  enum class Left : uint8_t { Untouched, Finished, Broken };
  Left left_in(int buffer) const;
  /// What is bound to a slot of a step.
  BufferSlice slice(size_t step, size_t slot) const { return slices_[begins_[step].slices + slot]; }

 private:
  /// Commands for one queue of a device in a row, or one copy between two devices.
  struct Segment {
    Device* device;
    size_t begin, end;  // of commands_; a copy between devices has one
    bool across = false;
    int queue = 0;
    SmallVector<size_t, 4> after = {};  // segments on the device's other queues
  };
  /// Of a command, in slices_ and vars_.
  struct Begin {
    uint32_t slices, vars;
  };

  void set(size_t step, size_t slot, BufferSlice slice);
  void add_step(const CompiledStep& step);
  void find_written();
  Command command(size_t step);
  /// Whether it does, for the lengths that are set.
  bool runs(size_t step) const { return schedule_.steps[step].lengths.contain(values()); }
  std::span<const int64_t> values() const {
    return values_ ? std::span<const int64_t>(*values_) : std::span<const int64_t>();
  }
  /// Whether it was, in the last run, as one of a loop that had ended.
  static bool is_left_out(const Command& queued);
  int64_t bytes_copied(const CompiledStep& step) const;
  void cut_segments();
  void queue_commands();
  void count_work();
  size_t queued_before(size_t command) const;
  void add_to_segments(size_t command, bool across, const QueuePlan::Place& place);
  size_t segment_of(size_t command) const;
  void note_writes() const;
  void forget_broken_writes() const;
  using Points = SmallVector<TimelinePoint, 8>;
  void submit_all(Context& context, StepLines lines);
  /// `newest`: the newest point of each queue that the run has used so far.
  Points waits_of(const Segment& segment, const Points& newest) const;
  TimelinePoint run_segment(Context& context, const Segment& segment, const Points& newest,
                            StepLines lines);
  TimelinePoint run_one_by_one(Context& context, const Segment& segment, const Points& waits,
                               StepLines lines);
  TimelinePoint submit(const Segment& segment, size_t begin, size_t end,
                       std::span<const TimelinePoint> waits, StepLines lines);
  void wait(Context& context, Device& device, TimelinePoint point, size_t begin, StepLines lines);
  std::optional<size_t> failed_step(const DeviceError& error, TimelinePoint here,
                                    size_t begin) const;
  [[noreturn]] void rethrow_with_lines(const DeviceError& error, TimelinePoint here, size_t begin,
                                       StepLines lines) const;
  void copy_across(const Command& command, const Points& newest);
  Left left_by(size_t segment) const;
  void count(Context& context, double seconds) const;

  const CompiledSchedule& schedule_;
  /// The first step that writes an input's buffer; the number of steps where none does. Before it,
  /// giving up leaves everything as it was.
  size_t point_of_no_return_;
  std::vector<size_t> written_;                 // buffers that outlive the run and are written
  std::vector<BufferSlice> memory_;             // by buffer, as it was last set
  std::optional<std::vector<int64_t>> values_;  // likewise
  // There is one for each step. Those that have something to do, and which they are: of many rounds
  // a short length leaves few.
  std::vector<Command> queued_;
  std::vector<uint32_t> queued_commands_;
  bool unqueued_ = true;                  // they are to be collected anew
  std::vector<BufferSlice> slices_;       // of all commands, slot by slot
  std::vector<int64_t> vars_;             // of all commands
  std::vector<Begin> begins_;             // by command
  std::vector<const Command*> ended_by_;  // by loop: which of queued_ ended it early in this run
  std::vector<Segment> segments_;
  bool several_queues_ = false;   // segments depend on what is bound
  bool uncut_ = true;             // and that has changed since they were cut
  double flops_ = 0, bytes_ = 0;  // of what runs
  int64_t kernels_ = 0, copies_ = 0;
  bool symbolic_ = false;
  std::vector<TimelinePoint> points_;  // by segment; of copies between devices none
  size_t running_ = 0;                 // segment that was last begun
};

}  // namespace weft
