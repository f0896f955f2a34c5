// The ABI of a kernel: void k(const KernelArgs*, uint32_t begin, uint32_t end).
#pragma once

#include <cstddef>
#include <cstdint>

namespace weft {

constexpr uint32_t kKernelAbiVersion = 1;

/// Renderers write this struct out in their own language; device/ checks the offsets.
struct KernelArgs {
  uint32_t version;
  uint32_t worker;       ///< of the thread pool; indexes scratch
  void* const* buffers;  ///< by param slot
  const int64_t* vars;   ///< in the order of LinearProgram::variables
  void* scratch;         ///< this worker's, or null
  uint32_t* status;      ///< 0; a kernel that cannot go on stores a code and returns
};
static_assert(offsetof(KernelArgs, buffers) == 8 && offsetof(KernelArgs, vars) == 16 &&
              offsetof(KernelArgs, status) == 32);

/// Runs items [begin, end) of the core range; kernels without one do all their work for [0, 1).
using KernelFunction = void (*)(const KernelArgs*, uint32_t begin, uint32_t end);

}  // namespace weft
