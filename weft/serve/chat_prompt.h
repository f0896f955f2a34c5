// A chat as the text that the model goes on from.
#pragma once

#include <string>
#include <vector>

#include "weft/serve/requests.h"

namespace weft::serve {

/// Special tokens count as such only in pieces that are not a client's words.
struct PromptPiece {
  std::string text;
  bool special = false;
};

/// In ChatML, tools and their calls as Hermes models write them
/// (https://github.com/NousResearch/Hermes-Function-Calling): for models without a template.
std::vector<PromptPiece> chatml_prompt(const CompletionRequest& request);
/// As the model's template has it. Where a client's words have the name of a special token in them,
/// a piece ends within it. Errors: template.*, json.format.
std::vector<PromptPiece> template_prompt(const CompletionRequest& request,
                                         const text::ChatTemplate& form,
                                         const text::Tokenizer& tokenizer);
/// The beginning of the answer, where the choice of tools decides it; it goes behind the prompt.
std::string answer_beginning(const ToolChoice& choice);

std::vector<llm::TokenId> tokens_of(const std::vector<PromptPiece>& pieces,
                                    const text::Tokenizer& tokenizer);

}  // namespace weft::serve
