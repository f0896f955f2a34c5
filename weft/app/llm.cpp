#include <chrono>
#include <cmath>

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/app/llm_chat.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/host_array.h"
#include "weft/llm/model.h"
#include "weft/llm/random_model.h"

namespace weft {

std::vector<llm::LoraFile> lora_files(const LlmOptions& o) {
  if (o.lora_scales.size() > o.lora.size())
    fail("llm.lora", "{} scales of {} adapters", o.lora_scales.size(), o.lora.size());
  std::vector<llm::LoraFile> all;
  for (size_t i = 0; i < o.lora.size(); ++i)
    all.push_back({o.lora[i], i < o.lora_scales.size() ? o.lora_scales[i] : 1});
  return all;
}

llm::ModelOptions model_options(const LlmOptions& o) {
  llm::ModelOptions options;
  options.context = o.context;
  options.slots = o.slots;
  options.cache = o.cache == "f32" ? DType::F32 : o.cache == "q8" ? DType::I8 : DType::F16;
  options.factors = factors_named(o.factors);
  if (o.lookup || !o.draft.empty()) options.draft_tokens = o.draft_tokens;
  options.draft_model = o.draft;
  options.lora = lora_files(o);
  return options;
}

llm::Sampling sampling_of(const LlmOptions& o) {
  llm::Sampling s;
  s.temperature = static_cast<float>(o.temperature);
  s.top_k = static_cast<int32_t>(o.top_k);
  s.top_p = static_cast<float>(o.top_p);
  s.min_p = static_cast<float>(o.min_p);
  s.seed = static_cast<uint64_t>(o.seed);
  return s;
}

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int chat_with_model(const Session& session, const LlmOptions& o) {
  llm::Model model(o.model, model_options(o));
  LlmChatOptions chat;
  chat.system = o.system;
  chat.sampling = sampling_of(o);
  chat.max_tokens = o.tokens;
  return run_llm_chat(session, model, chat);
}

int run_llm_model(const Session& session, const LlmOptions& o) {
  llm::Model model(o.model, model_options(o));
  llm::Request request;
  request.prompt = model.tokenizer().encode(o.prompt);
  request.max_tokens = o.tokens;
  request.ignore_end = o.ignore_end;
  request.sampling = sampling_of(o);
  const auto prompt = static_cast<int64_t>(request.prompt.size());
  const auto start = Clock::now();
  double first = 0;
  int64_t count = 0;
  std::string text;
  model.submit(std::move(request));
  while (!model.idle()) {
    for (const llm::Progress& p : model.step()) {
      if (p.finish == llm::Finish::Failed) fail_runtime("llm.step", "{}", p.error);
      if (count == 0) first = since(start);
      count += static_cast<int64_t>(p.tokens.size());
      text += p.text;
      if (!session.json) session.write(p.text);
      if (!session.json) std::fflush(session.out);
    }
  }
  if (!session.json) {
    session.write("\n");
    return kExitOk;
  }
  JsonWriter json;
  json.begin_object().field("text", text).field("prompt_tokens", prompt).field("tokens", count);
  json.field("first_token_s", first).field("seconds", since(start));
  if (model_options(o).draft_tokens > 0)
    for (const auto& [name, value] : model.counters())
      if (name == "drafted_tokens" || name == "accepted_tokens" || name == "steps")
        json.field(name, static_cast<int64_t>(value));
  session.print("{}\n", json.end_object().text());
  return kExitOk;
}

/// Of the natural logarithm: the probability of `id` among a row of logits.
double log_probability(std::span<const float> logits, llm::TokenId id) {
  float top = logits[0];
  for (const float x : logits) top = std::max(top, x);
  double sum = 0;
  for (const float x : logits) sum += std::exp(static_cast<double>(x - top));
  return static_cast<double>(logits[static_cast<size_t>(id)] - top) - std::log(sum);
}

int llm_perplexity(const Session& session, const LlmOptions& o) {
  llm::Model model(o.model, model_options(o));
  const MappedFile file(o.file);
  const std::vector<llm::TokenId> tokens = model.tokenizer().encode(file.text());
  const auto window = static_cast<size_t>(model.context_length());
  const auto width = static_cast<size_t>(model.config().vocabulary);
  double sum = 0;
  int64_t count = 0;
  for (size_t at = 0; at + 1 < tokens.size(); at += window) {
    const size_t end = std::min(at + window, tokens.size());
    const auto part = std::span(tokens).subspan(at, end - at);
    const std::vector<float> logits = model.logits(part);
    for (size_t i = 0; i + 1 < part.size(); ++i, ++count)
      sum += log_probability(std::span(logits).subspan(i * width, width), part[i + 1]);
  }
  if (count == 0) fail("llm.prompt", "'{}' has fewer than two tokens", o.file);
  const double perplexity = std::exp(-sum / static_cast<double>(count));
  if (!session.json) {
    session.print("perplexity {:.4f} of {} tokens, in parts of {}\n", perplexity, count, window);
    return kExitOk;
  }
  JsonWriter json;
  json.begin_object().field("perplexity", perplexity).field("tokens", count);
  session.print("{}\n", json.field("context", window).end_object().text());
  return kExitOk;
}

int make_random_model(const Session& session, const LlmOptions& o) {
  const llm::RandomShape* shape = llm::find_random_shape(o.shape);
  std::string known;
  for (const llm::RandomShape& s : llm::random_shapes())
    known += (known.empty() ? "" : ", ") + std::string(s.name);
  if (shape == nullptr) fail("llm.random", "there is no shape {}: {}", quoted_name(o.shape), known);
  const std::string type = o.type.empty() ? "Q4_K" : o.type;
  const std::optional<Codec> codec = codec_from_name(type);
  if (!codec) fail("llm.random", "there is no block format {}", quoted_name(type));
  save_gguf(o.output, llm::random_model(*shape, *codec, static_cast<uint64_t>(o.seed)));
  if (!session.json) session.print("{}: {} in {}\n", o.output, shape->name, type);
  return kExitOk;
}

}  // namespace

int run_llm(const Session& session, const LlmOptions& options) {
  if (options.action == "run") return run_llm_model(session, options);
  if (options.action == "serve") return serve_llm(session, options);
  if (options.action == "chat") return chat_with_model(session, options);
  if (options.action == "bench") return bench_llm(session, options);
  if (options.action == "inspect") return inspect_llm(session, options);
  if (options.action == "perplexity") return llm_perplexity(session, options);
  if (options.action == "train" || options.action == "finetune") return train_llm(session, options);
  if (options.action == "quantize" || options.action == "convert")
    return convert_llm(session, options);
  if (options.action == "merge") return merge_llm(session, options);
  if (options.action == "random") return make_random_model(session, options);
  internal_error("llm", "the command {} has no function", options.action);
}

}  // namespace weft
