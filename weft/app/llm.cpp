#include <chrono>
#include <cmath>

#include "weft/app/app.h"
#include "weft/app/interrupt.h"
#include "weft/app/llm_chat.h"
#include "weft/app/llm_options.h"
#include "weft/app/load_note.h"
#include "weft/app/progress.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"
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

llm::Model load_model(const Session& session, const LlmOptions& o) {
  const LoadNote note(session, o.model);
  return llm::Model(o.model, model_options(o));
}

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

int chat_with_model(const Session& session, const LlmOptions& o) {
  o.answer.made();  // what is wrong with it is said before the model is loaded
  llm::Model model = load_model(session, o);
  LlmChatOptions chat;
  chat.system = o.system;
  chat.plan = o.answer;
  return run_llm_chat(session, model, chat);
}

/// A file and standard input end with a line break that is not meant.
std::string prompt_of(const LlmOptions& o) {
  if (o.file.empty() && o.prompt != "-") return o.prompt;
  std::string text = o.file.empty() ? standard_input() : std::string(MappedFile(o.file).text());
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

/// What `weft llm run` got.
struct RunAnswer {
  std::string text;
  llm::Finish finish = llm::Finish::None;
  int64_t prompt_tokens = 0, tokens = 0;
  double first = 0, seconds = 0;
};

/// Ctrl-C ends the answer, a second one the program.
RunAnswer answer_of(const Session& session, llm::Model& model, llm::Request request) {
  RunAnswer a;
  a.prompt_tokens = static_cast<int64_t>(request.prompt.size());
  const auto start = Clock::now();
  const InterruptScope interrupt;
  const llm::RequestId id = model.submit(std::move(request));
  while (!model.idle()) {
    if (InterruptScope::requested()) model.cancel(id);
    for (const llm::Progress& p : model.step()) {
      if (p.finish == llm::Finish::Failed) fail_runtime("llm.step", "{}", p.error);
      if (a.tokens == 0) a.first = since(start);
      a.tokens += static_cast<int64_t>(p.tokens.size());
      a.text += p.text;
      a.finish = p.finish;
      if (!session.json) session.write(p.text);
      if (!session.json) std::fflush(session.out);
    }
  }
  a.seconds = since(start);
  return a;
}

void print_json(const Session& session, const llm::Model& model, const RunAnswer& a, bool guessed) {
  JsonWriter json;
  json.begin_object().field("text", valid_utf8(a.text));
  json.field("finish", finish_name(a.finish));
  json.field("prompt_tokens", a.prompt_tokens).field("tokens", a.tokens);
  json.field("first_token_s", a.first).field("seconds", a.seconds);
  if (guessed)
    for (const auto& [name, value] : model.counters())
      if (name == "drafted_tokens" || name == "accepted_tokens" || name == "steps")
        json.field(name, static_cast<int64_t>(value));
  session.print("{}\n", json.end_object().text());
}

int run_llm_model(const Session& session, const LlmOptions& o) {
  llm::Request request = o.answer.made();
  const std::string prompt = prompt_of(o);
  llm::Model model = load_model(session, o);
  request.prompt = model.tokenizer().encode(prompt);
  const RunAnswer answer = answer_of(session, model, std::move(request));
  if (session.json)
    print_json(session, model, answer, model_options(o).draft_tokens > 0);
  else
    session.write("\n");
  return answer.finish == llm::Finish::Cancelled ? kExitInterrupted : kExitOk;
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
  llm::Model model = load_model(session, o);
  const MappedFile file(o.file);
  const std::vector<llm::TokenId> tokens = model.tokenizer().encode(file.text());
  const auto window = static_cast<size_t>(model.context_length());
  const auto width = static_cast<size_t>(model.config().vocabulary);
  double sum = 0;
  int64_t count = 0;
  ProgressBar bar("perplexity", static_cast<int64_t>(tokens.size()), "tokens",
                  session.context.options(), session.json ? nullptr : session.err);
  bar.update(0);
  for (size_t at = 0; at + 1 < tokens.size(); at += window) {
    const size_t end = std::min(at + window, tokens.size());
    const auto part = std::span(tokens).subspan(at, end - at);
    const std::vector<float> logits = model.logits(part);
    for (size_t i = 0; i + 1 < part.size(); ++i, ++count)
      sum += log_probability(std::span(logits).subspan(i * width, width), part[i + 1]);
    bar.update(static_cast<int64_t>(end),
               strformat("{:.4f} so far", std::exp(-sum / static_cast<double>(count))));
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
  if (!session.json) {
    session.print("{}: {} in {}\n", o.output, shape->name, type);
    return kExitOk;
  }
  JsonWriter json;
  json.begin_object().field("path", o.output).field("shape", shape->name).field("type", type);
  session.print("{}\n", json.end_object().text());
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
