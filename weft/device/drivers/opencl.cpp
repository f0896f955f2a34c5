// OPENCL: kernels in OpenCL C on whatever libOpenCL.so.1 drives. Memory is the device's: a block is
// a cl_mem, and only copies go between it and the host. A submission ends with a marker; a thread
// waits for the markers and says which points are reached.
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/device/driver.h"
#include "weft/device/drivers/opencl_api.h"
#include "weft/device/queued_device.h"

namespace weft {

namespace {

using namespace opencl;

constexpr int kQueues = 2;

/// One device of a platform, and what is shared on it: outlived by nothing that was made from it.
struct Session {
  Api api;
  DeviceHandle device = nullptr;
  ContextHandle context = nullptr;
  Queue queues[kQueues] = {};
  bool timed[kQueues] = {};   // queues whose driver notes when commands run
  Queue transfers = nullptr;  // of the host: what waits for nothing but what it was told to
  std::string name;           // of our Device, in messages

  ~Session() {
    if (transfers) api.clReleaseCommandQueue(transfers);
    for (Queue queue : queues)
      if (queue) api.clReleaseCommandQueue(queue);
    if (context) api.clReleaseContext(context);
  }
  Queue make_queue(Bits properties = 0) const {
    Int status = 0;
    const Queue made = api.clCreateCommandQueue(context, device, properties, &status);
    check(status, "clCreateCommandQueue");
    return made;
  }
  /// From here on the driver notes when commands of this queue run.
  void time_queue(int queue) {
    if (timed[queue]) return;
    const Queue made = make_queue(kQueueProfilingEnable);
    api.clFinish(queues[queue]);  // its commands come before the other's
    api.clReleaseCommandQueue(std::exchange(queues[queue], made));
    timed[queue] = true;
  }

  void check(Int status, const char* call) const {
    if (status != kSuccess) fail_device(call, status, name, "the OpenCL driver refused it");
  }
  template <class T>
  T number(Uint what) const {
    T value = 0;
    check(api.clGetDeviceInfo(device, what, sizeof(value), &value, nullptr), "clGetDeviceInfo");
    return value;
  }
  std::string device_name() const {
    char text[256] = {};
    check(api.clGetDeviceInfo(device, kDeviceName, sizeof(text) - 1, text, nullptr),
          "clGetDeviceInfo");
    return text;
  }
};

std::vector<DeviceHandle> all_devices(const Session& s) {
  std::vector<DeviceHandle> all;
  Platform platforms[16];
  Uint count = 0;
  // No platform at all is an error of the loader's own; both are an empty list here.
  if (s.api.clGetPlatformIDs(16, platforms, &count) != kSuccess) return all;
  for (Uint p = 0; p < std::min<Uint>(count, 16); ++p) {
    DeviceHandle devices[16];
    Uint found = 0;
    if (s.api.clGetDeviceIDs(platforms[p], kDeviceTypeAll, 16, devices, &found) == kSuccess)
      all.insert(all.end(), devices, devices + std::min<Uint>(found, 16));
  }
  return all;
}

std::shared_ptr<Session> open_session(const std::string& name, int ordinal) {
  auto s = std::make_shared<Session>();
  s->name = name;
  if (!s->api.library.loaded())
    fail_device(
        "open", ENOENT, name,
        "there is no OpenCL: {}; install a driver (Debian: ocl-icd-libopencl1 and, for CPUs, "
        "pocl-opencl-icd)",
        s->api.library.missing());
  if (const char* lacks = s->api.lacks())
    fail_device("open", ENOSYS, name, "libOpenCL has no {}: it is older than 1.2", lacks);
  const std::vector<DeviceHandle> devices = all_devices(*s);
  if (static_cast<size_t>(ordinal) >= devices.size())
    fail_device("open", ENODEV, name,
                "OpenCL has {} devices here; install a driver (Debian, for CPUs: pocl-opencl-icd)",
                devices.size());
  s->device = devices[static_cast<size_t>(ordinal)];
  Int status = 0;
  s->context = s->api.clCreateContext(nullptr, 1, &s->device, nullptr, nullptr, &status);
  s->check(status, "clCreateContext");
  for (Queue& queue : s->queues) queue = s->make_queue();
  s->transfers = s->make_queue();
  return s;
}

class OpenclMemory final : public Memory {
 public:
  explicit OpenclMemory(std::shared_ptr<Session> session) : s_(std::move(session)) {}
  void* allocate(size_t bytes) override {
    Int status = 0;
    Mem made = s_->api.clCreateBuffer(s_->context, kMemReadWrite, bytes, nullptr, &status);
    return status == kSuccess ? made : nullptr;
  }
  void release(void* block) override { s_->api.clReleaseMemObject(static_cast<Mem>(block)); }
  int64_t most() const override {
    return static_cast<int64_t>(s_->number<Bits>(kDeviceMaxMemAllocSize));
  }
  bool addressable() const override { return false; }
  int64_t alignment() const override {
    return std::max<int64_t>(kHostAlignment, s_->number<Uint>(kDeviceMemBaseAddrAlign) / 8);
  }

 private:
  std::shared_ptr<Session> s_;
};

/// The kernels of one text, freed with the last of them.
struct Built {
  std::shared_ptr<Session> session;
  Program program = nullptr;
  ~Built() {
    if (program) session->api.clReleaseProgram(program);
  }
};

struct OpenclExecutable final : Executable {
  OpenclExecutable(const ProgramSource& source, std::shared_ptr<Built> b)
      : Executable(source.entry, source.program),
        built(std::move(b)),
        grouped(source.program->launch.grouped) {
    std::ranges::copy(source.program->launch.group, group.begin());
    Int status = 0;
    kernel = api().clCreateKernel(built->program, source.entry.c_str(), &status);
    built->session->check(status, "clCreateKernel");
  }
  ~OpenclExecutable() override {
    if (kernel) api().clReleaseKernel(kernel);
  }
  const Api& api() const { return built->session->api; }

  std::shared_ptr<Built> built;
  bool grouped;
  std::array<size_t, 3> group{};
  opencl::Kernel kernel = nullptr;
};

Target target_of(const Session& s, Context& context) {
  Target t = make_target("opencl", context);
  t.threads = static_cast<int>(s.number<Uint>(kDeviceMaxComputeUnits));
  if (s.number<Bits>(kDeviceDoubleFpConfig) == 0) t.dtypes &= ~dtype_bit(DType::F64);
  t.groups.items = static_cast<int64_t>(s.number<size_t>(kDeviceMaxWorkGroupSize));
  t.groups.local_bytes = static_cast<int64_t>(s.number<Bits>(kDeviceLocalMemSize));
  t.groups.emulated = s.number<Uint>(kDeviceLocalMemType) == kGlobal;
  std::array<size_t, 3> most{};
  s.check(
      s.api.clGetDeviceInfo(s.device, kDeviceMaxWorkItemSizes, sizeof(most), most.data(), nullptr),
      "clGetDeviceInfo");
  for (size_t axis = 0; axis < 3; ++axis)
    t.groups.most_items[axis] = static_cast<int64_t>(most[axis]);
  return t;
}

/// Given back with its last owner.
using EventRef = std::shared_ptr<opencl::EventTag>;
EventRef own(const std::shared_ptr<Session>& session, opencl::Event event) {
  return {event, [session](opencl::Event e) { session->api.clReleaseEvent(e); }};
}

/// What a queue was given together: the marker at its end, and what says when the commands ran.
struct Batch {
  std::shared_ptr<Session> session;
  // Null: timed by the host.
  std::vector<std::pair<CommandTime, EventRef>> commands = {};
  EventRef end = nullptr;
  uint64_t begun_ns = 0, marked_ns = 0;  // when the host began, and enqueued the marker

  uint64_t clock(const EventRef& event, Uint what) const {
    Bits ns = 0;
    session->check(
        session->api.clGetEventProfilingInfo(event.get(), what, sizeof(ns), &ns, nullptr),
        "clGetEventProfilingInfo");
    return ns;
  }
  /// The device's clock was read when the host enqueued the marker: that pairs the two.
  std::vector<CommandTime> times() const {
    std::vector<CommandTime> all;
    if (commands.empty()) return all;
    const uint64_t ahead = marked_ns - clock(end, kProfilingCommandQueued), now = now_ns();
    for (const auto& [known, event] : commands) {
      CommandTime& time = all.emplace_back(known);
      if (!event) continue;
      time.begin_ns = clock(event, kProfilingCommandStart) + ahead;
      time.end_ns = clock(event, kProfilingCommandEnd) + ahead;
      time.begin_ns = std::clamp(time.begin_ns, begun_ns, now);
      time.end_ns = std::clamp(time.end_ns, time.begin_ns, now);
    }
    return all;
  }
  std::vector<CommandTime> await() const {
    const opencl::Event event = end.get();
    const Int status = session->api.clWaitForEvents(1, &event);
    if (status != kSuccess)
      throw DeviceError("clWaitForEvents", status, session->name, "a submission was given up");
    return times();
  }
};

Mem mem(BufferSlice slice) { return static_cast<Mem>(slice.buffer->block()); }

class OpenclDevice final : public QueuedDevice {
 public:
  OpenclDevice(Context& context, std::string name, DeviceId id, std::shared_ptr<Session> session)
      : QueuedDevice(context, std::move(name), id, target_of(*session, context),
                     std::make_shared<OpenclMemory>(session), kQueues),
        s_(std::move(session)) {
    const Bits single = s_->number<Bits>(kDeviceSingleFpConfig);
    if (single & kFpCorrectlyRoundedDivideSqrt)
      options_ += " -cl-fp32-correctly-rounded-divide-sqrt";
  }

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::string text;
    std::unordered_set<const char*> seen;  // kernels may share one text
    for (const ProgramSource& source : sources)
      if (seen.insert(source.text.data()).second) text += source.text;
    const std::shared_ptr<Built> built = build(text);
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& source : sources)
      loaded.push_back(std::make_unique<OpenclExecutable>(source, built));
    context().tracer().add(Counter::KernelsCompiled, static_cast<int64_t>(sources.size()));
    return loaded;
  }

 protected:
  void write_memory(BufferSlice to, std::span<const std::byte> from) override {
    write(s_->transfers, to, from);
  }
  void read_memory(std::span<std::byte> to, BufferSlice from) override {
    read(s_->transfers, to, from);
  }

  Handed hand_over(int queue, std::span<const Command> commands,
                   std::span<const int> after) override {
    std::lock_guard lock(mutex_);
    if (traces()) s_->time_queue(queue);
    wait_for(queue, after);
    auto batch = std::make_shared<Batch>(Batch{s_});
    batch->begun_ns = now_ns();
    std::optional<Failure> failure;
    try {
      for (const Command& c : commands) run(*batch, queue, c, &c - commands.data());
    } catch (const DeviceError& error) {
      failure = Failure{error};
    } catch (...) {
      s_->api.clFinish(s_->queues[queue]);
      throw;
    }
    mark_end(*batch, queue);
    return {[batch] { return batch->await(); }, std::move(failure)};
  }

 private:
  void wait_for(int queue, std::span<const int> others) {
    SmallVector<opencl::Event, 4> events;
    for (int other : others)
      if (ends_[other]) events.push_back(ends_[other].get());
    if (events.empty()) return;
    s_->check(s_->api.clEnqueueBarrierWithWaitList(
                  s_->queues[queue], static_cast<Uint>(events.size()), events.data(), nullptr),
              "clEnqueueBarrierWithWaitList");
  }

  void mark_end(Batch& batch, int queue) {
    opencl::Event end = nullptr;
    const uint64_t before = now_ns();
    s_->check(s_->api.clEnqueueMarkerWithWaitList(s_->queues[queue], 0, nullptr, &end),
              "clEnqueueMarkerWithWaitList");
    batch.marked_ns = before + (now_ns() - before) / 2;
    batch.end = ends_[queue] = own(s_, end);
    s_->check(s_->api.clFlush(s_->queues[queue]), "clFlush");
  }

  void run(Batch& batch, int queue, const Command& c, int64_t number) {
    if (fault_is_now())
      throw DeviceError("launch", kInjectedFault, name(), "a command stopped", number);
    opencl::Event event = nullptr;
    CommandTime time = CommandTime::of(c);
    const bool timed = s_->timed[queue] && traces();
    time.begin_ns = timed ? now_ns() : 0;
    const auto enqueue =
        c.kind == Command::Kind::Launch ? &OpenclDevice::launch : &OpenclDevice::copy;
    (this->*enqueue)(s_->queues[queue], c, timed ? &event : nullptr);
    if (!timed) return;
    time.end_ns = now_ns();
    batch.commands.emplace_back(time, event ? own(s_, event) : nullptr);
  }

  void write(Queue queue, BufferSlice to, std::span<const std::byte> from) const {
    s_->check(s_->api.clEnqueueWriteBuffer(queue, mem(to), 1, static_cast<size_t>(to.offset),
                                           from.size(), from.data(), 0, nullptr, nullptr),
              "clEnqueueWriteBuffer");
  }
  void read(Queue queue, std::span<std::byte> to, BufferSlice from) const {
    s_->check(s_->api.clEnqueueReadBuffer(queue, mem(from), 1, static_cast<size_t>(from.offset),
                                          to.size(), to.data(), 0, nullptr, nullptr),
              "clEnqueueReadBuffer");
  }

  std::shared_ptr<Built> build(const std::string& text) {
    auto built = std::make_shared<Built>();
    built->session = s_;
    const char* lines = text.c_str();
    const size_t length = text.size();
    Int status = 0;
    built->program = s_->api.clCreateProgramWithSource(s_->context, 1, &lines, &length, &status);
    s_->check(status, "clCreateProgramWithSource");
    status =
        s_->api.clBuildProgram(built->program, 1, &s_->device, options_.c_str(), nullptr, nullptr);
    if (status == kSuccess) return built;
    std::string said(4096, '\0');
    size_t size = 0;
    s_->api.clGetProgramBuildInfo(built->program, s_->device, kProgramBuildLog, said.size(),
                                  said.data(), &size);
    fail_device("clBuildProgram", status, name(), "the compiler says: {}", said.c_str());
  }

  void launch(Queue queue, const Command& c, opencl::Event* event) {
    const auto& k = static_cast<const OpenclExecutable&>(*c.executable);
    WEFT_CHECK(k.params().size() <= c.buffers.size() && c.items >= 0 && c.items <= UINT32_MAX,
               "{}: launched with {} buffers, takes {}; {} items", k.name(), c.buffers.size(),
               k.params().size(), c.items);
    context().tracer().add(Counter::Kernels);
    if (c.items == 0) return;
    Uint place = 0;
    const auto give = [&](const void* value, size_t bytes) {
      s_->check(s_->api.clSetKernelArg(k.kernel, place++, bytes, value), "clSetKernelArg");
    };
    for (const BufferSlice& slice : c.buffers.first(k.params().size())) {
      check_slice(slice, 0, "launch");
      const Mem memory = mem(slice);
      give(&memory, sizeof(memory));
      give(&slice.offset, sizeof(slice.offset));
    }
    for (const int64_t& v : c.vars) give(&v, sizeof(v));
    if (k.grouped) return enqueue_groups(queue, k, c.grid, event);
    const Uint begin = 0, end = static_cast<Uint>(c.items);
    give(&begin, sizeof(begin));
    give(&end, sizeof(end));
    const auto items = static_cast<size_t>(c.items);
    enqueue_kernel(queue, k, 1, &items, nullptr, event);
  }

  void enqueue_groups(Queue queue, const OpenclExecutable& k, std::span<const int64_t, 3> grid,
                      opencl::Event* event) {
    std::array<size_t, 3> items{};
    for (size_t axis = 0; axis < 3; ++axis)
      items[axis] = static_cast<size_t>(grid[axis]) * k.group[axis];
    if (std::ranges::find(items, size_t{0}) != items.end()) return;
    enqueue_kernel(queue, k, 3, items.data(), k.group.data(), event);
  }

  void enqueue_kernel(Queue queue, const OpenclExecutable& k, Uint axes, const size_t* items,
                      const size_t* group, opencl::Event* event) {
    s_->check(s_->api.clEnqueueNDRangeKernel(queue, k.kernel, axes, nullptr, items, group, 0,
                                             nullptr, event),
              "clEnqueueNDRangeKernel");
  }

  // OpenCL refuses copies within one object that overlap: those go through the host.
  void copy(Queue queue, const Command& c, opencl::Event* event) {
    check_slice(c.to, c.bytes, "copy");
    check_slice(c.from, c.bytes, "copy");
    context().tracer().add(Counter::Copies);
    context().tracer().add(Counter::CopyBytes, c.bytes);
    if (c.bytes == 0) return;
    if (mem(c.to) == mem(c.from)) {
      std::vector<std::byte> host(static_cast<size_t>(c.bytes));
      read(queue, host, c.from);
      return write(queue, c.to, host);
    }
    s_->check(s_->api.clEnqueueCopyBuffer(queue, mem(c.from), mem(c.to),
                                          static_cast<size_t>(c.from.offset),
                                          static_cast<size_t>(c.to.offset),
                                          static_cast<size_t>(c.bytes), 0, nullptr, event),
              "clEnqueueCopyBuffer");
  }

  std::shared_ptr<Session> s_;
  std::mutex mutex_;        // a kernel has one set of arguments, whatever queue it goes to
  EventRef ends_[kQueues];  // of what each was given last
  std::string options_ = "-cl-std=CL1.2 -w";  // a library prints nothing unasked
};

std::string describe(Context&) {
  const std::shared_ptr<Session> s = open_session("OPENCL", 0);
  return strformat("OpenCL: {}, {} compute units", s->device_name(),
                   s->number<Uint>(kDeviceMaxComputeUnits));
}

std::unique_ptr<Device> make(Context& context, std::string name, DeviceId id) {
  const size_t colon = name.find(':');
  const int ordinal = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  std::shared_ptr<Session> session = open_session(name, ordinal);
  return std::make_unique<OpenclDevice>(context, std::move(name), id, std::move(session));
}

}  // namespace

Driver opencl_driver() {
  static constexpr DeviceKind kKinds[] = {{6, "OPENCL", make, describe}};
  return kKinds;
}

}  // namespace weft
