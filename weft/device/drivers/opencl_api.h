// The few functions of libOpenCL.so.1 that opencl.cpp calls, loaded when it is there.
// Written after the Khronos OpenCL 1.2 specification
// (registry.khronos.org/OpenCL/specs/opencl-1.2.pdf, chapters 4 and 5); values of constants are
// those of its cl.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "weft/base/shared_library.h"

namespace weft::opencl {

using Int = int32_t;
using Uint = uint32_t;
using Bits = uint64_t;
using Platform = struct PlatformTag*;
using DeviceHandle = struct DeviceTag*;
using ContextHandle = struct ContextTag*;
using Queue = struct QueueTag*;
using Mem = struct MemTag*;
using Program = struct ProgramTag*;
using Kernel = struct KernelTag*;
using Event = struct EventTag*;

constexpr Int kSuccess = 0;
constexpr Bits kDeviceTypeAll = 0xFFFFFFFF, kMemReadWrite = 1;
constexpr Uint kDeviceName = 0x102B, kDeviceGlobalMemSize = 0x101F, kDeviceMaxMemAllocSize = 0x1010,
               kDeviceMaxComputeUnits = 0x1002, kDeviceMaxWorkGroupSize = 0x1004,
               kDeviceMaxWorkItemSizes = 0x1005, kDeviceLocalMemSize = 0x1023,
               kDeviceLocalMemType = 0x1022, kGlobal = 0x2, kDeviceDoubleFpConfig = 0x1032,
               kDeviceSingleFpConfig = 0x101B, kDeviceMemBaseAddrAlign = 0x1019,
               kProgramBuildLog = 0x1183;
constexpr Bits kFpCorrectlyRoundedDivideSqrt = 1 << 7;
constexpr Bits kQueueProfilingEnable = 1 << 1;
constexpr Uint kProfilingCommandQueued = 0x1280, kProfilingCommandStart = 0x1282,
               kProfilingCommandEnd = 0x1283;

#define WEFT_OPENCL_FUNCTIONS(F)                                                                   \
  F(clGetPlatformIDs, Int(Uint, Platform*, Uint*))                                                 \
  F(clGetDeviceIDs, Int(Platform, Bits, Uint, DeviceHandle*, Uint*))                               \
  F(clGetDeviceInfo, Int(DeviceHandle, Uint, size_t, void*, size_t*))                              \
  F(clCreateContext,                                                                               \
    ContextHandle(const intptr_t*, Uint, const DeviceHandle*, void*, void*, Int*))                 \
  F(clReleaseContext, Int(ContextHandle))                                                          \
  F(clCreateCommandQueue, Queue(ContextHandle, DeviceHandle, Bits, Int*))                          \
  F(clReleaseCommandQueue, Int(Queue))                                                             \
  F(clCreateBuffer, Mem(ContextHandle, Bits, size_t, void*, Int*))                                 \
  F(clReleaseMemObject, Int(Mem))                                                                  \
  F(clCreateProgramWithSource,                                                                     \
    Program(ContextHandle, Uint, const char* const*, const size_t*, Int*))                         \
  F(clBuildProgram, Int(Program, Uint, const DeviceHandle*, const char*, void*, void*))            \
  F(clGetProgramBuildInfo, Int(Program, DeviceHandle, Uint, size_t, void*, size_t*))               \
  F(clReleaseProgram, Int(Program))                                                                \
  F(clCreateKernel, Kernel(Program, const char*, Int*))                                            \
  F(clReleaseKernel, Int(Kernel))                                                                  \
  F(clSetKernelArg, Int(Kernel, Uint, size_t, const void*))                                        \
  F(clEnqueueNDRangeKernel, Int(Queue, Kernel, Uint, const size_t*, const size_t*, const size_t*,  \
                                Uint, const Event*, Event*))                                       \
  F(clEnqueueReadBuffer, Int(Queue, Mem, Uint, size_t, size_t, void*, Uint, const Event*, Event*)) \
  F(clEnqueueWriteBuffer,                                                                          \
    Int(Queue, Mem, Uint, size_t, size_t, const void*, Uint, const Event*, Event*))                \
  F(clEnqueueCopyBuffer, Int(Queue, Mem, Mem, size_t, size_t, size_t, Uint, const Event*, Event*)) \
  F(clEnqueueMarkerWithWaitList, Int(Queue, Uint, const Event*, Event*))                           \
  F(clEnqueueBarrierWithWaitList, Int(Queue, Uint, const Event*, Event*))                          \
  F(clGetEventProfilingInfo, Int(Event, Uint, size_t, void*, size_t*))                             \
  F(clFlush, Int(Queue))                                                                           \
  F(clWaitForEvents, Int(Uint, const Event*))                                                      \
  F(clReleaseEvent, Int(Event))                                                                    \
  F(clFinish, Int(Queue))

struct Api {
  SharedLibrary library{"libOpenCL.so.1", "libOpenCL.so"};
  template <class F>
  using Pointer = F*;
#define WEFT_OPENCL_POINTER(name, ...) \
  Pointer<__VA_ARGS__> name = library.function<__VA_ARGS__>(#name);
  WEFT_OPENCL_FUNCTIONS(WEFT_OPENCL_POINTER)
#undef WEFT_OPENCL_POINTER

  /// The first function that the library lacks, or null.
  const char* lacks() const {
#define WEFT_OPENCL_THERE(name, ...) \
  if (name == nullptr) return #name;
    WEFT_OPENCL_FUNCTIONS(WEFT_OPENCL_THERE)
#undef WEFT_OPENCL_THERE
    return nullptr;
  }
};

}  // namespace weft::opencl
