// TfIdfVectorizer: how often n-grams of a pool occur in rows of tokens, on the host.
#include <algorithm>
#include <unordered_map>

#include "weft/base/interrupt.h"
#include "weft/onnx/host.h"
#include "weft/onnx/operators.h"

namespace weft::onnx {
namespace {

using Gram = std::vector<int64_t>;  // of tokens; strings are numbered
struct GramHash {
  size_t operator()(const Gram& gram) const {
    uint64_t h = gram.size();
    for (const int64_t token : gram)
      h = (h ^ static_cast<uint64_t>(token)) * 0x9e3779b97f4a7c15u + (h >> 29);
    return h;
  }
};

struct Lengths {
  int64_t least, most, skips;
};

struct Pool {
  std::unordered_map<Gram, int64_t, GramHash> places;  // of each n-gram in a row of the result
  std::unordered_map<std::string, int64_t> tokens;     // numbers of strings
  int64_t width = 0;                                   // of a row
};

// The pool's tokens, those of strings numbered.
std::vector<int64_t> pool_tokens(const NodeCall& call, Pool& pool) {
  if (call.has("pool_int64s") == call.has("pool_strings"))
    call.refuse("one of pool_int64s and pool_strings has to be given");
  if (call.has("pool_int64s")) return call.ints("pool_int64s");
  std::vector<int64_t> tokens;
  for (const std::string& text : call.texts("pool_strings"))
    tokens.push_back(
        pool.tokens.emplace(text, static_cast<int64_t>(pool.tokens.size())).first->second);
  return tokens;
}

Pool read_pool(const NodeCall& call) {
  Pool pool;
  const std::vector<int64_t> tokens = pool_tokens(call, pool), starts = call.ints("ngram_counts"),
                             places = call.ints("ngram_indexes");
  const auto total = static_cast<int64_t>(tokens.size());
  size_t which = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const int64_t length = static_cast<int64_t>(n) + 1, begin = starts[n];
    const int64_t end = n + 1 < starts.size() ? starts[n + 1] : total;
    if (begin < 0 || end < begin || end > total || (end - begin) % length != 0)
      call.refuse(
          "ngram_counts: {}-grams from {} to {} of a pool of {}: within it, and a multiple "
          "of their length",
          length, begin, end, total);
    for (int64_t at = begin; at < end; at += length, ++which) {
      if (which >= places.size())
        call.refuse("ngram_indexes has {} elements, and the pool more n-grams", places.size());
      pool.places.emplace(Gram(tokens.begin() + at, tokens.begin() + at + length), places[which]);
    }
  }
  constexpr int64_t kWidest = int64_t{1} << 24;
  for (const int64_t place : places) {
    if (place < 0 || place >= kWidest)
      call.refuse("ngram_indexes holds {}: 0 to below {}", place, kWidest);
    pool.width = std::max(pool.width, place + 1);
  }
  return pool;
}

// Numbers of the input's tokens; -1 for strings that the pool has not.
std::vector<int64_t> input_tokens(const NodeCall& call, const Pool& pool) {
  if (call.input(0).kind() != Value::Kind::Strings) return as_ints(call.array(0));
  std::vector<int64_t> tokens;
  for (const std::string& text : call.texts(0)) {
    const auto found = pool.tokens.find(text);
    tokens.push_back(found == pool.tokens.end() ? -1 : found->second);
  }
  return tokens;
}

void count(const Pool& pool, std::span<const int64_t> row, const Lengths& lengths,
           std::span<float> counts) {
  const auto size = static_cast<int64_t>(row.size());
  for (int64_t step = 1; step <= std::min(lengths.skips + 1, std::max<int64_t>(size, 1)); ++step)
    for (int64_t begin = 0; begin < size; ++begin) {
      poll_interrupt();
      Gram gram;
      for (int64_t n = 1, at = begin; n <= lengths.most && at < size; ++n, at += step) {
        gram.push_back(row[static_cast<size_t>(at)]);
        if (n < lengths.least || (n == 1 && step > 1)) continue;  // no skips in one token
        const auto found = pool.places.find(gram);
        if (found != pool.places.end()) counts[static_cast<size_t>(found->second)] += 1;
      }
    }
}

void weigh(const NodeCall& call, std::vector<float>& counts, int64_t width) {
  const std::string mode = call.text("mode", "TF");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF")
    call.refuse("mode {}: TF, IDF or TFIDF", quoted_name(mode));
  if (mode == "TF") return;
  const std::vector<double> weights = call.numbers("weights");
  if (!weights.empty() && static_cast<int64_t>(weights.size()) < width)
    call.refuse("weights has {} elements, a row of the result {}", weights.size(), width);
  for (size_t i = 0; i < counts.size(); ++i) {
    if (mode == "IDF") counts[i] = counts[i] > 0 ? 1 : 0;
    if (!weights.empty()) counts[i] *= static_cast<float>(weights[i % static_cast<size_t>(width)]);
  }
}

}  // namespace

Values tf_idf_vectorizer(const NodeCall& call) {
  const auto kept = call.kept<Pool>([&] { return read_pool(call); });
  const Pool& pool = *kept;
  const Lengths lengths = {call.integer("min_gram_length"), call.integer("max_gram_length"),
                           call.integer("max_skip_count")};
  const auto sizes = static_cast<int64_t>(call.ints("ngram_counts").size());
  if (lengths.least < 1 || lengths.most < lengths.least || lengths.most > sizes ||
      lengths.skips < 0)
    call.refuse(
        "min_gram_length {}, max_gram_length {}, max_skip_count {}: 1 to as many lengths as "
        "ngram_counts has ({}), and skips of at least 0",
        lengths.least, lengths.most, lengths.skips, sizes);
  const std::vector<int64_t> shape = static_sizes(call.input(0).dims());
  if (shape.size() > 2) call.refuse("input {}: (tokens) or (rows, tokens)", shape_text(shape));
  const int64_t rows = shape.size() == 2 ? shape[0] : 1;
  const int64_t row = shape.empty() ? 1 : shape.back();
  const std::vector<int64_t> tokens = input_tokens(call, pool);
  constexpr int64_t kMost = int64_t{1} << 28;
  if (pool.width > 0 && rows > kMost / pool.width)
    call.refuse("{} rows of {} counts: at most 2^28 together", rows, pool.width);
  std::vector<float> counts(static_cast<size_t>(rows * pool.width));
  for (int64_t r = 0; r < rows; ++r)
    count(pool, std::span(tokens).subspan(static_cast<size_t>(r * row), static_cast<size_t>(row)),
          lengths,
          std::span(counts).subspan(static_cast<size_t>(r * pool.width),
                                    static_cast<size_t>(pool.width)));
  weigh(call, counts, pool.width);
  return {host_value(counts, shape.size() == 2 ? std::vector<int64_t>{rows, pool.width}
                                               : std::vector<int64_t>{pool.width})};
}

}  // namespace weft::onnx
