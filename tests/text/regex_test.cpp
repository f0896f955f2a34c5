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

TEST(TextRegex, TakesTimeOfPatternTimesText) {
  const std::string spaces(1000000, ' ');
  EXPECT_EQ(matches(R"(\s+$)", spaces + "x").size(), 0u);  // each of 10^12 places tried once
  EXPECT_EQ(matches("(a+)+b", std::string(20000, 'a')).size(), 0u);
  EXPECT_EQ(matches("(a|a)*c", std::string(20000, 'a')).size(), 0u);
}

TEST(TextRegex, EndsWhatRemembersTooMuch) {
  const Regex regex("(?=(a+)+b)a");  // looking ahead is not remembered
  try {
    regex.for_each_match(std::string(5000, 'a'), [](size_t, size_t) {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), "regex.steps");
    EXPECT_NE(error.message().find("pattern '(?=(a+)+b)a': takes more than"), std::string::npos)
        << error.message();
  }
}

TEST(TextRegex, RefusesWhatIsNoPattern) {
  const std::pair<const char*, const char*> rows[] = {
      {"(a", "a ( without its ) at character 0"},
      {"a)", "a ) without its ( at character 1"},
      {"[a", "a [ without its ] at character 0"},
      {"*a", "a repeat of nothing at character 1"},
      {"a{1001}", "a repeat of more than 1000 times at character 7"},
      {"(a*)*", "an endless repeat of what may be empty"},
      {"(?<=a+)b", "looking behind for what has more than one length"},
      {"\\p{Nothing}", "an unknown property"},
      {"\\q", "an unknown escape"},
      {"\\1", "an unknown escape"},
      {"(?x)a", "an option other than i"},
      {"[z-a]", "a range that has no end"},
      {"\\x{110000}", "no hexadecimal code point"},
      {"((a{100}){100}){100}", "repeats make it too large"},
      {"a\\", "the end where a character has to be"},
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
