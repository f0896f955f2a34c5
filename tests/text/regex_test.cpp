#include "weft/text/regex.h"

#include <gtest/gtest.h>

#include "weft/base/error.h"
#include "weft/text/pre_tokenizers.h"

namespace weft::text {
namespace {

std::vector<std::string> matches(std::string_view pattern, std::string_view text) {
  std::vector<std::string> all;
  Regex(pattern).for_each_match(
      text, [&](size_t begin, size_t end) { all.emplace_back(text.substr(begin, end - begin)); });
  return all;
}
using Words = std::vector<std::string>;

TEST(TextRegex, FindsTheFirstWayFromTheLeft) {
  EXPECT_EQ(matches("a|ab", "abab"), (Words{"a", "a"}));
  EXPECT_EQ(matches("ab|a", "aba"), (Words{"ab", "a"}));
  EXPECT_EQ(matches("a+?b", "aaab"), (Words{"aaab"}));
  EXPECT_EQ(matches("a{2,3}", "aaaaaa a"), (Words{"aaa", "aaa"}));
  EXPECT_EQ(matches("a++a", "aaa"), Words{});
  EXPECT_EQ(matches("(?>a|ab)c", "abc ac"), Words{"ac"});
  EXPECT_EQ(matches("(?:ab)*c", "ababc"), Words{"ababc"});
  EXPECT_EQ(matches("x*", "axxb"), (Words{"", "xx", ""}));
}

TEST(TextRegex, KnowsClassesAndProperties) {
  EXPECT_EQ(matches(R"(\p{L}+)", "abc 日本 1é"), (Words{"abc", "日本", "é"}));
  EXPECT_EQ(matches(R"([\p{Han}]+)", "ab日本語かな"), Words{"日本語"});
  EXPECT_EQ(matches(R"([\p{L}&&[^\p{Han}]]+)", "ab日cd"), (Words{"ab", "cd"}));
  EXPECT_EQ(matches(R"([^\s\p{L}\p{N}]+)", "a !? 1"), Words{"!?"});
  EXPECT_EQ(matches(R"([[:digit:]a-c\-]+)", "x1b-d"), Words{"1b-"});
  EXPECT_EQ(matches(R"([\u0041\x{1F600}]+)", "A😀b"), Words{"A😀"});
  EXPECT_EQ(matches("(?i:'S|straße)", "'s 'ſ STRAßE"), (Words{"'s", "'ſ", "STRAßE"}));
}

TEST(TextRegex, LooksAround) {
  EXPECT_EQ(matches(R"(\s+(?!\S)|\s+)", "a   b  "), (Words{"  ", " ", "  "}));
  EXPECT_EQ(matches(R"((?<=\d)x)", "x1x"), Words{"x"});
  EXPECT_EQ(matches(R"((?<!a)b)", "ab b"), Words{"b"});
  EXPECT_EQ(matches(R"(\d{1,3}(?=(?:\d{3})*\b))", "1234567"), (Words{"1", "234", "567"}));
  EXPECT_EQ(matches(R"(^b$)", "a\nb\nc"), Words{"b"});
}

TEST(TextRegex, CutsAsGpt2Does) {
  EXPECT_EQ(matches(kGpt2Pattern, "I'll  see 12 cats!?\n\n x"),
            (Words{"I", "'ll", " ", " see", " 12", " cats", "!?", "\n\n", " x"}));
}

TEST(TextRegex, TakesClassesInEachOther) {
  EXPECT_EQ(matches("[a[bc]]+", "xabcd"), Words{"abc"});
  EXPECT_EQ(matches("[^a[bc]]+", "xabcd"), (Words{"x", "d"}));
  EXPECT_EQ(matches("[a-z&&[^aeiou]&&[^x]]+", "bcaxd"), (Words{"bc", "d"}));
  EXPECT_EQ(matches("[^a-z&&[^aeiou]]+", "bca1e"), Words{"a1e"});
  EXPECT_EQ(matches("[^[^a]]+", "baac"), Words{"aa"});
  EXPECT_EQ(matches(R"([\^\]&]+)", "a^]&"), Words{"^]&"});
  EXPECT_EQ(matches("[]x]+", "a]x"), Words{"]x"});
}

TEST(TextRegex, TakesWhatIsNotInAClass) {
  EXPECT_EQ(matches(R"([^\W\d_]+)", "क्षत्रिय_a1é"), (Words{"क्षत्रिय", "a", "é"}));
  EXPECT_EQ(matches(R"([\W\d]+)", "a1 क्ष-"), (Words{"1 ", "-"}));
  EXPECT_EQ(matches(R"([^\S\n]+)", "a \n\t"), (Words{" ", "\t"}));
  EXPECT_EQ(matches(R"([\s\S])", "a\n"), (Words{"a", "\n"}));
  EXPECT_EQ(matches(R"([^\W]+)", "a-e\u0301"), (Words{"a", "e\u0301"}));
}

TEST(TextRegex, CountsMarksAsWordsAndScriptsByThemselves) {
  EXPECT_EQ(matches(R"(\w+)", "e\u0301a-b"), (Words{"e\u0301a", "b"}));
  EXPECT_EQ(matches(R"(\w+)", "a\u00bd4+"), Words{"a\u00bd4"});
  EXPECT_EQ(matches(R"([\w]+)", "a\u00bd4"), (Words{"a", "4"}));  // as Oniguruma has it
  EXPECT_EQ(matches(R"(\w+)", "a\u09f4b"), (Words{"a", "b"}));    // a fraction of Bengali's
  EXPECT_EQ(matches(R"(\b)", "e\u0301 a").size(), 4U);
  EXPECT_EQ(matches(R"(\w\B\w)", "ae\u0301"), (Words{"ae"}));
  EXPECT_EQ(matches(R"([[:punct:]]+)", "a!\u20ac"), Words{"!\u20ac"});
  EXPECT_EQ(matches(R"([[:alpha:]]+)", "a\u09be1"), Words{"a\u09be"});
  EXPECT_EQ(matches(R"(\h+)", "xFFz"), Words{"FF"});
  EXPECT_EQ(matches(R"(\s+)", "a\u180eb\u0085c"), Words{"\u0085"});
  EXPECT_EQ(matches(R"(\p{Han}+)", "\u4e00\u3001"), Words{"\u4e00"});  // a comma of several scripts
  EXPECT_EQ(matches(R"(\p{^Han}+)", "\u4e00a"), Words{"a"});
}

TEST(TextRegex, EndsWhatTakesTooLong) {
  const std::pair<const char*, std::string> rows[] = {
      {"(a+)+[bc]", std::string(5000, 'a')},         // in one place
      {"(?=(a+)+[bc])a", std::string(5000, 'a')},    // looking ahead
      {R"(\s+[xy])", std::string(30'000'000, ' ')},  // in all of them
  };
  for (const auto& [pattern, text] : rows) {
    const Regex regex(pattern);
    try {
      regex.for_each_match(text, [](size_t, size_t) {});
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "regex.steps");
      EXPECT_NE(error.message().find("pattern '" + std::string(pattern) + "': "), std::string::npos)
          << error.message();
    }
  }
}

TEST(TextRegex, FindsNothingInWhatIsNoText) { EXPECT_EQ(matches(".", "a\xff").size(), 0U); }

TEST(TextRegex, RefusesWhatIsNoPattern) {
  const std::pair<const char*, const char*> rows[] = {
      {"(a", "missing closing parenthesis"},
      {"a)", "unmatched closing parenthesis"},
      {"[a", "a [ without its ] at byte 0"},
      {"*a", "quantifier does not follow a repeatable item"},
      {"a{99999}", "number too big in {} quantifier"},
      {"(?<=a+)b", "lookbehind assertion is not fixed length"},
      {"\\p{Nothing}", "unknown property"},
      {"\\p{L", "a { without its }"},
      {"\\1", "reference to non-existent subpattern"},
      {"(?x)a", "an option other than i or s at byte 2"},
      {"(*NO_JIT)a", "a repeat of nothing at byte 1"},
      {"[z-a]", "range out of order in character class"},
      {"\\x{110000}", "character code point value in \\x{} or \\o{} is too large"},
      {"\\u12", "no hexadecimal code point"},
      {"((a{1000}){1000}){1000}", "regular expression is too large"},
      {"a\\", "the end where a character has to be at byte 2"},
      {"\\C", "disabled"},
      {"[a[^b]]", "a class of others that are negated"},
      {"[&&a]", "a class of nothing"},
  };
  for (const auto& [pattern, problem] : rows) {
    try {
      const Regex regex(pattern);
      ADD_FAILURE() << pattern;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), "regex.pattern");
      EXPECT_NE(error.message().find(problem), std::string::npos) << error.message();
    }
  }
  EXPECT_THROW(Regex(std::string(100000, '(')), Error);
  EXPECT_THROW(Regex(std::string(100000, '[')), Error);
}

}  // namespace
}  // namespace weft::text
