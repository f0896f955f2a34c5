// Answer: a text as its tokens come, up to what stops it.
#pragma once

#include <string>
#include <vector>

#include "weft/text/tokenizer.h"

namespace weft::llm {

class Answer {
 public:
  Answer(const text::Tokenizer& tokenizer, std::vector<std::string> stop)
      : stream_(tokenizer), stop_(std::move(stop)) {}

  /// What may be shown now; what could be the beginning of a stop text waits.
  std::string add(text::TokenId id) { return shown(stream_.step(id), false); }
  std::string finish() { return stopped_ ? std::string() : shown(stream_.finish(), true); }
  bool stopped() const { return stopped_; }  ///< a stop text has come

 private:
  std::string shown(const std::string& more, bool whole);
  size_t waiting() const;

  text::DecodeStream stream_;
  std::vector<std::string> stop_;
  std::string held_;
  bool stopped_ = false;
};

}  // namespace weft::llm
