#include "weft/device/host_device.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <ranges>
#include <thread>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/function_ref.h"
#include "weft/base/interrupt.h"
#include "weft/base/small_vector.h"
#include "weft/base/thread_pool.h"

namespace weft {

namespace {

// Between two questions whether to go on, by the same estimate: real time is a few times as long.
constexpr double kMostPartNs = 8e6;
// What it takes to end a launch that could be given up: threads run their pieces in parts, between
// which the one that realizes asks and the others see that it was told to end.
class LaunchInterrupt {
 public:
  /// `asks`: on this thread.
  LaunchInterrupt(Context& context, double item_nanoseconds, bool asks)
      : check_(context.get_if<InterruptCheck>()) {
    if (!asks || !check_ || !check_->ask || !check_->harmless || item_nanoseconds <= 0) return;
    part_ = static_cast<int64_t>(std::clamp(kMostPartNs / item_nanoseconds, 1.0, 1e9));
  }

  void in_parts(int64_t begin, int64_t end, FunctionRef<void(int64_t, int64_t)> work) {
    const bool asks = std::this_thread::get_id() == thread_;
    for (int64_t at = begin; at < end && !ended_.load(std::memory_order_relaxed); at += part_) {
      if (asks && since_ >= part_) ask();
      const int64_t part_end = std::min(end, at + part_);
      work(at, part_end);
      if (asks) since_ += part_end - at;
    }
  }

 private:
  void ask() {
    since_ = 0;
    try {
      check_->ask();
    } catch (...) {
      ended_ = true;
      throw;
    }
  }

  InterruptCheck* check_;
  int64_t part_ = UINT32_MAX;  // items
  int64_t since_ = 0;          // the last question, of the thread that asks
  std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<bool> ended_{false};
};

std::byte* address(const BufferSlice& slice, std::string_view what, int64_t bytes = 0) {
  check_slice(slice, bytes, what);
  slice.buffer->check_file();
  return static_cast<std::byte*>(slice.buffer->data()) + slice.offset;
}

}  // namespace

HostExecutable::HostExecutable(std::string name, const ProgramSource& source, double slowness)
    : Executable(std::move(name), source.program) {
  if (source.program == nullptr) return;
  counted_ = true;
  variables_ = source.program->variables.size();
  item_cost_ = ItemCost(*source.program, slowness);
}

void HostExecutable::check_launch(const Command& c) const {
  // More buffers than params: simplifying the kernel may have left the last slots unused.
  WEFT_CHECK(!counted_ || (params().size() <= c.buffers.size() && variables_ == c.vars.size()),
             "{}: launched with {} buffers and {} variables, takes {} and {}", name(),
             c.buffers.size(), c.vars.size(), params().size(), variables_);
  WEFT_CHECK(c.items >= 0 && c.items <= UINT32_MAX, "{}: {} items", name(), c.items);
}

uint32_t HostDevice::launch(const Command& c, int64_t copy, bool backwards) {
  const auto& kernel = static_cast<const HostExecutable&>(*c.executable);
  kernel.check_launch(c);
  Span span(context().tracer(), "kernel", kernel.name());
  context().tracer().add(Counter::Kernels);
  if (c.items == 0) return 0;  // a length that ends before this
  SmallVector<void*, 16> pointers;
  for (const BufferSlice& slice : c.buffers)
    pointers.push_back(address(slice, "launch") + copy * slice.apart);
  uint32_t status = 0;
  const KernelArgs shared{kKernelAbiVersion, 0, pointers.data(), c.vars.data(), nullptr, &status};
  int64_t items = c.items;
  if (fault_is_now()) items = (items + 1) / 2, status = kInjectedFault;
  const double item = kernel.item_nanoseconds(c.vars);
  LaunchInterrupt interrupt(context(), item, c.round < 0);
  const auto run = [&](int64_t begin, int64_t end, int worker) {
    KernelArgs args = shared;
    args.worker = static_cast<uint32_t>(worker);
    interrupt.in_parts(begin, end, [&](int64_t b, int64_t e) {
      kernel.run(args, static_cast<uint32_t>(b), static_cast<uint32_t>(e));
    });
  };
  context().thread_pool().parallel_for(items, run, ThreadPool::Estimate{item, backwards});
  return status;
}

void HostDevice::run(const Command& c, int64_t number, int64_t copy) {
  if (c.kind == Command::Kind::Launch) {
    // What the one before has written last lies in caches: it is read first, before what comes by
    // takes its place (of a layer's 2.4 MB for each core in 2 MiB, 60 %; none in the same order).
    const bool backwards = number % 2 != 0;
    if (const uint32_t status = launch(c, copy, backwards))
      throw DeviceError("launch", status, name(),
                        strformat("kernel {} stopped", c.executable->name()), number);
    return;
  }
  Span span(context().tracer(), "copy", {}, c.bytes);
  std::byte *to = address(c.to, "copy", c.bytes), *from = address(c.from, "copy", c.bytes);
  const bool stops = fault_is_now();
  const auto bytes = static_cast<size_t>(stops ? c.bytes / 2 : c.bytes);
  if (c.from.buffer->in_file())
    c.from.buffer->read(c.from.offset, {to, bytes});
  else
    std::memmove(to, from, bytes);
  if (stops) fail_device("copy", kInjectedFault, name(), "a copy stopped");
  context().tracer().add(Counter::Copies);
  context().tracer().add(Counter::CopyBytes, c.bytes);
}

namespace {

/// Where the rounds of commands begin, from the one at `begin` on, and where the last one ends.
std::vector<size_t> rounds_from(std::span<const Command> commands, size_t begin) {
  std::vector<size_t> begins{begin};
  size_t i = begin + 1;
  for (; i < commands.size() && commands[i].round >= commands[i - 1].round; ++i)
    if (commands[i].round != commands[i - 1].round) begins.push_back(i);
  begins.push_back(i);
  return begins;
}

}  // namespace

/// Each round on one worker, whose own copies of what a round makes stay in its cache.
void HostDevice::run_rounds(std::span<const Command> commands, std::span<const size_t> begins) {
  const InterruptCheck* interrupt = context().get_if<InterruptCheck>();
  const auto thread = std::this_thread::get_id();
  const auto rounds = [&](int64_t begin, int64_t end, int worker) {
    for (auto r = static_cast<size_t>(begin); r < static_cast<size_t>(end); ++r) {
      if (interrupt && interrupt->harmless && std::this_thread::get_id() == thread)
        interrupt->ask();
      for (size_t i = begins[r]; i < begins[r + 1]; ++i)
        run(commands[i], static_cast<int64_t>(i), worker);
    }
  };
  context().thread_pool().parallel_for(static_cast<int64_t>(begins.size()) - 1, rounds);
}

/// Whether this is of a loop that has ended; a command that asks finds out.
bool HostDevice::is_left_out(const Command& c) {
  if (c.ended_by == nullptr) return false;
  if (c.asks >= 0 && *c.ended_by == nullptr) {
    const std::byte* words = address(c.buffers[static_cast<size_t>(c.asks)], "loop", c.bytes);
    const auto is_zero = [words](int64_t i) {
      int32_t word;
      std::memcpy(&word, words + i * 4, sizeof(word));
      return word == 0;
    };
    if (std::ranges::none_of(std::views::iota(int64_t{0}, c.bytes / 4), is_zero)) *c.ended_by = &c;
  }
  return *c.ended_by != nullptr;
}

void HostDevice::execute(int, std::span<const Command> commands, std::span<const TimelinePoint>,
                         uint64_t) {
  const InterruptCheck* interrupt = context().get_if<InterruptCheck>();
  for (size_t i = 0; i < commands.size();) {
    if (is_left_out(commands[i])) {
      ++i;
      continue;
    }
    if (commands[i].round >= 0) {
      const std::vector<size_t> begins = rounds_from(commands, i);
      run_rounds(commands, begins);
      i = begins.back();
      continue;
    }
    if (interrupt && interrupt->harmless) interrupt->ask();
    run(commands[i], static_cast<int64_t>(i));
    ++i;
  }
}

std::string describe_host(Context& context, std::string_view target) {
  const std::string cpu = CpuFeatures::of(context).text();
  const Target here = make_target(target, context);
  return strformat("{} threads; {}; {}", here.threads, here.machine.text(),
                   cpu.empty() ? "no extensions" : cpu);
}

}  // namespace weft
