#include "weft/serve/waiting_tokens.h"

#include <iterator>

namespace weft::serve {

std::vector<SpelledToken> WaitingTokens::take(std::string_view text) {
  std::string all;
  for (const SpelledToken& token : waiting_) all += token.text;
  const size_t begin = all.find(text), end = begin + text.size();
  if (begin == std::string::npos || text.empty()) return {};
  std::vector<SpelledToken> taken;
  size_t at = 0;  // where a token's text begins; the first bytes of a character spell nothing yet
  auto next = waiting_.begin();
  for (; next != waiting_.end() && at < end; ++next) {
    const size_t size = next->text.size();
    if (at >= begin || at + size > begin) taken.push_back(std::move(*next));
    at += size;
  }
  waiting_.erase(waiting_.begin(), next);
  return taken;
}

}  // namespace weft::serve
