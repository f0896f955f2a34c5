// One NVIDIA GPU, opened through libcuda.so.1, and what every call to it needs: its context made
// the thread's current one, errors with the driver's own words.
#pragma once

#include <memory>
#include <string>

#include "weft/device/drivers/cuda_api.h"

namespace weft::cuda {

/// Given back with its last owner.
using EventRef = std::shared_ptr<EventTag>;

/// A GPU, and what is shared on it: outlived by nothing that was made from it. Any thread may call.
struct Session {
  Api api;
  std::string name;  // of our Device, in messages
  DeviceHandle device = 0;
  ContextHandle context = nullptr;  // the primary one: shared with other libraries of the process
  int major = 0, minor = 0;         // compute capability

  ~Session();

  void check(Result status, const char* call) const;
  /// Every call but those about devices is to the thread's current context.
  void enter() const;
  int attribute(int which) const;
  std::string device_name() const;
  size_t total_bytes() const;

  Stream make_stream() const;
  /// Recorded at the end of what the stream was given so far.
  EventRef record(const std::shared_ptr<Session>& self, Stream stream, bool timed) const;
  double milliseconds(const EventRef& from, const EventRef& to) const;
};

/// The GPU of this number, in the driver's order (CUDA_VISIBLE_DEVICES is heeded by the driver). A
/// DeviceError that says what is missing where there is none.
std::shared_ptr<Session> open_session(const std::string& name, int ordinal);

}  // namespace weft::cuda
