// Memory for readers in Python: io/host_memory.h without the GIL, and the buffer protocol.
#pragma once

#include <memory>

#include "weft/io/host_memory.h"

namespace weft::python {

/// weft's own (io/host_memory.h), for who holds the GIL: let go of while it computes.
std::unique_ptr<HostView> host_view_nogil(const Tensor& x);
std::unique_ptr<HostView> host_copy_nogil(const Tensor& x);

/// Slots of the Tensor type: the buffer protocol.
extern PyType_Slot kBufferSlots[];

}  // namespace weft::python
