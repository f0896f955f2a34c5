// llm.hpp: language models (llm.h) in C++17.
//
//   namespace wt = weft::c;
//   wt::Context context;
//   wt::LanguageModel model(context, "model.gguf");
//   model.generate("Once upon a time", wt::llm_request(), [](const std::string& text) {
//     return std::fputs(text.c_str(), stdout) >= 0;
//   });
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "weft/c/llm.h"
#include "weft/c/weft.hpp"

namespace weft::c {

inline weft_llm_options llm_options() { return WEFT_STRUCT(weft_llm_options); }
inline weft_llm_request llm_request() { return WEFT_STRUCT(weft_llm_request); }

/// What a request became longer by in a step.
struct LlmProgress {
  uint64_t request = 0;
  std::string text;
  std::vector<int32_t> tokens;
  std::vector<float> logprobs;
  uint32_t finish = WEFT_LLM_RUNNING;
  std::string error;
};

/// A model and its requests (weft.h). One thread at a time.
class LanguageModel {
 public:
  /// Gets the text as it comes; false ends it.
  using OnText = std::function<bool(const std::string& text)>;

  LanguageModel(const Context& context, const std::string& path,
                const weft_llm_options& options = llm_options()) {
    check(weft_llm_open(context.get(), path.c_str(), &options, &handle_));
  }
  LanguageModel(LanguageModel&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  ~LanguageModel() { weft_llm_release(handle_); }
  weft_llm get() const { return handle_; }

  weft_llm_info info() const {
    weft_llm_info info = WEFT_STRUCT(weft_llm_info);
    check(weft_llm_describe(handle_, &info));
    return info;
  }
  Tokenizer tokenizer() const {
    weft_tokenizer tokenizer = nullptr;
    check(weft_llm_tokenizer(handle_, &tokenizer));
    return Tokenizer(tokenizer);
  }

  /// The text behind `prompt`; what `request` says of prompts is not looked at.
  std::string generate(const std::string& prompt, const weft_llm_request& request = llm_request(),
                       const OnText& on_text = {}) {
    return generate(tokenizer().encode(prompt), request, on_text);
  }
  std::string generate(const std::vector<int32_t>& prompt,
                       const weft_llm_request& request = llm_request(),
                       const OnText& on_text = {}) {
    Answer answer{on_text, {}, {}};
    const weft_llm_request whole = with_prompt(request, prompt);
    const weft_status status = weft_llm_generate(handle_, &whole, &Answer::add, &answer);
    if (answer.thrown) std::rethrow_exception(answer.thrown);
    if (status != Answer::kStop) check(status);
    return answer.text;
  }

  /// Copies what the request points to.
  uint64_t submit(const std::vector<int32_t>& prompt,
                  const weft_llm_request& request = llm_request()) {
    const weft_llm_request whole = with_prompt(request, prompt);
    uint64_t id = 0;
    check(weft_llm_submit(handle_, &whole, &id));
    return id;
  }
  void cancel(uint64_t request) { check(weft_llm_cancel(handle_, request)); }
  bool idle() const {
    bool idle = true;
    check(weft_llm_is_idle(handle_, &idle));
    return idle;
  }
  std::vector<LlmProgress> step() {
    size_t count = 0;
    check(weft_llm_step(handle_, &count));
    std::vector<LlmProgress> all;
    for (size_t i = 0; i < count; ++i) {
      weft_llm_progress p = WEFT_STRUCT(weft_llm_progress);
      check(weft_llm_progress_at(handle_, i, &p));
      all.push_back({p.request,
                     {p.text, p.text_length},
                     {p.tokens, p.tokens + p.token_count},
                     {p.logprobs, p.logprobs + (p.logprobs ? p.token_count : 0)},
                     p.finish,
                     p.error});
    }
    return all;
  }

  std::vector<float> embedding(const std::vector<int32_t>& tokens) {
    size_t count = 0;
    check(weft_llm_embedding(handle_, tokens.data(), tokens.size(), nullptr, 0, &count));
    std::vector<float> numbers(count);
    check(weft_llm_embedding(handle_, tokens.data(), tokens.size(), numbers.data(), count, &count));
    return numbers;
  }
  /// Of each token's successor: (tokens, vocabulary).
  Tensor logits(const std::vector<int32_t>& tokens) {
    weft_tensor out = nullptr;
    check(weft_llm_logits(handle_, tokens.data(), tokens.size(), &out));
    return Tensor(out);
  }

 private:
  struct Answer {
    static constexpr weft_status kStop = -1;  // none of weft's
    const OnText& on_text;
    std::string text;
    std::exception_ptr thrown;

    static weft_status add(void* user, const weft_llm_progress* p) {
      auto& answer = *static_cast<Answer*>(user);
      try {
        const std::string part(p->text, p->text_length);
        answer.text += part;
        if (p->finish == WEFT_LLM_FAILED) throw Error(WEFT_ERROR_RUNTIME, "llm.step", p->error);
        return answer.on_text && !part.empty() && !answer.on_text(part) ? kStop : WEFT_OK;
      } catch (...) {
        answer.thrown = std::current_exception();
        return kStop;
      }
    }
  };
  static weft_llm_request with_prompt(weft_llm_request request,
                                      const std::vector<int32_t>& prompt) {
    request.prompt = prompt.data();
    request.prompt_count = prompt.size();
    return request;
  }

  weft_llm handle_ = nullptr;
};

/// A GGUF file with fewer bits: weft_llm_quantize().
inline void quantize(const std::string& path, const std::string& out_path,
                     const std::string& mix = "Q4_K_M", bool requantize = false) {
  check(weft_llm_quantize(path.c_str(), out_path.c_str(), mix.c_str(), requantize));
}

}  // namespace weft::c
