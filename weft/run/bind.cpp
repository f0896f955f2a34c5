#include "weft/run/bind.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/hash.h"

namespace weft {
namespace {

/// "8000 bytes for net.cpp:40": what the most of an arena is for.
std::string largest_of(const ArenaPlan& arena, StepLines lines) {
  const Lifetime& most = *std::ranges::max_element(arena.lifetimes, {}, &Lifetime::bytes);
  const std::string where = lines(static_cast<size_t>(most.first));
  return strformat("{} bytes for {}", most.bytes, where.empty() ? "a value" : where);
}

void set(BindState& s) {
  s.list.set_buffers(s.memory);
  s.list.set_variables(s.values);
}

const char* unbound(const BindState& s) {
  const CompiledSchedule& schedule = s.list.schedule();
  for (size_t i = 0; i < schedule.steps.size(); ++i) {
    if (!schedule.steps[i].lengths.contain(s.values)) continue;
    for (size_t slot = 0; slot < schedule.steps[i].buffers.size(); ++slot) {
      const int b = schedule.steps[i].buffers[slot];
      const auto [buffer, offset, bytes, apart] = s.list.slice(i, slot);
      if (!buffer) return "a slot without memory";
      if (&buffer->device() != schedule.buffers[static_cast<size_t>(b)].device)
        return "a slot with memory of another device";
      const int64_t room = bytes > 0 ? bytes : buffer->bytes() - offset;
      const int copies = apart > 0 ? schedule.buffers[static_cast<size_t>(b)].copies : 1;
      if (offset < 0 || room > buffer->bytes() - offset ||
          apart * (copies - 1) + schedule.bytes_of(b, s.values) > room)
        return "a slot whose buffer does not fit into its memory";
    }
  }
  return nullptr;
}

constexpr Pass<BindState> kPasses[] = {
    {"bind.commands", "every slot of every command has memory that its buffer fits into", set,
     unbound},
};

}  // namespace

void explain_failure(const ArenaPlan& arena, StepLines lines, FunctionRef<void()> allocate) {
  try {
    allocate();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Memory) throw;
    fail_memory(error.code(), "{}; the largest of them: {}", error.message(),
                largest_of(arena, lines));
  }
}

void place_in(const PlannedMemory& plan, const ArenaPlan& arena, Buffer* memory,
              FunctionRef<void(int buffer, BufferSlice slice)> put) {
  for (size_t i = 0; i < arena.buffers.size(); ++i) {
    const int b = arena.buffers[i];
    const int64_t bytes = arena.lifetimes[i].bytes;
    const int copies = plan.schedule.buffers[static_cast<size_t>(b)].copies;
    put(b, {memory, arena.memory.offsets[i], bytes, copies > 1 ? bytes / copies : 0});
  }
}

Arenas::Arenas(const PlannedMemory& plan, StepLines lines) {
  for (const ArenaPlan& a : plan.arenas)
    explain_failure(a, lines, [&] {
      memory.push_back(a.device->allocate(a.memory.bytes, "arena of intermediates"));
    });
}

void Arenas::place(const PlannedMemory& plan, std::span<BufferSlice> of) const {
  for (size_t a = 0; a < plan.arenas.size(); ++a)
    place_in(plan, plan.arenas[a], memory[a].get(),
             [&](int b, BufferSlice slice) { of[static_cast<size_t>(b)] = slice; });
}

PassView BindState::view() const {
  return {static_cast<int64_t>(list.schedule().steps.size()), hash_text(text())};
}

std::string BindState::text() const {
  std::string out;
  const std::vector<CompiledStep>& steps = list.schedule().steps;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].lengths.contain(values)) continue;
    append_format(out, "{} {}:", i, steps[i].kernel ? steps[i].kernel->name : "copy");
    for (size_t slot = 0; slot < steps[i].buffers.size(); ++slot) {
      const int b = steps[i].buffers[slot];
      append_format(out, "{} b{}", slot == 0 ? "" : ",", b);
      // What another run bound may be gone.
      const BufferSlice at = list.slice(i, slot);
      if (at.buffer && at.buffer == memory[static_cast<size_t>(b)].buffer)
        append_format(out, " at {} of {}", at.offset, at.buffer->bytes());
    }
    out += '\n';
  }
  return out;
}

std::span<const Pass<BindState>> bind_passes() { return kPasses; }

void bind_commands(CommandList& list, std::span<const BufferSlice> memory,
                   std::span<const int64_t> values) {
  BindState state{list, memory, values};
  run_passes(bind_passes(), state);
}

}  // namespace weft
