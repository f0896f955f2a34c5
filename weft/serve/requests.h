// Requests of OpenAI's API: JSON bodies to what is to be done. Reading one does nothing else.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "weft/llm/generator.h"
#include "weft/serve/options.h"
#include "weft/text/chat.h"

namespace weft::serve {

using text::ToolCall;
using Message = text::ChatMessage;

struct Tool {
  std::string name;
  std::string json;  ///< {"type": "function", "function": {...}}
};

/// Whether tools are called, and which has to be.
struct ToolChoice {
  enum class Kind : uint8_t { None, Auto, Required, Named };
  Kind kind = Kind::None;
  std::string name;
  std::vector<std::string> allowed = {};  ///< of the tools; empty: all

  bool may_call(std::string_view tool) const;
};

/// A text, or what was tokens already.
struct Prompt {
  std::string text;
  std::vector<llm::TokenId> tokens;
  bool is_text = true;
};

enum class Api : uint8_t { Chat, Text, Responses };

/// Of /v1/chat/completions, /v1/completions and /v1/responses.
struct CompletionRequest {
  Api api = Api::Chat;
  std::string model;
  std::vector<Message> messages;  ///< of a chat
  std::vector<Tool> tools;
  ToolChoice tool_choice;
  std::string template_variables;  ///< a JSON object of what else the chat's template knows
  std::vector<Prompt> prompts;     ///< of texts
  std::string answer_schema;       ///< JSON schema that an answer follows; empty: any text
  int64_t n = 1;
  int64_t best_of = 0;  ///< above n: so many are written, and the likeliest n given
  bool stream = false, include_usage = false, echo = false, logprobs = false, has_seed = false;
  llm::Request request;  ///< without its prompt
  std::string repeated;  ///< of a response: members of JSON that its object repeats

  bool chat() const { return api != Api::Text; }            ///< of messages
  int64_t written() const { return std::max(n, best_of); }  ///< answers to one prompt
};

struct EmbeddingRequest {
  std::string model;
  std::vector<Prompt> inputs;
  bool base64 = false;
  int64_t dimensions = 0;  ///< 0: all
};

struct TokenizeRequest {
  std::string text;
  bool add_special = true, parse_special = true, with_pieces = false;
};

// Errors: Refusal, with the parameter, what was sent, and what may be.
CompletionRequest parse_chat_request(std::string_view body, const ServeLimits& limits);
CompletionRequest parse_text_request(std::string_view body, const ServeLimits& limits);
CompletionRequest parse_response_request(std::string_view body, const ServeLimits& limits);
EmbeddingRequest parse_embedding_request(std::string_view body, const ServeLimits& limits);
TokenizeRequest parse_tokenize_request(std::string_view body);
std::vector<llm::TokenId> parse_detokenize_request(std::string_view body);

}  // namespace weft::serve
