#include "weft/base/tile_state.h"

#if defined(__linux__) && defined(__x86_64__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace weft {

bool request_tile_state() {
#if defined(__linux__) && defined(__x86_64__)
  // Linux, Documentation/arch/x86/xstate.rst, "Using dynamically enabled XSTATE features in user
  // space applications".
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return ::syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace weft
