// The few functions of libcuda.so.1 and of libnvrtc that cuda_session.cpp and drivers/cuda.cpp
// call, loaded when they are there.
// Written after NVIDIA's "CUDA Driver API" reference manual (docs.nvidia.com/cuda/cuda-driver-api)
// and the guide "NVRTC"; values of constants are those of cuda.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/shared_library.h"

namespace weft::cuda {

using Result = int32_t;
using DeviceHandle = int32_t;
using Address = uint64_t;  // of the device's memory
using ContextHandle = struct ContextTag*;
using Stream = struct StreamTag*;
using Event = struct EventTag*;
using Module = struct ModuleTag*;
using Function = struct FunctionTag*;
using NvrtcProgram = struct NvrtcProgramTag*;

constexpr Result kSuccess = 0;
// CUdevice_attribute
constexpr int kMaxThreadsPerBlock = 1, kMaxBlockDimX = 2, kMaxGridDimX = 5, kMaxSharedPerBlock = 8,
              kMultiprocessors = 16, kL2Bytes = 38, kMajor = 75, kMinor = 76;
constexpr unsigned kStreamNonBlocking = 1;              // CUstream_flags
constexpr unsigned kEventDisableTiming = 2;             // CUevent_flags
constexpr int kJitErrorLog = 5, kJitErrorLogBytes = 6;  // CUjit_option

#define WEFT_CUDA_FUNCTIONS(F)                                                                   \
  F(cuInit, Result(unsigned))                                                                    \
  F(cuDriverGetVersion, Result(int*))                                                            \
  F(cuDeviceGetCount, Result(int*))                                                              \
  F(cuDeviceGet, Result(DeviceHandle*, int))                                                     \
  F(cuDeviceGetName, Result(char*, int, DeviceHandle))                                           \
  F(cuDeviceGetAttribute, Result(int*, int, DeviceHandle))                                       \
  F(cuDeviceTotalMem_v2, Result(size_t*, DeviceHandle))                                          \
  F(cuDevicePrimaryCtxRetain, Result(ContextHandle*, DeviceHandle))                              \
  F(cuDevicePrimaryCtxRelease_v2, Result(DeviceHandle))                                          \
  F(cuCtxSetCurrent, Result(ContextHandle))                                                      \
  F(cuModuleLoadDataEx, Result(Module*, const void*, unsigned, int*, void**))                    \
  F(cuModuleUnload, Result(Module))                                                              \
  F(cuModuleGetFunction, Result(Function*, Module, const char*))                                 \
  F(cuMemAlloc_v2, Result(Address*, size_t))                                                     \
  F(cuMemFree_v2, Result(Address))                                                               \
  F(cuMemcpyHtoDAsync_v2, Result(Address, const void*, size_t, Stream))                          \
  F(cuMemcpyDtoHAsync_v2, Result(void*, Address, size_t, Stream))                                \
  F(cuMemcpyDtoDAsync_v2, Result(Address, Address, size_t, Stream))                              \
  F(cuStreamCreate, Result(Stream*, unsigned))                                                   \
  F(cuStreamDestroy_v2, Result(Stream))                                                          \
  F(cuStreamSynchronize, Result(Stream))                                                         \
  F(cuStreamWaitEvent, Result(Stream, Event, unsigned))                                          \
  F(cuEventCreate, Result(Event*, unsigned))                                                     \
  F(cuEventDestroy_v2, Result(Event))                                                            \
  F(cuEventRecord, Result(Event, Stream))                                                        \
  F(cuEventSynchronize, Result(Event))                                                           \
  F(cuEventElapsedTime, Result(float*, Event, Event))                                            \
  F(cuLaunchKernel, Result(Function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
                           unsigned, Stream, void**, void**))                                    \
  F(cuGetErrorString, Result(Result, const char**))

#define WEFT_NVRTC_FUNCTIONS(F)                                                                   \
  F(nvrtcCreateProgram,                                                                           \
    Result(NvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)) \
  F(nvrtcCompileProgram, Result(NvrtcProgram, int, const char* const*))                           \
  F(nvrtcDestroyProgram, Result(NvrtcProgram*))                                                   \
  F(nvrtcGetProgramLogSize, Result(NvrtcProgram, size_t*))                                        \
  F(nvrtcGetProgramLog, Result(NvrtcProgram, char*))                                              \
  F(nvrtcGetCUBINSize, Result(NvrtcProgram, size_t*))                                             \
  F(nvrtcGetCUBIN, Result(NvrtcProgram, char*))

#define WEFT_LOADED_POINTER(name, ...) \
  Pointer<__VA_ARGS__> name = library.function<__VA_ARGS__>(#name);
#define WEFT_LOADED_THERE(name, ...) \
  if (name == nullptr) return #name;

struct Api {
  SharedLibrary library{"libcuda.so.1", "libcuda.so"};
  template <class F>
  using Pointer = F*;
  WEFT_CUDA_FUNCTIONS(WEFT_LOADED_POINTER)

  /// The first function that the library lacks, or null.
  const char* lacks() const {
    WEFT_CUDA_FUNCTIONS(WEFT_LOADED_THERE)
    return nullptr;
  }
};

struct Nvrtc {
  SharedLibrary library{"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  template <class F>
  using Pointer = F*;
  WEFT_NVRTC_FUNCTIONS(WEFT_LOADED_POINTER)

  const char* lacks() const {
    WEFT_NVRTC_FUNCTIONS(WEFT_LOADED_THERE)
    return nullptr;
  }
};

#undef WEFT_LOADED_POINTER
#undef WEFT_LOADED_THERE

}  // namespace weft::cuda
