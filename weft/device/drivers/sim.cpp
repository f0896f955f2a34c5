#include "weft/device/drivers/sim.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/device/driver.h"
#include "weft/device/host_device.h"

namespace weft {
namespace {

SimBlock& block_of(BufferSlice slice) { return *static_cast<SimBlock*>(slice.buffer->block()); }

/// A place in memory that stays when its buffer goes.
struct Place {
  SimBlock* block;
  int64_t offset;
  std::byte* address() const { return block->bytes + offset; }
};

Place place_of(BufferSlice slice, int64_t bytes, std::string_view call) {
  check_slice(slice, bytes, call);
  return {&block_of(slice), slice.offset};
}

}  // namespace

// ---- memory

class SimDevice::Memory final : public weft::Memory {
 public:
  explicit Memory(std::string device) : device_(std::move(device)) {}

  void* allocate(size_t bytes) override {
    if (taken_.fetch_add(bytes) + bytes > static_cast<size_t>(most())) {
      taken_ -= bytes;
      return nullptr;
    }
    auto block = std::make_unique<SimBlock>();
    block->memory = std::make_unique_for_overwrite<std::byte[]>(bytes + kAlignment);
    const auto at = reinterpret_cast<uintptr_t>(block->memory.get());
    block->bytes = block->memory.get() + (kAlignment - at % kAlignment) % kAlignment;
    block->size = bytes;
    return block.release();
  }
  void release(void* handle) override {
    auto* block = static_cast<SimBlock*>(handle);
    if (block->users > 0) {
      report("memory is freed while commands use it");
      std::lock_guard lock(mutex_);
      kept_.emplace_back(block);
      return;
    }
    taken_ -= block->size;
    delete block;
  }
  void begin_use(void* handle, size_t) override {
    auto* block = static_cast<SimBlock*>(handle);
    if (block->users > 0) return report("memory is given out again while commands use it");
    std::memset(block->bytes, std::to_integer<int>(kPoison), block->size);
  }
  int64_t most() const override { return kCapacity; }
  int64_t alignment() const override { return kAlignment; }
  bool addressable() const override { return false; }

  /// Throws what was reported since the last time.
  void raise() {
    std::lock_guard lock(mutex_);
    if (!problem_.empty())
      fail_device("memory", EINVAL, device_, "{}", std::exchange(problem_, {}));
  }

 private:
  void report(std::string_view problem) {
    std::lock_guard lock(mutex_);
    problem_ = problem;
  }

  std::string device_;
  std::atomic<size_t> taken_{0};
  std::mutex mutex_;
  std::string problem_;
  std::vector<std::unique_ptr<SimBlock>> kept_;  // that commands still use: until all have ended
};

void SimDevice::write_memory(BufferSlice to, std::span<const std::byte> from) {
  check_working("copy_in");
  waits_.check_host(*to.buffer, true);
  std::memcpy(block_of(to).bytes + to.offset, from.data(), from.size());
}

void SimDevice::read_memory(std::span<std::byte> to, BufferSlice from) {
  check_working("copy_out");
  waits_.check_host(*from.buffer, false);
  std::memcpy(to.data(), block_of(from).bytes + from.offset, to.size());
}

// ---- queues

/// A submission with everything it needs, once its spans are gone.
struct SimDevice::Task {
  struct Step {
    const HostExecutable* kernel = nullptr;  // null: a copy
    std::vector<Place> places;               // by slot; of a copy: from, to
    std::vector<int64_t> vars;
    int64_t size;  // items, or bytes
  };
  int queue;
  uint64_t point;
  std::vector<TimelinePoint> waits, signals;
  std::vector<Step> steps;

  explicit Task(const Submission& s)
      : queue(s.queue),
        point(s.point),
        waits(s.waits.begin(), s.waits.end()),
        signals(s.signals.begin(), s.signals.end()) {
    for (const Command& c : s.commands) steps.push_back(step(c));
    for (const Step& step : steps)
      for (const Place& p : step.places) ++p.block->users;
  }
  void let_go() const {
    for (const Step& step : steps)
      for (const Place& p : step.places) --p.block->users;
  }
  static Step step(const Command& c) {
    if (c.kind == Command::Kind::Copy)
      return {nullptr,
              {place_of(c.from, c.bytes, "copy"), place_of(c.to, c.bytes, "copy")},
              {},
              c.bytes};
    const auto& kernel = static_cast<const HostExecutable&>(*c.executable);
    kernel.check_launch(c);
    Step made{&kernel, {}, {c.vars.begin(), c.vars.end()}, c.items};
    for (const BufferSlice& slice : c.buffers) made.places.push_back(place_of(slice, 0, "launch"));
    return made;
  }
};

SimDevice::SimDevice(Context& context, std::string name, DeviceId id, std::unique_ptr<Device> host,
                     std::shared_ptr<Memory> memory)
    : Device(context, std::move(name), id, host->target(), kQueues, memory),
      host_(std::move(host)),
      memory_(std::move(memory)),
      waits_(*this),
      random_(id) {}

SimDevice::~SimDevice() { ends_ = true; }

std::vector<std::unique_ptr<Executable>> SimDevice::load(std::span<const ProgramSource> sources) {
  check_working("load");
  return host_->load(sources);
}

void SimDevice::set_delays(uint64_t seed, uint64_t longest_ns) {
  random_ = seed;
  longest_delay_ns_ = longest_ns;
}

void SimDevice::check_working(std::string_view call) const {
  if (gone_) fail_device(call, ENODEV, name(), "the device is gone");
}

void SimDevice::enqueue(const Submission& submission) {
  memory_->raise();
  check_working("submit");
  const auto task = std::make_shared<const Task>(submission);
  try {
    waits_.check(submission);
  } catch (...) {
    task->let_go();
    throw;
  }
  threads_[submission.queue].push([this, task] {
    std::optional<Failure> failure = run(*task);
    task->let_go();
    finish({task->queue, {}, task->waits, task->signals, task->point}, std::move(failure));
  });
}

// ---- on a queue's thread

/// Every other command is: the longer the delays, the more that comes after the others.
void SimDevice::be_late(const Task& task) {
  const uint64_t longest = longest_delay_ns_;
  const auto queue = static_cast<uint64_t>(task.queue);
  const uint64_t x = hash_combine(random_ + queue, delays_[task.queue]++);
  if (longest == 0 || x % 2 == 0) return;
  std::this_thread::sleep_for(std::chrono::nanoseconds(hash_mix(x) % longest));
}

std::optional<Failure> SimDevice::wait_for(const Task& task) const {
  constexpr uint64_t kBetweenLooks = 20'000'000;
  for (const TimelinePoint& w : task.waits) {
    while (!w.timeline->wait(w.value, now_ns() + kBetweenLooks))
      if (ends_) return Failure{{"submit", ECANCELED, name(), "the device was closed"}, false};
    if (const Failure* f = w.timeline->failure(w.value)) return f->passed_on(false);
  }
  return std::nullopt;
}

std::optional<Failure> SimDevice::run(const Task& task) {
  if (std::optional<Failure> failure = wait_for(task)) return failure;
  for (size_t i = 0; i < task.steps.size(); ++i) {
    CommandTime time = CommandTime::of(task.steps[i].kernel, task.steps[i].size);
    time.begin_ns = now_ns();
    be_late(task);
    try {
      if (auto error = run_step(task, i)) return Failure{std::move(*error), true};
    } catch (const std::exception& error) {
      return Failure{{"launch", EFAULT, name(), error.what(), static_cast<int64_t>(i)}, true};
    }
    time.end_ns = now_ns();
    trace(task.queue, time);
  }
  be_late(task);
  return std::nullopt;
}

std::optional<DeviceError> SimDevice::run_step(const Task& task, size_t i) {
  const Task::Step& step = task.steps[i];
  const char* call = step.kernel ? "launch" : "copy";
  const std::string what = step.kernel ? "kernel " + step.kernel->name() : std::string("a copy");
  const auto failed = [&](int64_t status, std::string_view why) {
    return DeviceError(call, status, name(), strformat("{} {}", what, why),
                       static_cast<int64_t>(i));
  };
  const bool fault = fault_is_now();
  if (fault && fault_kind() == Fault::Gone) gone_ = true;
  if (gone_) return failed(ENODEV, "was not run: the device is gone");
  if (fault && fault_kind() == Fault::Lost) return failed(ETIMEDOUT, "was lost and never ran");
  const int64_t size = fault ? (step.size + 1) / 2 : step.size;
  uint32_t status = fault ? kInjectedFault : 0;
  if (!step.kernel) {
    std::memmove(step.places[1].address(), step.places[0].address(), static_cast<size_t>(size));
    context().tracer().add(Counter::Copies);
    context().tracer().add(Counter::CopyBytes, size);
  } else {
    std::vector<void*> pointers;
    for (const Place& p : step.places) pointers.push_back(p.address());
    const KernelArgs args{kKernelAbiVersion, 0,       pointers.data(),
                          step.vars.data(),  nullptr, &status};
    context().tracer().add(Counter::Kernels);
    step.kernel->run(args, 0, static_cast<uint32_t>(size));
  }
  if (status) return failed(status, "stopped");
  return std::nullopt;
}

namespace {

/// `make_host` makes the device whose kernels it runs.
template <auto make_host>
std::unique_ptr<Device> make(Context& context, std::string name, DeviceId id) {
  auto host = make_host(context, name, id);
  auto memory = std::make_shared<SimDevice::Memory>(name);
  return std::make_unique<SimDevice>(context, std::move(name), id, std::move(host),
                                     std::move(memory));
}

std::string describe(Context&) {
  return "simulated: memory and queues of its own, late on purpose; for tests";
}

}  // namespace

Driver sim_driver() {
  static constexpr DeviceKind kKinds[] = {{8, "SIM:INTERP", make<make_interp_device>, describe},
                                          {9, "SIM:X86", make<make_x86_device>, describe}};
  return kKinds;
}

}  // namespace weft
