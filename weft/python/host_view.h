// HostView: a realized tensor's memory for readers outside, which keeps its contents while they
// look.
#pragma once

#include <memory>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {
class Buffer;
}

namespace weft::python {

/// Row-major elements. While it lives, writing to the tensor leaves this memory alone and takes
/// other.
struct HostView {
  const void* data = nullptr;
  DType dtype = DType::Void;
  std::vector<int64_t> shape, strides;  ///< strides in elements
  std::shared_ptr<Buffer> buffer;
  RootedNode node;  // a handle that counts as a reader of the contents

  int64_t numel() const;
};

/// Realizes. Needs the GIL, and lets go of it while it computes.
std::unique_ptr<HostView> host_view(const Tensor& x);

/// Slots of the Tensor type: the buffer protocol.
extern PyType_Slot kBufferSlots[];

}  // namespace weft::python
