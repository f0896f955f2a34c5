// Int128: intermediate results of 64-bit arithmetic without overflow (a GCC and Clang extension).
#pragma once

namespace weft {
__extension__ typedef __int128 Int128;
}  // namespace weft
