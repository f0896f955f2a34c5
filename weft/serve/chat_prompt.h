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

/// As `form` has it. Where a client's words have the name of a special token in them,
/// a piece ends within it. Errors: template.*, json.format.
std::vector<PromptPiece> prompt_pieces(const CompletionRequest& request,
                                       const text::ChatTemplate& form,
                                       const text::Tokenizer& tokenizer);

std::vector<llm::TokenId> tokens_of(const std::vector<PromptPiece>& pieces,
                                    const text::Tokenizer& tokenizer);

}  // namespace weft::serve
