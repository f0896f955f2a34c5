// Where the two differ: classes in each other and &&, \h, \w, \s, \u, scripts, and what options are
// called.
// https://github.com/kkos/oniguruma/blob/master/doc/RE, pcre2pattern(3).
#include "weft/text/regex_syntax.h"

#include <algorithm>
#include <vector>

#include "weft/base/error.h"

namespace weft::text {
namespace {

constexpr int kMostDepth = 100;

// Members of a class. PCRE2's \w lacks marks, its \s has U+180E.
constexpr const char* kWordMembers = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc})";
// Outside of classes: what ISO 8859-1 has of exponents and fractions, too.
constexpr const char* kWord = R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\xb2\xb3\xb9\xbc-\xbe)";
constexpr const char* kSpaceMembers = R"(\t-\r\x{85}\p{Z})";
constexpr const char* kHexMembers = "0-9A-Fa-f";

// Classes of POSIX that have other members in PCRE2.
struct PosixClass {
  std::string_view name, members;
};
constexpr PosixClass kPosixClasses[] = {
    {"[:alnum:]", R"(\p{Alphabetic}\p{Nd})"},
    {"[:alpha:]", R"(\p{Alphabetic})"},
    {"[:lower:]", R"(\p{Lowercase})"},
    {"[:punct:]", R"(\p{P}\p{S})"},
    {"[:space:]", kSpaceMembers},
    {"[:upper:]", R"(\p{Uppercase})"},
    {"[:word:]", kWordMembers},
};

// Properties with long names that are no scripts. A script's name alone is its extensions in PCRE2:
// characters that several scripts use.
constexpr std::string_view kProperties[] = {
    "Alphabetic",  "Any",       "Cased", "Dash",      "Emoji",      "Extended_Pictographic",
    "Ideographic", "Lowercase", "Math",  "Uppercase", "White_Space"};

class Translation {
 public:
  explicit Translation(std::string_view pattern) : pattern_(pattern) {}

  std::string run() {
    std::string out;
    while (at_ < pattern_.size()) {
      const char c = pattern_[at_];
      if (c == '[') {
        out += char_class(0).text();
      } else if (c == '\\') {
        out += escape();
      } else {
        if (c == '(') check_group();
        out += c, ++at_;
      }
    }
    return out;
  }

 private:
  /// Characters that are in all of these, or those that are not.
  struct Class {
    std::vector<std::string> all;  // each a class of PCRE2, without its brackets
    bool negated = false;

    std::string text() const {
      if (all.size() == 1 && negated && all[0][0] == '^') return "[" + all[0].substr(1) + "]";
      if (all.size() == 1) return (negated ? "[^" : "[") + all[0] + "]";
      std::string out = negated ? "(?:(?!" : "(?:";
      for (size_t i = 0; i + 1 < all.size(); ++i) out += "(?=[" + all[i] + "])";
      out += "[" + all.back() + "]";
      return out + (negated ? ")(?s:.))" : ")");
    }
  };

  [[noreturn]] void refuse(std::string_view problem, size_t at) const {
    refuse_pattern(pattern_, problem, at);
  }
  bool next_is(std::string_view text) const { return pattern_.substr(at_).starts_with(text); }

  /// Groups that mean something else there, or could tell the matcher what to do.
  void check_group() const {
    if (next_is("(*")) refuse("a repeat of nothing", at_ + 1);
    if (!next_is("(?") || at_ + 2 == pattern_.size()) return;
    const char kind = pattern_[at_ + 2];
    if (std::string_view(":=!>#|<-is").find(kind) == std::string_view::npos)
      refuse("an option other than i or s", at_ + 2);
  }

  /// A letter with a backslash before it, outside of a class.
  std::string escape() {
    const size_t begin = at_++;
    if (at_ == pattern_.size()) refuse("the end where a character has to be", at_);
    const char c = pattern_[at_++];
    switch (c) {
      case 'h': return std::string("[") + kHexMembers + "]";
      case 'H': return std::string("[^") + kHexMembers + "]";
      case 'b': return boundary("(?!", "(?=");
      case 'B': return boundary("(?=", "(?!");
      case 'w': return std::string("[") + kWord + "]";
      case 'W': return std::string("[^") + kWord + "]";
      case 's': return std::string("[") + kSpaceMembers + "]";
      case 'S': return std::string("[^") + kSpaceMembers + "]";
      default: return same_everywhere(begin, c);
    }
  }
  /// Behind a character of words what `behind` says of the next one, behind others what `other`
  /// does.
  static std::string boundary(std::string_view behind, std::string_view other) {
    const std::string word = std::string("[") + kWord + "]";
    return "(?:(?<=" + word + ")" + std::string(behind) + word + ")|(?<!" + word + ")" +
           std::string(other) + word + "))";
  }
  std::string same_everywhere(size_t begin, char c) {
    if (c == 'u') return code_point();
    std::string out(pattern_.substr(begin, 2));
    return (c == 'p' || c == 'P') && next_is("{") ? out + property() : out;
  }
  /// {Han} as {sc:Han}
  std::string property() {
    const size_t end = pattern_.find('}', at_);
    if (end == std::string_view::npos) refuse("a { without its }", at_);
    std::string_view name = pattern_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    const bool negated = name.starts_with('^');
    if (negated) name.remove_prefix(1);
    const bool script =
        name.size() > 2 && std::ranges::find(kProperties, name) == std::end(kProperties);
    return std::string(negated ? "{^" : "{") + (script ? "sc:" : "") + std::string(name) + "}";
  }
  std::string member_escape() {
    const size_t begin = at_++;
    if (at_ == pattern_.size()) refuse("a [ without its ]", begin);
    const char c = pattern_[at_++];
    switch (c) {
      case 'h': return kHexMembers;
      case 'w': return kWordMembers;
      case 's': return kSpaceMembers;
      default: return same_everywhere(begin, c);
    }
  }
  /// \uHHHH
  std::string code_point() {
    const std::string_view digits = pattern_.substr(at_, 4);
    if (digits.size() < 4 ||
        digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos)
      refuse("no hexadecimal code point", at_);
    at_ += 4;
    return "\\x{" + std::string(digits) + "}";
  }

  /// \W, \S and \H: what they are not is returned. Nothing where something else comes.
  std::string negative_member() {
    const char* members = next_is("\\W")   ? kWordMembers
                          : next_is("\\S") ? kSpaceMembers
                          : next_is("\\H") ? kHexMembers
                                           : "";
    if (*members != 0) at_ += 2;
    return members;
  }

  /// A class of `members` or what is in none of `others` has what is not in all of these.
  static void negate(Class& made, std::vector<std::string> others, std::string& members) {
    made.all = std::move(others);
    if (!members.empty()) made.all.push_back("^" + members);
    made.negated = !made.negated;
  }

  Class char_class(int depth) {
    if (depth > kMostDepth) refuse("too many classes in each other", at_);
    const size_t begin = at_++;
    Class made;
    made.negated = at_ < pattern_.size() && pattern_[at_] == '^';
    if (made.negated) ++at_;
    std::string members;
    std::vector<std::string> others;
    bool first = true;
    const auto end_part = [&] {
      if (members.empty()) refuse("a class of nothing", at_);
      made.all.push_back(std::move(members));
      members.clear();
    };
    for (; at_ < pattern_.size() && (first || pattern_[at_] != ']'); first = false) {
      if (next_is("&&")) {
        end_part();
        at_ += 2;
      } else if (std::string other = negative_member(); !other.empty()) {
        others.push_back(std::move(other));
      } else if (next_is("[:")) {
        members += posix_class();
      } else if (pattern_[at_] == '[') {
        add_inner(char_class(depth + 1), members, begin);
      } else if (pattern_[at_] == '\\') {
        members += member_escape();
      } else {
        if (members.empty() && pattern_[at_] == '^') members += '\\';
        members += pattern_[at_++];
      }
    }
    if (at_ == pattern_.size()) refuse("a [ without its ]", begin);
    ++at_;
    if (!others.empty()) {
      if (!made.all.empty() || members.starts_with('^'))
        refuse("\\W, \\S or \\H beside && or a class that is negated", begin);
      negate(made, std::move(others), members);
      return made;
    }
    if (!members.empty() || made.all.empty()) end_part();
    return made;
  }

  /// Members of a class in a class; one that is by itself between && may be negated.
  void add_inner(const Class& inner, std::string& members, size_t begin) const {
    const bool alone = members.empty() && (next_is("&&") || next_is("]"));
    if (inner.all.size() != 1 || (inner.negated && !alone))
      refuse("a class of others that are negated or have &&", begin);
    members += (inner.negated ? "^" : "") + inner.all[0];
  }

  std::string posix_class() {
    const size_t end = pattern_.find(":]", at_);
    if (end == std::string_view::npos) refuse("a [ without its ]", at_);
    const std::string_view name = pattern_.substr(at_, end + 2 - at_);
    at_ = end + 2;
    const auto* row = std::ranges::find(kPosixClasses, name, &PosixClass::name);
    return std::string(row == std::end(kPosixClasses) ? name : row->members);
  }

  std::string_view pattern_;
  size_t at_ = 0;
};

}  // namespace

std::string pcre2_syntax(std::string_view pattern) { return Translation(pattern).run(); }

void refuse_pattern(std::string_view pattern, std::string_view problem, size_t at) {
  fail_runtime("regex.pattern", "pattern '{}': {} at byte {}; write it in Oniguruma's syntax",
               pattern.substr(0, 200), problem, at);
}

}  // namespace weft::text
