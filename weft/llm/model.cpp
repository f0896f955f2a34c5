#include "weft/llm/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "weft/base/error.h"
#include "weft/io/host_memory.h"
#include "weft/llm/grammar.h"
#include "weft/llm/interleaved.h"
#include "weft/llm/lora.h"
#include "weft/llm/sampling.h"

namespace weft::llm {

struct Model::Running {
  RequestId id;
  Request request;
  Sampler sampler;
  std::optional<GrammarMatcher> grammar;
  Answer answer;
  DraftPace pace;
  int64_t generated = 0;
  std::optional<TokenId> last;              // drawn, and not yet behind the others in the slot
  int64_t reused = 0;                       // of the prompt
  std::vector<GeneratedToken> prompt = {};  // whose probabilities are known
  std::vector<uint64_t> allowed = {};

  bool stops_at(TokenId token) const {
    return std::ranges::find(request.stop_tokens, token) != request.stop_tokens.end();
  }
};

struct Model::Slot {
  int64_t number;
  std::vector<TokenId> held;  // whose keys and values the cache has
  std::unique_ptr<Running> running;
  uint64_t used = 0;  // when it ended last

  bool in_prompt() const { return running && !running->last; }
};

namespace {

constexpr int64_t kMostGuesses = Stepper::kMostRowTokens - 1;  // behind the token drawn last
/// Of a prompt in a step that gives the logits of all of them: 64 MB where a vocabulary is large.
constexpr int64_t kMostReported = 64;

size_t common_prefix(std::span<const TokenId> a, std::span<const TokenId> b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(most), b.begin()).first -
      a.begin());
}

std::string name_of(const Config& config, const std::string& path) {
  if (!config.name.empty()) return config.name;
  std::string name = path;
  while (name.size() > 1 && name.back() == '/') name.pop_back();
  name = name.substr(name.rfind('/') + 1);
  return name.ends_with(".gguf") ? name.substr(0, name.size() - 5) : name;
}

void check_options(const ModelOptions& o) {
  const bool kept = o.cache == DType::F16 || o.cache == DType::F32 || o.cache == DType::I8;
  if (o.slots < 1 || !kept)
    fail("llm.options", "{} slots with a cache of {}: at least one, of f16, f32 or i8", o.slots,
         weft::name(o.cache));
  if (o.context < 0)
    fail("llm.options", "a context of {} tokens: at least one, or 0 for the model's", o.context);
  if (o.draft_tokens < 0 || o.draft_tokens > kMostGuesses)
    fail("llm.options", "{} tokens guessed ahead: 0 to {}", o.draft_tokens, kMostGuesses);
}

/// Brings weights from their file, all but those that a step looks up a few rows of: it would wait
/// for them page by page.
void fetch_weights(const Weights& weights) {
  if (!may_stay_in_memory(weights)) return;
  const bool tied = weights.find("output.weight") == nullptr;
  for (const auto& [name, weight] : weights.all())
    if (tied || name != "token_embd.weight") fetch(weight.stored);
}

ModelFile read_adapted(const std::string& path, const std::vector<LoraFile>& adapters) {
  ModelFile file = read_model(path);
  for (const LoraFile& adapter : adapters)
    attach(file.weights, read_lora(adapter.path, file.config), adapter.strength);
  return file;
}

}  // namespace

Model::Model(const std::string& path, const ModelOptions& options)
    : Model(read_adapted(path, options.lora), text::Tokenizer::from_file(checked_model(path)),
            options) {
  name_ = name_of(config(), path);
}

Model::Model(const ModelFile& file, text::Tokenizer tokenizer, const ModelOptions& o)
    : tokenizer_(std::move(tokenizer)),
      name_(file.config.name),
      queue_(o.queue),
      draft_tokens_(o.draft_tokens) {
  const int64_t most = file.config.context;
  context_ = o.context > 0 ? std::min(o.context, most) : most;
  check_options(o);
  check_cache_memory(file.config, o.slots, context_, o.cache);
  const Factors factors = o.factors ? *o.factors : fastest_factors();
  weights_ = std::make_unique<AnswerWeights>(file, factors, o.slots * (1 + o.draft_tokens));
  stepper_ =
      std::make_unique<Stepper>(file.config, weights_->now(), o.slots, context_, o.cache, factors);
  if (o.draft_tokens > 0 && o.draft_model.empty()) drafter_ = std::make_unique<LookupDrafter>();
  if (o.draft_tokens > 0 && !o.draft_model.empty())
    drafter_ = model_drafter(o.draft_model, tokenizer_, o.slots, context_, o.cache, factors);
  weight_bytes_ = file.weights.bytes();
  fetch_weights(weights_->now());
  use_copies();
  for (int64_t i = 0; i < o.slots; ++i)
    slots_.push_back(std::make_unique<Slot>(Slot{i, {}, nullptr}));
  end_tokens_ = config().end_tokens;
  for (const char* role : {"eos", "eot", "eom"})
    if (const auto id = tokenizer_.named_token(role)) end_tokens_.push_back(*id);
}

Model::~Model() = default;

/// Once steps read what has been copied.
void Model::use_copies() {
  weights_->let_go_of_copied();
  if (weights_->complete()) weights_.reset();
}

bool Model::work_ahead() {
  if (!weights_) return false;
  try {
    if (weights_->copy_next()) {
      stepper_->use(weights_->now());
      use_copies();
    }
  } catch (const Error&) {  // no memory is left: answers take longer
    weights_.reset();
  }
  return weights_ != nullptr;
}

/// Nothing is computed between two of them: what is copied would be in memory twice.
void Model::finish_copies() {
  while (weights_ && weights_->begun()) work_ahead();
}

bool Model::is_end(TokenId id) const {
  return std::ranges::find(end_tokens_, id) != end_tokens_.end();
}

void Model::check(std::span<const TokenId> tokens) const {
  if (tokens.empty()) fail("llm.prompt", "the prompt has no tokens: give at least one");
  for (const TokenId id : tokens)
    if (id < 0 || id >= config().vocabulary)
      fail("llm.prompt", "token {} is none of the model's {}", id, config().vocabulary);
  if (static_cast<int64_t>(tokens.size()) > context_)
    fail("llm.context",
         "the prompt has {} tokens, and the context is {}: shorten it, or load the "
         "model with a longer one",
         tokens.size(), context_);
}

/// Encoders have embeddings only, and so have models whose output was left out.
void Model::check_writes() const {
  if (!stepper_->writes())
    fail("llm",
         "a {} makes embeddings of texts and writes none: ask /v1/embeddings or "
         "embedding(), or take a model that writes",
         config().family);
}

RequestId Model::submit(Request request) {
  check_writes();
  check(request.prompt);
  check_sampling(request.sampling, static_cast<size_t>(config().vocabulary));
  if (request.max_tokens < -1)
    fail("llm.sampling",
         "max_tokens is {}; it has to be -1 (as far as the context reaches) or more",
         request.max_tokens);
  if (request.min_tokens < 0 ||
      (request.max_tokens >= 0 && request.min_tokens > request.max_tokens))
    fail("llm.sampling", "min_tokens is {}; it has to be 0 or more, and at most max_tokens ({})",
         request.min_tokens, request.max_tokens);
  for (const TokenId id : request.stop_tokens)
    if (id < 0 || id >= config().vocabulary)
      fail("llm.sampling", "token {} shall end the answer, and is none of the model's {}", id,
           config().vocabulary);
  if (request.grammar && !vocabulary_)
    vocabulary_ = std::make_shared<const GrammarVocabulary>(tokenizer_, end_tokens_);
  if (static_cast<int64_t>(waiting_.size()) >= queue_)
    fail_runtime("llm.queue", "{} requests wait already: try again later", waiting_.size());
  waiting_.push_back({next_, std::move(request)});
  return next_++;
}

void Model::cancel(RequestId request) { cancelled_.push_back(request); }

bool Model::idle() const {
  return waiting_.empty() && failed_.empty() &&
         std::ranges::none_of(slots_, [](const auto& s) { return s->running != nullptr; });
}

/// The free slot that holds most of the prompt's beginning; of equal ones the one that was used
/// longest ago.
Model::Slot* Model::free_slot(std::span<const TokenId> prompt) {
  Slot* best = nullptr;
  size_t most = 0;
  for (const auto& slot : slots_) {
    if (slot->running) continue;
    const size_t common = common_prefix(slot->held, prompt);
    if (best == nullptr || common > most || (common == most && slot->used < best->used)) {
      best = slot.get();
      most = common;
    }
  }
  return best;
}

void Model::admit() {
  while (!waiting_.empty()) {
    Slot* slot = free_slot(waiting_.front().request.prompt);
    if (slot == nullptr) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    const std::vector<TokenId>& prompt = next.request.prompt;
    size_t common = std::min(common_prefix(slot->held, prompt), prompt.size() - 1);
    // What is held was computed in other parts than this prompt is when nobody came before.
    if (stepper_->goes_apart() || !next.request.reuse_prefix || next.request.prompt_logprobs >= 0 ||
        !stepper_->can_go_on(slot->number, static_cast<int64_t>(common)))
      common = 0;
    slot->held.resize(common);
    counts_.reused_tokens += static_cast<int64_t>(common);
    const Sampling sampling = next.request.sampling;
    Answer answer(
        tokenizer_, next.request.stop,
        next.request.continues ? std::span<const TokenId>(prompt) : std::span<const TokenId>());
    std::optional<GrammarMatcher> grammar;
    if (next.request.grammar) grammar.emplace(next.request.grammar, vocabulary_);
    slot->running = std::make_unique<Running>(Running{next.id,
                                                      std::move(next.request),
                                                      Sampler(sampling),
                                                      std::move(grammar),
                                                      std::move(answer),
                                                      DraftPace(draft_tokens_),
                                                      0,
                                                      {},
                                                      static_cast<int64_t>(common)});
  }
}

/// A step that failed while it wrote to the cache, for want of memory or of its weights' file,
/// leaves nothing that others could go on from.
void Model::renew_cache() {
  if (!stepper_->lost()) return;
  std::vector<Slot*> running;
  for (const auto& slot : slots_) {
    slot->held.clear();
    if (slot->running) running.push_back(slot.get());
  }
  fail_running(running,
               "the step of another request failed, and this one's text with it: ask again",
               failed_);
  stepper_->renew();
}

std::vector<Progress> Model::step() {
  renew_cache();
  std::vector<Progress> all = std::exchange(failed_, {});
  for (const RequestId id : cancelled_) {
    if (std::erase_if(waiting_, [&](const Waiting& w) { return w.id == id; }) != 0)
      all.push_back({id, {}, "", Finish::Cancelled, ""});
    for (const auto& slot : slots_)
      if (slot->running && slot->running->id == id) {
        Progress progress;
        end(*slot, progress, Finish::Cancelled);
        all.push_back(std::move(progress));
      }
  }
  cancelled_.clear();
  admit();
  if (counts_.generated_tokens > 0) work_ahead();
  finish_copies();
  token_step(all);
  prompt_step(all);
  return all;
}

/// A part of the prompt that waits longest.
void Model::prompt_step(std::vector<Progress>& all) {
  Slot* first = nullptr;
  for (const auto& slot : slots_)
    if (slot->in_prompt() && (first == nullptr || slot->running->id < first->running->id))
      first = slot.get();
  if (first == nullptr) return;
  Running& r = *first->running;
  const std::span<const TokenId> prompt = r.request.prompt;
  const auto start = static_cast<int64_t>(first->held.size());
  const bool reports = r.request.prompt_logprobs >= 0;
  const int64_t left = static_cast<int64_t>(prompt.size()) - start;
  const int64_t count = stepper_->part(start, reports ? std::min(left, kMostReported) : left);
  const StepRow row{first->number, start,
                    prompt.subspan(static_cast<size_t>(start), static_cast<size_t>(count))};
  try {
    const std::vector<float> logits =
        stepper_->run(std::span(&row, 1), reports ? Give::AllLogits : Give::LastLogits);
    if (reports) report_prompt(r, logits);
    first->held.insert(first->held.end(), row.tokens.begin(), row.tokens.end() - 1);
    counts_.prompt_tokens += count;
    ++counts_.steps;
    if (first->held.size() + 1 < prompt.size())
      first->held.push_back(row.tokens.back());
    else
      answer(*first, row.tokens.last(1),
             std::span(logits).last(static_cast<size_t>(config().vocabulary)), all);
  } catch (const Error& e) {
    fail_running(std::span(&first, 1), e.message(), all);
  }
}

/// What the logits of a prompt's next tokens say of those behind them.
void Model::report_prompt(Running& r, std::span<const float> logits) const {
  const auto width = static_cast<size_t>(config().vocabulary);
  const std::vector<TokenId>& prompt = r.request.prompt;
  if (r.prompt.empty())
    r.prompt.push_back({{prompt.front(), std::numeric_limits<float>::quiet_NaN()}, {}});
  for (; logits.size() >= width && r.prompt.size() < prompt.size(); logits = logits.subspan(width))
    r.prompt.push_back(
        reported(logits.first(width), prompt[r.prompt.size()], r.request.prompt_logprobs));
}

int64_t Model::most_guesses(Slot& slot, int64_t requests, int64_t last_start) const {
  Running& r = *slot.running;
  int64_t most = std::min(r.pace.next(), context_ - static_cast<int64_t>(slot.held.size()) - 1);
  if (r.request.max_tokens > 0) most = std::min(most, r.request.max_tokens - r.generated - 1);
  return stepper_->row_tokens(requests, last_start, std::max<int64_t>(most, 0) + 1) - 1;
}

/// What the requests' texts are with what was drawn last, and guesses behind that.
std::vector<Draft> Model::drafts(std::span<Slot* const> answering) {
  int64_t last_start = 0;
  for (const Slot* slot : answering)
    last_start = std::max(last_start, static_cast<int64_t>(slot->held.size()));
  std::vector<Draft> all;
  for (Slot* slot : answering) {
    Running& r = *slot->running;
    Draft d{slot->number, slot->held, r.request.prompt.size(), 0, &r.sampler};
    if (r.grammar) d.grammar = &*r.grammar;
    d.text.push_back(*r.last);
    d.known = d.text.size();
    if (drafter_) d.most = most_guesses(*slot, static_cast<int64_t>(answering.size()), last_start);
    all.push_back(std::move(d));
  }
  if (drafter_) drafter_->guess(all);
  for (Draft& d : all)  // a draft model may have more numbers than there are tokens
    d.text.erase(std::find_if(d.text.begin() + static_cast<std::ptrdiff_t>(d.known), d.text.end(),
                              [&](TokenId id) { return id >= config().vocabulary; }),
                 d.text.end());
  return all;
}

/// A token of every request that answers, and what was guessed to follow it.
void Model::token_step(std::vector<Progress>& all) {
  std::vector<Slot*> answering;
  for (const auto& slot : slots_)
    if (slot->running && !slot->in_prompt()) answering.push_back(slot.get());
  if (answering.empty()) return;
  std::vector<Draft> guessed;
  std::vector<StepRow> rows;
  std::vector<float> logits;
  try {
    guessed = drafts(answering);
    for (const Draft& d : guessed)
      rows.push_back(
          {d.slot, static_cast<int64_t>(d.known) - 1, std::span(d.text).subspan(d.known - 1)});
    fill_rows(rows, stepper_->slots());
    const bool single =
        std::ranges::all_of(rows, [](const StepRow& r) { return r.tokens.size() == 1; });
    logits = stepper_->run(rows, single ? Give::LastLogits : Give::AllLogits);
    ++counts_.steps;
  } catch (const Error& e) {
    return fail_running(answering, e.message(), all);
  }
  const auto width = static_cast<size_t>(config().vocabulary);
  std::span<const float> left = logits;
  for (size_t i = 0; i < answering.size(); ++i) {
    const size_t size = rows[i].tokens.size() * width;
    answer(*answering[i], rows[i].tokens, left.first(size), all);
    left = left.subspan(size);
  }
}

/// Draws what follows each of the tokens behind a text, as long as the next one is what was drawn.
void Model::answer(Slot& slot, std::span<const TokenId> tokens, std::span<const float> logits,
                   std::vector<Progress>& all) {
  const auto width = static_cast<size_t>(config().vocabulary);
  Progress progress{slot.running->id, {}, "", Finish::None, ""};
  if (slot.running->generated == 0) {
    progress.prompt = std::move(slot.running->prompt);
    progress.reused_tokens = slot.running->reused;
  }
  size_t held = 0;  // of the guesses
  try {
    const auto draw = [&] {
      slot.held.push_back(tokens[held]);
      return take(slot, logits.subspan(held * width, width), progress);
    };
    while (draw() && held + 1 < tokens.size() && *slot.running->last == tokens[held + 1]) ++held;
  } catch (const Error& e) {
    end(slot, progress, Finish::Failed);
    progress.error = e.message();
  }
  counts_.drafted_tokens += static_cast<int64_t>(tokens.size()) - 1;
  counts_.accepted_tokens += static_cast<int64_t>(held);
  if (slot.running)
    slot.running->pace.note(static_cast<int64_t>(tokens.size()) - 1, static_cast<int64_t>(held));
  all.push_back(std::move(progress));
}

/// A bit for each token that may come next; empty: all may.
std::span<const uint64_t> Model::allowed(Running& r) const {
  std::span<const uint64_t> given;
  if (r.grammar) given = r.grammar->allowed();
  if (r.generated >= r.request.min_tokens) return given;
  r.allowed.assign(given.begin(), given.end());
  if (given.empty()) r.allowed.assign(static_cast<size_t>(config().vocabulary + 63) / 64, ~0ULL);
  const auto refuse = [&](TokenId id) {
    const auto word = static_cast<size_t>(id) / 64;
    if (word < r.allowed.size()) r.allowed[word] &= ~(1ULL << id % 64);
  };
  for (const TokenId id : r.request.stop_tokens) refuse(id);
  if (!r.request.ignore_end) std::ranges::for_each(end_tokens_, refuse);
  // A grammar's end comes before the least length.
  const bool none = std::ranges::all_of(r.allowed, [](uint64_t word) { return word == 0; });
  return none ? given : std::span<const uint64_t>(r.allowed);
}

/// False: that was the last one.
bool Model::take(Slot& slot, std::span<const float> logits, Progress& progress) {
  Running& r = *slot.running;
  if (r.request.max_tokens == 0) return end(slot, progress, Finish::Length);
  const GeneratedToken token =
      r.sampler.sample(logits, slot.held, r.request.prompt.size(), allowed(r));
  const TokenId id = token.token.id;
  if (r.grammar) r.grammar->accept(id);
  ++r.generated;
  ++counts_.generated_tokens;
  r.last = id;
  progress.tokens.push_back(token);
  if ((is_end(id) && !r.request.ignore_end) || r.stops_at(id))
    return end(slot, progress, Finish::Stop);
  progress.text += r.answer.add(id);
  const bool full = static_cast<int64_t>(slot.held.size()) >= context_;
  if (r.answer.stopped() || (r.grammar && r.grammar->finished()))
    return end(slot, progress, Finish::Stop);
  if (full || r.generated == r.request.max_tokens) return end(slot, progress, Finish::Length);
  return true;
}

/// False: that it goes on.
bool Model::end(Slot& slot, Progress& progress, Finish why) {
  progress.request = slot.running->id;
  progress.text += slot.running->answer.finish();
  progress.finish = why;
  slot.used = ++clock_;
  slot.running.reset();
  return false;
}

void Model::fail_running(std::span<Slot* const> slots, const std::string& why,
                         std::vector<Progress>& all) {
  for (Slot* slot : slots) {
    Progress progress;
    end(*slot, progress, Finish::Failed);
    progress.error = why;
    slot->held.clear();  // a step that stopped in between wrote some layers' only
    all.push_back(std::move(progress));
  }
}

std::vector<float> Model::computed(std::span<const TokenId> tokens, Give give) {
  check(tokens);
  Slot* slot = free_slot({});
  if (slot == nullptr)
    fail_runtime("llm.queue", "all {} slots are taken: try again when a request has ended",
                 slots_.size());
  finish_copies();
  renew_cache();
  slot->held.clear();
  std::vector<float> all;
  for (size_t at = 0; at < tokens.size();) {
    const auto start = static_cast<int64_t>(at);
    const auto count =
        static_cast<size_t>(stepper_->part(start, static_cast<int64_t>(tokens.size() - at)));
    const StepRow row{slot->number, start, tokens.subspan(at, count)};
    const std::vector<float> part = stepper_->run(std::span(&row, 1), give);
    all.insert(all.end(), part.begin(), part.end());
    at += count;
  }
  return all;
}

std::vector<float> Model::logits(std::span<const TokenId> tokens) {
  check_writes();
  return computed(tokens, Give::AllLogits);
}

std::vector<float> Model::embedding(std::span<const TokenId> tokens) {
  const std::vector<float> hidden = computed(tokens, Give::Hidden);
  const size_t dim = hidden.size() / tokens.size();
  std::vector<double> sum(dim);
  const Pooling pooling = config().pooling;
  const size_t begin = pooling == Pooling::Last ? hidden.size() - dim : 0;
  const size_t end = pooling == Pooling::First ? dim : hidden.size();
  for (size_t i = begin; i < end; ++i) sum[i % dim] += static_cast<double>(hidden[i]);
  double norm = 0;
  for (const double x : sum) norm += x * x;
  const double scale = norm > 0 ? 1 / std::sqrt(norm) : 0;
  std::vector<float> unit;
  for (const double x : sum) unit.push_back(static_cast<float>(x * scale));
  return unit;
}

std::vector<std::pair<std::string, double>> Model::counters() const {
  int64_t running = 0, cached = 0;
  for (const auto& slot : slots_) {
    running += slot->running ? 1 : 0;
    cached += static_cast<int64_t>(slot->held.size());
  }
  const auto number = [](auto x) { return static_cast<double>(x); };
  return {{"running", number(running)},
          {"queued", number(waiting_.size())},
          {"slots", number(slots_.size())},
          {"cached_tokens", number(cached)},
          {"prompt_tokens", number(counts_.prompt_tokens)},
          {"reused_tokens", number(counts_.reused_tokens)},
          {"generated_tokens", number(counts_.generated_tokens)},
          {"drafted_tokens", number(counts_.drafted_tokens)},
          {"accepted_tokens", number(counts_.accepted_tokens)},
          {"steps", number(counts_.steps)},
          {"cache_bytes", number(cache_bytes())},
          {"weight_bytes", number(weight_bytes_)}};
}

}  // namespace weft::llm
