#include "weft/tensor/passes.h"

#include "weft/run/explain_passes.h"
#include "weft/tensor/access.h"

namespace weft {

std::vector<PassRecord> explain_passes(const std::vector<Tensor>& tensors, bool texts) {
  if (tensors.empty()) return {};
  std::vector<std::shared_ptr<Storage>> storages;
  for (const Tensor& t : tensors) {
    t.context();  // complains about a Tensor that holds nothing
    storages.push_back(TensorAccess::shared(t));
  }
  return explain_passes(tensors[0].context(), storages, texts);
}

}  // namespace weft
