// What both kinds of completions have: how tokens are drawn and when an answer ends.
#pragma once

#include "weft/serve/fields.h"
#include "weft/serve/requests.h"

namespace weft::serve {

/// Names of the parameters that read_common() reads or that may be there and mean nothing here.
std::span<const std::string_view> common_parameters();
void read_common(const Fields& fields, const ServeLimits& limits, CompletionRequest& request);
/// The JSON schema that a format asks for, or ""; `nested`: it stands in its json_schema.
std::string answer_schema(const Fields& format, bool nested);
/// The one of the parameters that hold an answer to a form: OpenAI's, vLLM's or llama.cpp's.
void read_constraint(const Fields& fields, CompletionRequest& request);
/// An array of token ids.
std::vector<llm::TokenId> read_tokens(JsonTree::Value array, const std::string& name);
/// A string, an array of tokens, or an array of either.
std::vector<Prompt> read_prompts(const Fields& fields, std::string_view name, size_t most);

}  // namespace weft::serve
