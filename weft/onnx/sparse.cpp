#include <algorithm>

#include "weft/base/error.h"
#include "weft/onnx/value.h"

namespace weft::onnx {

Value dense(const SparseData& sparse) {
  const HostArray &values = sparse.values.array, &indices = sparse.indices.array;
  constexpr int64_t kMostBytes = int64_t{1} << 31;
  const int64_t bytes = *checked_bytes(values.dtype, sparse.shape);
  if (bytes > kMostBytes)
    fail_memory("onnx.tensor", "the sparse tensor {} of shape {} takes {} when it is dense",
                quoted_name(sparse.values.name), shape_text(sparse.shape), human_bytes(bytes));
  std::vector<std::byte> all(static_cast<size_t>(bytes));
  const size_t size = static_cast<size_t>(bits(values.dtype)) / 8;
  const int64_t count = bytes / static_cast<int64_t>(size);
  const bool flat = indices.shape.size() == 1;
  const size_t rank = flat ? 1 : sparse.shape.size();
  for (size_t i = 0; i < static_cast<size_t>(values.numel()); ++i) {
    int64_t at = 0;
    for (size_t axis = 0; axis < rank; ++axis) {
      const int64_t k =
          weft::Value::load(DType::I64, indices.bytes.data() + 8 * (i * rank + axis)).as_int();
      const int64_t n = flat ? count : sparse.shape[axis];
      if (k < 0 || k >= n)
        fail_index("onnx.tensor", "the sparse tensor {} has an element at {} of an axis of {}",
                   quoted_name(sparse.values.name), k, n);
      at = at * n + k;
    }
    std::copy_n(values.bytes.data() + i * size, size, all.data() + static_cast<size_t>(at) * size);
  }
  return Value(HostArray::owned(values.dtype, sparse.shape, std::move(all)));
}

}  // namespace weft::onnx
