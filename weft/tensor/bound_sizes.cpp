#include "weft/tensor/bound_sizes.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/index_value.h"
#include "weft/run/active_capture.h"
#include "weft/run/buffer_table.h"
#include "weft/tensor/access.h"

namespace weft {

Dims bound_sizes(const Dims& sizes) {
  Dims numbers;
  for (const Dim& d : sizes) numbers.push_back(d.is_static() ? d : Dim(bound_value(d.node())));
  return numbers;
}

Tensor with_sizes(const Tensor& x, const Dims& sizes, CallSite at) {
  const CallSiteScope site(at);
  if (bound_sizes(x.dims()) != bound_sizes(sizes))
    fail("with_sizes", "the tensor has the sizes {}, not {}; bind Variables to those that it has",
         x.dims().text(), sizes.text());
  if (active_capture(x.context()))
    fail("with_sizes", "a captured function would not see whose memory it is; call it before");
  Tensor whole = x.is_view() ? x.contiguous() : x;
  whole.realize();
  const OpScope scope(whole, at);
  const Storage& storage = *TensorAccess::shared(whole);
  return scope.result(scope.context.get<BufferTable>().add(
      storage.buffer(), whole.dtype(), nodes_of(sizes), storage.value()->device));
}

}  // namespace weft
