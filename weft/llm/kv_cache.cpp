#include "weft/llm/kv_cache.h"

#include <optional>

#include "weft/base/error.h"
#include "weft/device/buffer.h"

namespace weft::llm {

namespace {

constexpr int64_t kGroup = 32;
constexpr int64_t kHugePage = int64_t{2} << 20;

int64_t groups_of(int64_t size) { return size % kGroup == 0 ? size / kGroup : 1; }

Slice one(const Dim& at) { return Slice(at, at + Dim(1)); }

/// Of as many numbers as there are groups, times 127 the largest one; 0 where all are.
Tensor scales_of(const Tensor& grouped) {
  return (grouped.abs().max(-1, true) / 127.0F).cast(DType::F16).cast(DType::F32);
}

}  // namespace

KeptNumbers::KeptNumbers(const Dims& shape, DType dtype) : numbers_(Tensor::zeros(shape, dtype)) {
  if (dtype != DType::I8) return;
  Dims scales = shape;
  scales.back() = groups_of(shape.back().value());
  scales_ = Tensor::zeros(scales, DType::F16);
}

std::vector<Tensor> KeptNumbers::tensors() const {
  return scales_.defined() ? std::vector{numbers_, scales_} : std::vector{numbers_};
}

void KeptNumbers::keep(const Dim& slot, const Positions& which) {
  const Slice from(which.first, which.first + which.count), to(Dim(0), which.count);
  for (Tensor t : tensors())
    t.index({one(slot), Slice(), to}).assign(t.index({one(slot), Slice(), from}).contiguous());
}

void KeptNumbers::write(const Tensor& x, const Dim& slot, const Dim& start) {
  const Slice places(start, start + x.dim(2));
  const auto put = [&](Tensor& into, const Tensor& what) {
    into.index({one(slot), Slice(), places}).assign(what.cast(into.dtype()));
  };
  if (!scales_.defined()) return put(numbers_, x);
  const Dim heads = x.dim(1), tokens = x.dim(2);
  const int64_t size = x.size(3), groups = groups_of(size);
  const Tensor grouped = x.contiguous().reshape({1, heads, tokens, groups, size / groups});
  const Tensor scale = scales_of(grouped);
  const Tensor steps = (scale > 0.0F).where(grouped / scale, 0.0F);
  put(scales_, scale.squeeze(-1));
  put(numbers_, steps.round().clamp(-127, 127).reshape(x.dims()));
}

Tensor KeptNumbers::read(const Dim& slot, const Positions& which) const {
  const Slice places(which.first, which.first + which.count);
  const auto part = [&](const Tensor& all) {
    return all.index({one(slot), Slice(), places}).cast(DType::F32);
  };
  const Tensor x = part(numbers_);
  if (!scales_.defined()) return x.unsqueeze(2);
  const int64_t size = x.size(3), groups = groups_of(size);
  const Tensor grouped = x.reshape({1, x.dim(1), which.count, groups, size / groups});
  return (grouped * part(scales_).unsqueeze(-1)).reshape(x.dims()).unsqueeze(2);
}

void check_cache_memory(const Config& c, int64_t slots, int64_t positions, DType dtype) {
  const double numbers = static_cast<double>(c.layers) * static_cast<double>(c.kv_heads) *
                         static_cast<double>(c.head_dim + c.value_dim);
  const double bytes = numbers * static_cast<double>(slots) * static_cast<double>(positions) *
                       static_cast<double>(bits(dtype)) / 8;
  if (bytes > 0x1p46)
    fail("llm.memory",
         "keys and values of {} slots of {} tokens would take {:.0f} GiB: ask for a shorter "
         "context or fewer slots",
         slots, positions, bytes / 0x1p30);
}

KvCache::KvCache(const Config& c, int64_t slots_in, int64_t positions_in, int64_t near_positions_in,
                 DType dtype)
    : slots(slots_in), positions(positions_in), near_positions(near_positions_in) {
  if (c.encoder) return;  // nothing is gone on with
  for (int64_t i = 0; i < c.layers; ++i) {
    const int64_t kept = c.is_local(i) ? near_positions : positions;
    keys.emplace_back(Dims{slots, c.kv_heads, kept, c.head_dim}, dtype);
    values.emplace_back(Dims{slots, c.kv_heads, kept, c.value_dim}, dtype);
    // A token is written to each head's part. Where those are shorter, the first one would touch
    // all huge pages (1.1 B with 4096 positions: 128 MB, up to 0.2 s where new ones are slow).
    std::optional<SmallPagesScope> small_pages;
    if (kept * c.head_dim * bits(dtype) / 8 < kHugePage) small_pages.emplace();
    for (const KeptNumbers* numbers : {&keys.back(), &values.back()})
      for (Tensor t : numbers->tensors()) {
        t.realize();  // one by one: not one memory for all zeros
        bytes_ += t.numel() * bits(t.dtype()) / 8;
      }
  }
}

bool KvCache::lost() const try {
  for (const auto* list : {&keys, &values})
    for (const KeptNumbers& numbers : *list)
      for (const Tensor& t : numbers.tensors()) t.numel();
  return false;
} catch (const Error&) {
  return true;
}

}  // namespace weft::llm
