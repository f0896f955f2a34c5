#include "weft/device/cuda_session.h"

#include <cerrno>

#include "weft/base/error.h"

namespace weft::cuda {

Session::~Session() {
  if (context) api.cuDevicePrimaryCtxRelease_v2(device);
}

void Session::check(Result status, const char* call) const {
  if (status == kSuccess) return;
  const char* said = nullptr;
  api.cuGetErrorString(status, &said);
  fail_device(call, status, name, "the CUDA driver refused it: {}",
              said ? said : "no reason given");
}

void Session::enter() const { check(api.cuCtxSetCurrent(context), "cuCtxSetCurrent"); }

int Session::attribute(int which) const {
  int value = 0;
  check(api.cuDeviceGetAttribute(&value, which, device), "cuDeviceGetAttribute");
  return value;
}

std::string Session::device_name() const {
  char text[256] = {};
  check(api.cuDeviceGetName(text, sizeof(text) - 1, device), "cuDeviceGetName");
  return text;
}

size_t Session::total_bytes() const {
  size_t bytes = 0;
  check(api.cuDeviceTotalMem_v2(&bytes, device), "cuDeviceTotalMem");
  return bytes;
}

Stream Session::make_stream() const {
  enter();
  Stream made = nullptr;
  check(api.cuStreamCreate(&made, kStreamNonBlocking), "cuStreamCreate");
  return made;
}

EventRef Session::record(const std::shared_ptr<Session>& self, Stream stream, bool timed) const {
  Event made = nullptr;
  check(api.cuEventCreate(&made, timed ? 0 : kEventDisableTiming), "cuEventCreate");
  EventRef event(made, [self](Event e) {
    if (self->api.cuCtxSetCurrent(self->context) == kSuccess) self->api.cuEventDestroy_v2(e);
  });
  check(api.cuEventRecord(made, stream), "cuEventRecord");
  return event;
}

double Session::milliseconds(const EventRef& from, const EventRef& to) const {
  float passed = 0;
  check(api.cuEventElapsedTime(&passed, from.get(), to.get()), "cuEventElapsedTime");
  return static_cast<double>(passed);
}

std::shared_ptr<Session> open_session(const std::string& name, int ordinal) {
  auto s = std::make_shared<Session>();
  s->name = name;
  if (!s->api.library.loaded())
    fail_device(
        "open", ENOENT, name,
        "there is no CUDA driver: {}; install NVIDIA's (Debian: nvidia-driver, of non-free)",
        s->api.library.missing());
  if (const char* lacks = s->api.lacks())
    fail_device("open", ENOSYS, name, "libcuda has no {}: install a driver of CUDA 11 or newer",
                lacks);
  s->check(s->api.cuInit(0), "cuInit");
  int count = 0;
  s->check(s->api.cuDeviceGetCount(&count), "cuDeviceGetCount");
  if (ordinal >= count)
    fail_device("open", ENODEV, name,
                "CUDA has {} devices here, numbered from 0; CUDA_VISIBLE_DEVICES hides others",
                count);
  s->check(s->api.cuDeviceGet(&s->device, ordinal), "cuDeviceGet");
  s->check(s->api.cuDevicePrimaryCtxRetain(&s->context, s->device), "cuDevicePrimaryCtxRetain");
  s->major = s->attribute(kMajor);
  s->minor = s->attribute(kMinor);
  return s;
}

}  // namespace weft::cuda
