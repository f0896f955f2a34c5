// Memory shared with others, both ways: realized tensors lent to readers outside, and tensors of
// memory that somebody else owns.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

class Buffer;

/// Row-major elements. While it lives, writing to the tensor leaves this memory alone and takes
/// other.
struct HostView {
  std::shared_ptr<const void> owner;  // what must outlive all of this, if something must
  const void* data = nullptr;
  DType dtype = DType::Void;
  std::vector<int64_t> shape, strides;  ///< strides in elements
  std::shared_ptr<Buffer> buffer;
  RootedNode node;  // a handle that counts as a reader of the contents

  int64_t numel() const;
};

/// A realized tensor's memory, which keeps its contents while the view lives. Realizes.
std::unique_ptr<HostView> host_view(const Tensor& x);
/// What keeps the view's memory: the view, or, of a mapped file, that, which those who use the
/// memory can then ask whether it is all there.
std::shared_ptr<const void> memory_owner(const std::shared_ptr<HostView>& view);
/// The elements in memory that nothing else reads: whoever gets it may write there.
std::unique_ptr<HostView> host_copy(const Tensor& x);

/// A tensor of memory that somebody else owns, used without a copy where elements lie in order and
/// aligned, or in a file that machine code reads. weft never writes to it.
Tensor borrowed_tensor(const void* data, DType dtype, std::span<const int64_t> shape,
                       std::shared_ptr<const void> owner);
/// Of one in a mapped file the pages come to memory at once; the second lets them leave it until
/// somebody looks at them again.
void fetch(const Tensor& x);
void let_go(const Tensor& x);
/// A copy of elements with these strides, in elements.
Tensor strided_tensor(const std::byte* data, DType dtype, std::span<const int64_t> shape,
                      std::span<const int64_t> strides);

}  // namespace weft
