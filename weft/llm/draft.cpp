#include "weft/llm/draft.h"

#include <algorithm>
#include <deque>

#include "weft/base/error.h"
#include "weft/llm/grammar.h"
#include "weft/llm/interleaved.h"

namespace weft::llm {

// ---- pace

int64_t DraftPace::next() {
  if (rest_ == 0) return length_;
  --rest_;
  return 0;
}

void DraftPace::note(int64_t guessed, int64_t held) {
  constexpr int64_t kMostDoublings = 5;
  if (guessed == 0) return;
  if (held == 0) {
    misses_ = std::min(misses_ + 1, kMostDoublings);
    rest_ = (int64_t{1} << misses_) - 2;  // 0, 2, 6, .. 30
  } else {
    misses_ = 0;
  }
  length_ = held == guessed ? std::min(most_, std::max(length_, 2 * guessed + 1))
                            : std::max<int64_t>(1, std::min(length_, held + 1));
}

// ---- lookup

namespace {

constexpr size_t kLongestMatch = 4, kShortestMatch = 2;

/// How many of the tokens before `a` and before `b` are the same, up to kLongestMatch.
size_t common_end(std::span<const TokenId> text, size_t a, size_t b) {
  size_t n = 0;
  while (n < kLongestMatch && n < a && n < b && text[a - 1 - n] == text[b - 1 - n]) ++n;
  return n;
}

void look_up(Draft& d) {
  if (d.most == 0) return;
  const size_t end = d.text.size();
  size_t best = kShortestMatch - 1, from = 0;
  for (size_t at = end - 1; at > 0 && best < kLongestMatch; --at) {
    const size_t common = common_end(d.text, at, end);
    if (common <= best) continue;
    best = common;
    from = at;
  }
  if (from == 0) return;
  // A text that repeats itself goes on doing so: what is read may be what was just guessed.
  for (int64_t i = 0; i < d.most; ++i) d.text.push_back(d.text[from + static_cast<size_t>(i)]);
}

}  // namespace

void LookupDrafter::guess(std::span<Draft> drafts) {
  for (Draft& d : drafts) look_up(d);
}

// ---- a model

ModelDrafter::ModelDrafter(const ModelFile& file, int64_t slots, int64_t context, DType cache,
                           Factors factors)
    : stepper_(file.config, for_answers(file, factors, slots), slots,
               std::min(context, file.config.context), cache, factors),
      held_(static_cast<size_t>(slots)) {
  if (!stepper_.writes())
    fail("llm.draft",
         "the draft model is a {} that makes embeddings and writes no texts: none can "
         "be guessed by it",
         file.config.family);
}

/// Whether the model has a place for the text, and knows its tokens.
bool ModelDrafter::takes(const Draft& d) const {
  return d.most > 0 && static_cast<int64_t>(d.known) + d.most <= stepper_.positions() &&
         std::ranges::all_of(d.text, [&](TokenId id) { return id < stepper_.config().vocabulary; });
}

/// All but the text's last token into the cache.
void ModelDrafter::catch_up(const Draft& d) {
  std::vector<TokenId>& held = held_[static_cast<size_t>(d.slot)];
  const auto differs = std::ranges::mismatch(held, d.text).in1;
  held.erase(differs, held.end());
  if (held.size() >= d.known) held.resize(d.known - 1);
  if (!stepper_.can_go_on(d.slot, static_cast<int64_t>(held.size()))) held.clear();
  while (held.size() + 1 < d.known) {
    const auto start = static_cast<int64_t>(held.size());
    const int64_t count = stepper_.part(start, static_cast<int64_t>(d.known) - 1 - start);
    const StepRow row{d.slot, start,
                      std::span(d.text).subspan(held.size(), static_cast<size_t>(count))};
    stepper_.run(std::span(&row, 1));
    held.insert(held.end(), row.tokens.begin(), row.tokens.end());
  }
}

/// Adds a token to each text.
void ModelDrafter::next_tokens(std::span<Draft* const> drafts) {
  std::vector<StepRow> rows;
  for (const Draft* d : drafts)
    rows.push_back({d->slot, static_cast<int64_t>(d->text.size()) - 1, std::span(d->text).last(1)});
  fill_rows(rows, stepper_.slots());
  const std::vector<float> logits = stepper_.run(rows);
  const size_t width = logits.size() / rows.size();
  for (size_t i = 0; i < drafts.size(); ++i) {
    Draft& d = *drafts[i];
    held_[static_cast<size_t>(d.slot)].push_back(d.text.back());
    draw(d, std::span(logits).subspan(i * width, width));
  }
}

/// No token where the answer's grammar has an end, or is an error, which whoever draws the answer
/// will see.
void ModelDrafter::draw(Draft& d, std::span<const float> logits) try {
  Sampler sampler = *d.sampler;
  std::span<const uint64_t> allowed;
  if (d.grammar) allowed = d.grammar->allowed();
  const TokenId id = sampler.sample(logits, d.text, d.prompt_size, allowed).token.id;
  if (d.grammar) d.grammar->accept(id);
  d.text.push_back(id);
  if (d.grammar && d.grammar->finished()) d.most = std::ssize(d.guesses());
} catch (const Error&) {
  d.most = std::ssize(d.guesses());
}

void ModelDrafter::guess(std::span<Draft> drafts) {
  if (stepper_.lost()) {
    for (std::vector<TokenId>& held : held_) held.clear();
    stepper_.renew();
  }
  std::vector<Draft*> open;
  for (Draft& d : drafts)
    if (takes(d)) open.push_back(&d);
  for (const Draft* d : open) catch_up(*d);
  std::deque<GrammarTrial> trials;
  for (const Draft* d : open)
    if (d->grammar) trials.emplace_back(*d->grammar);
  while (!open.empty()) {
    next_tokens(open);
    std::erase_if(
        open, [](const Draft* d) { return static_cast<int64_t>(d->guesses().size()) >= d->most; });
  }
}

namespace {

void check_same_tokens(const std::string& path, const text::Tokenizer& a,
                       const text::Tokenizer& b) {
  if (a.vocab_size() != b.vocab_size())
    fail("llm.draft",
         "the draft model {} has {} tokens and the model {}: both must have the same tokenizer",
         quoted_name(path), b.vocab_size(), a.vocab_size());
  for (size_t i = 0; i < a.vocab_size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const auto mine = a.id_to_token(id), theirs = b.id_to_token(id);
    if (mine != theirs)
      fail("llm.draft",
           "token {} is {} in the draft model {} and {} in the model: both must have the same "
           "tokenizer",
           id, quoted_name(theirs.value_or("missing")), quoted_name(path),
           quoted_name(mine.value_or("missing")));
  }
}

}  // namespace

std::unique_ptr<Drafter> model_drafter(const std::string& path, const text::Tokenizer& tokenizer,
                                       int64_t slots, int64_t context, DType cache,
                                       Factors factors) {
  check_same_tokens(path, tokenizer, text::Tokenizer::from_file(path));
  const ModelFile file = read_model(path);
  check_cache_memory(file.config, slots, context, cache);
  return std::make_unique<ModelDrafter>(file, slots, context, cache, factors);
}

}  // namespace weft::llm
