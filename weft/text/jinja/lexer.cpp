#include "weft/text/jinja/lexer.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/text/jinja/python_text.h"
#include "weft/text/unicode.h"

namespace weft::text::jinja {

void fail_syntax(std::string_view what, Place place, std::string_view problem) {
  fail_runtime("template.syntax", "{}:{}:{}: {}; templates are written in Jinja's language", what,
               place.line, place.column, problem);
}

namespace {

using Kind = Token::Kind;

std::string unified(std::string_view source) {
  std::string text;
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r' && i + 1 < source.size() && source[i + 1] == '\n') continue;
    text += source[i] == '\r' ? '\n' : source[i];
  }
  text = valid_utf8(text);
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  Lexer(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  std::vector<Token> run() {
    while (at_ < text_.size()) data();
    add(Kind::End, "");
    return std::move(tokens_);
  }

 private:
  bool here(std::string_view word) const { return text_.substr(at_, word.size()) == word; }
  char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void move(size_t count) {
    for (; count > 0; --count, ++at_) {
      if (text_[at_] == '\n') {
        ++place_.line;
        place_.column = 1;
      } else if ((static_cast<unsigned char>(text_[at_]) & 0xc0) != 0x80) {
        ++place_.column;
      }
    }
  }
  void move_to(size_t at) { move(at - at_); }
  void add(Kind kind, std::string text) { tokens_.push_back({kind, std::move(text), place_}); }
  [[noreturn]] void fail_here(std::string_view problem) const {
    fail_syntax(what_, place_, problem);
  }

  /// Text up to a tag, then the tag.
  void data() {
    size_t tag = at_;
    while (true) {
      tag = text_.find('{', tag);
      if (tag == std::string_view::npos || tag + 1 >= text_.size()) {
        tag = text_.size();
        break;
      }
      if (std::string_view("{%#").find(text_[tag + 1]) != std::string_view::npos) break;
      ++tag;
    }
    const std::string_view text = text_.substr(at_, tag - at_);
    const std::string_view kept = tag == text_.size() ? text : before_tag(text, tag);
    if (!kept.empty()) add(Kind::Text, std::string(kept));
    move_to(tag);
    if (tag < text_.size()) open_tag();
  }

  /// What stays of the text before a tag: its sign, or lstrip_blocks, takes white space.
  std::string_view before_tag(std::string_view text, size_t tag) const {
    const char sign = tag + 2 < text_.size() ? text_[tag + 2] : '\0';
    if (sign == '-') return stripped(text, Side::Right);
    if (sign == '+' || text_[tag + 1] == '{') return text;
    const size_t line = text.rfind('\n') + 1;  // 0 where there is none
    if (line == 0 && !line_start_) return text;
    return stripped(text.substr(line), Side::Left).empty() ? text.substr(0, line) : text;
  }

  void open_tag() {
    const char sort = text_[at_ + 1];
    const Place begin = place_;
    if (sort == '%' && raw()) return;
    size_t size = 2;
    if (at_ + 2 < text_.size() && (text_[at_ + 2] == '-' || text_[at_ + 2] == '+')) size = 3;
    if (sort == '#') {
      const size_t end = text_.find("#}", at_ + 2);
      if (end == std::string_view::npos) fail_syntax(what_, begin, "a comment without an end");
      const char sign = text_[end - 1];
      move_to(end + 2);
      after_tag(sign, true);
      return;
    }
    add(sort == '%' ? Kind::BlockBegin : Kind::OutputBegin, "");
    move(size);
    inside(sort == '%' ? "%}" : "}}", begin);
  }

  /// White space behind a tag goes: all of it, or a line's end (trim_blocks).
  void after_tag(char sign, bool trims) {
    if (sign == '-') {
      const std::string_view left = stripped(text_.substr(at_), Side::Left);
      line_start_ =
          text_.size() - left.size() > at_ && text_[text_.size() - left.size() - 1] == '\n';
      move_to(text_.size() - left.size());
      return;
    }
    line_start_ = trims && sign != '+' && current() == '\n';
    if (line_start_) move(1);
  }

  /// After {%: an optional sign, a word, and where the tag is just that, how far it goes; else 0.
  size_t bare_tag(size_t from, std::string_view word, char& end_sign) const {
    size_t at = from + 2;
    const auto skip = [&] {
      while (at < text_.size() && is_python_space(static_cast<unsigned char>(text_[at]))) ++at;
    };
    if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) ++at;
    skip();
    if (text_.substr(at, word.size()) != word) return 0;
    at += word.size();
    skip();
    end_sign = '\0';
    if (at < text_.size() && (text_[at] == '-' || text_[at] == '+')) end_sign = text_[at++];
    return text_.substr(at, 2) == "%}" ? at + 2 : 0;
  }

  bool raw() {
    char sign = '\0';
    const size_t content = bare_tag(at_, "raw", sign);
    if (content == 0 || sign == '+') return false;
    const Place begin = place_;
    move_to(content);
    after_tag(sign, false);
    for (size_t tag = at_;; ++tag) {
      tag = text_.find("{%", tag);
      if (tag == std::string_view::npos) fail_syntax(what_, begin, "raw without endraw");
      const size_t behind = bare_tag(tag, "endraw", sign);
      if (behind == 0) continue;
      const std::string_view kept = before_tag(text_.substr(at_, tag - at_), tag);
      if (!kept.empty()) add(Kind::Text, std::string(kept));
      move_to(behind);
      after_tag(sign, true);
      return true;
    }
  }

  void inside(std::string_view end, Place begin) {
    std::string open;  // the closing brackets that are due
    while (true) {
      while (at_ < text_.size() && is_python_space(static_cast<unsigned char>(text_[at_]))) move(1);
      if (at_ >= text_.size()) fail_syntax(what_, begin, "a tag without an end");
      const char sign = current();
      const bool trims = end == "%}";
      if (open.empty()) {
        const bool has_sign = sign == '-' || (trims && sign == '+');
        if (text_.substr(at_ + (has_sign ? 1 : 0), 2) == end) {
          add(trims ? Kind::BlockEnd : Kind::OutputEnd, "");
          move(has_sign ? 3 : 2);
          after_tag(has_sign ? sign : '\0', trims);
          return;
        }
      }
      one_token(open);
    }
  }

  void one_token(std::string& open) {
    const char c = current();
    if (c == '"' || c == '\'') return string(c);
    if (is_digit(c)) return number();
    if (is_letter(c)) return name();
    static constexpr std::string_view kTwo[] = {"//", "**", "==", "!=", "<=", ">="};
    for (const std::string_view two : kTwo)
      if (here(two)) return operation(two);
    if (std::string_view("+-*/%~<>=.,:|()[]{};").find(c) == std::string_view::npos || c == '\0')
      fail_here(strformat("unexpected character '{}'", c));
    constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    if (const size_t i = kOpening.find(c); i != std::string_view::npos) {
      open += kClosing[i];
    } else if (kClosing.find(c) != std::string_view::npos) {
      if (open.empty() || open.back() != c) fail_here(strformat("unexpected '{}'", c));
      open.pop_back();
    }
    operation(text_.substr(at_, 1));
  }

  void operation(std::string_view text) {
    add(Kind::Operator, std::string(text));
    move(text.size());
  }

  void name() {
    size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    const std::string_view word = text_.substr(at_, end - at_);
    for (size_t i = 0; i < word.size();)
      if (!is_word(next_code_point(word, i)))
        fail_here("a name with a character that is no letter");
    add(Kind::Name, std::string(word));
    move_to(end);
  }

  size_t digits_from(size_t at, std::string_view which = "0123456789") const {
    while (at < text_.size() && (which.find(text_[at]) != std::string_view::npos ||
                                 (text_[at] == '_' && at + 1 < text_.size() &&
                                  which.find(text_[at + 1]) != std::string_view::npos)))
      ++at;
    return at;
  }

  void number() {
    size_t end = at_;
    Kind kind = Kind::Integer;
    const char prefix = at_ + 1 < text_.size() ? static_cast<char>(text_[at_ + 1] | 0x20) : '\0';
    if (current() == '0' && std::string_view("xob").find(prefix) != std::string_view::npos) {
      end = digits_from(at_ + 2, prefix == 'x'   ? "0123456789abcdefABCDEF"
                                 : prefix == 'o' ? "01234567"
                                                 : "01");
    } else {
      end = digits_from(at_);
      if (end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1])) {
        kind = Kind::Real;
        end = digits_from(end + 1);
      }
      if (end < text_.size() && (text_[end] | 0x20) == 'e') {
        size_t exponent = end + 1;
        if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-'))
          ++exponent;
        if (exponent < text_.size() && is_digit(text_[exponent])) {
          kind = Kind::Real;
          end = digits_from(exponent);
        }
      }
    }
    std::string digits(text_.substr(at_, end - at_));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    add(kind, digits);
    move_to(end);
  }

  void string(char quote) {
    const Place begin = place_;
    std::string out;
    size_t at = at_ + 1;
    while (at < text_.size() && text_[at] != quote) {
      if (text_[at] != '\\') {
        out += text_[at++];
      } else {
        at = escape(at + 1, out);
      }
    }
    if (at >= text_.size()) fail_syntax(what_, begin, "a string without an end");
    add(Kind::String, std::move(out));
    move_to(at + 1);
  }

  /// Python's escapes; a backslash before anything else stays.
  size_t escape(size_t at, std::string& out) const {
    if (at >= text_.size()) return at;
    const char c = text_[at];
    constexpr std::string_view kLetters = "\\'\"abfnrtv", kMeaning = "\\'\"\a\b\f\n\r\t\v";
    if (const size_t i = kLetters.find(c); i != std::string_view::npos) {
      out += kMeaning[i];
      return at + 1;
    }
    if (c == '\n') return at + 1;
    if (c >= '0' && c <= '7') return code(at, 8, 1, 3, out);
    if (c == 'x') return code(at + 1, 16, 2, 2, out);
    if (c == 'u') return code(at + 1, 16, 4, 4, out);
    if (c == 'U') return code(at + 1, 16, 8, 8, out);
    out += '\\';
    return at;
  }
  size_t code(size_t at, uint32_t base, size_t least, size_t most, std::string& out) const {
    uint32_t value = 0;
    size_t count = 0;
    for (; count < most && at < text_.size(); ++count, ++at) {
      const char c = text_[at];
      const uint32_t digit = is_digit(c) ? static_cast<uint32_t>(c - '0')
                                         : static_cast<uint32_t>((c | 0x20) - 'a') + 10;
      if (digit >= base) break;
      value = value * base + digit;
    }
    if (count < least) fail_here("an escape in a string has too few digits");
    const bool character = value <= 0x10ffff && (value < 0xd800 || value > 0xdfff);
    append_utf8(out, character ? value : 0xfffd);
    return at;
  }

  std::string_view text_, what_;
  size_t at_ = 0;
  Place place_;
  bool line_start_ = true;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokens_of(std::string_view source, std::string_view what) {
  const std::string text = unified(source);
  return Lexer(text, what).run();
}

}  // namespace weft::text::jinja
