// ChatTemplate: a conversation as the prompt that its model was trained on.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/template.h"
#include "weft/text/tokenizer.h"

namespace weft::text {

struct ToolCall {
  std::string id, name;
  std::string arguments;  ///< JSON
};

struct ChatMessage {
  std::string role;  ///< "system", "user", "assistant", "tool"
  std::string content;
  std::vector<ToolCall> tool_calls = {};  ///< of an assistant
  std::string tool_call_id = {}, name = {};
  std::string reasoning = {};  ///< of an assistant, before its answer: reasoning_content
};

struct ChatOptions {
  bool add_generation_prompt = true;  ///< ends in the beginning of an answer
  std::string tools = {};      ///< JSON: functions that may be called, as OpenAI's API has them
  std::string documents = {};  ///< JSON
  std::string variables = {};  ///< a JSON object of what else the template knows
  RenderOptions render = {};
};

/// The messages of a chat as JSON, as templates and OpenAI's API have them.
std::string chat_json(std::span<const ChatMessage> messages);

/// A model's template with its beginning and end tokens.
///   const ChatTemplate chat(tokenizer);
///   tokenizer.encode(chat.prompt({{{"user", "Hello"}}}), chat.encoding());
class ChatTemplate {
 public:
  /// ChatML with tools, for models that bring no template.
  static const std::string_view kChatMl;

  /// The tokenizer's template; ChatML where it has none. Errors: template.syntax.
  explicit ChatTemplate(const Tokenizer& tokenizer);
  /// Another template, with the tokenizer's tokens.
  ChatTemplate(const Tokenizer& tokenizer, std::string_view source);
  ChatTemplate(std::string_view source, std::string_view bos_token, std::string_view eos_token);

  /// Errors: template.*, json.format.
  std::string prompt(std::span<const ChatMessage> messages, const ChatOptions& options = {}) const;
  std::string prompt(std::string_view messages_json, const ChatOptions& options = {}) const;

  /// How a prompt is encoded: the template has put in all special tokens.
  static EncodeOptions encoding() { return {.add_special_tokens = false, .parse_special = true}; }

 private:
  JinjaTemplate template_;
  std::string bos_token_, eos_token_;
};

}  // namespace weft::text
