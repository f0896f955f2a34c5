#include "weft/text/regex_class.h"

#include <algorithm>
#include <cctype>
#include <map>

#include "weft/base/error.h"
#include "weft/base/utf8.h"
#include "weft/io/host_array.h"

namespace weft::text {
namespace {

constexpr int kMostDepth = 20;  // of classes in classes

struct NamedCategories {
  std::string_view name;  // in small letters, without spaces and underlines
  Categories set;
};
constexpr NamedCategories kNamed[] = {
    {"l", kLetters},
    {"letter", kLetters},
    {"l&", 0xe},
    {"m", kMarks},
    {"mark", kMarks},
    {"n", kNumbers},
    {"number", kNumbers},
    {"p", kPunctuation},
    {"punct", kPunctuation},
    {"punctuation", kPunctuation},
    {"s", kSymbols},
    {"symbol", kSymbols},
    {"z", kSeparators},
    {"separator", kSeparators},
    {"c", kOthers},
    {"other", kOthers},
    {"uppercaseletter", of(Category::Lu)},
    {"lowercaseletter", of(Category::Ll)},
    {"titlecaseletter", of(Category::Lt)},
    {"modifierletter", of(Category::Lm)},
    {"otherletter", of(Category::Lo)},
    {"nonspacingmark", of(Category::Mn)},
    {"decimalnumber", of(Category::Nd)},
    {"spaceseparator", of(Category::Zs)},
    {"control", of(Category::Cc)},
};
constexpr std::string_view kShortNames[kCategories] = {
    "cn", "lu", "ll", "lt", "lm", "lo", "mn", "mc", "me", "nd", "nl", "no", "pc", "pd", "ps",
    "pe", "pi", "pf", "po", "sm", "sc", "sk", "so", "zs", "zl", "zp", "cc", "cf", "cs", "co"};

CodeRanges in_categories(Categories set) {
  return ranges_where([&](const CharacterRecord& r) { return r.in(set); });
}

CodeRanges joined(CodeRanges a, const CodeRanges& b) {
  a.insert(a.end(), b.begin(), b.end());
  return merged(std::move(a));
}

CodeRanges spaces() { return joined(in_categories(kSeparators), {{'\t', '\r'}, {0x85, 0x85}}); }
CodeRanges words() {
  return in_categories(kLetters | kMarks | of(Category::Nd) | of(Category::Pc));
}

/// [:name:] and \p{name}; Onigurama's Unicode meanings.
std::optional<CodeRanges> named_set(std::string_view name) {
  for (const NamedCategories& row : kNamed)
    if (row.name == name) return in_categories(row.set);
  for (int i = 0; i < kCategories; ++i)
    if (kShortNames[i] == name) return in_categories(Categories{1} << i);
  if (name == "any") return CodeRanges{{0, kLastCodePoint}};
  if (name == "ascii") return CodeRanges{{0, 127}};
  if (name == "alpha" || name == "alphabetic")
    return ranges_where([](const CharacterRecord& r) { return r.is_alphabetic(); });
  if (name == "alnum")
    return ranges_where(
        [](const CharacterRecord& r) { return r.is_alphabetic() || r.in(of(Category::Nd)); });
  if (name == "digit") return in_categories(of(Category::Nd));
  if (name == "space" || name == "whitespace") return spaces();
  if (name == "word") return words();
  if (name == "upper") return in_categories(of(Category::Lu));
  if (name == "lower") return in_categories(of(Category::Ll));
  if (name == "cntrl") return in_categories(of(Category::Cc));
  if (name == "blank") return joined(in_categories(of(Category::Zs)), {{'\t', '\t'}});
  if (name == "xdigit") return CodeRanges{{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
  const CodeRanges script = ranges_of_script(name);
  return script.empty() ? std::nullopt : std::optional(script);
}

bool is_named(char32_t c) { return c < 128 && (std::isalnum(static_cast<int>(c)) || c == '&'); }

/// In small letters, up to `end`; what stands between the words of a name is left out.
std::string read_name(PatternText& source, std::u32string_view end) {
  std::string name;
  while (!source.take(end)) {
    const char32_t c = source.next();
    if (is_named(c))
      name += static_cast<char>(std::tolower(static_cast<int>(c)));
    else if (c == '=')
      name.clear();  // Script=Han
    else if (c != '_' && c != ' ' && c != '-')
      source.refuse("no name of a property");
  }
  return name;
}

/// Behind \p or \P.
CodeRanges read_property(PatternText& source, bool negated) {
  const size_t begin = source.at();
  std::string name;
  if (source.take('{')) {
    if (source.take('^')) negated = !negated;
    name = read_name(source, U"}");
  } else {
    name =
        static_cast<char>(std::tolower(static_cast<int>(std::min<char32_t>(source.next(), 127))));
  }
  std::optional<CodeRanges> set = named_set(name);
  if (!set && name.starts_with("is")) set = named_set(name.substr(2));
  if (!set) source.refuse("an unknown property; categories and scripts are known", begin);
  return negated ? complement(*set) : *set;
}

char32_t read_hex(PatternText& source, int least, int most) {
  char32_t value = 0;
  int digits = 0;
  for (; digits < most && source.peek() < 128 && std::isxdigit(static_cast<int>(source.peek()));
       ++digits) {
    const char32_t c = source.next() | 32;
    value = value * 16 + (c >= 'a' ? c - 'a' + 10 : c - '0');
  }
  if (digits < least || value > kLastCodePoint) source.refuse("no hexadecimal code point");
  return value;
}

std::optional<char32_t> control_of(char32_t letter) {
  constexpr std::u32string_view kLetters = U"nrtfvae", kControls = U"\n\r\t\f\v\a\x1b";
  const size_t found = kLetters.find(letter);
  return found == std::u32string_view::npos ? std::nullopt : std::optional(kControls[found]);
}

CodeRanges one(char32_t c) { return {{c, c}}; }

/// [:name:] where there is one, behind "[".
std::optional<CodeRanges> posix_class(PatternText& source) {
  if (!source.take(':')) return {};
  const bool negated = source.take('^');
  const std::string name = read_name(source, U":]");
  const std::optional<CodeRanges> set = named_set(name);
  if (!set) source.refuse("an unknown class in [: :]");
  return negated ? complement(*set) : *set;
}

CodeRanges read_nested_class(PatternText& source, int depth);

/// One character or set of a class.
CodeRanges class_item(PatternText& source, int depth) {
  const char32_t c = source.next();
  if (c == '\\') {
    if (source.take('b')) return one('\b');
    return read_escape(source);
  }
  if (c != '[') return one(c);
  if (const std::optional<CodeRanges> named = posix_class(source)) return *named;
  return read_nested_class(source, depth + 1);
}

bool is_one(const CodeRanges& r) { return r.size() == 1 && r[0].first == r[0].second; }

CodeRanges read_nested_class(PatternText& source, int depth) {
  if (depth > kMostDepth) source.refuse("too many classes in each other");
  const size_t begin = source.at() - 1;
  const bool negated = source.take('^');
  CodeRanges all;
  std::optional<CodeRanges> both;  // what was before &&
  for (bool first = true; first || source.peek() != ']'; first = false) {
    if (source.done()) source.refuse("a [ without its ]", begin);
    if (source.take(U"&&")) {
      both = both ? intersection(*both, all) : merged(std::move(all));
      all.clear();
      continue;
    }
    CodeRanges item = class_item(source, depth);
    const bool range =
        is_one(item) && source.peek() == '-' && source.peek(1) != ']' && source.peek(1) != 0;
    if (range) {
      source.next();
      const CodeRanges last = class_item(source, depth);
      if (!is_one(last) || last[0].first < item[0].first) source.refuse("a range that has no end");
      item[0].second = last[0].first;
    }
    all = joined(std::move(all), item);
  }
  source.next();
  all = source.cased(both ? intersection(*both, all) : merged(std::move(all)));
  return negated ? complement(all) : all;
}

}  // namespace

PatternText::PatternText(std::string_view pattern) : written_(valid_utf8(pattern)) {
  for (size_t at = 0; at < written_.size();) text_ += next_code_point(written_, at);
}

void PatternText::refuse(std::string_view problem, std::optional<size_t> where) const {
  fail("regex.pattern", "pattern {}: {} at character {}; write it in Onigurama's syntax",
       quoted_name(written_), problem, where.value_or(at_));
}

char32_t PatternText::next() {
  if (done()) refuse("the end where a character has to be");
  return text_[at_++];
}

bool PatternText::take(char32_t c) {
  if (done() || text_[at_] != c) return false;
  ++at_;
  return true;
}

bool PatternText::take(std::u32string_view text) {
  if (text_.compare(at_, text.size(), text) != 0) return false;
  at_ += text.size();
  return true;
}

uint32_t PatternText::number() {
  uint64_t value = 0;
  while (peek() >= '0' && peek() <= '9')
    value = std::min<uint64_t>(value * 10 + next() - '0', 1u << 31);
  return static_cast<uint32_t>(value);
}

std::optional<std::pair<uint32_t, uint32_t>> PatternText::counts() {
  const size_t begin = at_;
  if (!take('{')) return {};
  const auto is_digit = [&] { return peek() >= '0' && peek() <= '9'; };
  const bool from = is_digit();
  const uint32_t least = number();
  uint32_t most = least;
  bool to = from;
  if (take(',')) {
    to = is_digit();
    most = to ? number() : UINT32_MAX;
  }
  if ((from || to) && take('}')) return std::pair(least, most);
  at_ = begin;  // a brace that means itself
  next();
  at_ = begin;
  return {};
}

CodeRanges PatternText::cased(CodeRanges ranges) const {
  if (!fold_case) return ranges;
  static const std::multimap<char32_t, char32_t> same = [] {
    std::multimap<char32_t, char32_t> all;
    for (char32_t c = 0; c < 0x1f000; ++c)
      if (folded(c) != c) all.emplace(folded(c), c);
    return all;
  }();
  CodeRanges out = ranges;
  const auto add = [&](char32_t c) { out.emplace_back(c, c); };
  const auto is_in = [&](char32_t c) {
    const auto after = std::upper_bound(ranges.begin(), ranges.end(), std::pair(c, kLastCodePoint));
    return after != ranges.begin() && (after - 1)->second >= c;
  };
  for (auto at = same.begin(); at != same.end();) {
    const auto end = same.upper_bound(at->first);
    const bool any =
        is_in(at->first) || std::any_of(at, end, [&](const auto& x) { return is_in(x.second); });
    if (any) add(at->first);
    for (; at != end; ++at)
      if (any) add(at->second);
  }
  return merged(std::move(out));
}

CodeRanges read_class(PatternText& source) { return read_nested_class(source, 0); }

CodeRanges read_escape(PatternText& source) {
  const char32_t c = source.next();
  if (const std::optional<char32_t> control = control_of(c)) return one(*control);
  switch (c) {
    case 'd': return in_categories(of(Category::Nd));
    case 'D': return complement(in_categories(of(Category::Nd)));
    case 's': return spaces();
    case 'S': return complement(spaces());
    case 'w': return words();
    case 'W': return complement(words());
    case 'h': return {{'0', '9'}, {'A', 'F'}, {'a', 'f'}};
    case 'p': return read_property(source, false);
    case 'P': return read_property(source, true);
    case 'u': return source.cased(one(read_hex(source, 4, 4)));
    case 'x': {
      const bool braces = source.take('{');
      const char32_t code = braces ? read_hex(source, 1, 6) : read_hex(source, 1, 2);
      if (braces && !source.take('}')) source.refuse("a { without its }");
      return source.cased(one(code));
    }
    default: break;
  }
  if (c < 128 && std::isalnum(static_cast<int>(c))) source.refuse("an unknown escape");
  return source.cased(one(c));
}

}  // namespace weft::text
