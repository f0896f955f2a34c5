// WaitingTokens: tokens that came before the words that they spell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "weft/llm/generator.h"

namespace weft::serve {

struct SpelledToken {
  std::string text;  ///< what the answer became longer by
  llm::GeneratedToken token;
};

/// Words are told apart from thoughts and calls when more of them is there than a token: those that
/// spell a part are found by their text.
class WaitingTokens {
 public:
  void add(SpelledToken token) { waiting_.push_back(std::move(token)); }
  /// The tokens that have a share in `text`, where what waits spells it; else none. What comes
  /// before them waits no longer.
  std::vector<SpelledToken> take(std::string_view text);
  void clear() { waiting_.clear(); }

 private:
  std::vector<SpelledToken> waiting_;
};

}  // namespace weft::serve
