#include "weft/serve/chat_prompt.h"

#include <algorithm>

#include "weft/base/json_writer.h"
#include "weft/base/utf8.h"

namespace weft::serve {

namespace {

// Of the words around messages, and of what is in them.
class Pieces {
 public:
  void mark(std::string_view text) { add(text, true); }
  void words(std::string_view text) { add(text, false); }
  std::vector<PromptPiece> take() { return std::move(pieces_); }

 private:
  void add(std::string_view text, bool special) {
    if (text.empty()) return;
    if (pieces_.empty() || pieces_.back().special != special) pieces_.push_back({"", special});
    pieces_.back().text += text;
  }
  std::vector<PromptPiece> pieces_;
};

void add_tools(Pieces& pieces, const std::vector<Tool>& tools) {
  pieces.mark("# Tools\n\nThese functions can be called:\n<tools>\n");
  for (const Tool& tool : tools) {
    pieces.words(tool.json);
    pieces.mark("\n");
  }
  pieces.mark(
      "</tools>\n\nTo call one, write a JSON object with its name and arguments in tags:\n"
      "<tool_call>\n{\"name\": \"NAME\", \"arguments\": {}}\n</tool_call>");
}

void add_call(Pieces& pieces, const ToolCall& call) {
  pieces.mark("\n<tool_call>\n");
  pieces.words("{\"name\": " + json_quote(call.name) + ", \"arguments\": " + call.arguments + "}");
  pieces.mark("\n</tool_call>");
}

void add_message(Pieces& pieces, const Message& message) {
  const bool tool = message.role == "tool";
  pieces.mark("<|im_start|>" + (tool ? "user" : message.role) + "\n");
  if (tool) pieces.mark("<tool_response>\n");
  pieces.words(message.content);
  if (tool) pieces.mark("\n</tool_response>");
  for (const ToolCall& call : message.tool_calls) add_call(pieces, call);
  pieces.mark("<|im_end|>\n");
}

// The system's message comes first, and the tools with it.
void add_system(Pieces& pieces, const CompletionRequest& request) {
  const bool given = request.messages.front().role == "system";
  const bool tools = request.tool_choice.kind != ToolChoice::Kind::None;
  if (!given && !tools) return;
  pieces.mark("<|im_start|>system\n");
  if (given) pieces.words(request.messages.front().content);
  if (given && tools) pieces.mark("\n\n");
  if (tools) add_tools(pieces, request.tools);
  pieces.mark("<|im_end|>\n");
}

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

std::string answer_beginning(const ToolChoice& choice) {
  if (choice.kind == ToolChoice::Kind::Required) return "<tool_call>\n{\"name\": \"";
  if (choice.kind != ToolChoice::Kind::Named) return "";
  return "<tool_call>\n{\"name\": " + json_quote(choice.name) + ", \"arguments\": ";
}

std::vector<PromptPiece> chatml_prompt(const CompletionRequest& request) {
  Pieces pieces;
  add_system(pieces, request);
  const bool system = request.messages.front().role == "system";
  for (size_t i = system ? 1 : 0; i < request.messages.size(); ++i)
    add_message(pieces, request.messages[i]);
  pieces.mark("<|im_start|>assistant\n");
  return pieces.take();
}

std::vector<PromptPiece> template_prompt(const CompletionRequest& request,
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
      form.prompt(messages, {.tools = cut_names(tools_json(request), tokenizer)});
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
