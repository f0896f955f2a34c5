// What answers to completions look like: OpenAI's objects, whole and in chunks.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/serve/answer_parts.h"
#include "weft/serve/generator_loop.h"
#include "weft/serve/requests.h"

namespace weft::serve {

/// One of the answers to a request.
struct Choice {
  Ticket ticket = 0;
  size_t index = 0;
  AnswerParts parts;
  text::DecodeStream spelled;  ///< of its tokens, as probabilities list them
  std::string content = {}, reasoning = {};
  std::vector<ToolCall> calls = {};
  std::vector<llm::GeneratedToken> tokens = {};  ///< where probabilities are wanted
  size_t text_offset = 0;                        ///< of the next token among them
  std::string_view finish = {};                  ///< the reason; empty: it goes on
};

struct Usage {
  size_t prompt = 0, completion = 0;
};

/// What all objects of an answer begin with.
struct CompletionHead {
  bool chat = true, logprobs = false, include_usage = false;
  std::string id, model;
  int64_t created = 0;
};

std::string_view finish_name(llm::Finish finish, bool calls);

/// A whole answer.
std::string completion_json(const CompletionHead& head, std::vector<Choice>& choices,
                            const Usage& usage, const text::Tokenizer& tokenizer);
/// The first chunk of a chat's choice, which says who speaks.
std::string first_chunk_json(const CompletionHead& head, const Choice& choice);
/// One more part of an answer; the tokens are those it came with.
std::string chunk_json(const CompletionHead& head, Choice& choice, const AnswerPart* part,
                       const std::vector<llm::GeneratedToken>& tokens,
                       const text::Tokenizer& tokenizer);
/// The last chunk, where usage is asked for.
std::string usage_chunk_json(const CompletionHead& head, const Usage& usage);

}  // namespace weft::serve
