#include "weft/serve/chat_prompt.h"

#include <algorithm>

#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"

namespace weft::serve {

namespace {

// No character (Unicode's noncharacters): where a special token's name is cut.
constexpr std::string_view kCut = "\xef\xb7\x90";  // U+FDD0

void replace_all(std::string& text, std::string_view from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

// A client's words with a cut in every special token's name.
std::string cut_names(std::string words, const text::Tokenizer& tokenizer) {
  replace_all(words, kCut, "");
  for (const text::SpecialToken& token : tokenizer.special_tokens()) {
    const size_t first = token.text.empty() ? 0 : utf8_length(token.text, 0);
    if (first == 0 || first == token.text.size()) continue;
    replace_all(words, token.text,
                token.text.substr(0, first) + std::string(kCut) + token.text.substr(first));
  }
  return words;
}

std::string tools_json(const CompletionRequest& request) {
  if (request.tool_choice.kind == ToolChoice::Kind::None) return "";
  JsonWriter json;
  json.begin_array();
  for (const Tool& tool : request.tools) json.raw(tool.json);
  return json.end_array().take();
}

}  // namespace

std::vector<PromptPiece> prompt_pieces(const CompletionRequest& request,
                                       const text::ChatTemplate& form,
                                       const text::Tokenizer& tokenizer) {
  std::vector<Message> messages = request.messages;
  for (Message& message : messages)
    for (std::string* words : {&message.content, &message.reasoning, &message.name})
      *words = cut_names(std::move(*words), tokenizer);
  for (Message& message : messages)
    for (ToolCall& call : message.tool_calls) {
      call.name = cut_names(std::move(call.name), tokenizer);
      call.arguments = cut_names(std::move(call.arguments), tokenizer);
    }
  const std::string all =
      form.prompt(messages, {.tools = cut_names(tools_json(request), tokenizer),
                             .variables = cut_names(request.template_variables, tokenizer)});
  std::vector<PromptPiece> pieces;
  for (size_t at = 0; at < all.size();) {
    const size_t cut = std::min(all.find(kCut, at), all.size());
    pieces.push_back({all.substr(at, cut - at), true});
    at = cut + kCut.size();
  }
  return pieces;
}

std::vector<llm::TokenId> tokens_of(const std::vector<PromptPiece>& pieces,
                                    const text::Tokenizer& tokenizer) {
  std::vector<llm::TokenId> tokens;
  for (const PromptPiece& piece : pieces) {
    const auto more =
        tokenizer.encode(piece.text, {.add_special_tokens = false, .parse_special = piece.special});
    tokens.insert(tokens.end(), more.begin(), more.end());
  }
  return tokens;
}

}  // namespace weft::serve
