#include "weft/llm/json_pattern.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/utf8.h"

namespace weft::llm {

std::string gbnf_literal(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (static_cast<unsigned char>(c) < 0x20)
      append_format(out, "\\x{:02x}", static_cast<unsigned char>(c));
    else
      out += c;
  }
  return out + "\"";
}

namespace {

std::string any_digits(size_t count) { return count == 0 ? "" : strformat(" [0-9]{{{}}}", count); }

/// Texts of digits from `low` to `high`, which are of one length.
std::string digits_between(std::string_view low, std::string_view high) {
  if (low.empty()) return "";
  const size_t rest = low.size() - 1;
  if (low[0] == high[0])
    return strformat("\"{}\" {}", low[0], digits_between(low.substr(1), high.substr(1)));
  const std::string nines(rest, '9'), zeros(rest, '0');
  char first = low[0], last = high[0];
  std::vector<std::string> parts;
  if (low.substr(1) != zeros)
    parts.push_back(strformat("\"{}\" {}", first++, digits_between(low.substr(1), nines)));
  std::string end;
  if (high.substr(1) != nines)
    end = strformat("\"{}\" {}", last--, digits_between(zeros, high.substr(1)));
  if (first <= last) parts.push_back(strformat("[{}-{}]{}", first, last, any_digits(rest)));
  if (!end.empty()) parts.push_back(end);
  std::string all;
  for (const std::string& part : parts) all += (all.empty() ? "" : " | ") + part;
  return "(" + all + ")";
}

/// 0 <= least <= most, by the number of digits.
std::string naturals(uint64_t least, uint64_t most) {
  std::string all;
  while (true) {
    const std::string low = std::to_string(least), high = std::to_string(most);
    const std::string end = low.size() == high.size() ? high : std::string(low.size(), '9');
    all += (all.empty() ? "" : " | ") + digits_between(low, end);
    if (low.size() == high.size()) return "(" + all + ")";
    least = std::stoull(end) + 1;
  }
}
}  // namespace

std::string gbnf_integers(int64_t least, int64_t most) {
  const auto size = [](int64_t i) {
    return i < 0 ? 0 - static_cast<uint64_t>(i) : static_cast<uint64_t>(i);
  };
  std::string all;
  if (least < 0) all = "\"-\" " + naturals(most < 0 ? size(most) : 1, size(least));
  if (most >= 0)
    all += (all.empty() ? "" : " | ") + naturals(size(std::max<int64_t>(least, 0)), size(most));
  return "(" + all + ")";
}

namespace {

using Range = std::pair<char32_t, char32_t>;
using Ranges = std::vector<Range>;

const Ranges kDigits = {{'0', '9'}}, kWord = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
// Of classes that are "anything but", a part: ASCII that needs no escape in JSON.
const Ranges kNoDigits = {{' ', '!'}, {'#', '/'}, {':', '['}, {']', '~'}};
const Ranges kNoWord = {{' ', '!'}, {'#', '/'}, {':', '@'}, {'{', '~'}};
const Ranges kNoSpace = {{'!', '!'}, {'#', '['}, {']', '~'}};

class PatternParser {
 public:
  PatternParser(std::string_view pattern, PatternText text)
      : text_(pattern), json_(text == PatternText::Json) {}

  std::string parse() {
    std::string all = alternatives(true);
    if (at_ < text_.size()) fail_here("an unexpected ')'");
    return all;
  }

 private:
  [[noreturn]] void fail_here(std::string_view problem) const {
    fail_runtime("llm.schema", "pattern '{}': {} at offset {}; answers cannot be held to it", text_,
                 problem, at_);
  }
  char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string alternatives(bool outermost) {
    if (++depth_ > 30) fail_here("nesting deeper than 30");
    std::string all;
    do {
      // What matches from its beginning to its end also matches where it may be anywhere.
      if (outermost) take('^');
      all += (all.empty() ? "" : " | ") + sequence(outermost);
    } while (take('|'));
    --depth_;
    return "(" + all + ")";
  }

  std::string sequence(bool outermost) {
    std::string all = "\"\"";
    while (at_ < text_.size() && current() != '|' && current() != ')') {
      if (current() == '$') {
        const size_t behind = at_ + 1;
        if (!outermost || (behind < text_.size() && text_[behind] != '|'))
          fail_here("'$' in the middle");
        ++at_;
        break;
      }
      all += " " + item();
      all += quantifier();
    }
    return all;
  }

  std::string quantifier() {
    std::string text;
    if (current() == '*' || current() == '+' || current() == '?') {
      text = current();
      ++at_;
    } else if (current() == '{') {
      const size_t end = text_.find('}', at_);
      if (end == std::string_view::npos) fail_here("a '{' without an end");
      text = text_.substr(at_, end + 1 - at_);
      at_ = end + 1;
    } else {
      return "";
    }
    take('?');  // lazy: matches the same
    if (current() == '+' || current() == '*' || current() == '{')
      fail_here("a repeated repetition");
    return text;
  }

  std::string item() {
    if (take('.')) return outside({});
    if (take('[')) return character_class();
    if (take('(')) {
      if (take('?') && !take(':')) fail_here("a group that looks around or has options");
      std::string group = alternatives(false);
      if (!take(')')) fail_here("a group without an end");
      return group;
    }
    if (std::string_view("^*+?{").find(current()) != std::string_view::npos)
      fail_here("an unexpected sign");
    if (take('\\')) {
      Ranges set;
      if (shorthand(set)) return inside(set);
      return inside({{escape(), 0}});
    }
    const char32_t c = next_code_point(text_, at_);
    return inside({{c, c}});
  }

  /// \d and its like.
  bool shorthand(Ranges& set) {
    const std::pair<char, const Ranges*> kRows[] = {
        {'d', &kDigits}, {'D', &kNoDigits}, {'w', &kWord}, {'W', &kNoWord}, {'S', &kNoSpace}};
    for (const auto& [letter, ranges] : kRows) {
      if (current() != letter) continue;
      ++at_;
      set.insert(set.end(), ranges->begin(), ranges->end());
      if (!json_ && (letter == 'D' || letter == 'W' || letter == 'S'))
        set.insert(set.end(), {{'"', '"'}, {'\\', '\\'}});
      return true;
    }
    if (!take('s')) return false;
    set.emplace_back(' ', ' ');
    if (!json_) set.emplace_back('\t', '\r');
    return true;
  }

  char32_t escape() {
    constexpr std::string_view kLetters = "nrtfv0", kMeaning("\n\r\t\f\v\0", 6);
    const char c = current();
    if (const size_t known = kLetters.find(c); c != '\0' && known != std::string_view::npos) {
      ++at_;
      return static_cast<char32_t>(kMeaning[known]);
    }
    if (c == 'u' || c == 'x') {
      const size_t count = c == 'u' ? 4 : 2;
      const std::string digits(text_.substr(at_ + 1, count));
      if (digits.size() != count ||
          digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos)
        fail_here("an escape with too few digits");
      const auto value = static_cast<char32_t>(std::stoul(digits, nullptr, 16));
      if (value >= 0xd800 && value <= 0xdfff) fail_here("a surrogate");
      at_ += count + 1;
      return value;
    }
    if (c == '\0' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      fail_here("an escape that is not known");
    return next_code_point(text_, at_);
  }

  std::string character_class() {
    const bool negated = take('^');
    Ranges set;
    while (!take(']')) {
      if (at_ >= text_.size()) fail_here("a class without an end");
      const bool escaped = take('\\');
      if (escaped && shorthand(set)) {
        if (negated) fail_here("a class of what another leaves");
        continue;
      }
      const char32_t low =
          escaped ? (current() == 'b' ? (++at_, U'\b') : escape()) : next_code_point(text_, at_);
      char32_t high = low;
      if (current() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = take('\\') ? escape() : next_code_point(text_, at_);
      }
      if (high < low) fail_here("a range whose end is before its beginning");
      set.emplace_back(low, high);
    }
    return negated ? outside(set) : inside(set);
  }

  static void append_range(std::string& out, Range range) {
    append_format(out, "\\U{:08x}", static_cast<uint32_t>(range.first));
    if (range.second > range.first)
      append_format(out, "-\\U{:08x}", static_cast<uint32_t>(range.second));
  }

  /// One character of the set as JSON writes it: those that need an escape with it.
  std::string inside(Ranges set) {
    std::string plain, escaped;
    for (auto& [low, high] : set) {
      high = std::max(low, high);
      char32_t from = low;
      const auto flush = [&](char32_t end) {  // from..end-1
        if (from >= end) return;
        if (from < 0xd800 && end > 0xe000) {
          append_range(plain, {from, 0xd7ff});
          from = 0xe000;
        }
        append_range(plain, {from, end - 1});
      };
      for (char32_t c = low; c <= std::min<char32_t>(high, 0x7f); ++c) {
        if (!json_ || (c >= 0x20 && c != '"' && c != '\\')) continue;
        flush(c);
        from = c + 1;
        escaped += " | " + gbnf_literal(c < 0x20 ? strformat("\\u{:04x}", static_cast<uint32_t>(c))
                                                 : std::string("\\") + static_cast<char>(c));
      }
      flush(high + 1);
    }
    if (plain.empty() && escaped.empty()) fail_here("an empty class");
    if (plain.empty()) return "(" + escaped.substr(3) + ")";
    return escaped.empty() ? "[" + plain + "]" : "([" + plain + "]" + escaped + ")";
  }

  /// One character that is not of the set and needs no escape; no line's end, for `.`.
  std::string outside(const Ranges& set) const {
    std::string out = json_ ? "[^\\x00-\\x1f\\\"\\\\\\x7f-\\u00a0\\u2028\\u2029" : "[^";
    if (!json_ && set.empty()) out += "\\n\\r\\u2028\\u2029";
    for (const Range& range : set) append_range(out, range);
    return out + "]";
  }

  std::string_view text_;
  bool json_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

std::string gbnf_pattern(std::string_view pattern, PatternText text) {
  return PatternParser(pattern, text).parse();
}

}  // namespace weft::llm
