// Answer: a text as its tokens come, up to what stops it.
#pragma once

#include <string>
#include <vector>

#include "weft/llm/stop_texts.h"
#include "weft/text/tokenizer.h"

namespace weft::llm {

class Answer {
 public:
  Answer(const text::Tokenizer& tokenizer, std::vector<std::string> stop)
      : stream_(tokenizer), stop_(std::move(stop)) {}

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
