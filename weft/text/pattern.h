// Pattern: what is looked for in a text, a text or a regular expression.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weft/text/regex.h"

namespace weft::text {

class Pattern {
 public:
  static Pattern of_text(std::string_view text) { return Pattern(std::string(text), nullptr); }
  static Pattern of_regex(std::string_view pattern) {
    return Pattern({}, std::make_shared<const Regex>(pattern));
  }
  void for_each_match(std::string_view text, FunctionRef<void(size_t, size_t)> match) const {
    if (regex_) return regex_->for_each_match(text, match);
    if (text_.empty()) return;
    for (size_t at = text.find(text_); at != std::string_view::npos;
         at = text.find(text_, at + text_.size()))
      match(at, at + text_.size());
  }
  std::string replaced(std::string_view text, std::string_view with) const {
    std::string out;
    size_t last = 0;
    for_each_match(text, [&](size_t begin, size_t end) {
      out += text.substr(last, begin - last);
      out += with;
      last = end;
    });
    return out += text.substr(last);
  }

 private:
  Pattern(std::string text, std::shared_ptr<const Regex> regex)
      : text_(std::move(text)), regex_(std::move(regex)) {}
  std::string text_;
  std::shared_ptr<const Regex> regex_;
};

}  // namespace weft::text
