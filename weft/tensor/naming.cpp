#include "weft/tensor/naming.h"

#include "weft/base/context.h"
#include "weft/run/tensor_names.h"
#include "weft/tensor/access.h"

namespace weft {

void name_tensor(const Tensor& x, std::string_view name) {
  if (x.defined() && !x.is_view())
    x.context().get<TensorNames>().set(TensorAccess::shared(x), name);
}

}  // namespace weft
