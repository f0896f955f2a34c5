#include "weft/tensor/tables.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/tensor/access.h"

namespace weft {

Tables& Tables::of(Context& context) {
  // Made before us, so destroyed after us: what our tensors lie in.
  context.get<BufferTable>();
  context.get<LiveCells>();
  context.get<DeviceTable>().default_device();
  return context.get<Tables>();
}

Tensor Tables::get(std::span<const std::byte> data, DType dtype, const Dims& shape) {
  std::string key = std::string(name(dtype)) + shape.text();
  key.append(reinterpret_cast<const char*>(data.data()), data.size());
  {
    std::lock_guard lock(mutex_);
    if (const auto at = tables_.find(key); at != tables_.end()) return at->second;
  }
  // Made without the lock, which others want while they build: of two made at once the first stays.
  const Tensor made = Tensor::from_bytes(data, dtype, shape);
  std::lock_guard lock(mutex_);
  if (bytes_ + data.size() > kMostBytes) tables_.clear(), bytes_ = 0;
  const auto [at, added] = tables_.emplace(std::move(key), made);
  if (added) bytes_ += data.size();
  return at->second;
}

void require_table(const char* tag, int64_t count) {
  const int64_t cap = Context::current().options().memory_cap;
  constexpr int64_t kMost = int64_t{1} << 26, kBytes = sizeof(double);
  const int64_t most = cap == 0 ? kMost : std::min(kMost, cap / kBytes);
  if (count > most)
    fail_memory(tag, "needs a table of {} elements: at most {} are made{}", count, most,
                most < kMost ? " under WEFT_MEMORY_CAP" : "");
}

template <class T>
Tensor constant_table(const std::vector<T>& data, const Dims& shape, const Tensor& like) {
  const ContextScope scope(like.context());
  constexpr DType dtype = std::is_same_v<T, double>     ? DType::F64
                          : std::is_same_v<T, int32_t>  ? DType::I32
                          : std::is_same_v<T, uint8_t>  ? DType::U8
                          : std::is_same_v<T, uint32_t> ? DType::U32
                                                        : DType::U64;
  const Tensor table =
      Tables::of(like.context()).get(std::as_bytes(std::span<const T>(data)), dtype, shape);
  // A handle of its own: nobody sees writes of others.
  return Tensor::from_node(table.node()).to(like.device());
}

template Tensor constant_table(const std::vector<double>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<int32_t>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<uint8_t>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<uint32_t>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<uint64_t>&, const Dims&, const Tensor&);

}  // namespace weft
