// Answer: a text as its tokens come, up to what stops it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "weft/llm/stop_texts.h"
#include "weft/text/tokenizer.h"

namespace weft::llm {

class Answer {
 public:
  /// `before`: the tokens whose text it goes on; none: it is a text of its own, before whose first
  /// word some tokenizers drop the space.
  Answer(const text::Tokenizer& tokenizer, std::vector<std::string> stop,
         std::span<const text::TokenId> before = {})
      : stream_(tokenizer), stop_(std::move(stop)) {
    if (!before.empty()) stream_.step(before.back());
  }

  /// What may be shown now; what could be the beginning of a stop text waits.
  std::string add(text::TokenId id) { return stop_.add(stream_.step(id)); }
  std::string finish() {
    std::string rest = stop_.add(stream_.finish());
    return rest + stop_.finish();
  }
  bool stopped() const { return stop_.found(); }  ///< a stop text has come

 private:
  text::DecodeStream stream_;
  StopTexts stop_;
};

}  // namespace weft::llm
