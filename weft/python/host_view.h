// Realized tensors' memory for Python's readers: host_view() without the GIL, the buffer protocol.
#pragma once

#include <memory>

#include "weft/io/host_memory.h"

namespace weft::python {

/// weft's own (io/host_memory.h), for who holds the GIL: let go of while it computes.
std::unique_ptr<HostView> host_view(const Tensor& x);
std::unique_ptr<HostView> host_copy(const Tensor& x);

/// Slots of the Tensor type: the buffer protocol.
extern PyType_Slot kBufferSlots[];

}  // namespace weft::python
