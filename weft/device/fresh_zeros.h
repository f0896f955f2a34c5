// Memory that is zero because the system gives it so.
#pragma once
#include "weft/device/buffer.h"

namespace weft {

/// Whether nobody has written to it since the system gave it: it is zero, and pages that nobody
/// touches take no memory.
bool is_untouched_zeros(const Buffer& buffer);

}  // namespace weft
