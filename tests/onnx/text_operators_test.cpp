#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"
#include "weft/base/error.h"
#include "weft/onnx/characters.h"
#include "weft/onnx/regex.h"

namespace weft::onnx {
namespace {

struct RegexCase {
  std::string pattern;
  std::vector<std::string> yes, no;
};

TEST(Regex, SyntaxOfRe2) {
  const std::vector<RegexCase> cases = {
      {"", {""}, {"a"}},
      {"abc|de", {"abc", "de"}, {"ab", "abcde", ""}},
      {"a*b+c?", {"b", "aabbc", "bc"}, {"a", "aac", "bcc"}},
      {"a{2}b{1,}c{0,2}", {"aab", "aabbcc"}, {"ab", "aabccc"}},
      {"a{,2}", {"a{,2}"}, {"aa"}},
      {"(?:ab)*?", {"", "abab"}, {"aba"}},
      {"(?P<name>x)y|(?<other>z)", {"xy", "z"}, {"x"}},
      {"[^a-c\\d]+", {"xyz", "-"}, {"a", "5"}},
      {"[]a]+", {"]a]"}, {"b"}},
      {"[a\\-z]+", {"a-z"}, {"b"}},
      {"[[:alpha:]_]+[[:^digit:]]", {"ab_c", "x!"}, {"ab1"}},
      {"\\w+@(gmail|yahoo)\\.com", {"a_b@gmail.com"}, {"a@gmailxcom", "@gmail.com"}},
      {"\\bfoo\\b.*", {"foo", "foo bar"}, {"foobar"}},
      {".", {"x", "\xc3\xa9", "\xf0\x9f\x98\x80"}, {"\n", "", "xy"}},
      {"(?s).", {"\n"}, {}},
      {"(?i)straSSe", {"STRASSE", "strasse"}, {"strase"}},
      {"a(?i:b)c", {"aBc", "abc"}, {"aBC"}},
      {"(?i)\xc3\x84", {"\xc3\xa4"}, {"a"}},
      {"^a$", {"a"}, {"a\n"}},
      {"(?m)a$\n^b", {"a\nb"}, {"ab"}},
      {"\\Qa.b\\E+", {"a.b", "a.bb"}, {"axb"}},
      {"\\x41\\x{42}\\103\\t", {"ABC\t"}, {"abc"}},
      {"(a|b)(c|(d|e)f)*", {"a", "bcdfef"}, {"adf f"}},
      {"((a*)*)*", {"", "aaaa"}, {"b"}},
  };
  for (const RegexCase& c : cases) {
    const Regex regex(c.pattern);
    for (const std::string& text : c.yes) EXPECT_TRUE(regex.matches(text)) << c.pattern << text;
    for (const std::string& text : c.no) EXPECT_FALSE(regex.matches(text)) << c.pattern << text;
  }
}

std::string refused(const std::string& pattern) {
  try {
    (void)Regex(pattern);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "onnx.regex");
    return e.message();
  }
  return "no error";
}

TEST(Regex, Refusals) {
  EXPECT_EQ(refused("a)"),
            "pattern 'a)': a ) without its ( at character 1; write it in RE2's syntax");
  EXPECT_EQ(refused("(a"),
            "pattern '(a': a ( without its ) at character 2; write it in RE2's syntax");
  EXPECT_EQ(refused("[a"),
            "pattern '[a': a [ without its ] at character 2; write it in RE2's syntax");
  EXPECT_NE(refused("[z-a]").find("a range that ends before it begins"), std::string::npos);
  EXPECT_NE(refused("*a").find("a repeat of nothing"), std::string::npos);
  EXPECT_NE(refused("a**").find("a repeat of a repeat"), std::string::npos);
  EXPECT_NE(refused("a{1001}").find("not within 0 to 1000"), std::string::npos);
  EXPECT_NE(refused("(?=a)").find("a group that RE2 has not"), std::string::npos);
  EXPECT_NE(refused("\\p{Greek}").find("an escape that is not known"), std::string::npos);
  EXPECT_NE(refused("[[:nothing:]]").find("a class of characters"), std::string::npos);
  EXPECT_NE(refused("\\x{110000}").find("above the last character's"), std::string::npos);
  EXPECT_NE(refused("a\\").find("the end where a character has to be"), std::string::npos);
  EXPECT_NE(refused(std::string(100000, '(')).find("too many groups"), std::string::npos);
  EXPECT_NE(refused("((((a{100}){100}){100}){100}){100}").find("too large"), std::string::npos);
}

// What takes exponential time elsewhere.
TEST(Regex, TimeIsLinear) {
  EXPECT_FALSE(Regex("(a+)+b").matches(std::string(20000, 'a')));
  EXPECT_FALSE(Regex("(a|aa|a?)*c").matches(std::string(20000, 'a')));
}

TEST(Characters, Utf8AndCases) {
  EXPECT_EQ(encode_utf8(decode_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")),
            "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(decode_utf8("\xff\xc0\x80\xed\xa0\x80\xe2\x82"), std::u32string(8, U'\xfffd'));
  EXPECT_EQ(to_upper(U'\xe9'), U'\xc9');
  EXPECT_EQ(to_lower(U'\x416'), U'\x436');
  EXPECT_EQ(to_lower(to_upper(U'\x117')), U'\x117');
  EXPECT_EQ(to_upper(U'1'), U'1');
}

TEST(TextOperators, StringsBroadcast) {
  const Value a = Value::strings({"a", "b"}, {2, 1}), b = Value::strings({"a", "c"}, {2});
  EXPECT_EQ(run_node("StringConcat", 20, {}, {a, b})[0].texts(), (texts{"aa", "ac", "ba", "bc"}));
}

std::string refusal_of_texts(const std::string& op, std::vector<Attribute> attributes,
                             const Values& inputs, size_t outputs = 1) {
  try {
    run_node(op, 20, std::move(attributes), inputs, outputs);
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(TextOperators, Refusals) {
  const Value x = Value::strings({"a", "b"}, {2});
  EXPECT_EQ(refusal_of_texts("StringConcat", {}, {x, Value::strings({"a", "b", "c"}, {3})}),
            "StringConcat node that makes 'y0': shapes (2,) and (3,) do not broadcast");
  EXPECT_EQ(refusal_of_texts("StringNormalizer", {attr("case_change_action", "TITLE")}, {x}),
            "StringNormalizer node that makes 'y0': case_change_action 'TITLE': NONE, LOWER or "
            "UPPER");
  EXPECT_EQ(refusal_of_texts("StringNormalizer", {}, {Value::strings({"a", "b"}, {2, 1})}),
            "StringNormalizer node that makes 'y0': input (2, 1): (C) or (1, C)");
}

std::vector<Attribute> tf_idf(const ints& pool, const ints& counts, const ints& indexes) {
  return {attr("mode", "TF"),           attr("pool_int64s", pool),
          attr("ngram_counts", counts), attr("ngram_indexes", indexes),
          attr("min_gram_length", 1),   attr("max_gram_length", 2),
          attr("max_skip_count", 0)};
}

TEST(TextOperators, CastsTextsToIntegersOfAllDigits) {
  const Value texts = Value::strings({"9007199254740993", "-9223372036854775808", "+7"}, {3});
  EXPECT_EQ(run_node("Cast", 13, {attr("to", 7)}, {texts})[0].tensor().to_vector<int64_t>(),
            (std::vector<int64_t>{9007199254740993, INT64_MIN, 7}));
  const Value large = Value::strings({"18446744073709551615"}, {1});
  EXPECT_EQ(run_node("Cast", 13, {attr("to", 13)}, {large})[0].tensor().to_vector<uint64_t>(),
            (std::vector<uint64_t>{UINT64_MAX}));
  // What is no whole number is read as a float first.
  EXPECT_EQ(run_node("Cast", 13, {attr("to", 7)}, {Value::strings({"1e3", "2.5"}, {2})})[0]
                .tensor()
                .to_vector<int64_t>(),
            (std::vector<int64_t>{1000, 2}));
}

TEST(TextOperators, TfIdfRefusals) {
  const Value x = known(ints{1, 2, 3});
  EXPECT_EQ(run_node("TfIdfVectorizer", 9, tf_idf({1, 3, 2, 3}, {0, 2}, {0, 1, 2}), {x})[0]
                .tensor()
                .to_vector<float>(),
            (std::vector<float>{1, 1, 1}));
  EXPECT_EQ(refusal_of_texts("TfIdfVectorizer", tf_idf({1, 3, 2}, {0, 2}, {0, 1, 2}), {x}),
            "TfIdfVectorizer node that makes 'y0': ngram_counts: 2-grams from 2 to 3 of a pool of "
            "3: within it, and a multiple of their length");
  EXPECT_EQ(refusal_of_texts("TfIdfVectorizer", tf_idf({1, 3, 2, 3}, {0, 2}, {0, 1}), {x}),
            "TfIdfVectorizer node that makes 'y0': ngram_indexes has 2 elements, and the pool more "
            "n-grams");
  EXPECT_EQ(
      refusal_of_texts("TfIdfVectorizer", tf_idf({1, 3, 2, 3}, {0, 2}, {0, 1, INT64_MAX}), {x}),
      "TfIdfVectorizer node that makes 'y0': ngram_indexes holds 9223372036854775807: 0 to "
      "below 16777216");
  EXPECT_EQ(refusal_of_texts("TfIdfVectorizer", tf_idf({1}, {0}, {0}), {x}),
            "TfIdfVectorizer node that makes 'y0': min_gram_length 1, max_gram_length 2, "
            "max_skip_count 0: 1 to as many lengths as ngram_counts has (1), and skips of at least "
            "0");
}

}  // namespace
}  // namespace weft::onnx
