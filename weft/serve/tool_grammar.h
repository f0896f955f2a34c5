// What an answer has to be that a choice of tools demands.
#pragma once

#include "weft/serve/requests.h"

namespace weft::serve {

/// The beginning of an answer that has to be a call; it goes behind the prompt. Else "".
std::string answer_beginning(const ToolChoice& choice);
/// A JSON schema of what follows: a call of the tool that is demanded, or of any. Arguments are
/// held to their schemas as far as weft/llm/grammar.h can; else they are any object. "" where no
/// call is demanded.
std::string demanded_call_schema(const CompletionRequest& request);

}  // namespace weft::serve
