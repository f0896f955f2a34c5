#include "weft/serve/logprobs_json.h"

#include <algorithm>
#include <cmath>

#include "weft/base/format.h"
#include "weft/text/parts.h"

namespace weft::serve {

namespace {

std::string piece(const text::Tokenizer& tokenizer, llm::TokenId id) {
  return tokenizer.decode({{id}}, false);
}

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

/// Of a token that is a part of a character, which no text has, its own; else those of its text. In
/// a row all of them are the answer's: `text` has the space in front that some words bring.
std::string bytes_of(const text::Tokenizer& tokenizer, llm::TokenId id, const std::string& text) {
  const std::string alone = piece(tokenizer, id);
  if (alone.find(kReplacement) == std::string::npos) return text == " " + alone ? text : alone;
  const std::string token = tokenizer.id_to_token(id).value_or("");
  if (auto byte = text::coded_byte(token)) return *byte;
  return text::spelt_bytes(token).value_or(alone);
}

void write_one(JsonWriter& json, const std::string& text, llm::TokenProbability token,
               const text::Tokenizer& tokenizer) {
  json.field("token", text).field("logprob", static_cast<double>(token.logprob));
  json.key("bytes").begin_array();
  for (const char byte : bytes_of(tokenizer, token.id, text))
    json.value(static_cast<unsigned char>(byte));
  json.end_array();
}

void write_chat(JsonWriter& json, Choice& choice, const std::vector<llm::GeneratedToken>& tokens,
                const text::Tokenizer& tokenizer) {
  json.begin_object().key("content").begin_array();
  for (const llm::GeneratedToken& token : tokens)
    write_logprob(json, choice.spelled.step(token.token.id), token, tokenizer);
  json.end_array().key("refusal").null().end_object();
}

size_t characters(std::string_view text) {
  return static_cast<size_t>(std::ranges::count_if(
      text, [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

// What a token adds to a text; of one that adds no character its bytes, as OpenAI writes them.
std::string spell(text::DecodeStream& stream, llm::TokenId id, const text::Tokenizer& tokenizer) {
  std::string text = stream.step(id);
  if (!text.empty()) return text;
  for (const char byte : bytes_of(tokenizer, id, ""))
    text += strformat("\\x{:02x}", static_cast<unsigned char>(byte));
  return "bytes:" + text;
}

// Of the same text in two tokens the likelier one is listed. Spelt as they would be in the place of
// the one that is there, so that a client finds that among them.
void write_top(JsonWriter& json, const llm::GeneratedToken& token, const text::DecodeStream& before,
               const text::Tokenizer& tokenizer) {
  if (std::isnan(token.token.logprob)) {
    json.null();
    return;
  }
  std::vector<std::string> seen;
  json.begin_object();
  for (const llm::TokenProbability& other : token.alternatives) {
    text::DecodeStream stream = before;
    const std::string text = spell(stream, other.id, tokenizer);
    if (std::find(seen.begin(), seen.end(), text) != seen.end()) continue;
    seen.push_back(text);
    json.field(text, static_cast<double>(other.logprob));
  }
  json.end_object();
}

void write_text(JsonWriter& json, Choice& choice, const std::vector<llm::GeneratedToken>& tokens,
                const text::Tokenizer& tokenizer) {
  text::DecodeStream before = choice.spelled;
  json.begin_object().key("tokens").begin_array();
  for (const llm::GeneratedToken& token : tokens)
    json.value(spell(choice.spelled, token.token.id, tokenizer));
  json.end_array().key("token_logprobs").begin_array();
  for (const llm::GeneratedToken& token : tokens)
    json.value(static_cast<double>(token.token.logprob));
  json.end_array().key("top_logprobs").begin_array();
  for (const llm::GeneratedToken& token : tokens) {
    write_top(json, token, before, tokenizer);
    before.step(token.token.id);
  }
  json.end_array().key("text_offset").begin_array();
  for (const llm::GeneratedToken& token : tokens) {
    json.value(choice.text_offset);
    choice.text_offset += characters(choice.plain.step(token.token.id));
  }
  json.end_array().end_object();
}

}  // namespace

void write_logprob(JsonWriter& json, const std::string& text, const llm::GeneratedToken& token,
                   const text::Tokenizer& tokenizer) {
  write_one(json.begin_object(), text, token.token, tokenizer);
  json.key("top_logprobs").begin_array();
  for (const llm::TokenProbability& other : token.alternatives) {
    write_one(json.begin_object(), piece(tokenizer, other.id), other, tokenizer);
    json.end_object();
  }
  json.end_array().end_object();
}

void write_logprobs(JsonWriter& json, const CompletionHead& head, Choice& choice,
                    const std::vector<llm::GeneratedToken>& tokens,
                    const text::Tokenizer& tokenizer) {
  if (!head.logprobs)
    json.null();
  else
    head.chat ? write_chat(json, choice, tokens, tokenizer)
              : write_text(json, choice, tokens, tokenizer);
}

}  // namespace weft::serve
