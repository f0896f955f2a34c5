#include "weft/run/command_list.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/base/log.h"
#include "weft/run/run_state.h"

namespace weft {

CommandList::CommandList(const CompiledSchedule& schedule) : schedule_(schedule) {
  size_t slices = 0, vars = 0;
  std::vector<uint32_t> count(schedule.buffers.size() + 1);
  for (const CompiledStep& s : schedule.steps) {
    if (s.kernel) slices += s.buffers.size();
    vars += s.variables.size();
    for (int b : s.buffers) ++count[static_cast<size_t>(b) + 1];
  }
  // Sized once: the commands' spans point into these.
  slices_.resize(slices);
  vars_.resize(vars);
  for (size_t i = 1; i < count.size(); ++i) count[i] += count[i - 1];
  uses_begin_ = count;
  uses_.resize(count.back());
  slices = vars = 0;
  for (const CompiledStep& s : schedule.steps) {
    for (size_t slot = 0; slot < s.buffers.size(); ++slot)
      uses_[count[static_cast<size_t>(s.buffers[slot])]++] = {commands_.size(),
                                                              static_cast<int>(slot)};
    add_step(s, slices, vars);
  }
  cut_segments();
}

void CommandList::add_step(const CompiledStep& s, size_t& slices, size_t& vars) {
  Command c;
  if (s.kernel) {
    const IndexProgram& items = s.kernel->items;
    c = Command::launch(*s.kernel->executable, std::span(slices_).subspan(slices, s.buffers.size()),
                        std::span(vars_).subspan(vars, s.variables.size()),
                        items.is_constant() ? items({}) : 0);
    slices += s.buffers.size();
    vars += s.variables.size();
    symbolic_ |= !s.variables.empty();
    ++kernels_;
    flops_ += s.kernel->flops;
    bytes_ += s.kernel->bytes;
  } else {
    c.kind = Command::Kind::Copy;
    const bool fixed = schedule_.buffers[static_cast<size_t>(s.buffers[0])].numel.is_constant();
    c.bytes = fixed ? schedule_.bytes_of(s.buffers[0], {}) : 0;
    symbolic_ |= !fixed;
  }
  commands_.push_back(c);
}

void CommandList::cut_segments() {
  for (size_t i = 0; i < commands_.size(); ++i) {
    const CompiledStep& s = schedule_.steps[i];
    const bool across =
        !s.kernel && schedule_.buffers[static_cast<size_t>(s.buffers[0])].device != s.device;
    const bool joins = !segments_.empty() && !across && !segments_.back().across &&
                       segments_.back().device == s.device && i != schedule_.point_of_no_return;
    if (joins)
      segments_.back().end = i + 1;
    else
      segments_.push_back({s.device, i, i + 1, across});
  }
}

void CommandList::set_buffer(int buffer, BufferSlice slice) {
  const size_t end = uses_begin_[static_cast<size_t>(buffer) + 1];
  for (size_t u = uses_begin_[static_cast<size_t>(buffer)]; u < end; ++u) {
    Command& c = commands_[uses_[u].command];
    if (c.kind == Command::Kind::Copy)
      (uses_[u].slot == 0 ? c.from : c.to) = slice;
    else
      slices_[static_cast<size_t>(c.buffers.data() - slices_.data()) +
              static_cast<size_t>(uses_[u].slot)] = slice;
  }
}

void CommandList::set_variables(std::span<const int64_t> values) {
  if (!symbolic_) return;
  for (size_t i = 0; i < commands_.size(); ++i) {
    const CompiledStep& s = schedule_.steps[i];
    Command& c = commands_[i];
    if (!s.kernel) {
      c.bytes = schedule_.bytes_of(s.buffers[0], values);
      continue;
    }
    const size_t first = static_cast<size_t>(c.vars.data() - vars_.data());
    for (size_t k = 0; k < s.variables.size(); ++k) {
      const auto [position, fixed] = s.variables[k];
      vars_[first + k] = position < 0 ? fixed : values[static_cast<size_t>(position)];
    }
    c.items = s.kernel->items(c.vars);
  }
}

void CommandList::run(Context& context, StepLines lines) {
  const uint64_t start = now_ns();
  std::vector<TimelinePoint> reached;  // newest point of each device used so far
  for (running_ = 0; running_ < segments_.size(); ++running_)
    run_segment(context, segments_[running_], reached, lines);
  // Host devices are done by now; others when the last of their points is reached.
  for (const TimelinePoint& p : reached) p.timeline->wait(p.value);
  count(context, static_cast<double>(now_ns() - start) * 1e-9);
}

CommandList::Left CommandList::left_in(int buffer) const {
  // Host devices do one segment after the other. Which of its commands failed is not known.
  if (running_ >= segments_.size()) return Left::Finished;
  const Segment& failed = segments_[running_];
  bool begun = false, finished = true;
  const size_t end = uses_begin_[static_cast<size_t>(buffer) + 1];
  for (size_t u = uses_begin_[static_cast<size_t>(buffer)]; u < end; ++u) {
    const auto& [command, slot] = uses_[u];
    if (!schedule_.steps[command].writes(static_cast<size_t>(slot))) continue;
    begun |= command < failed.end;
    finished &= command < failed.begin;
  }
  return !begun ? Left::Untouched : finished ? Left::Finished : Left::Broken;
}

void CommandList::run_segment(Context& context, const Segment& s,
                              std::vector<TimelinePoint>& reached, StepLines lines) {
  if (auto* interrupt = context.get_if<InterruptCheck>())
    interrupt->harmless = s.end <= schedule_.point_of_no_return;
  if (s.across) {
    for (const TimelinePoint& p : reached) p.timeline->wait(p.value);
    return copy_across(commands_[s.begin]);
  }
  Timeline* own = &s.device->timeline(0);
  std::vector<TimelinePoint> waits;
  for (const TimelinePoint& p : reached)
    if (p.timeline != own) waits.push_back(p);
  if (log_enabled(context, 2)) return run_one_by_one(context, s, waits, lines);
  const TimelinePoint point = submit(*s.device, s.begin, s.end, waits, lines);
  for (TimelinePoint& p : reached)
    if (p.timeline == own) p = point;
  if (waits.size() == reached.size()) reached.push_back(point);
}

TimelinePoint CommandList::submit(Device& device, size_t begin, size_t end,
                                  std::span<const TimelinePoint> waits, StepLines lines) {
  try {
    return device.submit(0, std::span(commands_).subspan(begin, end - begin), waits);
  } catch (const DeviceError& error) {
    if (error.command() < 0) throw;
    const std::string where = lines(begin + static_cast<size_t>(error.command()));
    if (where.empty()) throw;
    error.rethrow_with("it computes " + where);
  }
}

/// WEFT_DEBUG=2: a line per kernel: name, work, time, bandwidth, the user's lines.
void CommandList::run_one_by_one(Context& context, const Segment& s,
                                 std::span<const TimelinePoint> waits, StepLines lines) {
  for (size_t i = s.begin; i < s.end; ++i) {
    const uint64_t start = now_ns();
    const TimelinePoint point =
        submit(*s.device, i, i + 1, i == s.begin ? waits : decltype(waits)(), lines);
    point.timeline->wait(point.value);
    const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
    const CompiledKernel* k = schedule_.steps[i].kernel.get();
    const double bytes = k ? k->bytes : 2.0 * static_cast<double>(commands_[i].bytes);
    const double flops = k ? k->flops : 0;
    const int64_t live = s.device->allocator().stats().live_bytes;
    log_at(context, 2,
           "*** {:<12} {:4} {:<40} arg {:2} mem {:7.3f} GB tm {:9.2f} us ({:8.1f} GFLOPS {:7.1f} "
           "GB/s) {}",
           s.device->name(), i, k ? k->name : "copy", schedule_.steps[i].buffers.size(),
           static_cast<double>(live) * 1e-9, seconds * 1e6, flops / seconds * 1e-9,
           bytes / seconds * 1e-9, lines(i));
  }
}

void CommandList::copy_across(const Command& c) {
  if (c.bytes == 0) return;
  Device& to = c.to.buffer->device();
  const auto bytes = static_cast<size_t>(c.bytes);
  if (const void* data = c.from.buffer->data()) {
    to.copy_in(c.to, {static_cast<const std::byte*>(data) + c.from.offset, bytes});
    return;
  }
  std::vector<std::byte> host(bytes);
  c.from.buffer->device().copy_out(host, c.from);
  to.copy_in(c.to, host);
}

void CommandList::count(Context& context, double seconds) const {
  RunStats& stats = context.get<RunState>().stats;
  stats.kernels += kernels_;
  stats.copies += static_cast<int64_t>(commands_.size()) - kernels_;
  stats.flops += flops_;
  stats.bytes += bytes_;
  stats.seconds += seconds;
}

namespace {

/// "8000 bytes for net.cpp:40": what the most of an arena is for.
std::string largest_of(const ArenaPlan& arena, const CompiledSchedule& schedule,
                       std::span<const int64_t> values, StepLines lines) {
  const auto bytes = [&](int b) { return schedule.bytes_of(b, values); };
  const int most = *std::ranges::max_element(arena.buffers, {}, bytes);
  const std::string where =
      lines(static_cast<size_t>(schedule.buffers[static_cast<size_t>(most)].first));
  return strformat("{} bytes for {}", bytes(most), where.empty() ? "a value" : where);
}

}  // namespace

void Arenas::bind(CommandList& list, const CompiledSchedule& schedule,
                  std::span<const int64_t> values, StepLines lines) {
  const std::vector<ArenaPlan> plans = plan_arenas(schedule, values);
  // All of the memory before any of it is bound: a list is never left with half of a plan.
  for (const ArenaPlan& a : plans) {
    try {
      memory.push_back(a.device->allocate(a.memory.bytes, "arena of intermediates"));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Memory) throw;
      fail_memory(error.code(), "{}; the largest of them: {}", error.message(),
                  largest_of(a, schedule, values, lines));
    }
  }
  for (size_t p = 0; p < plans.size(); ++p)
    for (size_t i = 0; i < plans[p].buffers.size(); ++i)
      list.set_buffer(plans[p].buffers[i], {memory[p].get(), plans[p].memory.offsets[i]});
}

int64_t Arenas::bytes() const {
  int64_t total = 0;
  for (const auto& m : memory) total += m->bytes();
  return total;
}

}  // namespace weft
