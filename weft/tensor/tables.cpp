#include "weft/tensor/tables.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/format.h"
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

Tensor Tables::get(const std::string& key, FunctionRef<Tensor()> make) {
  {
    std::lock_guard lock(mutex_);
    if (const auto at = tables_.find(key); at != tables_.end()) return at->second;
  }
  // Made without the lock, which others want while they build: of two made at once the first stays.
  const Tensor made = make();
  const size_t bytes = static_cast<size_t>(made.numel()) * bits(made.dtype()) / 8;
  std::lock_guard lock(mutex_);
  if (bytes_ + bytes > kMostBytes) tables_.clear(), bytes_ = 0;
  const auto [at, added] = tables_.emplace(key, made);
  if (added) bytes_ += bytes;
  return at->second;
}

namespace {

/// A handle of its own: nobody sees writes of others.
Tensor handle(const Tensor& table, const Tensor& like) {
  return Tensor::from_node(table.node()).to(like.device());
}

template <class T>
Tensor filled(int64_t count, DType dtype, const Dims& shape, FunctionRef<double(int64_t)> element) {
  std::vector<T> data;
  data.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<T>(element(i)));
  return Tensor::from_bytes(std::as_bytes(std::span<const T>(data)), dtype, shape);
}

}  // namespace

Tensor known_table(const std::string& what, int64_t count, const Dims& shape, const Tensor& like,
                   FunctionRef<double(int64_t)> element) {
  const ContextScope scope(like.context());
  const bool single = like.dtype() == DType::F32;
  const std::string key = strformat("{} {} {}", what, shape.text(), name(like.dtype()));
  const Tensor table = Tables::of(like.context()).get(key, [&] {
    return single ? filled<float>(count, DType::F32, shape, element)
                  : filled<double>(count, DType::F64, shape, element);
  });
  return handle(table, like);
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
                          : std::is_same_v<T, int64_t>  ? DType::I64
                          : std::is_same_v<T, uint8_t>  ? DType::U8
                          : std::is_same_v<T, uint32_t> ? DType::U32
                                                        : DType::U64;
  const auto bytes = std::as_bytes(std::span<const T>(data));
  std::string key = std::string(name(dtype)) + shape.text();
  key.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto make = [&] { return Tensor::from_bytes(bytes, dtype, shape); };
  return handle(Tables::of(like.context()).get(key, make), like);
}

template Tensor constant_table(const std::vector<double>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<int32_t>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<int64_t>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<uint8_t>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<uint32_t>&, const Dims&, const Tensor&);
template Tensor constant_table(const std::vector<uint64_t>&, const Dims&, const Tensor&);

}  // namespace weft
