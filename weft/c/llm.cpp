// Language models behind llm.h.
#include "weft/c/llm.h"

#include "weft/base/file.h"
#include "weft/c/boundary.h"
#include "weft/c/handles.h"
#include "weft/llm/convert.h"
#include "weft/llm/model.h"
#include "weft/llm/quantise_model.h"
#include "weft/llm/request_options.h"
#include "weft/tensor/packed.h"

namespace weft::c {

namespace {

/// What a request got in the last step, as weft_llm_progress points to it.
struct Got {
  explicit Got(llm::Progress from) : progress(std::move(from)) {
    for (const llm::GeneratedToken& t : progress.tokens) {
      tokens.push_back(t.token.id);
      logprobs.push_back(t.token.logprob);
    }
  }
  llm::Progress progress;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
};

}  // namespace

struct LlmObject {
  LlmObject(std::shared_ptr<ContextObject> of, const std::string& path,
            const llm::ModelOptions& options)
      : owner(std::move(of)),
        model(path, options),
        name(model.model_name()),
        slots(options.slots) {}

  std::shared_ptr<ContextObject> owner;  // outlives the model
  llm::Model model;
  std::string name;
  int64_t slots;
  std::vector<Got> got;  // in the last step
  bool telling = false;  // a program's function reads it: another step would take it away
};

namespace {

constexpr uint32_t kMostSlots = 4096;

llm::ModelOptions model_options(const weft_llm_options* from) {
  llm::ModelOptions options;
  if (!from) return options;
  const auto given = read_struct("options", from, offsetof(weft_llm_options, draft_model));
  if (given.context < -1)
    refuse("llm.options", "a context of {} tokens: at least 1, 0 for 4096, -1 for the model's",
           given.context);
  if (given.slots > kMostSlots)
    refuse("llm.options", "{} slots: at most {}", given.slots, kMostSlots);
  if (given.cache != 0 && given.cache != WEFT_F16 && given.cache != WEFT_F32 &&
      given.cache != WEFT_I8)
    refuse("llm.options", "a cache of dtype {}: WEFT_F16, WEFT_F32 or WEFT_I8", given.cache);
  if (given.context != 0) options.context = std::max<int64_t>(given.context, 0);
  if (given.slots != 0) options.slots = given.slots;
  if (given.queue != 0) options.queue = given.queue;
  if (given.cache == WEFT_F32) options.cache = DType::F32;
  if (given.cache == WEFT_I8) options.cache = DType::I8;
  options.draft_tokens = given.draft_tokens;
  if (given.draft_model) options.draft_model = given.draft_model;
  if (given.factors) options.factors = factors_named(given.factors);
  for (const char* const* file = given.lora; file && *file; ++file) options.lora.push_back({*file});
  return options;
}

/// 0 stands for what does nothing.
float neutral(float given, float instead) { return given == 0 ? instead : given; }

llm::Sampling sampling_of(const weft_llm_request& from) {
  llm::Sampling s{.temperature = from.temperature,
                  .top_k = from.top_k,
                  .top_p = neutral(from.top_p, 1),
                  .min_p = from.min_p,
                  .typical_p = neutral(from.typical_p, 1),
                  .repetition_penalty = neutral(from.repetition_penalty, 1),
                  .presence_penalty = from.presence_penalty,
                  .frequency_penalty = from.frequency_penalty};
  if (from.penalised_tokens != 0) s.penalised_tokens = from.penalised_tokens;
  s.mirostat_tau = from.mirostat_tau;
  s.mirostat_eta = neutral(from.mirostat_eta, 0.1f);
  s.seed = from.seed;
  s.logprobs = (from.flags & WEFT_LLM_LOGPROBS) != 0 ? 0 : -1;
  require_pointer("bias_tokens", from.bias_tokens, from.bias_count);
  require_pointer("biases", from.biases, from.bias_count);
  for (uint32_t i = 0; i < from.bias_count; ++i)
    s.logit_bias.emplace_back(from.bias_tokens[i], from.biases[i]);
  return s;
}

llm::Texts texts_of(const char* const* texts) {
  llm::Texts all;
  for (; texts && *texts; ++texts) all.emplace_back(*texts);
  return all;
}

llm::Constraint constraint_of(const weft_llm_request& from) {
  llm::Constraint c;
  if (from.json_schema) c.json_schema = from.json_schema;
  if (from.grammar) c.grammar = from.grammar;
  if (from.pattern) c.pattern = from.pattern;
  if (from.choices) c.choices = texts_of(from.choices);
  return c;
}

void add_ends(const weft_llm_request& from, llm::Request& request) {
  request.max_tokens = from.max_tokens > 0 ? from.max_tokens : -1;
  request.min_tokens = from.min_tokens;
  request.stop = texts_of(from.stop);
  require_pointer("stop_tokens", from.stop_tokens, from.stop_token_count);
  request.stop_tokens.assign(from.stop_tokens, from.stop_tokens + from.stop_token_count);
  request.ignore_end = (from.flags & WEFT_LLM_IGNORE_END) != 0;
}

llm::Request request_of(const weft_llm_request* given) {
  const auto from = read_struct("request", given, offsetof(weft_llm_request, biases));
  constexpr uint32_t kFlags =
      WEFT_LLM_IGNORE_END | WEFT_LLM_LOGPROBS | WEFT_LLM_NEW_TEXT | WEFT_LLM_FROM_START;
  if ((from.flags & ~kFlags) != 0)
    refuse("llm.flags", "a request has no flag {}", from.flags & ~kFlags);
  require_pointer("prompt", from.prompt, from.prompt_count);
  if (from.prompt_count > INT32_MAX)
    refuse("llm.prompt", "the prompt has {} tokens", from.prompt_count);
  llm::RequestPlan plan;
  llm::Request& request = plan.request;
  if (from.prompt_count > 0) request.prompt.assign(from.prompt, from.prompt + from.prompt_count);
  request.continues = (from.flags & WEFT_LLM_NEW_TEXT) == 0;
  request.reuse_prefix = (from.flags & WEFT_LLM_FROM_START) == 0;
  request.sampling = sampling_of(from);
  add_ends(from, request);
  plan.constraint = constraint_of(from);
  return plan.made();
}

weft_llm_progress described(const Got& got) {
  const llm::Progress& p = got.progress;
  return {sizeof(weft_llm_progress),
          static_cast<uint32_t>(p.finish),
          p.request,
          p.text.c_str(),
          p.text.size(),
          got.tokens.data(),
          got.logprobs.data(),
          got.tokens.size(),
          p.error.c_str()};
}

void step(LlmObject& m) {
  if (m.telling)
    refuse("llm.busy", "progress() of weft_llm_generate() may submit and cancel, but not compute");
  m.got.clear();
  for (llm::Progress& p : m.model.step()) m.got.emplace_back(std::move(p));
}

std::span<const llm::TokenId> tokens_of(const int32_t* tokens, size_t count) {
  require_pointer("tokens", tokens, count);
  return {tokens, count};
}

class Telling {
 public:
  explicit Telling(LlmObject& m) : m_(m) { m_.telling = true; }
  ~Telling() { m_.telling = false; }
  Telling(const Telling&) = delete;
  Telling& operator=(const Telling&) = delete;

 private:
  LlmObject& m_;
};

/// Steps until nothing runs.
void run(LlmObject& m, FunctionRef<void(const weft_llm_progress&)> progress) {
  while (!m.model.idle()) {
    step(m);
    const Telling telling(m);
    for (const Got& got : m.got) progress(described(got));
  }
}

}  // namespace

}  // namespace weft::c

using namespace weft;     // NOLINT: what weft.h declares is in no namespace
using namespace weft::c;  // NOLINT

extern "C" {

weft_status weft_llm_open(weft_context context, const char* path, const weft_llm_options* options,
                          weft_llm* out) {
  return guarded([&] {
    const auto owner = object_of(context);
    const std::string file(required_text("path", path));
    require_pointer("out", out);
    const ContextScope scope(owner->context);
    *out = make_handle<weft_llm>(std::make_shared<LlmObject>(owner, file, model_options(options)));
  });
}

weft_status weft_llm_describe(weft_llm model, weft_llm_info* out) {
  return guarded([&] {
    const auto m = object_of(model);
    const llm::Config& config = m->model.config();
    weft_llm_info info{};
    info.slots = static_cast<uint32_t>(m->slots);
    info.context = m->model.context_length();
    info.vocabulary = config.vocabulary;
    info.layers = config.layers;
    info.weight_bytes = m->model.weight_bytes();
    info.cache_bytes = m->model.cache_bytes();
    info.name = m->name.c_str();
    info.family = config.family.c_str();
    write_struct("weft_llm_info", info, out, offsetof(weft_llm_info, family));
  });
}

weft_status weft_llm_tokenizer(weft_llm model, weft_tokenizer* out) {
  return guarded([&] {
    const auto m = object_of(model);
    require_pointer("out", out);
    // The handle keeps the model.
    std::shared_ptr<const text::Tokenizer> tokenizer(m, &m->model.tokenizer());
    *out = make_handle<weft_tokenizer>(
        std::make_shared<TokenizerObject>(TokenizerObject{std::move(tokenizer)}));
  });
}

void weft_llm_release(weft_llm model) { release_handle(model); }

weft_status weft_llm_submit(weft_llm model, const weft_llm_request* request, uint64_t* out) {
  return guarded([&] {
    const auto m = object_of(model);
    require_pointer("out", out);
    *out = m->model.submit(request_of(request));
  });
}

weft_status weft_llm_cancel(weft_llm model, uint64_t request) {
  return guarded([&] { object_of(model)->model.cancel(request); });
}

weft_status weft_llm_step(weft_llm model, size_t* count) {
  return guarded([&] {
    const auto m = object_of(model);
    const ContextScope scope(m->owner->context);
    step(*m);
    if (count) *count = m->got.size();
  });
}

weft_status weft_llm_is_idle(weft_llm model, bool* out) {
  return guarded([&] {
    const auto m = object_of(model);
    require_pointer("out", out);
    *out = m->model.idle();
  });
}

weft_status weft_llm_progress_at(weft_llm model, size_t index, weft_llm_progress* out) {
  return guarded([&] {
    const auto m = object_of(model);
    if (index >= m->got.size())
      refuse("llm.index", "the last step gave something to {} requests: there is no number {}",
             m->got.size(), index);
    write_struct("weft_llm_progress", described(m->got[index]), out,
                 offsetof(weft_llm_progress, error));
  });
}

weft_status weft_llm_generate(weft_llm model, const weft_llm_request* request,
                              weft_status (*progress)(void* user, const weft_llm_progress* p),
                              void* user) {
  return guarded([&] {
    const auto m = object_of(model);
    require_pointer("progress", reinterpret_cast<const void*>(progress));
    if (m->telling || !m->model.idle())
      refuse("llm.busy", "other requests are open: end them, or use weft_llm_submit()");
    const ContextScope scope(m->owner->context);
    const llm::RequestId id = m->model.submit(request_of(request));
    try {
      run(*m, [&](const weft_llm_progress& p) {
        const uint64_t before = errors_recorded();
        const weft_status status = progress(user, &p);
        if (status != WEFT_OK) throw CallbackFailed{status, errors_recorded() != before};
      });
    } catch (...) {
      m->model.cancel(id);
      step(*m);
      throw;
    }
  });
}

weft_status weft_llm_embedding(weft_llm model, const int32_t* tokens, size_t token_count,
                               float* numbers, size_t capacity, size_t* count) {
  return guarded([&] {
    const auto m = object_of(model);
    const auto given = tokens_of(tokens, token_count);
    if (!numbers) {
      require_pointer("count", count);
      *count = static_cast<size_t>(m->model.config().dim);
      return;
    }
    const ContextScope scope(m->owner->context);
    const std::vector<float> all = m->model.embedding(given);
    if (count) *count = all.size();
    if (all.size() > capacity) refuse_space("numbers", all.size(), capacity);
    std::copy(all.begin(), all.end(), numbers);
  });
}

weft_status weft_llm_logits(weft_llm model, const int32_t* tokens, size_t token_count,
                            weft_tensor* out) {
  return guarded([&] {
    const auto m = object_of(model);
    const auto given = tokens_of(tokens, token_count);
    require_pointer("out", out);
    const ContextScope scope(m->owner->context);
    const std::vector<float> all = m->model.logits(given);
    *out = tensor_handle(m->owner, Tensor::from(all, {given.size(), all.size() / given.size()}));
  });
}

weft_status weft_llm_quantize(const char* path, const char* out_path, const char* mix,
                              bool requantize) {
  return guarded([&] {
    const std::string from(required_text("path", path)), to(required_text("out_path", out_path));
    const std::string type(required_text("mix", mix));
    llm::check_output(from, to);
    save_gguf(to, llm::quantised_model(load_gguf(from), {type, requantize},
                                       [](size_t, size_t, std::string_view) {}));
  });
}

}  // extern "C"
