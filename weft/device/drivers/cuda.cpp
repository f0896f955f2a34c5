// CUDA: NVIDIA's GPUs through libcuda.so.1. CUDA:PTX gives the driver PTX text, so that nothing
// else has to be installed; CUDA:NVRTC compiles CUDA C by libnvrtc, where that is. Memory is the
// device's. A queue is a stream; a submission ends with an event, which a thread waits for.
#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/small_vector.h"
#include "weft/device/cuda_session.h"
#include "weft/device/driver.h"
#include "weft/device/queued_device.h"

namespace weft {

namespace {

using namespace cuda;

constexpr char kPtx[] = "ptx", kCudaC[] = "cuda";  // rows of targets
constexpr int kQueues = 2;
// Of a program that is no grid of groups: four warps of a multiprocessor's four schedulers each.
constexpr unsigned kGroup = 128;

Address address(BufferSlice slice) {
  return reinterpret_cast<Address>(slice.buffer->block()) + static_cast<Address>(slice.offset);
}

class CudaMemory final : public Memory {
 public:
  explicit CudaMemory(std::shared_ptr<Session> session) : s_(std::move(session)) {}
  void* allocate(size_t bytes) override {
    s_->enter();
    Address made = 0;
    return s_->api.cuMemAlloc_v2(&made, bytes) == kSuccess ? reinterpret_cast<void*>(made)
                                                           : nullptr;
  }
  void release(void* block) override {
    if (s_->api.cuCtxSetCurrent(s_->context) == kSuccess)
      s_->api.cuMemFree_v2(reinterpret_cast<Address>(block));
  }
  int64_t most() const override { return static_cast<int64_t>(s_->total_bytes()); }
  bool addressable() const override { return false; }
  // "Device Memory Accesses" of the guide: of every allocation, at least.
  int64_t alignment() const override { return 256; }

 private:
  std::shared_ptr<Session> s_;
};

/// The kernels of one text, freed with the last of them.
struct LoadedModule {
  std::shared_ptr<Session> session;
  Module module = nullptr;
  ~LoadedModule() {
    if (module && session->api.cuCtxSetCurrent(session->context) == kSuccess)
      session->api.cuModuleUnload(module);
  }
};

struct CudaExecutable final : Executable {
  CudaExecutable(const ProgramSource& source, std::shared_ptr<LoadedModule> m)
      : Executable(source.entry, source.program),
        module(std::move(m)),
        grouped(source.program->launch.grouped) {
    for (size_t axis = 0; axis < 3; ++axis)
      group[axis] = static_cast<unsigned>(source.program->launch.group[axis]);
    const Session& s = *module->session;
    s.check(s.api.cuModuleGetFunction(&function, module->module, source.entry.c_str()),
            "cuModuleGetFunction");
  }

  std::shared_ptr<LoadedModule> module;
  bool grouped;
  std::array<unsigned, 3> group{};
  Function function = nullptr;
};

Target target_of(const char* row, const Session& s, Context& context) {
  Target t = make_target(row, context);
  t.threads = s.attribute(kMultiprocessors);
  t.groups.items = s.attribute(kMaxThreadsPerBlock);
  t.groups.local_bytes = s.attribute(kMaxSharedPerBlock);
  for (int axis = 0; axis < 3; ++axis) {
    t.groups.most_items[static_cast<size_t>(axis)] = s.attribute(kMaxBlockDimX + axis);
    t.groups.most_groups[static_cast<size_t>(axis)] = s.attribute(kMaxGridDimX + axis);
  }
  return t;
}

/// A moment that both clocks know.
struct ClockPair {
  EventRef event;
  uint64_t host_ns = 0;
};

/// What a queue was given together: the event at its end, and what says when the commands ran.
struct Batch {
  std::shared_ptr<Session> session;
  EventRef end = nullptr;
  ClockPair clock = {};              // where it is timed
  std::vector<EventRef> marks = {};  // before the first command and after each
  std::vector<CommandTime> commands = {};

  uint64_t host_ns(const EventRef& event) const {
    const double ms = session->milliseconds(clock.event, event);
    return clock.host_ns + static_cast<uint64_t>(std::max(ms, 0.0) * 1e6);
  }
  std::vector<CommandTime> await() {
    session->enter();
    const Result status = session->api.cuEventSynchronize(end.get());
    session->check(status, "cuEventSynchronize");
    for (size_t i = 0; i < commands.size(); ++i) {
      commands[i].begin_ns = host_ns(marks[i]);
      commands[i].end_ns = std::max(host_ns(marks[i + 1]), commands[i].begin_ns);
    }
    return std::move(commands);
  }
};

/// A CUDA C text as machine code of the session's GPU.
class NvrtcCompiler {
 public:
  explicit NvrtcCompiler(std::shared_ptr<Session> session) : s_(std::move(session)) {
    if (!nvrtc_.library.loaded())
      fail_device("open", ENOENT, s_->name,
                  "there is no NVRTC: {}; install CUDA's (PyPI: nvidia-cuda-nvrtc), or take "
                  "CUDA:PTX, which needs the driver alone",
                  nvrtc_.library.missing());
    if (const char* lacks = nvrtc_.lacks())
      fail_device("open", ENOSYS, s_->name, "libnvrtc has no {}: it is older than CUDA 11", lacks);
  }

  std::string compile(const std::string& text) const {
    NvrtcProgram program = nullptr;
    check(nvrtc_.nvrtcCreateProgram(&program, text.c_str(), "kernels.cu", 0, nullptr, nullptr),
          "nvrtcCreateProgram");
    const std::unique_ptr<NvrtcProgram, Result (*)(NvrtcProgram*)> owner(
        &program, nvrtc_.nvrtcDestroyProgram);
    // Which products are fused is decided in the program.
    const std::string arch = strformat("--gpu-architecture=sm_{}{}", s_->major, s_->minor);
    const char* options[] = {arch.c_str(), "--fmad=false", "--std=c++17", "-w"};
    const Result status = nvrtc_.nvrtcCompileProgram(program, std::size(options), options);
    if (status != kSuccess)
      fail_device("nvrtcCompileProgram", status, s_->name, "the compiler says: {}", log(program));
    size_t bytes = 0;
    check(nvrtc_.nvrtcGetCUBINSize(program, &bytes), "nvrtcGetCUBINSize");
    std::string code(bytes, '\0');
    check(nvrtc_.nvrtcGetCUBIN(program, code.data()), "nvrtcGetCUBIN");
    return code;
  }

 private:
  void check(Result status, const char* call) const {
    if (status != kSuccess) fail_device(call, status, s_->name, "NVRTC refused it");
  }
  std::string log(NvrtcProgram program) const {
    size_t bytes = 0;
    if (nvrtc_.nvrtcGetProgramLogSize(program, &bytes) != kSuccess) return "nothing";
    std::string said(bytes, '\0');
    nvrtc_.nvrtcGetProgramLog(program, said.data());
    return said.c_str();
  }

  std::shared_ptr<Session> s_;
  Nvrtc nvrtc_;
};

/// PTX text or machine code, taken by the driver.
std::shared_ptr<LoadedModule> load_module(const std::shared_ptr<Session>& session,
                                          const std::string& code) {
  session->enter();
  auto loaded = std::make_shared<LoadedModule>();
  loaded->session = session;
  std::string said(4096, '\0');
  int options[] = {kJitErrorLog, kJitErrorLogBytes};
  void* values[] = {said.data(), reinterpret_cast<void*>(said.size() - 1)};
  const Result status = session->api.cuModuleLoadDataEx(&loaded->module, code.c_str(),
                                                        std::size(options), options, values);
  if (status != kSuccess)
    fail_device("cuModuleLoadDataEx", status, session->name, "the driver's compiler says: {}",
                said.c_str());
  return loaded;
}

class CudaDevice final : public QueuedDevice {
 public:
  CudaDevice(Context& context, std::string name, DeviceId id, const char* target,
             std::shared_ptr<Session> session)
      : QueuedDevice(context, std::move(name), id, target_of(target, *session, context),
                     std::make_shared<CudaMemory>(session), kQueues),
        s_(std::move(session)) {
    if (this->target().renderer == kCudaC) nvrtc_.emplace(s_);
    for (Stream& stream : streams_) stream = s_->make_stream();
    transfers_ = s_->make_stream();
  }
  // The threads of the queues keep what they still wait for.
  ~CudaDevice() override {
    if (s_->api.cuCtxSetCurrent(s_->context) != kSuccess) return;
    for (Stream stream : streams_) s_->api.cuStreamDestroy_v2(stream);
    s_->api.cuStreamDestroy_v2(transfers_);
  }

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    const auto modules = nvrtc_ ? compiled_together(sources) : compiled_apart(sources);
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& source : sources)
      loaded.push_back(std::make_unique<CudaExecutable>(source, modules.at(source.text.data())));
    context().tracer().add(Counter::KernelsCompiled, static_cast<int64_t>(sources.size()));
    return loaded;
  }

 protected:
  void write_memory(BufferSlice to, std::span<const std::byte> from) override {
    write(transfers_, to, from);
  }
  void read_memory(std::span<std::byte> to, BufferSlice from) override {
    read(transfers_, to, from);
  }

  Handed hand_over(int queue, std::span<const Command> commands,
                   std::span<const int> after) override {
    std::lock_guard lock(mutex_);
    s_->enter();
    const Stream stream = streams_[queue];
    for (int other : after)
      if (ends_[other])
        s_->check(s_->api.cuStreamWaitEvent(stream, ends_[other].get(), 0), "cuStreamWaitEvent");
    auto batch = std::make_shared<Batch>(Batch{s_});
    const bool timed = traces();
    if (timed) {
      batch->clock = clock();
      batch->marks.push_back(s_->record(s_, stream, true));
    }
    std::optional<Failure> failure;
    try {
      for (const Command& c : commands) {
        run(stream, c, &c - commands.data());
        if (!timed) continue;
        batch->commands.push_back(CommandTime::of(c));
        batch->marks.push_back(s_->record(s_, stream, true));
      }
    } catch (const DeviceError& error) {
      failure = Failure{error};
    } catch (...) {
      s_->api.cuStreamSynchronize(stream);
      throw;
    }
    batch->end = ends_[queue] = s_->record(s_, stream, false);
    return {[batch] { return batch->await(); }, std::move(failure)};
  }

 private:
  using Modules = std::unordered_map<const char*, std::shared_ptr<LoadedModule>>;  // of each text

  Modules compiled_apart(std::span<const ProgramSource> sources) {
    Modules modules;
    for (const ProgramSource& source : sources) {
      std::shared_ptr<LoadedModule>& module = modules[source.text.data()];
      if (!module) module = load_module(s_, std::string(source.text));
    }
    return modules;
  }
  // NVRTC takes long to begin, whatever it is given.
  Modules compiled_together(std::span<const ProgramSource> sources) {
    std::string text;
    Modules modules;
    for (const ProgramSource& source : sources)
      if (modules.try_emplace(source.text.data()).second) text += source.text;
    const auto module = load_module(s_, nvrtc_->compile(text));
    for (auto& [source, loaded] : modules) loaded = module;
    return modules;
  }

  /// Times of events are floats, so that a pair is good for seconds.
  ClockPair clock() {
    constexpr uint64_t kGoodFor = 10'000'000'000;
    if (clock_.event && now_ns() - clock_.host_ns < kGoodFor) return clock_;
    s_->check(s_->api.cuStreamSynchronize(transfers_), "cuStreamSynchronize");
    const uint64_t before = now_ns();
    clock_.event = s_->record(s_, transfers_, true);
    s_->check(s_->api.cuEventSynchronize(clock_.event.get()), "cuEventSynchronize");
    clock_.host_ns = before + (now_ns() - before) / 2;
    return clock_;
  }

  void run(Stream stream, const Command& c, int64_t number) {
    if (fault_is_now())
      throw DeviceError("launch", kInjectedFault, name(), "a command stopped", number);
    if (c.kind == Command::Kind::Launch)
      launch(stream, c);
    else
      copy(stream, c);
  }

  void write(Stream stream, BufferSlice to, std::span<const std::byte> from) const {
    s_->enter();
    s_->check(s_->api.cuMemcpyHtoDAsync_v2(address(to), from.data(), from.size(), stream),
              "cuMemcpyHtoDAsync");
    s_->check(s_->api.cuStreamSynchronize(stream), "cuStreamSynchronize");
  }
  void read(Stream stream, std::span<std::byte> to, BufferSlice from) const {
    s_->enter();
    s_->check(s_->api.cuMemcpyDtoHAsync_v2(to.data(), address(from), to.size(), stream),
              "cuMemcpyDtoHAsync");
    s_->check(s_->api.cuStreamSynchronize(stream), "cuStreamSynchronize");
  }

  void launch(Stream stream, const Command& c) {
    const auto& k = static_cast<const CudaExecutable&>(*c.executable);
    WEFT_CHECK(k.params().size() <= c.buffers.size() && c.items >= 0 && c.items <= UINT32_MAX,
               "{}: launched with {} buffers, takes {}; {} items", k.name(), c.buffers.size(),
               k.params().size(), c.items);
    context().tracer().add(Counter::Kernels);
    SmallVector<uint64_t, 32> values;
    for (const BufferSlice& slice : c.buffers.first(k.params().size())) {
      check_slice(slice, 0, "launch");
      values.push_back(address(slice));
    }
    for (const int64_t v : c.vars) values.push_back(static_cast<uint64_t>(v));
    uint32_t begin = 0, end = static_cast<uint32_t>(c.items);
    SmallVector<void*, 32> args;
    for (uint64_t& value : values) args.push_back(&value);
    std::array<int64_t, 3> grid = c.grid;
    std::array<unsigned, 3> group = k.group;
    if (!k.grouped) {
      args.push_back(&begin);
      args.push_back(&end);
      group = {kGroup, 1, 1};
      grid = {(c.items + kGroup - 1) / kGroup, 1, 1};
    }
    if (std::ranges::find(grid, 0) != grid.end()) return;
    s_->check(s_->api.cuLaunchKernel(k.function, static_cast<unsigned>(grid[0]),
                                     static_cast<unsigned>(grid[1]), static_cast<unsigned>(grid[2]),
                                     group[0], group[1], group[2], 0, stream, args.data(), nullptr),
              "cuLaunchKernel");
  }

  // What a copy within memory that overlaps does is not defined: those go through the host.
  void copy(Stream stream, const Command& c) {
    check_slice(c.to, c.bytes, "copy");
    check_slice(c.from, c.bytes, "copy");
    context().tracer().add(Counter::Copies);
    context().tracer().add(Counter::CopyBytes, c.bytes);
    if (c.bytes == 0) return;
    const Address to = address(c.to), from = address(c.from);
    const auto bytes = static_cast<size_t>(c.bytes);
    if (to < from + bytes && from < to + bytes) {
      std::vector<std::byte> host(bytes);
      read(stream, host, c.from);
      return write(stream, c.to, host);
    }
    s_->check(s_->api.cuMemcpyDtoDAsync_v2(to, from, bytes, stream), "cuMemcpyDtoDAsync");
  }

  std::shared_ptr<Session> s_;
  std::optional<NvrtcCompiler> nvrtc_;  // where the target's text is CUDA C
  std::mutex mutex_;                    // one submission after the other
  Stream streams_[kQueues] = {};
  Stream transfers_ = nullptr;  // of the host: what waits for nothing but what it was told to
  EventRef ends_[kQueues];      // of what each was given last
  ClockPair clock_;
};

/// The number after the last colon, where there is one: "CUDA:PTX:1".
int ordinal_of(std::string_view name) {
  const std::string_view last = name.substr(name.rfind(':') + 1);
  return last.find_first_not_of("0123456789") == last.npos ? std::stoi(std::string(last)) : 0;
}

std::string describe(Context&) {
  const std::shared_ptr<Session> s = open_session("CUDA", 0);
  return strformat("{}: compute capability {}.{}, {} multiprocessors, {} MiB", s->device_name(),
                   s->major, s->minor, s->attribute(kMultiprocessors), s->total_bytes() >> 20);
}

template <const char* target>
std::unique_ptr<Device> make(Context& context, std::string name, DeviceId id) {
  std::shared_ptr<Session> session = open_session(name, ordinal_of(name));
  return std::make_unique<CudaDevice>(context, std::move(name), id, target, std::move(session));
}

}  // namespace

Driver cuda_driver() {
  static constexpr DeviceKind kKinds[] = {{10, "CUDA:PTX", make<kPtx>, describe},
                                          {11, "CUDA:NVRTC", make<kCudaC>, describe}};
  return kKinds;
}

}  // namespace weft
