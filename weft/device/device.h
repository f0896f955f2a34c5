// Device: the small interface every driver stands behind. Memory, loaded programs, and command
// lists submitted to queues with monotonic timelines.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/device/buffer.h"
#include "weft/device/timeline.h"
#include "weft/graph/program.h"
#include "weft/target/target.h"

namespace weft {

/// A kernel loaded on a device; its code is freed with it. Outlived by its device.
class Executable {
 public:
  virtual ~Executable() = default;
  const std::string& name() const { return name_; }
  /// Bytes of machine code, where there is any.
  virtual int64_t code_bytes() const { return 0; }

 protected:
  explicit Executable(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
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
};

/// One step of a command list. The spans must live until submit() returns.
struct Command {
  enum class Kind : uint8_t { Launch, Copy };
  Kind kind = Kind::Launch;
  // Launch
  const Executable* executable = nullptr;
  std::span<const BufferSlice> buffers;  ///< by param slot
  std::span<const int64_t> vars;         ///< in the order of LinearProgram::variables
  int64_t items = 1;                     ///< of the core range: LinearProgram::core_size, or 1
  // Copy, within this device's memory
  BufferSlice from, to;
  int64_t bytes = 0;

  static Command launch(const Executable& executable, std::span<const BufferSlice> buffers,
                        std::span<const int64_t> vars = {}, int64_t items = 1);
  static Command copy(BufferSlice from, BufferSlice to, int64_t bytes);
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

  // ---- memory
  std::shared_ptr<Buffer> allocate(int64_t bytes, std::string_view label = {});
  Allocator& allocator() { return allocator_; }
  virtual void copy_in(BufferSlice to, std::span<const std::byte> from);
  virtual void copy_out(std::span<std::byte> to, BufferSlice from);

  // ---- programs: one call compiles all of them together; all or none are loaded
  virtual std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) = 0;

  // ---- queues
  int queues() const { return static_cast<int>(queues_.size()); }
  Timeline& timeline(int queue);
  /// Runs the commands in order after `waits` are reached; the point returned, and every one of
  /// `signals`, is reached when they are done. A queue takes its submissions in order. When it
  /// throws, the points are reached all the same, so that nobody waits for ever.
  TimelinePoint submit(int queue, std::span<const Command> commands,
                       std::span<const TimelinePoint> waits = {},
                       std::span<const TimelinePoint> signals = {});
  /// Blocks the host. A missed deadline (now_ns() time; 0 is none) or a cancelled wait is a
  /// DeviceError; the work itself goes on.
  void wait(TimelinePoint point, uint64_t deadline_ns = 0,
            const std::atomic<bool>* cancel = nullptr);

  /// For tests: after `n` more commands the next one stops half-way, as a kernel does that cannot
  /// go on (once; host devices only).
  void fail_after(int64_t n) { commands_to_fault_ = n; }

 protected:
  Device(Context& context, std::string name, DeviceId id, Target target, int queues = 1);
  /// Runs or enqueues; done by the time it returns on host devices. Called with the queue locked.
  virtual void execute(int queue, std::span<const Command> commands,
                       std::span<const TimelinePoint> waits, uint64_t point) = 0;
  /// Whether the command that is about to run is the one that is to stop.
  bool fault_is_now() { return commands_to_fault_ >= 0 && commands_to_fault_-- == 0; }

 private:
  struct QueueState;

  Context& context_;
  std::string name_;
  DeviceId id_;
  Target target_;
  Allocator allocator_;
  std::atomic<int64_t> commands_to_fault_{-1};  // -1: never
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
  /// (kernels for "CPU:X86" are made and none runs; "NULL:C" and "NULL:INTERP" likewise); the part
  /// after the colon alone will do. A further ":1" names a second one. Case does not matter.
  /// Unknown names are Errors that list what exists; known ones that cannot be opened are
  /// DeviceErrors that say why.
  Device& open(std::string_view name);
  /// By id; opens it where needed.
  Device& open(DeviceId id);
  /// Options::dev.
  Device& default_device();

  std::vector<DeviceInfo> probe();  ///< every device of the table, opened or not

 private:
  Device& open_cpu(int ordinal);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
