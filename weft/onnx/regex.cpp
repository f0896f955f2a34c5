#include "weft/onnx/regex.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "weft/base/error.h"
#include "weft/io/host_array.h"
#include "weft/onnx/characters.h"

namespace weft::onnx {
namespace {

constexpr int kMostRepeats = 1000;  // RE2's limit
constexpr int kMostDepth = 200;
constexpr size_t kMostSteps = 20000;
constexpr char32_t kLastCharacter = 0x10ffff;

using Ranges = std::vector<std::pair<char32_t, char32_t>>;

struct NamedRanges {
  std::u32string_view name;
  Ranges ranges;
};

const std::vector<NamedRanges>& posix_classes() {
  static const std::vector<NamedRanges> kClasses = {
      {U"alnum", {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}}},
      {U"alpha", {{'A', 'Z'}, {'a', 'z'}}},
      {U"ascii", {{0, 127}}},
      {U"blank", {{'\t', '\t'}, {' ', ' '}}},
      {U"cntrl", {{0, 31}, {127, 127}}},
      {U"digit", {{'0', '9'}}},
      {U"graph", {{'!', '~'}}},
      {U"lower", {{'a', 'z'}}},
      {U"print", {{' ', '~'}}},
      {U"punct", {{'!', '/'}, {':', '@'}, {'[', '`'}, {'{', '~'}}},
      {U"space", {{'\t', '\r'}, {' ', ' '}}},
      {U"upper", {{'A', 'Z'}}},
      {U"word", {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}},
      {U"xdigit", {{'0', '9'}, {'A', 'F'}, {'a', 'f'}}},
  };
  return kClasses;
}

std::optional<Ranges> perl_class(char32_t letter) {
  switch (letter) {
    case 'd': return Ranges{{'0', '9'}};
    case 's': return Ranges{{'\t', '\n'}, {'\f', '\r'}, {' ', ' '}};
    case 'w': return Ranges{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
    default: return {};
  }
}

Ranges complement(Ranges ranges) {
  std::sort(ranges.begin(), ranges.end());
  Ranges out;
  char32_t next = 0;
  for (const auto& [low, high] : ranges) {
    if (low > next) out.emplace_back(next, low - 1);
    next = std::max<char32_t>(next, high + 1);
  }
  if (next <= kLastCharacter) out.emplace_back(next, kLastCharacter);
  return out;
}

bool is_word(char32_t c) {
  return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

}  // namespace

bool CharacterSet::contains(char32_t c) const {
  const auto has = [&](char32_t x) {
    return std::any_of(ranges.begin(), ranges.end(),
                       [&](const auto& r) { return x >= r.first && x <= r.second; });
  };
  return (has(c) || (fold_case && (has(to_lower(c)) || has(to_upper(c))))) != negated;
}

// A pattern's parse, which emits steps as it goes: those of an atom are moved or copied when an
// operator behind it asks for that.
class RegexCompiler {
 public:
  RegexCompiler(std::string_view pattern, Regex& regex)
      : written_(pattern), pattern_(decode_utf8(pattern)), regex_(regex) {}

  void compile() {
    Steps all = alternatives(0);
    if (!done()) refuse("a ) without its (");
    all.push_back({Op::Match});
    regex_.steps_ = std::move(all);
  }

 private:
  using Op = Regex::Op;
  using Steps = std::vector<Regex::Step>;  // targets are relative to the step
  struct Flags {
    bool fold_case = false, lines = false, dot_all = false;
  };

  [[noreturn]] void refuse(std::string_view problem) const {
    fail("onnx.regex", "pattern {}: {} at character {}; write it in RE2's syntax",
         quoted_name(written_), problem, at_);
  }
  bool done() const { return at_ >= pattern_.size(); }
  char32_t peek() const { return done() ? 0 : pattern_[at_]; }
  bool take(char32_t c) {
    if (done() || pattern_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool take(std::u32string_view text) {
    if (pattern_.compare(at_, text.size(), text) != 0) return false;
    at_ += text.size();
    return true;
  }
  char32_t next() {
    if (done()) refuse("the end where a character has to be");
    return pattern_[at_++];
  }

  static Steps joined(Steps a, const Steps& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }
  void require_small(size_t steps) const {
    if (steps > kMostSteps) refuse("repeats make it too large");
  }

  Steps alternatives(int depth) {
    if (depth > kMostDepth) refuse("too many groups in each other");
    const Flags outside = flags_;
    Steps all = sequence(depth);
    while (take('|')) {
      const Steps other = sequence(depth);
      Steps both = {{Op::Split, 1, static_cast<uint32_t>(all.size() + 2)}};
      both = joined(std::move(both), all);
      both.push_back({Op::Jump, static_cast<uint32_t>(other.size() + 1)});
      all = joined(std::move(both), other);
      require_small(all.size());
    }
    flags_ = outside;
    return all;
  }

  // Between \Q and \E characters stand for themselves.
  Steps sequence(int depth) {
    Steps all;
    while (!done() && (quoted_ || (peek() != '|' && peek() != ')'))) {
      if (take(quoted_ ? U"\\E" : U"\\Q")) {
        quoted_ = !quoted_;
        continue;
      }
      Steps one = quoted_ ? literal(next()) : atom(depth);
      if (quoted_ && take(U"\\E")) quoted_ = false;
      all = joined(std::move(all), quoted_ ? one : repeated(std::move(one)));
      require_small(all.size());
    }
    return all;
  }

  // Greedy and lazy repeats match the same texts.
  Steps repeated(Steps one) {
    bool again = false;
    for (;;) {
      int least = 0, most = -1;  // -1: any number
      if (take('*')) {
      } else if (take('+')) {
        least = 1;
      } else if (take('?')) {
        most = 1;
      } else if (!counts(least, most)) {
        return one;
      }
      if (again) refuse("a repeat of a repeat");
      again = true;
      take('?');
      one = times(one, least, most);
    }
  }

  // {2}, {2,}, {2,3}; what is none stands for itself.
  bool counts(int& least, int& most) {
    const size_t start = at_;
    if (!take('{')) return false;
    const std::optional<int> low = number();
    const bool comma = take(',');
    const std::optional<int> high = comma ? number() : low;
    if (!low || !take('}')) {
      at_ = start;
      return false;
    }
    least = *low;
    most = high.value_or(-1);
    if (least > kMostRepeats || most > kMostRepeats || (high && most < least))
      refuse("a repeat that is not within 0 to 1000");
    return true;
  }
  std::optional<int> number() {
    std::optional<int> x;
    while (peek() >= '0' && peek() <= '9')
      x = std::min(x.value_or(0) * 10 + static_cast<int>(next() - '0'), kMostRepeats + 1);
    return x;
  }

  Steps times(const Steps& one, int least, int most) {
    Steps all;
    const auto size = static_cast<uint32_t>(one.size());
    for (int i = 0; i < least; ++i) {
      all = joined(std::move(all), one);
      require_small(all.size());
    }
    if (most < 0) {
      all.push_back({Op::Split, 1, size + 2});
      all = joined(std::move(all), one);
      all.push_back({Op::Jump, static_cast<uint32_t>(-static_cast<int>(size + 1))});
    }
    for (int i = least; i < most; ++i) {
      all.push_back({Op::Split, 1, static_cast<uint32_t>(most - i) * (size + 1)});
      all = joined(std::move(all), one);
      require_small(all.size());
    }
    return all;
  }

  Steps atom(int depth) {
    const char32_t c = next();
    switch (c) {
      case '(': return group(depth);
      case '[': return set(bracket());
      case '.': return any();
      case '^': return {{flags_.lines ? Op::LineBegin : Op::TextBegin}};
      case '$': return {{flags_.lines ? Op::LineEnd : Op::TextEnd}};
      case '\\': return escape();
      case '*':
      case '+':
      case '?': refuse("a repeat of nothing");
      default: return literal(c);
    }
  }

  Steps set(CharacterSet s) {
    s.fold_case = flags_.fold_case;
    regex_.sets_.push_back(std::move(s));
    return {{Op::Set, static_cast<uint32_t>(regex_.sets_.size() - 1)}};
  }
  Steps literal(char32_t c) { return set({{{c, c}}}); }
  Steps any() {
    return set(flags_.dot_all ? CharacterSet{{{0, kLastCharacter}}}
                              : CharacterSet{{{'\n', '\n'}}, true});
  }

  Steps group(int depth) {
    const Flags outside = flags_;
    if (take(U"?P<") || take(U"?<")) {
      while (next() != '>') {}
    } else if (take('?')) {
      bool on = true;
      for (char32_t c = next(); c != ':'; c = next()) {
        if (c == ')') return {};  // from here to the end of the group around
        if (c == '-') {
          on = false;
        } else if (c == 'i') {
          flags_.fold_case = on;
        } else if (c == 'm') {
          flags_.lines = on;
        } else if (c == 's') {
          flags_.dot_all = on;
        } else if (c != 'U') {
          refuse("a group that RE2 has not");
        }
      }
    }
    Steps all = alternatives(depth + 1);
    if (!take(')')) refuse("a ( without its )");
    flags_ = outside;
    return all;
  }

  Steps escape() {
    const char32_t c = next();
    switch (c) {
      case 'A': return {{Op::TextBegin}};
      case 'z': return {{Op::TextEnd}};
      case 'b': return {{Op::Word}};
      case 'B': return {{Op::NotWord}};
      default: break;
    }
    if (const auto ranges = perl_class(c)) return set({*ranges});
    if (const auto ranges = perl_class(c | 32)) return set({complement(*ranges)});
    return literal(escaped(c));
  }

  // The character that a \ and c stand for.
  char32_t escaped(char32_t c) {
    switch (c) {
      case 'a': return 7;
      case 'f': return '\f';
      case 'n': return '\n';
      case 'r': return '\r';
      case 't': return '\t';
      case 'v': return '\v';
      case 'x': return hexadecimal();
      default: break;
    }
    if (c >= '0' && c <= '7') {
      char32_t x = c - '0';
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i) x = x * 8 + (next() - '0');
      return x;
    }
    if (c > 127 || is_word(c)) refuse("an escape that is not known");
    return c;
  }
  char32_t hexadecimal() {
    const bool braces = take('{');
    char32_t x = 0;
    for (int i = 0; braces ? peek() != '}' : i < 2; ++i) {
      const char32_t c = next(), low = c | 32;
      if (!(c >= '0' && c <= '9') && !(low >= 'a' && low <= 'f')) refuse("no hexadecimal digit");
      x = x * 16 + (c <= '9' ? c - '0' : low - 'a' + 10);
      if (x > kLastCharacter) refuse("a number above the last character's");
    }
    if (braces) take('}');
    return x;
  }

  CharacterSet bracket() {
    CharacterSet s;
    s.negated = take('^');
    for (bool first = true; first || peek() != ']'; first = false) {
      if (done()) refuse("a [ without its ]");
      if (take(U"[:")) {
        add_posix(s.ranges);
        continue;
      }
      const std::optional<char32_t> low = bracket_character(s.ranges);
      if (!low) continue;
      char32_t high = *low;
      if (peek() == '-' && at_ + 1 < pattern_.size() && pattern_[at_ + 1] != ']') {
        ++at_;
        Ranges none;
        high = bracket_character(none).value_or(0);
        if (high < *low) refuse("a range that ends before it begins");
      }
      s.ranges.emplace_back(*low, high);
    }
    ++at_;
    return s;
  }
  // Nothing where it was a class, which is in `ranges` now.
  std::optional<char32_t> bracket_character(Ranges& ranges) {
    const char32_t c = next();
    if (c != '\\') return c;
    const char32_t letter = next();
    std::optional<Ranges> named = perl_class(letter);
    if (!named && perl_class(letter | 32)) named = complement(*perl_class(letter | 32));
    if (!named) return escaped(letter);
    ranges.insert(ranges.end(), named->begin(), named->end());
    return {};
  }
  void add_posix(Ranges& ranges) {
    const bool negated = take('^');
    for (const NamedRanges& c : posix_classes()) {
      if (!take(std::u32string(c.name) + U":]")) continue;
      const Ranges named = negated ? complement(c.ranges) : c.ranges;
      ranges.insert(ranges.end(), named.begin(), named.end());
      return;
    }
    refuse("a class of characters that is not known");
  }

  std::string_view written_;
  std::u32string pattern_;
  size_t at_ = 0;
  Flags flags_;
  bool quoted_ = false;
  Regex& regex_;
};

Regex::Regex(std::string_view pattern) { RegexCompiler(pattern, *this).compile(); }

bool Regex::holds(Op assertion, const std::u32string& text, size_t at) const {
  const bool before = at > 0 && is_word(text[at - 1]),
             after = at < text.size() && is_word(text[at]);
  switch (assertion) {
    case Op::TextBegin: return at == 0;
    case Op::TextEnd: return at == text.size();
    case Op::LineBegin: return at == 0 || text[at - 1] == '\n';
    case Op::LineEnd: return at == text.size() || text[at] == '\n';
    case Op::Word: return before != after;
    default: return before == after;
  }
}

// All Set and Match steps that can be reached from this one without a character.
void Regex::reach(uint32_t step, const std::u32string& text, size_t at,
                  std::vector<uint32_t>& reached, std::vector<uint8_t>& seen) const {
  std::vector<uint32_t> open = {step};
  while (!open.empty()) {
    const uint32_t i = open.back();
    open.pop_back();
    if (seen[i]) continue;
    seen[i] = 1;
    const Step& s = steps_[i];
    if (s.op == Op::Set || s.op == Op::Match) {
      reached.push_back(i);
    } else if (s.op == Op::Jump || s.op == Op::Split) {
      open.push_back(i + s.to);
      if (s.op == Op::Split) open.push_back(i + s.or_to);
    } else if (holds(s.op, text, at)) {
      open.push_back(i + 1);
    }
  }
}

bool Regex::matches(std::string_view text) const {
  const std::u32string characters = decode_utf8(text);
  std::vector<uint32_t> now, then;
  std::vector<uint8_t> seen(steps_.size());
  reach(0, characters, 0, now, seen);
  for (size_t at = 0; at < characters.size() && !now.empty(); ++at) {
    then.clear();
    std::fill(seen.begin(), seen.end(), 0);
    for (const uint32_t i : now)
      if (steps_[i].op == Op::Set && sets_[steps_[i].to].contains(characters[at]))
        reach(i + 1, characters, at + 1, then, seen);
    std::swap(now, then);
  }
  return std::any_of(now.begin(), now.end(), [&](uint32_t i) { return steps_[i].op == Op::Match; });
}

}  // namespace weft::onnx
