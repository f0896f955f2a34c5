// com.microsoft: walks over sequences of tokens and frames, most of them on the host.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "weft/onnx/contrib.h"
#include "weft/onnx/host.h"

namespace weft::onnx {

// Tokens that would complete an n-gram for the second time get the score -inf.
Values ngram_repeat_block(const NodeCall& call) {
  const Tensor &ids = call.tensor(0), &scores = call.tensor(1);
  const int64_t n = call.integer("ngram_size");
  if (ids.ndim() != 2 || scores.ndim() != 2 || n < 1)
    call.refuse(
        "input_ids {}, scores {} and ngram_size {}: (batch, length), (batch, words), 1 or "
        "more",
        ids.dims().text(), scores.dims().text(), n);
  const int64_t length = ids.size(1);
  if (length < n) return {scores};
  const Tensor grams = ids.window(1, n);  // (batch, how many, n)
  const Tensor last = ids.index({Slice(), Slice(length - n + 1, length)}).unsqueeze(1);
  const Tensor again = n == 1 ? Tensor::ones({ids.dim(0), Dim(length)}, DType::Bool)
                              : (grams.index({kEllipsis, Slice(n - 1)}) == last).all(-1);
  const Tensor counts =
      Tensor::zeros(scores.dims(), DType::I32)
          .scatter(1, grams.index({kEllipsis, n - 1}), again.cast(DType::I32), Fold::Add);
  return {(counts > 0).where(-INFINITY, scores).cast(scores.dtype())};
}

namespace {

using Tokens = std::vector<int64_t>;

// Behind the one place of `text` where the last n tokens of `tokens` are, for the smallest n that
// finds one place; -1 where it finds none, or has to.
int64_t suffix_match(const Tokens& text, const Tokens& tokens, int64_t least, int64_t most) {
  for (int64_t n = least; n <= most && n <= static_cast<int64_t>(tokens.size()); ++n) {
    const auto suffix = tokens.end() - n;
    const auto found = std::search(text.begin(), text.end(), suffix, tokens.end());
    if (found == text.end()) return -1;
    if (std::search(found + 1, text.end(), suffix, tokens.end()) == text.end())
      return found - text.begin() + n;
  }
  return -1;
}

}  // namespace

// Aggressive decoding (Ge et al. 2022): what was guessed from the source holds up to where the
// predicted tokens part from it.
Values bifurcation_detector(const NodeCall& call) {
  const Tokens source = call.ints(0);
  Tokens tokens = call.ints(1);
  const int64_t from = call.integer(2);
  if (from < 0 || from > static_cast<int64_t>(source.size()))
    call.refuse("prev_suffix_match_idx {} of {} source tokens", from, source.size());
  if (call.has(3)) {
    const Tokens predicted = call.ints(3);
    const size_t guessed = source.size() - static_cast<size_t>(from);
    if (predicted.size() != guessed + 1)
      call.refuse("{} predicted tokens for {} source tokens from {} on: one more", predicted.size(),
                  guessed, from);
    size_t same = 0;
    while (same < guessed && predicted[same] == source[static_cast<size_t>(from) + same]) ++same;
    tokens.insert(tokens.end(), predicted.begin(),
                  predicted.begin() + static_cast<ptrdiff_t>(same) + 1);
  }
  const int64_t match = suffix_match(source, tokens, call.integer("min_ngram_size", 1),
                                     call.integer("max_ngram_size", 3));
  return {host_value(tokens, {static_cast<int64_t>(tokens.size())}), host_value(Tokens{match}, {})};
}

namespace {

enum class Step : uint8_t { Both, Row, Column };

// Which of the three ways leads cheapest to each cell of the costs (rows, columns) (Sakoe and Chiba
// 1978); ties go to the column.
std::vector<Step> cheapest_steps(const std::vector<float>& costs, size_t rows, size_t columns) {
  std::vector<float> above(columns + 1, INFINITY), here(columns + 1);
  std::vector<Step> steps(rows * columns);
  above[0] = 0;
  for (size_t i = 0; i < rows; ++i) {
    here[0] = INFINITY;
    for (size_t j = 0; j < columns; ++j) {
      const float both = above[j], row = above[j + 1], column = here[j];
      const Step step = both < row && both < column  ? Step::Both
                        : row < both && row < column ? Step::Row
                                                     : Step::Column;
      steps[i * columns + j] = step;
      here[j + 1] = costs[i * columns + j] + (step == Step::Both  ? both
                                              : step == Step::Row ? row
                                                                  : column);
    }
    std::swap(above, here);
  }
  return steps;
}

}  // namespace

// (2, cells): the rows and columns of the cheapest way through.
Values dynamic_time_warping(const NodeCall& call) {
  const HostArray array = call.array(0);
  const size_t rank = array.shape.size();
  if ((rank != 2 && rank != 3) || (rank == 3 && array.shape[0] != 1))
    call.refuse("input {}: (rows, columns) or (1, rows, columns)", shape_text(array.shape));
  const auto rows = static_cast<size_t>(array.shape[rank - 2]);
  const auto columns = static_cast<size_t>(array.shape[rank - 1]);
  const std::vector<Step> steps = cheapest_steps(as_floats(array), rows, columns);
  std::vector<int32_t> of_rows, of_columns;
  for (size_t i = rows, j = columns; i > 0 || j > 0;) {
    of_rows.push_back(static_cast<int32_t>(i) - 1);
    of_columns.push_back(static_cast<int32_t>(j) - 1);
    const Step step = i == 0 ? Step::Column : j == 0 ? Step::Row : steps[(i - 1) * columns + j - 1];
    if (step != Step::Column) --i;
    if (step != Step::Row) --j;
  }
  std::reverse(of_rows.begin(), of_rows.end());
  std::reverse(of_columns.begin(), of_columns.end());
  const auto cells = static_cast<int64_t>(of_rows.size());
  of_rows.insert(of_rows.end(), of_columns.begin(), of_columns.end());
  return {host_value(of_rows, {2, cells})};
}

namespace {

// MurmurHash3_x86_32 (Appleby, public domain: its constants and steps).
uint32_t murmur_hash(std::span<const std::byte> bytes, uint32_t seed) {
  const auto scrambled = [](uint32_t k) { return std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u; };
  uint32_t hash = seed;
  size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    uint32_t word;
    std::memcpy(&word, bytes.data() + at, 4);
    hash = std::rotl(hash ^ scrambled(word), 13) * 5 + 0xe6546b64u;
  }
  uint32_t rest = 0;
  for (size_t i = bytes.size(); i-- > at;) rest = rest << 8 | std::to_integer<uint32_t>(bytes[i]);
  if (at < bytes.size()) hash ^= scrambled(rest);
  hash ^= static_cast<uint32_t>(bytes.size());
  hash = (hash ^ hash >> 16) * 0x85ebca6bu;
  hash = (hash ^ hash >> 13) * 0xc2b2ae35u;
  return hash ^ hash >> 16;
}

}  // namespace

// Of the bytes of each element.
Values murmur_hash3(const NodeCall& call) {
  const auto seed = static_cast<uint32_t>(call.integer("seed", 0));
  std::vector<uint32_t> hashes;
  if (call.input(0).kind() == Value::Kind::Strings) {
    for (const std::string& text : call.texts(0))
      hashes.push_back(murmur_hash(std::as_bytes(std::span(text)), seed));
  } else {
    const HostArray array = call.array(0);
    const auto size = static_cast<size_t>(bits(array.dtype) / 8);
    if (size < 4) call.refuse("elements of dtype {}: of 4 or 8 bytes", name(array.dtype));
    for (size_t at = 0; at + size <= array.bytes.size(); at += size)
      hashes.push_back(murmur_hash(array.bytes.subspan(at, size), seed));
  }
  const DType dtype = call.integer("positive", 1) != 0 ? DType::U32 : DType::I32;
  return {host_value(hashes, static_sizes(call.input(0).dims()), dtype)};
}

}  // namespace weft::onnx
