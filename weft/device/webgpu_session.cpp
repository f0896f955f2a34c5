#include "weft/device/webgpu_session.h"

#include <atomic>
#include <cstring>
#include <vector>

namespace weft::webgpu {

namespace {

void on_error(DeviceHandle const*, uint32_t type, Text message, void* session, void*) {
  static_cast<Session*>(session)->failed(type, message.view());
}

void on_lost(DeviceHandle const*, uint32_t reason, Text message, void* session, void*) {
  if (reason == kLostByDestruction) return;
  auto& s = *static_cast<Session*>(session);
  const std::lock_guard lock(s.told);
  s.lost = message.view().empty() ? "no reason was given" : std::string(message.view());
}

void on_device(uint32_t status, DeviceHandle device, Text message, void* session, void*) {
  auto& s = *static_cast<Session*>(session);
  if (status == kSuccess)
    s.device = {device, s.api.wgpuDeviceRelease};
  else
    s.failed(status, message.view());
}

void on_mapped(uint32_t said, Text, void* into, void*) {
  auto& status = *static_cast<std::atomic<uint32_t>*>(into);
  status = said;
  status.notify_one();
}

void check_library(const Session& s) {
  const char* install =
      "`pip install wgpu` has it as wgpu/resources/libwgpu_native-release.so: name that file in "
      "WEFT_WEBGPU_LIBRARY";
  if (!s.api.library.loaded())
    fail_device("open", ENOENT, s.name, "there is no wgpu-native: {}; {}", s.api.library.missing(),
                install);
  if (const char* lacks = s.api.lacks())
    fail_device("open", ENOSYS, s.name, "the library has no {}: it is not wgpu-native {}; {}",
                lacks, kMajor, install);
  const uint32_t version = s.api.wgpuGetVersion();
  if (version >> 24 != kMajor)
    fail_device("open", ENOSYS, s.name, "this is wgpu-native {}, and {} is what we speak; {}",
                version >> 24, kMajor, install);
}

void open_adapter(Session& s, size_t ordinal) {
  InstanceExtras extras;  // OpenGL's loaders write to stderr
  InstanceDescriptor d;
  d.next = &extras.chain;
  s.instance = {s.api.wgpuCreateInstance(&d), s.api.wgpuInstanceRelease};
  const size_t count = s.api.wgpuInstanceEnumerateAdapters(s.instance.get(), nullptr, nullptr);
  std::vector<Adapter> all(count);
  s.api.wgpuInstanceEnumerateAdapters(s.instance.get(), nullptr, all.data());
  for (size_t i = 0; i < count; ++i) {
    Owned<Adapter> adapter(all[i], s.api.wgpuAdapterRelease);
    if (i == ordinal) s.adapter = std::move(adapter);
  }
  if (s.adapter.get() == nullptr)
    fail_device("open", ENODEV, s.name,
                "WebGPU has {} adapters here; install a Vulkan driver (Debian, for CPUs: "
                "mesa-vulkan-drivers)",
                count);
  AdapterInfo info = {};
  s.api.wgpuAdapterGetInfo(s.adapter.get(), &info);
  s.description = info.device.view();
  s.on_cpu = info.type == kAdapterOnCpu;
  if (s.api.wgpuAdapterHasFeature(s.adapter.get(), kSubgroup)) s.subgroup = info.subgroup_least;
  s.api.wgpuAdapterInfoFreeMembers(info);
  s.api.wgpuAdapterGetLimits(s.adapter.get(), &s.limits);
}

void open_device(Session& s) {
  DeviceDescriptor d;
  s.reads_clock = s.api.wgpuAdapterHasFeature(s.adapter.get(), kTimestampQuery) != 0;
  std::vector<uint32_t> features;
  if (s.reads_clock) features.push_back(kTimestampQuery);
  if (s.subgroup > 0) features.push_back(kSubgroup);
  d.features = features.data();
  d.feature_count = features.size();
  d.limits = &s.limits;
  d.lost.function = on_lost;
  d.lost.user1 = &s;
  d.error = {nullptr, on_error, &s, nullptr};
  Callback<RequestDeviceCallback> done;
  done.function = on_device;
  done.user1 = &s;
  s.api.wgpuAdapterRequestDevice(s.adapter.get(), &d, done);
  s.check("wgpuAdapterRequestDevice");
  WEFT_CHECK(s.device.get(), "wgpuAdapterRequestDevice did not answer");
  s.queue = {s.api.wgpuDeviceGetQueue(s.device.get()), s.api.wgpuQueueRelease};
}

}  // namespace

void Session::read(std::span<std::byte> to, const Owned<BufferHandle>& from) {
  std::atomic<uint32_t> status{0};  // 0: not yet
  Callback<MapCallback> done;
  done.user1 = &status;
  done.function = on_mapped;
  api.wgpuBufferMapAsync(from.get(), kMapRead, 0, to.size(), done);
  wait();
  status.wait(0);  // another thread that polls may be the one that tells
  const void* mapped =
      status == kSuccess ? api.wgpuBufferGetConstMappedRange(from.get(), 0, to.size()) : nullptr;
  if (mapped == nullptr)
    fail_device("wgpuBufferGetConstMappedRange", EIO, name, "the copy cannot be read");
  std::memcpy(to.data(), mapped, to.size());
  api.wgpuBufferUnmap(from.get());
}

std::shared_ptr<Session> open_session(Context& context, const std::string& name, int ordinal) {
  auto s = std::make_shared<Session>(context.options().webgpu_library);
  s->name = name;
  check_library(*s);
  open_adapter(*s, static_cast<size_t>(ordinal));
  open_device(*s);
  return s;
}

}  // namespace weft::webgpu
