#include "weft/run/command_list.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/base/log.h"
#include "weft/run/run_state.h"

namespace weft {

namespace {

/// Of a device that completes at once nothing is gained by the others.
bool has_several_queues(const Device& device) {
  return device.queues() > 1 && !device.completes_at_once();
}

/// A length ends before this.
bool is_empty(const Command& c) {
  return c.kind == Command::Kind::Launch &&
         (c.items == 0 || std::ranges::find(c.grid, 0) != c.grid.end());
}

}  // namespace

CommandList::CommandList(const CompiledSchedule& schedule)
    : schedule_(schedule),
      point_of_no_return_(schedule.steps.size()),
      memory_(schedule.buffers.size()),
      ended_by_(static_cast<size_t>(schedule.loops)) {
  Begin end{0, 0};
  begins_.reserve(schedule.steps.size());
  for (const CompiledStep& s : schedule.steps) {
    begins_.push_back(end);
    end.slices += static_cast<uint32_t>(s.buffers.size());
    end.vars += static_cast<uint32_t>(s.variables.size());
    add_step(s);
  }
  // Sized once: the commands' spans point into these.
  slices_.resize(end.slices);
  vars_.resize(end.vars);
  find_written();
}

void CommandList::add_step(const CompiledStep& s) {
  several_queues_ |= has_several_queues(*s.device);
  symbolic_ |= !s.lengths.all() || !s.variables.empty();
  if (!s.kernel)
    symbolic_ |= !schedule_.buffers[static_cast<size_t>(s.buffers[0])].numel.is_constant();
}

void CommandList::count_work() {
  kernels_ = copies_ = 0;
  flops_ = bytes_ = 0;
  for (size_t i = 0; i < schedule_.steps.size(); ++i) {
    if (!runs(i)) continue;
    const CompiledKernel* kernel = schedule_.steps[i].kernel.get();
    ++(kernel ? kernels_ : copies_);
    flops_ += kernel ? kernel->flops : 0;
    bytes_ += kernel ? kernel->bytes : 0;
  }
}

void CommandList::find_written() {
  for (size_t i = 0; i < schedule_.steps.size(); ++i) {
    const CompiledStep& s = schedule_.steps[i];
    for (size_t slot = 0; slot < s.buffers.size(); ++slot) {
      const auto b = static_cast<size_t>(s.buffers[slot]);
      if (!s.writes(slot) || schedule_.buffers[b].intermediate()) continue;
      written_.push_back(b);
      if (schedule_.buffers[b].input >= 0) point_of_no_return_ = std::min(point_of_no_return_, i);
    }
  }
  std::ranges::sort(written_);
  written_.erase(std::ranges::unique(written_).begin(), written_.end());
}

int64_t CommandList::bytes_copied(const CompiledStep& s) const {
  return schedule_.bytes_of(s.buffers[0], values());
}

Command CommandList::command(size_t step) {
  const CompiledStep& s = schedule_.steps[step];
  const Begin& begin = begins_[step];
  const auto slices = std::span(slices_).subspan(begin.slices, s.buffers.size());
  const Command** ended_by = s.loop < 0 ? nullptr : &ended_by_[static_cast<size_t>(s.loop)];
  if (!s.kernel) {
    Command c = Command::copy(slices[0], slices[1], bytes_copied(s));
    c.ended_by = ended_by;
    return c;
  }
  const auto vars = std::span(vars_).subspan(begin.vars, s.variables.size());
  Command c = Command::launch(*s.kernel->executable, slices, vars, s.kernel->items(vars));
  for (size_t axis = 0; axis < s.kernel->grid.size(); ++axis)
    c.grid[axis] = s.kernel->grid[axis](vars);
  c.round = s.round;
  c.ended_by = ended_by;
  if (s.asks >= 0) {
    c.asks = s.asks;
    c.bytes = schedule_.bytes_of(s.buffers[static_cast<size_t>(s.asks)], values());
  }
  return c;
}

void CommandList::cut_segments() {
  segments_.clear();
  std::vector<QueuePlan> plans;  // of the devices that have several queues
  for (size_t i = 0; i < schedule_.steps.size(); ++i) {
    const CompiledStep& s = schedule_.steps[i];
    // Nothing is overwritten while what comes before may still fail.
    if (i == point_of_no_return_)
      for (QueuePlan& plan : plans) plan.add_barrier();
    const bool across =
        !s.kernel && schedule_.buffers[static_cast<size_t>(s.buffers[0])].device != s.device;
    if (across || !has_several_queues(*s.device) || !runs(i)) {
      add_to_segments(i, across, {});
      continue;
    }
    auto plan = std::ranges::find(plans, s.device, [](QueuePlan& p) { return &p.device(); });
    if (plan == plans.end()) plan = plans.insert(plan, QueuePlan(*s.device));
    add_to_segments(i, false, plan->add(i, command(i)));
  }
  uncut_ = false;
}

void CommandList::add_to_segments(size_t i, bool across, const QueuePlan::Place& place) {
  Device* device = schedule_.steps[i].device;
  const Segment* last = segments_.empty() ? nullptr : &segments_.back();
  if (last && !across && !last->across && last->device == device && last->queue == place.queue &&
      place.after.empty() && i != point_of_no_return_) {
    segments_.back().end = i + 1;
    return;
  }
  Segment segment{device, i, i + 1, across, place.queue};
  for (const size_t command : place.after) segment.after.push_back(segment_of(command));
  segments_.push_back(std::move(segment));
}

/// Parts of segments are parts of this, in the same order.
void CommandList::queue_commands() {
  queued_.clear();
  queued_commands_.clear();
  queued_.reserve(schedule_.steps.size());
  queued_commands_.reserve(schedule_.steps.size());
  for (size_t i = 0; i < schedule_.steps.size(); ++i) {
    if (!runs(i)) continue;
    const Command c = command(i);
    if (is_empty(c)) continue;
    queued_.push_back(c);
    queued_commands_.push_back(static_cast<uint32_t>(i));
  }
  count_work();
  unqueued_ = false;
}

size_t CommandList::queued_before(size_t command) const {
  const auto at = std::ranges::lower_bound(queued_commands_, command);
  return static_cast<size_t>(at - queued_commands_.begin());
}

size_t CommandList::segment_of(size_t command) const {
  const auto after = std::ranges::upper_bound(segments_, command, {}, &Segment::begin);
  return static_cast<size_t>(after - segments_.begin()) - 1;
}

void CommandList::set_buffers(std::span<const BufferSlice> memory) {
  std::vector<bool> changed(memory.size());
  bool any = false;
  for (size_t b = 0; b < memory.size(); ++b) {
    if (memory[b] == memory_[b]) continue;
    memory_[b] = memory[b];
    changed[b] = any = true;
  }
  if (!any) return;
  uncut_ |= several_queues_;
  for (size_t i = 0; i < schedule_.steps.size(); ++i) {
    const CompiledStep& s = schedule_.steps[i];
    for (size_t slot = 0; slot < s.buffers.size(); ++slot)
      if (const auto b = static_cast<size_t>(s.buffers[slot]); b < changed.size() && changed[b])
        set(i, slot, memory[b]);
  }
}

void CommandList::set(size_t step, size_t slot, BufferSlice slice) {
  slices_[begins_[step].slices + slot] = slice;
  if (unqueued_ || schedule_.steps[step].kernel || !runs(step)) return;
  Command& c = queued_[queued_before(step)];  // a copy that runs is never empty
  (slot == 0 ? c.from : c.to) = slice;
}

void CommandList::set_variables(std::span<const int64_t> values) {
  if (!symbolic_ || (values_ && std::ranges::equal(*values_, values))) return;
  uncut_ |= several_queues_;
  unqueued_ = true;
  auto var = vars_.begin();
  for (const CompiledStep& s : schedule_.steps)
    for (const auto& [position, fixed] : s.variables)
      *var++ = position < 0 ? fixed : values[static_cast<size_t>(position)];
  values_.emplace(values.begin(), values.end());
}

namespace {

/// Its failure is told with the one that is thrown.
void wait_in_silence(Device& device, TimelinePoint point) {
  try {
    device.wait(point);
  } catch (const DeviceError&) {}
}

}  // namespace

void CommandList::run(Context& context, StepLines lines) {
  const uint64_t start = now_ns();
  if (uncut_) cut_segments();
  if (unqueued_) queue_commands();
  note_writes();
  std::ranges::fill(ended_by_, nullptr);
  points_.assign(segments_.size(), {});
  try {
    submit_all(context, lines);
    for (size_t i = 0; i < segments_.size(); ++i)
      wait(context, *segments_[i].device, points_[i], segments_[i].begin, lines);
  } catch (...) {
    for (size_t i = 0; i < segments_.size(); ++i) wait_in_silence(*segments_[i].device, points_[i]);
    forget_broken_writes();
    throw;
  }
  count(context, static_cast<double>(now_ns() - start) * 1e-9);
}

/// Also of a run that fails half-way.
void CommandList::note_writes() const {
  for (const size_t b : written_) memory_[b].buffer->note_write();
}

/// The failure is told here, and nobody reads what it left: storages of it stay lazy or are lost.
/// Who writes it anew, on another queue maybe, is not to find the old failure there.
void CommandList::forget_broken_writes() const {
  for (const size_t b : written_)
    if (Buffer& buffer = *memory_[b].buffer; left_in(static_cast<int>(b)) == Left::Broken)
      buffer.device().allocator().forget_uses(buffer);
}

void CommandList::submit_all(Context& context, StepLines lines) {
  Points newest;
  for (running_ = 0; running_ < segments_.size(); ++running_) {
    const TimelinePoint point = run_segment(context, segments_[running_], newest, lines);
    points_[running_] = point;
    if (point.timeline == nullptr) continue;
    const auto own = std::ranges::find(newest, point.timeline, &TimelinePoint::timeline);
    if (own == newest.end())
      newest.push_back(point);
    else
      *own = point;
  }
}

CommandList::Left CommandList::left_by(size_t segment) const {
  if (segment > running_) return Left::Untouched;
  if (segment == running_) return Left::Broken;  // how far it came is not known
  const TimelinePoint& point = points_[segment];
  const Failure* failure = point.timeline ? point.timeline->failure(point.value) : nullptr;
  return !failure ? Left::Finished : failure->begun ? Left::Broken : Left::Untouched;
}

CommandList::Left CommandList::left_in(int buffer) const {
  bool touched = false, finished = true;
  size_t segment = 0;
  for (size_t i = 0; i < schedule_.steps.size(); ++i) {
    const CompiledStep& s = schedule_.steps[i];
    for (size_t slot = 0; slot < s.buffers.size(); ++slot) {
      if (s.buffers[slot] != buffer || !s.writes(slot)) continue;
      while (segments_[segment].end <= i) ++segment;
      const Left left = left_by(segment);
      touched |= left != Left::Untouched;
      finished &= left == Left::Finished;
    }
  }
  return !touched ? Left::Untouched : finished ? Left::Finished : Left::Broken;
}

TimelinePoint CommandList::run_segment(Context& context, const Segment& s, const Points& newest,
                                       StepLines lines) {
  if (auto* interrupt = context.get_if<InterruptCheck>()) {
    interrupt->harmless = s.end <= point_of_no_return_;
    if (interrupt->harmless && interrupt->ask && !s.device->completes_at_once()) interrupt->ask();
  }
  if (s.across) {
    if (!runs(s.begin)) return {};
    try {
      copy_across(command(s.begin), newest);
    } catch (const DeviceError& error) {
      rethrow_with_lines(error, {}, s.begin, lines);
    }
    return {};
  }
  const Points waits = waits_of(s, newest);
  if (log_enabled(context, 2) || context.get<RunState>().observer.ran)
    return run_one_by_one(context, s, waits, lines);
  return submit(s, s.begin, s.end, waits, lines);
}

/// The queue's own last point, too: what came before this failed, and this is not begun. Of the
/// device's other queues, what it depends on.
CommandList::Points CommandList::waits_of(const Segment& s, const Points& newest) const {
  Points waits;
  const auto is_other_queue = [&s](const Timeline* line) {
    for (int q = 0; q < s.device->queues(); ++q)
      if (q != s.queue && line == &s.device->timeline(q)) return true;
    return false;
  };
  for (const TimelinePoint& p : newest)
    if (!is_other_queue(p.timeline)) waits.push_back(p);
  for (const size_t before : s.after) waits.push_back(points_[before]);
  return waits;
}

/// The step in which the work failed that submit() or wait() of `here`, whose first command is step
/// `begin`, tells of: often that of a segment submitted earlier, or even of another run.
std::optional<size_t> CommandList::failed_step(const DeviceError& error, TimelinePoint here,
                                               size_t begin) const {
  if (error.command() < 0) return std::nullopt;
  const auto command = static_cast<size_t>(error.command());
  const auto* earlier = dynamic_cast<const PointError*>(&error);
  const auto step = [&](size_t first) { return queued_commands_[queued_before(first) + command]; };
  if (earlier == nullptr || earlier->at() == here) return step(begin);
  for (size_t i = 0; i < running_; ++i)
    if (earlier->at() == points_[i]) return step(segments_[i].begin);
  return std::nullopt;
}

void CommandList::rethrow_with_lines(const DeviceError& error, TimelinePoint here, size_t begin,
                                     StepLines lines) const {
  const std::optional<size_t> step = failed_step(error, here, begin);
  const std::string where = step ? lines(*step) : std::string();
  if (where.empty()) throw;
  error.rethrow_with("it computes " + where);
}

TimelinePoint CommandList::submit(const Segment& s, size_t begin, size_t end,
                                  std::span<const TimelinePoint> waits, StepLines lines) {
  const size_t first = queued_before(begin), count = queued_before(end) - first;
  try {
    return s.device->submit(s.queue, std::span(queued_).subspan(first, count), waits);
  } catch (const DeviceError& error) {
    rethrow_with_lines(error, {}, begin, lines);
  }
}

/// Asks meanwhile whether to go on, where giving up changes nothing.
void CommandList::wait(Context& context, Device& device, TimelinePoint point, size_t begin,
                       StepLines lines) {
  constexpr uint64_t kBetweenQuestions = 10'000'000;
  if (point.timeline == nullptr) return;
  const InterruptCheck* interrupt = context.get_if<InterruptCheck>();
  if (interrupt && interrupt->harmless && interrupt->ask)
    while (!point.timeline->wait(point.value, now_ns() + kBetweenQuestions)) interrupt->ask();
  try {
    device.wait(point);
  } catch (const DeviceError& error) {
    rethrow_with_lines(error, point, begin, lines);
  }
}

/// For WEFT_DEBUG=2 and observers: what each took, the user's lines.
TimelinePoint CommandList::run_one_by_one(Context& context, const Segment& s, const Points& waits,
                                          StepLines lines) {
  const CompileObserver& observer = context.get<RunState>().observer;
  TimelinePoint point;
  for (size_t i = s.begin; i < s.end; ++i) {
    if (!runs(i)) continue;
    const uint64_t start = now_ns();
    point = submit(s, i, i + 1, i == s.begin ? waits : Points(), lines);
    wait(context, *s.device, point, i, lines);
    if (const size_t q = queued_before(i); q < queued_.size() && is_left_out(queued_[q])) continue;
    const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
    const CompiledKernel* k = schedule_.steps[i].kernel.get();
    const CommandReport report{
        k ? k->name : "copy",
        s.device->name(),
        lines(i),
        i,
        schedule_.steps[i].buffers.size(),
        s.device->allocator().stats().live_bytes,
        seconds,
        k ? k->flops : 0,
        k ? k->bytes : 2.0 * static_cast<double>(bytes_copied(schedule_.steps[i]))};
    if (observer.ran) observer.ran(report);
    if (log_enabled(context, 2)) log_at(context, 2, "{}", text(report));
  }
  return point;
}

namespace {

/// From a file to another device: read, piece by piece, in the place of touching what is mapped.
void copy_in_pieces(const Command& c) {
  constexpr int64_t kPiece = int64_t{4} << 20;
  std::vector<std::byte> piece;
  for (int64_t at = 0; at < c.bytes; at += kPiece) {
    piece.resize(static_cast<size_t>(std::min(kPiece, c.bytes - at)));
    c.from.buffer->read(c.from.offset + at, piece);
    c.to.buffer->device().copy_in({c.to.buffer, c.to.offset + at}, piece);
  }
}

}  // namespace

/// The host waits for what made the source and, by copy_in(), for what still uses the destination;
/// nobody else does.
void CommandList::copy_across(const Command& c, const Points& newest) {
  if (c.bytes == 0) return;
  Device &from = c.from.buffer->device(), &to = c.to.buffer->device();
  for (const TimelinePoint& p : newest)
    for (int q = 0; q < from.queues(); ++q)
      if (p.timeline == &from.timeline(q)) from.wait(p);
  const auto bytes = static_cast<size_t>(c.bytes);
  if (c.from.buffer->in_file()) return copy_in_pieces(c);
  if (const void* data = c.from.buffer->data()) {
    to.copy_in(c.to, {static_cast<const std::byte*>(data) + c.from.offset, bytes});
    return;
  }
  std::vector<std::byte> host(bytes);
  from.copy_out(host, c.from);
  to.copy_in(c.to, host);
}

void CommandList::count(Context& context, double seconds) const {
  RunStats& stats = context.get<RunState>().stats;
  stats.kernels += kernels_;
  stats.copies += copies_;
  stats.flops += flops_;
  stats.bytes += bytes_;
  stats.seconds += seconds;
  for (size_t q = 0; !ended_by_.empty() && q < queued_.size(); ++q) {
    if (!is_left_out(queued_[q])) continue;
    const CompiledKernel* kernel = schedule_.steps[queued_commands_[q]].kernel.get();
    --(kernel ? stats.kernels : stats.copies);
    stats.flops -= kernel ? kernel->flops : 0;
    stats.bytes -= kernel ? kernel->bytes : 0;
  }
}

bool CommandList::is_left_out(const Command& queued) {
  return queued.ended_by && *queued.ended_by && &queued >= *queued.ended_by;
}

}  // namespace weft
