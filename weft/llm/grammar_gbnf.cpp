// GBNF as a Grammar.
#include <algorithm>
#include <map>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/llm/grammar_parts.h"
#include "weft/llm/json_pattern.h"

namespace weft::llm {

namespace {

using Sequence = GrammarBuilder::Sequence;
constexpr int kDeepest = 100;
constexpr int64_t kMostRepeats = 100000;

class GbnfParser {
 public:
  explicit GbnfParser(std::string_view text) : text_(text) {}

  Grammar parse() {
    if (!is_utf8(text_)) fail_runtime("llm.grammar", "the grammar is not UTF-8");
    for (space(true); at_ < text_.size(); space(true)) rule();
    for (const auto& [name, index] : rules_)
      if (!defined_[index]) fail_runtime("llm.grammar", "rule '{}' is used and not defined", name);
    const auto root = rules_.find("root");
    if (root == rules_.end()) fail_runtime("llm.grammar", "there is no rule 'root'");
    if (const int64_t r = builder_.left_recursive(); r >= 0)
      fail_runtime("llm.grammar", "rule '{}' may begin with itself; put what repeats behind",
                   name_of(static_cast<uint32_t>(r)));
    return std::move(builder_).build(root->second);
  }

 private:
  [[noreturn]] void fail_here(std::string_view problem) const {
    const std::string_view before = text_.substr(0, at_);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const size_t column = at_ - (before.rfind('\n') + 1) + 1;
    fail_runtime("llm.grammar", "{}:{}: {}; grammars are written in llama.cpp's GBNF", line, column,
                 problem);
  }
  std::string name_of(uint32_t index) const {
    for (const auto& [name, known] : rules_)
      if (known == index) return name;
    return "of a repetition of what may be empty";
  }

  char current() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view what) {
    if (text_.substr(at_, what.size()) != what) return false;
    at_ += what.size();
    return true;
  }
  void space(bool lines) {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r'))) {
        ++at_;
      } else {
        return;
      }
    }
  }
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
  }
  std::string name() {
    const size_t from = at_;
    while (is_name(current())) ++at_;
    if (at_ == from) fail_here("expected a rule's name");
    return std::string(text_.substr(from, at_ - from));
  }
  uint32_t rule_of(const std::string& name) {
    const auto [place, is_new] = rules_.try_emplace(name, 0);
    if (is_new) place->second = builder_.new_rule();
    return place->second;
  }

  void rule() {
    const std::string known = name();
    space(false);
    if (!take("::=")) fail_here("expected '::='");
    space(true);
    const uint32_t index = rule_of(known);
    std::vector<Sequence> all = alternatives(false);
    if (std::exchange(defined_[index], true))
      fail_here(strformat("rule '{}' is defined twice", known));
    builder_.set_rule(index, all);
    space(false);
    if (at_ < text_.size() && current() != '\n' && current() != '\r')
      fail_here("expected a line's end");
  }

  std::vector<Sequence> alternatives(bool nested) {
    if (++depth_ > kDeepest) fail_here("nesting deeper than 100");
    std::vector<Sequence> all{sequence(nested)};
    while (take("|")) {
      space(true);
      all.push_back(sequence(nested));
    }
    --depth_;
    return all;
  }

  Sequence sequence(bool nested) {
    Sequence all;
    while (at_ < text_.size()) {
      const char c = current();
      if (c == '|' || c == ')' || c == '\n' || c == '\r') break;
      Sequence one = item();
      one = postfix(std::move(one), nested);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  Sequence item() {
    if (take("\"")) return literal();
    if (take("[")) return character_class();
    if (take(".")) return builder_.character({{0, 0x10ffff}}, false);
    if (take("(")) {
      space(true);
      Sequence group = builder_.choice(alternatives(true));
      space(true);
      if (!take(")")) fail_here("expected ')'");
      return group;
    }
    if (!is_name(current())) fail_here("expected a literal, a class, a rule or a group");
    return {GrammarBuilder::rule(rule_of(name()))};
  }

  /// Of a repetition in braces, with the space around it.
  int64_t count() {
    space(true);
    const size_t from = at_;
    int64_t value = 0;
    while (current() >= '0' && current() <= '9' && value <= kMostRepeats)
      value = value * 10 + (text_[at_++] - '0');
    if (at_ == from) fail_here("expected a number");
    if (value > kMostRepeats) fail_here("a repetition of more than 100000");
    space(true);
    return value;
  }

  Sequence postfix(Sequence one, bool nested) {
    while (true) {
      space(nested);
      if (take("?")) {
        one = builder_.repeated(one, 0, 1);
      } else if (take("*")) {
        one = builder_.repeated(one, 0, -1);
      } else if (take("+")) {
        one = builder_.repeated(one, 1, -1);
      } else if (take("{")) {
        space(true);
        const int64_t least = current() == ',' ? 0 : count();
        int64_t most = least;
        if (take(",")) {
          space(true);
          most = current() == '}' ? -1 : count();
        }
        if (!take("}")) fail_here("expected '}'");
        if (most >= 0 && most < least) fail_here("a repetition whose most is below its least");
        one = builder_.repeated(one, least, most);
      } else {
        return one;
      }
    }
  }

  char32_t code(size_t digits) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const char c = current(), low = static_cast<char>(c | 0x20);
      const bool digit = c >= '0' && c <= '9';
      if (!digit && (low < 'a' || low > 'f')) fail_here("an escape with too few digits");
      value = value * 16 + static_cast<char32_t>(digit ? c - '0' : low - 'a' + 10);
    }
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) fail_here("no character");
    return value;
  }

  char32_t character() {
    if (at_ >= text_.size() || current() == '\n') fail_here("a literal or class without an end");
    if (!take("\\")) return next_code_point(text_, at_);
    constexpr std::string_view kLetters = "nrt\\\"[]-^", kMeaning = "\n\r\t\\\"[]-^";
    const char c = current();
    ++at_;
    if (c == 'x') return code(2);
    if (c == 'u') return code(4);
    if (c == 'U') return code(8);
    const size_t known = kLetters.find(c);
    if (known == std::string_view::npos || at_ > text_.size()) fail_here("an unknown escape");
    return static_cast<char32_t>(kMeaning[known]);
  }

  Sequence literal() {
    std::string text;
    while (!take("\"")) append_utf8(text, character());
    return builder_.bytes(text);
  }

  Sequence character_class() {
    const bool negated = take("^");
    std::vector<CodeRange> ranges;
    while (!take("]")) {
      const char32_t low = character();
      char32_t high = low;
      if (current() == '-' && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = character();
      }
      if (high < low) fail_here("a range whose end is before its beginning");
      ranges.emplace_back(low, high);
    }
    return builder_.character(std::move(ranges), negated);
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
  GrammarBuilder builder_;
  std::map<std::string, uint32_t> rules_;
  std::map<uint32_t, bool> defined_;
};

}  // namespace

Grammar Grammar::from_gbnf(std::string_view text) { return GbnfParser(text).parse(); }

Grammar Grammar::from_json_schema(std::string_view schema) {
  return from_gbnf(json_schema_gbnf(schema));
}

Grammar Grammar::from_pattern(std::string_view pattern) {
  if (!is_utf8(pattern)) fail_runtime("llm.schema", "the pattern is not UTF-8");
  return from_gbnf("root ::= " + gbnf_pattern(pattern, PatternText::Plain));
}

Grammar Grammar::from_choices(std::span<const std::string> choices) {
  if (choices.empty()) fail_runtime("llm.grammar", "there are no texts to choose from");
  std::string all;
  for (const std::string& choice : choices)
    all += (all.empty() ? "root ::= " : " | ") + gbnf_literal(choice);
  return from_gbnf(all);
}

}  // namespace weft::llm
