// WEBGPU: kernels in WGSL through wgpu-native. Memory is the device's: a block is a WGPUBuffer, and
// only copies go between it and the host.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "weft/base/bits.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/driver.h"
#include "weft/device/queued_device.h"
#include "weft/device/webgpu_session.h"
#include "weft/device/webgpu_times.h"

namespace weft {

namespace {

using namespace webgpu;

constexpr int64_t kGroup = 64;  // render_wgsl()'s @workgroup_size
constexpr int64_t kWord = 4;    // copies are of whole ones, at multiples of it
// Mesa's lavapipe loads lane by lane, from whatever memory, in the time of 16 operations on a
// vector: docs/measurements.md.
constexpr double kLoadsOnCpu = 1.0 / 8;

// ---- memory

class WebgpuMemory final : public Memory {
 public:
  explicit WebgpuMemory(std::shared_ptr<Session> session) : s_(std::move(session)) {}
  void* allocate(size_t bytes) override {
    std::lock_guard lock(s_->mutex);
    BufferDescriptor d;
    d.usage = kStorage | kCopySrc | kCopyDst;
    d.bytes = static_cast<uint64_t>(round_up(static_cast<int64_t>(bytes), kWord));
    BufferHandle made = s_->api.wgpuDeviceCreateBuffer(s_->device.get(), &d);
    if (!s_->take_error()) return made;
    if (made) s_->api.wgpuBufferRelease(made);
    return nullptr;
  }
  void release(void* block) override {
    s_->api.wgpuBufferRelease(static_cast<BufferHandle>(block));
  }
  /// What one binding can reach: a kernel sees a buffer as a whole.
  int64_t most() const override {
    const uint64_t bytes = std::min(s_->limits.buffer_bytes, s_->limits.storage_binding_bytes);
    return static_cast<int64_t>(std::min<uint64_t>(bytes, UINT32_MAX)) / kStep * kStep;
  }
  bool addressable() const override { return false; }

 private:
  static constexpr int64_t kStep = 65536;  // allocators round sizes up to it
  std::shared_ptr<Session> s_;
};

BufferHandle memory(BufferSlice slice) { return static_cast<BufferHandle>(slice.buffer->block()); }

// ---- kernels

struct WebgpuExecutable final : Executable {
  WebgpuExecutable(const ProgramSource& source, std::shared_ptr<Session> s)
      : Executable(source.entry, source.program),
        session(std::move(s)),
        grouped(source.program->launch.grouped) {
    check_limits();
    std::vector<LayoutEntry> entries(1);
    entries[0].buffer.type = kUniformBinding;
    for (size_t i = 0; i < params().size(); ++i) {
      if (params()[i].dtype == DType::Void) continue;
      entries.emplace_back();
      entries.back().binding = static_cast<uint32_t>(i + 1);
      entries.back().buffer.type = kStorageBinding;
    }
    LayoutDescriptor d;
    d.count = entries.size();
    d.entries = entries.data();
    layout = {api().wgpuDeviceCreateBindGroupLayout(session->device.get(), &d),
              api().wgpuBindGroupLayoutRelease};
    session->check("wgpuDeviceCreateBindGroupLayout");
    make_pipeline(source);
  }

  const Api& api() const { return session->api; }

  std::shared_ptr<Session> session;
  bool grouped;
  Owned<Layout> layout;
  Owned<Pipeline> pipeline;

 private:
  void check_limits() const {
    const auto used = std::ranges::count_if(
        params(), [](const ProgramParam& p) { return p.dtype != DType::Void; });
    if (used > session->limits.storage_buffers)
      fail_device("load", E2BIG, session->name,
                  "kernel {} uses {} buffers, and the adapter binds {} at once; put contiguous() "
                  "between parts of what it computes",
                  name(), used, session->limits.storage_buffers);
  }

  void make_pipeline(const ProgramSource& source) {
    ShaderSource code;
    code.code = source.text;
    Described described;
    described.next = &code.chain;
    const Owned<Module> module(
        api().wgpuDeviceCreateShaderModule(session->device.get(), &described),
        api().wgpuShaderModuleRelease);
    session->check("wgpuDeviceCreateShaderModule");
    const Layout layouts[] = {layout.get()};
    PipelineLayoutDescriptor all;
    all.count = 1;
    all.layouts = layouts;
    const Owned<PipelineLayout> bindings(
        api().wgpuDeviceCreatePipelineLayout(session->device.get(), &all),
        api().wgpuPipelineLayoutRelease);
    PipelineDescriptor d;
    d.layout = bindings.get();
    d.module = module.get();
    d.entry = std::string_view(source.entry);
    pipeline = {api().wgpuDeviceCreateComputePipeline(session->device.get(), &d),
                api().wgpuComputePipelineRelease};
    session->check("wgpuDeviceCreateComputePipeline");
  }
};

/// The uniforms of every dispatch of a command list, each where the adapter wants uniforms to be.
class Arguments {
 public:
  explicit Arguments(uint32_t alignment) : alignment_(alignment) {}
  /// Where the words lie from now on, in bytes.
  uint64_t add(std::span<const uint32_t> words) {
    const size_t at = round_up(words_.size() * kWord, alignment_) / kWord;
    words_.resize(at);
    words_.insert(words_.end(), words.begin(), words.end());
    words_.resize(round_up(words_.size(), size_t{4}));  // uniforms are multiples of 16 bytes
    return at * kWord;
  }
  std::span<const uint32_t> words() const { return words_; }

 private:
  size_t alignment_;
  std::vector<uint32_t> words_;
};

Target target_of(const Session& s, Context& context) {
  Target t = make_target("wgsl", context);
  t.most_buffers = s.limits.storage_buffers;
  t.groups.items = s.limits.workgroup_invocations;
  t.groups.most_items = {s.limits.workgroup_x, s.limits.workgroup_y, s.limits.workgroup_z};
  t.groups.most_groups.fill(s.limits.workgroups_per_dimension);
  t.groups.local_bytes = s.limits.workgroup_memory;
  t.groups.local_is_near = !s.on_cpu;
  if (std::has_single_bit(s.subgroup)) {
    t.groups.wave = s.subgroup;
    t.groups.shuffled = dtype_set({DType::I32, DType::U32, DType::F32});
  }
  if (s.on_cpu) t.machine.loads = kLoadsOnCpu;
  return t;
}

class WebgpuDevice final : public QueuedDevice {
 public:
  WebgpuDevice(Context& context, std::string name, DeviceId id, std::shared_ptr<Session> session)
      : QueuedDevice(context, std::move(name), id, target_of(*session, context),
                     std::make_shared<WebgpuMemory>(session)),
        s_(std::move(session)) {}

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::lock_guard lock(s_->mutex);
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& source : sources)
      loaded.push_back(std::make_unique<WebgpuExecutable>(source, s_));
    context().tracer().add(Counter::KernelsCompiled, static_cast<int64_t>(sources.size()));
    return loaded;
  }

 protected:
  // Words at the ends that are not written whole keep the rest of what they were.
  void write_memory(BufferSlice to, std::span<const std::byte> from) override {
    std::lock_guard lock(s_->mutex);
    const int64_t bytes = static_cast<int64_t>(from.size());
    const int64_t begin = to.offset / kWord * kWord, end = round_up(to.offset + bytes, kWord);
    std::vector<std::byte> words;
    if (begin != to.offset || end != to.offset + bytes) {
      words.resize(static_cast<size_t>(end - begin));
      const std::span whole(words);
      read_words(whole.first(kWord), memory(to), begin);
      read_words(whole.last(kWord), memory(to), end - kWord);
      std::memcpy(words.data() + (to.offset - begin), from.data(), from.size());
      from = words;
    }
    s_->api.wgpuQueueWriteBuffer(s_->queue.get(), memory(to), static_cast<uint64_t>(begin),
                                 from.data(), from.size());
    s_->check("wgpuQueueWriteBuffer");
  }
  void read_memory(std::span<std::byte> to, BufferSlice from) override {
    std::lock_guard lock(s_->mutex);
    const int64_t bytes = static_cast<int64_t>(to.size());
    const int64_t begin = from.offset / kWord * kWord, end = round_up(from.offset + bytes, kWord);
    if (begin == from.offset && end == from.offset + bytes)
      return read_words(to, memory(from), begin);
    std::vector<std::byte> words(static_cast<size_t>(end - begin));
    read_words(words, memory(from), begin);
    std::memcpy(to.data(), words.data() + (from.offset - begin), to.size());
  }

  Handed hand_over(int, std::span<const Command> commands, std::span<const int>) override {
    std::lock_guard lock(s_->mutex);
    Owned<Encoder> encoder = s_->encoder();
    auto times = std::make_shared<CommandTimes>(s_, traces() ? commands : commands.first(0));
    std::optional<Failure> failure;
    try {
      record(commands, encoder, *times);
    } catch (const DeviceError& error) {
      failure = Failure{error};
    }
    times->end(encoder.get());
    const uint64_t number = s_->submit(encoder.get());
    return {[session = s_, number, times] {
              session->await(number);
              return times->read();
            },
            std::move(failure)};
  }

 private:
  void record(std::span<const Command> commands, Owned<Encoder>& encoder, CommandTimes& times) {
    const std::vector<Dispatch> dispatches = write_arguments(commands);
    times.mark(encoder.get());
    size_t next = 0;
    for (const Command& c : commands) {
      if (fault_is_now())
        throw DeviceError("launch", kInjectedFault, name(), "a command stopped",
                          &c - commands.data());
      if (c.kind == Command::Kind::Launch) {
        context().tracer().add(Counter::Kernels);
        for (; next < dispatches.size() && dispatches[next].command == &c; ++next)
          launch(encoder.get(), dispatches[next]);
      } else {
        copy(encoder, c);
      }
      times.mark(encoder.get());
    }
  }

  /// A launch, or the part of it that one grid can hold.
  struct Dispatch {
    const Command* command;
    uint64_t arguments, argument_bytes;
    std::array<uint32_t, 3> groups;
  };

  void read_words(std::span<std::byte> to, BufferHandle from, int64_t offset) {
    const Owned<BufferHandle> staging = s_->buffer(to.size(), kMapRead | kCopyDst);
    const Owned<Encoder> encoder = s_->encoder();
    s_->api.wgpuCommandEncoderCopyBufferToBuffer(encoder.get(), from, static_cast<uint64_t>(offset),
                                                 staging.get(), 0, to.size());
    s_->submit(encoder.get());
    s_->read(to, staging);
  }

  // ---- launches

  /// Where a binding begins that holds this slice.
  int64_t binding_offset(BufferSlice slice) const {
    const int64_t alignment = s_->limits.storage_alignment;
    const int64_t offset = slice.offset / alignment * alignment;
    return offset < slice.buffer->bytes() ? offset : 0;  // bindings are not empty
  }

  std::vector<Dispatch> write_arguments(std::span<const Command> commands) {
    Arguments arguments(s_->limits.uniform_alignment);
    std::vector<Dispatch> dispatches;
    for (const Command& c : commands)
      if (c.kind == Command::Kind::Launch) add_dispatches(c, arguments, dispatches);
    const auto words = std::as_bytes(arguments.words());
    if (words.empty()) return dispatches;
    if (words.size() > argument_bytes_) {
      argument_bytes_ = std::max(words.size(), 2 * argument_bytes_);
      arguments_ = s_->buffer(argument_bytes_, kUniform | kCopyDst);
    }
    s_->api.wgpuQueueWriteBuffer(s_->queue.get(), arguments_.get(), 0, words.data(), words.size());
    s_->check("wgpuQueueWriteBuffer");
    return dispatches;
  }

  void add_dispatches(const Command& c, Arguments& arguments, std::vector<Dispatch>& dispatches) {
    const auto& k = static_cast<const WebgpuExecutable&>(*c.executable);
    const int64_t grid = kGroup * s_->limits.workgroups_per_dimension;
    WEFT_CHECK(
        k.params().size() <= c.buffers.size() && c.items >= 0 && c.items <= UINT32_MAX - grid,
        "{}: launched with {} buffers, takes {}; {} items", k.name(), c.buffers.size(),
        k.params().size(), c.items);
    const auto add = [&](int64_t begin, std::array<uint32_t, 3> groups) {
      const std::vector<uint32_t> words = words_of(c, begin);
      const uint64_t bytes = round_up(words.size(), size_t{4}) * kWord;
      dispatches.push_back({&c, arguments.add(words), bytes, groups});
    };
    if (k.grouped) {
      std::array<uint32_t, 3> groups{};
      for (size_t axis = 0; axis < 3; ++axis) groups[axis] = static_cast<uint32_t>(c.grid[axis]);
      return add(0, groups);
    }
    for (int64_t begin = 0; begin < c.items; begin += grid) {
      const int64_t items = std::min(grid, c.items - begin);
      add(begin, {static_cast<uint32_t>((items + kGroup - 1) / kGroup), 1, 1});
    }
  }

  /// The uniform `args` of render_wgsl().
  std::vector<uint32_t> words_of(const Command& c, int64_t begin) const {
    std::vector<uint32_t> words{static_cast<uint32_t>(begin), static_cast<uint32_t>(c.items), 0};
    const std::span<const ProgramParam> params = c.executable->params();
    for (size_t i = 0; i < params.size(); ++i) {
      check_slice(c.buffers[i], 0, "launch");
      const int64_t before = c.buffers[i].offset - binding_offset(c.buffers[i]);
      const bool used = params[i].dtype != DType::Void;
      words.push_back(used ? static_cast<uint32_t>(before / bytes_for(params[i].dtype, 1)) : 0);
    }
    for (const int64_t v : c.vars) {
      words.push_back(static_cast<uint32_t>(v));
      words.push_back(static_cast<uint32_t>(v >> 32));
    }
    return words;
  }

  void launch(Encoder encoder, const Dispatch& d) {
    const auto& k = static_cast<const WebgpuExecutable&>(*d.command->executable);
    std::vector<GroupEntry> entries(1);
    entries[0].buffer = arguments_.get();
    entries[0].offset = d.arguments;
    entries[0].bytes = d.argument_bytes;
    for (size_t i = 0; i < k.params().size(); ++i) {
      if (k.params()[i].dtype == DType::Void) continue;
      GroupEntry& e = entries.emplace_back();
      e.binding = static_cast<uint32_t>(i + 1);
      e.buffer = memory(d.command->buffers[i]);
      e.offset = static_cast<uint64_t>(binding_offset(d.command->buffers[i]));
    }
    GroupDescriptor group;
    group.layout = k.layout.get();
    group.count = entries.size();
    group.entries = entries.data();
    const Owned<Group> bound(s_->api.wgpuDeviceCreateBindGroup(s_->device.get(), &group),
                             s_->api.wgpuBindGroupRelease);
    s_->check("wgpuDeviceCreateBindGroup");
    const PassDescriptor none;
    const Owned<Pass> pass(s_->api.wgpuCommandEncoderBeginComputePass(encoder, &none),
                           s_->api.wgpuComputePassEncoderRelease);
    s_->api.wgpuComputePassEncoderSetPipeline(pass.get(), k.pipeline.get());
    s_->api.wgpuComputePassEncoderSetBindGroup(pass.get(), 0, bound.get(), 0, nullptr);
    s_->api.wgpuComputePassEncoderDispatchWorkgroups(pass.get(), d.groups[0], d.groups[1],
                                                     d.groups[2]);
    s_->api.wgpuComputePassEncoderEnd(pass.get());
    s_->check("wgpuComputePassEncoderEnd");
  }

  // ---- copies

  /// WebGPU copies whole words between two buffers; anything else goes through the host, after what
  /// was recorded before it.
  void copy(Owned<Encoder>& encoder, const Command& c) {
    check_slice(c.to, c.bytes, "copy");
    check_slice(c.from, c.bytes, "copy");
    context().tracer().add(Counter::Copies);
    context().tracer().add(Counter::CopyBytes, c.bytes);
    if (c.bytes == 0) return;
    if (memory(c.to) != memory(c.from) && (c.to.offset | c.from.offset | c.bytes) % kWord == 0)
      return s_->api.wgpuCommandEncoderCopyBufferToBuffer(
          encoder.get(), memory(c.from), static_cast<uint64_t>(c.from.offset), memory(c.to),
          static_cast<uint64_t>(c.to.offset), static_cast<uint64_t>(c.bytes));
    s_->submit(encoder.get());
    encoder = s_->encoder();
    std::vector<std::byte> host(static_cast<size_t>(c.bytes));
    read_memory(host, c.from);
    write_memory(c.to, host);
  }

  std::shared_ptr<Session> s_;
  Owned<BufferHandle> arguments_;
  size_t argument_bytes_ = 0;
};

std::string describe(Context& context) {
  const std::shared_ptr<Session> s = open_session(context, "WEBGPU", 0);
  return strformat("WebGPU: {}, {} MiB a buffer, {} buffers a kernel", s->description,
                   WebgpuMemory(s).most() >> 20, s->limits.storage_buffers);
}

std::unique_ptr<Device> make(Context& context, std::string name, DeviceId id) {
  const size_t colon = name.find(':');
  const int ordinal = colon == std::string::npos ? 0 : std::stoi(name.substr(colon + 1));
  std::shared_ptr<Session> session = open_session(context, name, ordinal);
  return std::make_unique<WebgpuDevice>(context, std::move(name), id, std::move(session));
}

}  // namespace

Driver webgpu_driver() {
  static constexpr DeviceKind kKinds[] = {{7, "WEBGPU", make, describe}};
  return kKinds;
}

}  // namespace weft
