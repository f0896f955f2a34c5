// Device: the small interface every driver stands behind. Memory, loaded programs, and command
// lists submitted to queues with monotonic timelines.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/device/buffer.h"
#include "weft/device/timeline.h"
#include "weft/graph/program.h"
#include "weft/target/target.h"

namespace weft {

/// A kernel loaded on a device; its code is freed with it. Outlived by its device; it outlives the
/// submissions that launch it.
class Executable {
 public:
  virtual ~Executable() = default;
  const std::string& name() const { return name_; }
  /// By slot; empty where nothing is known of them.
  std::span<const ProgramParam> params() const { return params_; }
  bool reads(size_t slot) const {
    return params_.empty() || (slot < params_.size() && params_[slot].read);
  }
  bool writes(size_t slot) const {
    return params_.empty() || (slot < params_.size() && params_[slot].written);
  }
  /// Bytes of machine code, where there is any.
  virtual int64_t code_bytes() const { return 0; }

 protected:
  explicit Executable(std::string name, const LinearProgram* program = nullptr)
      : name_(std::move(name)) {
    if (program) params_ = program->params;
  }

 private:
  std::string name_;
  std::vector<ProgramParam> params_;
};

/// What load() takes: interp reads `program`; compiled devices read `text`, in which the function
/// is called `entry`; null takes anything.
struct ProgramSource {
  const LinearProgram* program = nullptr;
  std::string_view text;
  std::string entry;
};

/// A place inside a buffer.
struct BufferSlice {
  Buffer* buffer = nullptr;
  int64_t offset = 0;  ///< bytes
  int64_t bytes = 0;   ///< of it that are used; 0: up to its end
  /// Where rounds run side by side, each worker has its own, this many bytes apart; 0: they share.
  int64_t apart = 0;
  bool operator==(const BufferSlice&) const = default;
};

/// An InternalError where these bytes do not lie inside of the slice's buffer.
inline void check_slice(const BufferSlice& slice, int64_t bytes, std::string_view call) {
  WEFT_CHECK(slice.buffer != nullptr && slice.offset >= 0 && bytes >= 0 &&
                 slice.offset <= slice.buffer->bytes() &&
                 bytes <= slice.buffer->bytes() - slice.offset,
             "{}: {} bytes at {} lie outside the buffer", call, bytes, slice.offset);
}

/// One step of a command list. The spans must live until submit() returns; executables, until the
/// submission's point is reached. Buffers may go earlier: their memory stays.
struct Command {
  enum class Kind : uint8_t { Launch, Copy };
  Kind kind = Kind::Launch;
  // Launch
  const Executable* executable = nullptr;
  std::span<const BufferSlice> buffers;  ///< by param slot
  std::span<const int64_t> vars;         ///< in the order of LinearProgram::variables
  int64_t items = 1;                     ///< of the core range: LinearProgram::core_size, or 1
  std::array<int64_t, 3> grid{1, 1, 1};  ///< of a program of groups: Launch::grid
  /// Commands in a row with rounds that never fall: those of different rounds may run side by side,
  /// each on one worker. -1: after all before, before all after.
  int64_t round = -1;
  /// Of a loop that may end early: which of its commands has found that it has, null until then.
  /// That and all that follow of the loop are left out, but by devices whose memory the host
  /// cannot look into.
  const Command** ended_by = nullptr;
  /// Position of the buffer that is looked at before this: where none of the i32 in its `bytes`
  /// bytes is 0, this ends the loop. -1: nothing is.
  int asks = -1;
  // Copy, within this device's memory
  BufferSlice from, to;
  int64_t bytes = 0;

  static Command launch(const Executable& executable, std::span<const BufferSlice> buffers,
                        std::span<const int64_t> vars = {}, int64_t items = 1);
  static Command copy(BufferSlice from, BufferSlice to, int64_t bytes);
};

/// Commands that a queue takes together.
struct Submission {
  int queue;
  std::span<const Command> commands;
  std::span<const TimelinePoint> waits, signals;
  uint64_t point;  ///< of the queue's timeline: reached when they are done
};

/// When a command ran, by now_ns(): for the trace.
struct CommandTime {
  const char* name;  ///< of the span: static
  const Executable* kernel = nullptr;
  int64_t amount = 0;  ///< items, or bytes
  uint64_t begin_ns = 0, end_ns = 0;

  static CommandTime of(const Executable* kernel, int64_t amount) {
    return {kernel ? "kernel" : "copy", kernel, amount};
  }
  static CommandTime of(const Command& c) {
    return of(c.executable, c.executable ? c.items : c.bytes);
  }
};

class Device {
 public:
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Context& context() const { return context_; }
  const std::string& name() const { return name_; }  ///< "CPU:C"
  DeviceId id() const { return id_; }
  const Target& target() const { return target_; }
  /// False where programs are taken but not run: memory then holds nothing that was computed.
  virtual bool computes() const { return true; }
  /// Whether submit() returns when the work is done, and throws what went wrong. Elsewhere work
  /// goes on after it, and buffers remember which points last read and wrote them.
  virtual bool completes_at_once() const { return true; }

  // ---- memory
  std::shared_ptr<Buffer> allocate(int64_t bytes, BufferLabel label = {});
  Allocator& allocator() { return allocator_; }
  /// Bytes that every buffer's memory, and every part of an arena, begins at a multiple of.
  int64_t alignment() const { return allocator_.alignment(); }
  int64_t most_bytes() const { return allocator_.most(); }  ///< of one allocation
  /// Between the host and the device's memory; done when they return. They wait for what was
  /// submitted before and writes the buffer, or, before the host writes it, reads it. What was last
  /// written by a command that failed cannot be read: that command's DeviceError.
  void copy_in(BufferSlice to, std::span<const std::byte> from);
  void copy_out(std::span<std::byte> to, BufferSlice from);
  /// The waiting alone, for hosts that go on to use data().
  enum class Access : uint8_t { Read, Write };
  void wait_for(Buffer& buffer, Access access);

  // ---- programs: one call compiles all of them together; all or none are loaded
  virtual std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) = 0;

  // ---- queues
  int queues() const { return static_cast<int>(queues_.size()); }
  Timeline& timeline(int queue);
  /// Has the commands run in order after `waits` are reached; the point returned, and every one of
  /// `signals`, is reached when they are done, which may be after this returns. A queue takes its
  /// submissions in order.
  ///
  /// Where a command fails, the point's failure is a DeviceError that names it; the commands after
  /// it are not run. The points are reached all the same, so that nobody waits for ever. wait()
  /// throws the failure, and so does, once, the next submit() to the queue where nobody has waited.
  /// Submissions that wait for a point that failed are not begun and fail with the same error:
  /// waiting for the queue's own last point is how what depends on it is told. What submit() itself
  /// throws has not been taken, or, on devices that complete at once, is what went wrong.
  TimelinePoint submit(int queue, std::span<const Command> commands,
                       std::span<const TimelinePoint> waits = {},
                       std::span<const TimelinePoint> signals = {});
  /// Blocks the host; throws the DeviceError of work that failed. A missed deadline (now_ns() time;
  /// 0 is none) or a cancelled wait is a DeviceError, too; the work itself goes on.
  void wait(TimelinePoint point, uint64_t deadline_ns = 0,
            const std::atomic<bool>* cancel = nullptr);

  /// What may befall a command. Devices that complete at once know only the first.
  enum class Fault : uint8_t {
    Stop,  ///< it stops half-way, as a kernel does that cannot go on
    Lost,  ///< it is never run
    Gone,  ///< the device goes with it: nothing works from there on
  };
  /// For tests: after `n` more commands that happens to the next one (once).
  void fail_after(int64_t n, Fault fault = Fault::Stop) { fault_ = fault, commands_to_fault_ = n; }

 protected:
  Device(Context& context, std::string name, DeviceId id, Target target, int queues = 1,
         std::shared_ptr<Memory> memory = nullptr);
  /// What copy_in() and copy_out() do with slices that lie inside of their buffers: for devices
  /// whose memory the host cannot address. Done when they return.
  virtual void write_memory(BufferSlice to, std::span<const std::byte> from);
  virtual void read_memory(std::span<std::byte> to, BufferSlice from);
  /// Takes a submission and sees to it that finish() is called for it when it is done, in the order
  /// of the queue's points: by then, or later, from any thread. What it throws was not taken, and
  /// it does not call finish(). Called with the queue locked. By default, for devices that complete
  /// at once: waits, execute(), finish().
  virtual void enqueue(const Submission& submission);
  /// Runs the commands; done when it returns. Devices have this or an enqueue() of their own.
  virtual void execute(int queue, std::span<const Command> commands,
                       std::span<const TimelinePoint> waits, uint64_t point);
  /// The host has waited for the point: for devices that check what is waited for.
  virtual void host_waited(TimelinePoint) {}
  /// The submission is done, or failed.
  void finish(const Submission& submission, std::optional<Failure> failure = std::nullopt);
  /// Whether anybody wants to know when commands run.
  bool traces() const;
  /// A command ran: a span in the queue's own track. Before finish(), which lets the kernel go.
  void trace(int queue, const CommandTime& time) const;
  /// What a kernel stopped by fail_after() has as its status.
  static constexpr uint32_t kInjectedFault = UINT32_MAX;
  /// Whether the command that is about to run is the one that is to stop.
  bool fault_is_now() { return commands_to_fault_ >= 0 && commands_to_fault_-- == 0; }
  Fault fault_kind() const { return fault_; }

 private:
  struct QueueState;
  void check_waits(int queue, std::span<const TimelinePoint> waits) const;

  Context& context_;
  std::string name_;
  DeviceId id_;
  Target target_;
  Allocator allocator_;
  std::atomic<int64_t> commands_to_fault_{-1};  // -1: never
  std::atomic<Fault> fault_{Fault::Stop};
  std::vector<std::unique_ptr<QueueState>> queues_;
};

/// One line of `weft devices`.
struct DeviceInfo {
  std::string name;
  bool available = false;
  std::string detail;  ///< what it is, or why not and what to install
};

/// The Context's devices: context.get<DeviceTable>(). Opened on first use, alive to its end. Any
/// thread may call.
class DeviceTable {
 public:
  explicit DeviceTable(Context& context);
  ~DeviceTable();

  /// "CPU" (the first of "CPU:X86", "CPU:C" and "CPU:INTERP" that works on this machine), "NULL"
  /// (kernels for "CPU:X86" are made and none runs; "NULL:C", "NULL:INTERP" and "NULL:PTX"
  /// likewise), "SIM" (a simulated device with the kernels of "CPU:X86"; "SIM:INTERP"); the part
  /// after the colon alone will do. A further ":1" names a second one. Case does not matter.
  /// Unknown names are Errors that list what exists; known ones that cannot be opened are
  /// DeviceErrors that say why.
  Device& open(std::string_view name);
  /// By id; opens it where needed.
  Device& open(DeviceId id);
  /// Options::dev.
  Device& default_device();

  std::vector<DeviceInfo> probe();  ///< every device of the table, opened or not
  /// All that open() takes, without ":1": short ones, then one for each device.
  std::vector<std::string_view> names() const;
  /// Whether it is one of these. It may yet not open here.
  bool has(std::string_view name) const;

 private:
  Device& find_or_make(std::string_view name);
  Device& open_cpu(int ordinal);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
