// The ABI of a kernel: void k(const KernelArgs*, uint32_t begin, uint32_t end).
#pragma once

#include <cstdint>
#include <string_view>

namespace weft {

constexpr uint32_t kKernelAbiVersion = 1;

/// What every kernel is called with. Back ends take offsets from here.
struct KernelArgs {
  uint32_t version;
  uint32_t worker;       ///< of the thread pool; indexes scratch
  void* const* buffers;  ///< by param slot
  const int64_t* vars;   ///< in the order of LinearProgram::variables
  void* scratch;         ///< this worker's, or null
  uint32_t* status;      ///< 0; a kernel that cannot go on stores a code and returns
};
/// The same struct for C text.
constexpr std::string_view kKernelArgsInC =
    "struct KernelArgs {\n"
    "  unsigned version, worker;\n"
    "  void *const *buffers;\n"
    "  const long long *vars;\n"
    "  void *scratch;\n"
    "  unsigned *status;\n"
    "};\n";

/// Runs items [begin, end) of the core range; kernels without one do all their work for [0, 1).
using KernelFunction = void (*)(const KernelArgs*, uint32_t begin, uint32_t end);

}  // namespace weft
