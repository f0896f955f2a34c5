// Packed matrices with words of several rows side by side. Products of few rows have a lane for
// each row of the matrix: as files have them, rows far apart are transposed in registers each time,
// which takes as long as all the rest. (2048 x 2048, one row, Zen 4, two threads, before and after:
// Q4_K 88 and 48 us, Q5_K 118 and 88, Q2_K 78 and 46, Q4_1 87 and 50, IQ4_XS 99 and 46.)
#include "weft/llm/interleaved.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

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

namespace {

/// How many rows of it should lie side by side that do not yet; 0: none. Of what does not multiply
/// rows are looked up, also of what multiplies besides.
int64_t rows_to_interleave(const std::string& name, const Weight& weight,
                           FunctionRef<int64_t(Codec)> rows_of) {
  const bool multiplies = name.starts_with("blk.") || name == "output.weight";
  if (!multiplies || weight.interleaved || is_plain(weight.codec)) return 0;
  const int64_t rows = rows_of(weight.codec);
  return may_be_interleaved(weight.codec, weight.shape, rows) ? rows : 0;
}

}  // namespace

bool Weights::interleave_rows(FunctionRef<int64_t(Codec)> rows_of, int64_t most) {
  for (auto& [name, weight] : weights_) {
    const int64_t rows = rows_to_interleave(name, weight, rows_of);
    if (rows == 0) continue;
    if (most-- == 0) return false;
    const Tensor given = weight.stored;
    fetch(given);
    weight.stored = interleaved(given, weight.codec, weight.shape, rows);
    weight.interleaved = true;
    let_go(given);
  }
  // For a vector in the file the system would map what lies around it, up to 2 MiB.
  if (std::ranges::any_of(weights_, [](const auto& named) { return named.second.interleaved; }))
    for (auto& [name, weight] : weights_)
      if (weight.shape.size() == 1 && is_plain(weight.codec) && weight.bytes > 0)
        weight.stored = copied(weight.stored);
  return true;
}

bool may_stay_in_memory(const Weights& weights) {
  return weights.bytes() <= ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE) / 2;
}

AnswerWeights::AnswerWeights(const ModelFile& file, Factors factors, int64_t rows)
    : file_(file.weights), now_(file.weights), all_(file.weights) {
  if (factors != Factors::Q8 || file.config.encoder || !may_stay_in_memory(file_)) return;
  rows_of_ = [rows](Codec codec) { return interleaved_rows(codec, rows); };
  // What is waited for: loads take less than half as long so where new huge pages are slow (Q4_0,
  // 0.59 GB, a virtual Zen 4: 1.1 and 0.45 s), and answers as long or up to a tenth longer.
  const SmallPagesScope small_pages;
  now_.interleave_rows(
      [&](Codec codec) { return interleaving_may_wait(codec) ? 0 : rows_of_(codec); });
  all_ = now_;
  complete_ = std::ranges::none_of(all_.all(), [&](const auto& named) {
    return rows_to_interleave(named.first, named.second, rows_of_) != 0;
  });
}

bool AnswerWeights::copy_next() {
  begun_ = true;
  if (complete_ || !all_.interleave_rows(rows_of_, 1)) return false;
  now_ = std::move(all_);
  return complete_ = true;
}

void AnswerWeights::let_go_of_copied() const {
  for (const auto& [name, weight] : now_.all())
    if (weight.interleaved) let_go(file_.find(name)->stored);
}

Weights for_answers(const ModelFile& file, Factors factors, int64_t rows) {
  AnswerWeights weights(file, factors, rows);
  const SmallPagesScope small_pages;
  while (!weights.complete()) weights.copy_next();
  weights.let_go_of_copied();
  return weights.now();
}

}  // namespace weft::llm
