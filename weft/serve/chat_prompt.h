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

struct ChatPrompt {
  std::vector<PromptPiece> pieces;
  /// The beginning of the answer, where the choice of tools decides it; part of the pieces.
  std::string begun;
};

/// In ChatML, tools and their calls as Hermes models write them
/// (https://github.com/NousResearch/Hermes-Function-Calling).
ChatPrompt prompt_of(const CompletionRequest& request);

std::vector<llm::TokenId> tokens_of(const ChatPrompt& prompt, const text::Tokenizer& tokenizer);

}  // namespace weft::serve
