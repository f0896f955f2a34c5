// Probabilities of tokens as OpenAI's chats and completions list them.
#pragma once

#include <vector>

#include "weft/base/json_writer.h"
#include "weft/serve/completion_form.h"

namespace weft::serve {

/// One token, and what else was likely, as chats and responses have it.
void write_logprob(JsonWriter& json, const std::string& text, const llm::GeneratedToken& token,
                   const text::Tokenizer& tokenizer);

/// Of the tokens that come next of a choice; null where none are wanted.
void write_logprobs(JsonWriter& json, const CompletionHead& head, Choice& choice,
                    const std::vector<llm::GeneratedToken>& tokens,
                    const text::Tokenizer& tokenizer);

}  // namespace weft::serve
