// A Generator without a model: says what it was asked, a byte a token.
#pragma once

#include <algorithm>
#include <map>
#include <string>

#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"
#include "weft/llm/generator.h"
#include "weft/text/parts.h"

namespace weft::llm {

inline text::Tokenizer byte_tokenizer() {
  JsonWriter json;
  json.begin_object().key("model").begin_object().field("type", "BPE").key("vocab").begin_object();
  for (int byte = 0; byte < 256; ++byte) {
    std::string letter;
    append_utf8(letter, text::byte_character(static_cast<uint8_t>(byte)));
    json.key(letter).value(byte);
  }
  json.end_object().key("merges").begin_array().end_array().end_object();
  json.key("pre_tokenizer").begin_object().field("type", "ByteLevel");
  json.field("add_prefix_space", false).end_object();
  json.key("decoder").begin_object().field("type", "ByteLevel").end_object();
  return text::Tokenizer::from_json(json.end_object().take());
}

/// The answer is "re: " and the last line of the prompt before the answer's own; to "forever" it
/// has no end, to "fail" none either.
class FakeGenerator final : public Generator {
 public:
  RequestId submit(Request request) override {
    if (static_cast<int64_t>(request.prompt.size()) > context_length())
      fail("llm.context", "a prompt of {} tokens, the context has {}", request.prompt.size(),
           context_length());
    requests.push_back(request);
    prompt = tokenizer_.decode(request.prompt);
    const size_t user = prompt.rfind("<|im_start|>user\n") + 17;
    const std::string asked = prompt.substr(user, prompt.find("<|im_end|>", user) - user);
    Running running{"re: " + asked,  0,    request.max_tokens, asked == "forever",
                    asked == "fail", false};
    running_[++last_] = running;
    return last_;
  }
  void cancel(RequestId request) override {
    if (running_.count(request)) running_[request].cancelled = true;
  }
  std::vector<Progress> step() override {
    std::vector<Progress> all;
    for (auto& [id, r] : running_) {
      Progress p;
      p.request = id;
      if (r.cancelled) {
        p.finish = Finish::Cancelled;
      } else if (r.fails) {
        p.finish = Finish::Failed;
        p.error = "no luck";
      } else if (r.forever || r.at < r.text.size()) {
        // Whole characters, as Generator says.
        const size_t at = r.at % r.text.size(), size = std::max<size_t>(utf8_length(r.text, at), 1);
        p.text = r.text.substr(at, size);
        p.tokens.resize(size);
        r.at += size;
        if (!r.forever && r.at >= r.text.size()) p.finish = Finish::Stop;
        if (r.most >= 0 && static_cast<int64_t>(r.at) >= r.most) p.finish = Finish::Length;
      }
      all.push_back(p);
    }
    for (const Progress& p : all)
      if (p.finish != Finish::None) running_.erase(p.request);
    return all;
  }
  bool idle() const override { return running_.empty(); }
  std::vector<float> embedding(std::span<const TokenId>) override { return {1}; }
  const text::Tokenizer& tokenizer() const override { return tokenizer_; }
  std::string model_name() const override { return "fake"; }
  int64_t context_length() const override { return context; }
  std::vector<std::pair<std::string, double>> counters() const override { return {}; }

  int64_t context = 4096;
  std::string prompt;  // the last one
  std::vector<Request> requests;

 private:
  struct Running {
    std::string text;
    size_t at;
    int64_t most;
    bool forever, fails, cancelled;
  };
  text::Tokenizer tokenizer_ = byte_tokenizer();
  std::map<RequestId, Running> running_;
  RequestId last_ = 0;
};

}  // namespace weft::llm
