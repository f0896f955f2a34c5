// The few functions of wgpu-native that webgpu.cpp calls, loaded when it is there. Written
// after webgpu.h and wgpu.h of wgpu-native 29.0.1 (github.com/gfx-rs/wgpu-native, tag v29.0.1.1;
// webgpu.h is github.com/webgpu-native/webgpu-headers). Values of constants and the order of
// members are those headers' and differ between major versions: only 29 is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "weft/base/shared_library.h"

namespace weft::webgpu {

constexpr uint32_t kMajor = 29;

using Flags = uint64_t;
using Bool = uint32_t;
using Instance = struct InstanceTag*;
using Adapter = struct AdapterTag*;
using DeviceHandle = struct DeviceTag*;
using Queue = struct QueueTag*;
using BufferHandle = struct BufferTag*;
using Module = struct ModuleTag*;
using Layout = struct LayoutTag*;
using PipelineLayout = struct PipelineLayoutTag*;
using Pipeline = struct PipelineTag*;
using Group = struct GroupTag*;
using Encoder = struct EncoderTag*;
using Pass = struct PassTag*;
using Commands = struct CommandsTag*;
using QuerySet = struct QuerySetTag*;

struct Text {
  const char* data = nullptr;
  size_t length = SIZE_MAX;  // null data: no text
  Text() = default;
  Text(std::string_view s) : data(s.data()), length(s.size()) {}  // NOLINT: it is one
  std::string_view view() const {
    if (data == nullptr) return {};
    return length == SIZE_MAX ? std::string_view(data) : std::string_view(data, length);
  }
};

struct Chain {
  const Chain* next = nullptr;
  uint32_t type = 0;
};
constexpr uint32_t kShaderSourceWgsl = 2, kInstanceExtras = 0x00030004;

constexpr Flags kMapRead = 1, kCopySrc = 4, kCopyDst = 8, kUniform = 0x40, kStorage = 0x80,
                kQueryResolve = 0x200;
constexpr Flags kCompute = 4;                                          // a shader stage
constexpr Flags kPrimaryBackends = 1 << 0 | 1 << 2 | 1 << 3 | 1 << 5;  // all but OpenGL
constexpr uint32_t kSuccess = 1, kSpontaneous = 3;
constexpr uint32_t kOutOfMemory = 3;  // an error's type
constexpr uint32_t kLostByDestruction = 2;
constexpr uint32_t kSubgroup = 0x00030021;  // a feature
constexpr uint32_t kAdapterOnCpu = 3;       // an adapter's type
constexpr uint32_t kUniformBinding = 2, kStorageBinding = 3;
constexpr uint64_t kWhole = UINT64_MAX;
constexpr uint32_t kTimestampQuery = 9;  // a feature
constexpr uint32_t kTimestamps = 2;      // a kind of query
constexpr uint32_t kNoQuery = UINT32_MAX;

/// WGPUInstanceExtras; what follows `flags` stays zero, which is its default.
struct InstanceExtras {
  Chain chain{nullptr, kInstanceExtras};
  Flags backends = kPrimaryBackends, flags = 0;
  uint64_t rest[24] = {};
};
struct InstanceDescriptor {
  const Chain* next = nullptr;
  size_t feature_count = 0;
  const void *features = nullptr, *limits = nullptr;
};

struct Limits {
  const Chain* next = nullptr;
  uint32_t texture_1d, texture_2d, texture_3d, texture_layers, bind_groups,
      bind_groups_and_vertex_buffers, bindings_per_group, dynamic_uniform_buffers,
      dynamic_storage_buffers, sampled_textures, samplers, storage_buffers, storage_textures,
      uniform_buffers;
  uint64_t uniform_binding_bytes, storage_binding_bytes;
  uint32_t uniform_alignment, storage_alignment, vertex_buffers;
  uint64_t buffer_bytes;
  uint32_t vertex_attributes, vertex_stride, shader_variables, colors, color_bytes,
      workgroup_memory, workgroup_invocations, workgroup_x, workgroup_y, workgroup_z,
      workgroups_per_dimension, immediate_bytes;
};

struct AdapterInfo {
  const Chain* next = nullptr;
  Text vendor, architecture, device, description;
  uint32_t backend, type, vendor_id, device_id, subgroup_least, subgroup_most;
};

using RequestDeviceCallback = void(uint32_t status, DeviceHandle, Text message, void*, void*);
using MapCallback = void(uint32_t status, Text message, void*, void*);
using LostCallback = void(DeviceHandle const*, uint32_t reason, Text message, void*, void*);
using ErrorCallback = void(DeviceHandle const*, uint32_t type, Text message, void*, void*);
template <class F>
struct Callback {
  const Chain* next = nullptr;
  uint32_t mode = kSpontaneous;
  F* function = nullptr;
  void *user1 = nullptr, *user2 = nullptr;
};
struct ErrorCallbackInfo {
  const Chain* next = nullptr;
  ErrorCallback* function = nullptr;
  void *user1 = nullptr, *user2 = nullptr;
};

struct Described {
  const Chain* next = nullptr;
  Text label;
};
struct DeviceDescriptor : Described {
  size_t feature_count = 0;
  const uint32_t* features = nullptr;
  const Limits* limits = nullptr;
  Described queue;
  Callback<LostCallback> lost;
  ErrorCallbackInfo error;
};
struct BufferDescriptor : Described {
  Flags usage = 0;
  uint64_t bytes = 0;
  Bool mapped = 0;
};
struct ShaderSource {
  Chain chain{nullptr, kShaderSourceWgsl};
  Text code;
};
struct LayoutEntry {
  const Chain* next = nullptr;
  uint32_t binding = 0;
  Flags visibility = kCompute;
  uint32_t array_size = 0;
  struct {
    const Chain* next = nullptr;
    uint32_t type = 0;
    Bool dynamic_offset = 0;
    uint64_t least_bytes = 0;
  } buffer;
  // Not used: all zero is WGPU..BindingType_BindingNotUsed.
  struct {
    const Chain* next = nullptr;
    uint32_t type = 0;
  } sampler;
  struct {
    const Chain* next = nullptr;
    uint32_t sample = 0, dimension = 0;
    Bool multisampled = 0;
  } texture;
  struct {
    const Chain* next = nullptr;
    uint32_t access = 0, format = 0, dimension = 0;
  } storage_texture;
};
struct LayoutDescriptor : Described {
  size_t count = 0;
  const LayoutEntry* entries = nullptr;
};
struct PipelineLayoutDescriptor : Described {
  size_t count = 0;
  const Layout* layouts = nullptr;
  uint32_t immediate_bytes = 0;
};
struct PipelineDescriptor : Described {
  PipelineLayout layout = nullptr;
  const Chain* stage_next = nullptr;
  Module module = nullptr;
  Text entry;
  size_t constant_count = 0;
  const void* constants = nullptr;
};
struct GroupEntry {
  const Chain* next = nullptr;
  uint32_t binding = 0;
  BufferHandle buffer = nullptr;
  uint64_t offset = 0, bytes = kWhole;
  const void *sampler = nullptr, *texture = nullptr;
};
struct GroupDescriptor : Described {
  Layout layout = nullptr;
  size_t count = 0;
  const GroupEntry* entries = nullptr;
};
struct QuerySetDescriptor : Described {
  uint32_t type = kTimestamps, count = 0;
};
struct PassTimestamps {
  const Chain* next = nullptr;
  QuerySet set = nullptr;
  uint32_t begin = kNoQuery, end = kNoQuery;
};
struct PassDescriptor : Described {
  const PassTimestamps* timestamps = nullptr;
};

// A future is a struct of one uint64_t, which is returned as one.
#define WEFT_WEBGPU_FUNCTIONS(F)                                                                   \
  F(wgpuGetVersion, uint32_t())                                                                    \
  F(wgpuCreateInstance, Instance(const InstanceDescriptor*))                                       \
  F(wgpuInstanceRelease, void(Instance))                                                           \
  F(wgpuInstanceEnumerateAdapters, size_t(Instance, const void*, Adapter*))                        \
  F(wgpuAdapterGetInfo, uint32_t(Adapter, AdapterInfo*))                                           \
  F(wgpuAdapterInfoFreeMembers, void(AdapterInfo))                                                 \
  F(wgpuAdapterGetLimits, uint32_t(Adapter, Limits*))                                              \
  F(wgpuAdapterHasFeature, Bool(Adapter, uint32_t feature))                                        \
  F(wgpuAdapterRequestDevice,                                                                      \
    uint64_t(Adapter, const DeviceDescriptor*, Callback<RequestDeviceCallback>))                   \
  F(wgpuAdapterRelease, void(Adapter))                                                             \
  F(wgpuDeviceGetQueue, Queue(DeviceHandle))                                                       \
  F(wgpuDeviceCreateQuerySet, QuerySet(DeviceHandle, const QuerySetDescriptor*))                   \
  F(wgpuQuerySetRelease, void(QuerySet))                                                           \
  F(wgpuDevicePoll, Bool(DeviceHandle, Bool wait, const uint64_t* submission))                     \
  F(wgpuDeviceRelease, void(DeviceHandle))                                                         \
  F(wgpuQueueRelease, void(Queue))                                                                 \
  F(wgpuDeviceCreateBuffer, BufferHandle(DeviceHandle, const BufferDescriptor*))                   \
  F(wgpuBufferRelease, void(BufferHandle))                                                         \
  F(wgpuBufferMapAsync,                                                                            \
    uint64_t(BufferHandle, Flags mode, size_t offset, size_t bytes, Callback<MapCallback>))        \
  F(wgpuBufferGetConstMappedRange, const void*(BufferHandle, size_t offset, size_t bytes))         \
  F(wgpuBufferUnmap, void(BufferHandle))                                                           \
  F(wgpuQueueGetTimestampPeriod, float(Queue))                                                     \
  F(wgpuQueueWriteBuffer, void(Queue, BufferHandle, uint64_t offset, const void*, size_t bytes))   \
  F(wgpuQueueSubmitForIndex, uint64_t(Queue, size_t, const Commands*))                             \
  F(wgpuDeviceCreateShaderModule, Module(DeviceHandle, const Described*))                          \
  F(wgpuShaderModuleRelease, void(Module))                                                         \
  F(wgpuDeviceCreateBindGroupLayout, Layout(DeviceHandle, const LayoutDescriptor*))                \
  F(wgpuBindGroupLayoutRelease, void(Layout))                                                      \
  F(wgpuDeviceCreatePipelineLayout, PipelineLayout(DeviceHandle, const PipelineLayoutDescriptor*)) \
  F(wgpuPipelineLayoutRelease, void(PipelineLayout))                                               \
  F(wgpuDeviceCreateComputePipeline, Pipeline(DeviceHandle, const PipelineDescriptor*))            \
  F(wgpuComputePipelineRelease, void(Pipeline))                                                    \
  F(wgpuDeviceCreateBindGroup, Group(DeviceHandle, const GroupDescriptor*))                        \
  F(wgpuBindGroupRelease, void(Group))                                                             \
  F(wgpuDeviceCreateCommandEncoder, Encoder(DeviceHandle, const Described*))                       \
  F(wgpuCommandEncoderRelease, void(Encoder))                                                      \
  F(wgpuCommandEncoderBeginComputePass, Pass(Encoder, const PassDescriptor*))                      \
  F(wgpuCommandEncoderCopyBufferToBuffer,                                                          \
    void(Encoder, BufferHandle, uint64_t, BufferHandle, uint64_t, uint64_t bytes))                 \
  F(wgpuCommandEncoderResolveQuerySet,                                                             \
    void(Encoder, QuerySet, uint32_t first, uint32_t count, BufferHandle, uint64_t offset))        \
  F(wgpuCommandEncoderFinish, Commands(Encoder, const Described*))                                 \
  F(wgpuCommandBufferRelease, void(Commands))                                                      \
  F(wgpuComputePassEncoderSetPipeline, void(Pass, Pipeline))                                       \
  F(wgpuComputePassEncoderSetBindGroup,                                                            \
    void(Pass, uint32_t, Group, size_t offsets, const uint32_t*))                                  \
  F(wgpuComputePassEncoderDispatchWorkgroups, void(Pass, uint32_t, uint32_t, uint32_t))            \
  F(wgpuComputePassEncoderEnd, void(Pass))                                                         \
  F(wgpuComputePassEncoderRelease, void(Pass))

struct Api {
  /// The file that is asked for, or what loaders find by these names.
  explicit Api(const std::string& file)
      : library(file.empty() ? SharedLibrary{"libwgpu_native.so", "libwgpu_native-release.so"}
                             : SharedLibrary{file.c_str()}) {}

  SharedLibrary library;
  template <class F>
  using Pointer = F*;
#define WEFT_WEBGPU_POINTER(name, ...) \
  Pointer<__VA_ARGS__> name = library.function<__VA_ARGS__>(#name);
  WEFT_WEBGPU_FUNCTIONS(WEFT_WEBGPU_POINTER)
#undef WEFT_WEBGPU_POINTER

  /// The first function that the library lacks, or null.
  const char* lacks() const {
#define WEFT_WEBGPU_THERE(name, ...) \
  if (name == nullptr) return #name;
    WEFT_WEBGPU_FUNCTIONS(WEFT_WEBGPU_THERE)
#undef WEFT_WEBGPU_THERE
    return nullptr;
  }
};

}  // namespace weft::webgpu
