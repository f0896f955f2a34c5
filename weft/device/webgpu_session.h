// One device of an adapter that wgpu-native drives, opened, and what every call to it needs:
// handles that are given back, errors that callbacks were told.
#pragma once

#include <cerrno>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/drivers/webgpu_api.h"

namespace weft::webgpu {

/// A handle that is given back.
template <class T>
class Owned {
 public:
  Owned() = default;
  Owned(T handle, void (*release)(T)) : handle_(handle), release_(release) {}
  Owned(Owned&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), release_(other.release_) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Owned() {
    if (handle_) release_(handle_);
  }
  T get() const { return handle_; }

 private:
  T handle_ = nullptr;
  void (*release_)(T) = nullptr;
};

/// One device of an adapter, and what is shared on it: outlived by nothing that was made from it.
/// Calls come one at a time, so that an error is that of the call before.
struct Session {
  explicit Session(const std::string& file) : api(file) {}
  Api api;
  std::string name;         // of our Device, in messages
  std::string description;  // of the adapter
  bool on_cpu = false;
  uint32_t subgroup = 0;     // the items of each are a multiple of so many; 0: there are none
  bool reads_clock = false;  // timestamp queries
  Limits limits = {};
  std::recursive_mutex mutex;

  // What the callbacks were told last, in any thread that polls: before the handles, whose release
  // may call them.
  std::mutex told;
  uint32_t error = 0;
  std::string said, lost;

  Owned<Instance> instance;
  Owned<Adapter> adapter;
  Owned<DeviceHandle> device;
  Owned<Queue> queue;

  void failed(uint32_t type, std::string_view message) {
    const std::lock_guard lock(told);
    if (error != 0) return;  // the first is the reason of the others
    error = type;
    said = message;
  }
  /// Throws what went wrong since the last check, as the fault of `call`.
  void check(const char* call) {
    const std::lock_guard lock(told);
    check_lost(call);
    if (error == 0) return;
    const uint32_t type = std::exchange(error, 0);
    fail_device(call, type, name, "{}", std::exchange(said, {}));
  }
  bool take_error() {
    const std::lock_guard lock(told);
    return std::exchange(error, 0) != 0;
  }

  Owned<BufferHandle> buffer(uint64_t bytes, Flags usage) {
    BufferDescriptor d;
    d.usage = usage;
    d.bytes = bytes;
    return {api.wgpuDeviceCreateBuffer(device.get(), &d), api.wgpuBufferRelease};
  }
  Owned<Encoder> encoder() {
    const Described d;
    return {api.wgpuDeviceCreateCommandEncoder(device.get(), &d), api.wgpuCommandEncoderRelease};
  }
  /// The number that await() takes.
  uint64_t submit(Encoder encoder) {
    const Described d;
    const Owned<Commands> commands(api.wgpuCommandEncoderFinish(encoder, &d),
                                   api.wgpuCommandBufferRelease);
    check("wgpuCommandEncoderFinish");
    const Commands list[] = {commands.get()};
    const uint64_t number = api.wgpuQueueSubmitForIndex(queue.get(), 1, list);
    check("wgpuQueueSubmitForIndex");
    return number;
  }
  void wait() {
    api.wgpuDevicePoll(device.get(), 1, nullptr);
    check("wgpuDevicePoll");
  }
  /// What a buffer made with kMapRead holds when everything submitted is done.
  void read(std::span<std::byte> to, const Owned<BufferHandle>& from);
  /// Until a submission is done, without the mutex. Other calls' errors are not this one's.
  void await(uint64_t number) {
    api.wgpuDevicePoll(device.get(), 1, &number);
    const std::lock_guard lock(told);
    check_lost("wgpuDevicePoll");
  }

 private:
  void check_lost(const char* call) const {
    if (!lost.empty())
      fail_device(call, ENODEV, name, "the device is lost ({}); open a new Context to go on", lost);
  }
};

/// The adapter of this number; a DeviceError for `name` that says what is missing.
std::shared_ptr<Session> open_session(Context& context, const std::string& name, int ordinal);

}  // namespace weft::webgpu
