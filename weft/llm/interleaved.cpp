// Packed matrices with words of several rows side by side. Products of few rows have a lane for
// each row of the matrix: as files have them, rows far apart are transposed in registers each time,
// which takes as long as all the rest. (2048 x 2048, one row, Zen 4, two threads, before and after:
// Q4_K 88 and 48 us, Q5_K 118 and 88, Q2_K 78 and 46, Q4_1 87 and 50, IQ4_XS 99 and 46.)
#include "weft/llm/interleaved.h"

#include <unistd.h>

#include "weft/device/buffer.h"
#include "weft/io/host_memory.h"

namespace weft::llm {

namespace {

/// In memory of its own.
Tensor copied(const Tensor& x) {
  const auto given = host_view(x);
  const auto bytes = static_cast<size_t>(bytes_for(x.dtype(), x.numel()));
  return Tensor::from_bytes({static_cast<const std::byte*>(given->data), bytes}, x.dtype(),
                            x.dims());
}

}  // namespace

Tensor interleaved(const Tensor& packed, Codec codec, const Dims& shape, int64_t rows) {
  const Tensor words = interleave_rows(packed, codec, shape, rows).realize();
  const int64_t bytes[] = {words.size(0), words.size(1), words.size(2), 4};
  const std::shared_ptr<HostView> made = host_view(words);
  return borrowed_tensor(made->data, DType::U8, bytes, memory_owner(made));
}

void Weights::interleave_rows(FunctionRef<int64_t(Codec)> rows_of) {
  // Loads take less than half as long so where new huge pages are slow (Q4_0, 0.59 GB, a virtual
  // Zen 4: 1.1 and 0.45 s), and answers as long or up to a tenth longer.
  const SmallPagesScope small_pages;
  bool any = false;
  for (auto& [name, weight] : weights_) {
    // Of others rows are looked up, also of one that multiplies besides.
    const bool multiplies = name.starts_with("blk.") || name == "output.weight";
    const int64_t rows = multiplies && !is_plain(weight.codec) ? rows_of(weight.codec) : 0;
    if (weight.interleaved || !may_be_interleaved(weight.codec, weight.shape, rows)) continue;
    const Tensor in_file = weight.stored;
    fetch(in_file);
    weight.stored = interleaved(in_file, weight.codec, weight.shape, rows);
    any = weight.interleaved = true;
    let_go(in_file);
  }
  // For a vector in the file the system would map what lies around it, up to 2 MiB.
  for (auto& [name, weight] : weights_)
    if (any && weight.shape.size() == 1 && is_plain(weight.codec) && weight.bytes > 0)
      weight.stored = copied(weight.stored);
}

bool may_stay_in_memory(const Weights& weights) {
  return weights.bytes() <= ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) / 2;
}

Weights for_answers(const ModelFile& file, Factors factors, int64_t rows) {
  Weights weights = file.weights;
  if (factors == Factors::Q8 && !file.config.encoder && may_stay_in_memory(weights))
    weights.interleave_rows([rows](Codec codec) { return interleaved_rows(codec, rows); });
  return weights;
}

void let_go_of_copied(const Weights& in_file, const Weights& used) {
  for (const auto& [name, weight] : used.all())
    if (weight.interleaved) let_go(in_file.find(name)->stored);
}

}  // namespace weft::llm
