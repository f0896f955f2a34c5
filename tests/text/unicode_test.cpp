#include "weft/text/unicode.h"

#include <gtest/gtest.h>

#include "weft/base/utf8.h"

namespace weft::text {
namespace {

TEST(Unicode, KnowsWhatACharacterIs) {
  EXPECT_TRUE(is_in('a', kLetters));
  EXPECT_TRUE(is_in(0x5b57, kLetters));
  EXPECT_TRUE(is_in(0x301, kMarks));
  EXPECT_TRUE(is_in(0x10ffff, kOthers));
  EXPECT_TRUE(is_in(0x110000, kUnassigned));
  EXPECT_TRUE(is_space(0x3000));
  EXPECT_FALSE(is_space(0x200b));
  EXPECT_TRUE(is_word('_'));
  EXPECT_FALSE(is_word('-'));
  for (const char32_t c : {0x2160, 0x24b6, 0x1f130, 0x200d}) EXPECT_TRUE(is_word(c)) << uint32_t{c};
  for (const char32_t c : {0xbd, 0x24ea, 0x1f14a, 0x200b}) EXPECT_FALSE(is_word(c)) << uint32_t{c};
}

// NormalizationTest.txt has these: marks that change places, Hangul, exclusions, compatibility.
TEST(Unicode, MakesNormalForms) {
  struct Row {
    std::string_view text, c, d, kc, kd;
  };
  const Row rows[] = {
      {"e\u0301", "\u00e9", "e\u0301", "\u00e9", "e\u0301"},
      {"\u1e69", "\u1e69", "s\u0323\u0307", "\u1e69", "s\u0323\u0307"},
      {"s\u0307\u0323", "\u1e69", "s\u0323\u0307", "\u1e69", "s\u0323\u0307"},
      {"\uac01", "\uac01", "\u1100\u1161\u11a8", "\uac01", "\u1100\u1161\u11a8"},
      {"\u1100\u1161\u11a8", "\uac01", "\u1100\u1161\u11a8", "\uac01", "\u1100\u1161\u11a8"},
      {"\u0958", "\u0915\u093c", "\u0915\u093c", "\u0915\u093c", "\u0915\u093c"},
      {"\ufb01\u2460", "\ufb01\u2460", "\ufb01\u2460", "fi1", "fi1"},
      {"\u212b", "\u00c5", "A\u030a", "\u00c5", "A\u030a"},
      {"\u0344", "\u0308\u0301", "\u0308\u0301", "\u0308\u0301", "\u0308\u0301"},
      {"\u304b\u3099x", "\u304cx", "\u304b\u3099x", "\u304cx", "\u304b\u3099x"},
  };
  for (const Row& row : rows) {
    const std::string around = "abc " + std::string(row.text) + " def";
    EXPECT_EQ(normalized(row.text, NormalForm::C), row.c);
    EXPECT_EQ(normalized(row.text, NormalForm::D), row.d);
    EXPECT_EQ(normalized(row.text, NormalForm::KC), row.kc);
    EXPECT_EQ(normalized(row.text, NormalForm::KD), row.kd);
    EXPECT_EQ(normalized(around, NormalForm::KC), "abc " + std::string(row.kc) + " def");
  }
}

TEST(Unicode, MakesSmallLetters) {
  std::string out;
  for (const char32_t c : {U'A', U'\u00c9', U'\u0130', U'\u03a3', U'\u1e9e', U'1'})
    append_lower(out, c);
  EXPECT_EQ(out, "a\u00e9i\u0307\u03c3\u00df1");
}

TEST(Unicode, FindsClusters) {
  std::vector<std::string> found;
  for_each_grapheme("e\u0301\r\n👩\u200d👧🇩🇪🇫\uac01\u11a8x",
                    [&](std::string_view c) { found.emplace_back(c); });
  EXPECT_EQ(found, (std::vector<std::string>{"e\u0301", "\r\n", "👩\u200d👧", "🇩🇪", "🇫",
                                             "\uac01\u11a8", "x"}));
}

TEST(Utf8, ReadsNothingBehindATextThatIsCut) {
  const std::string_view whole = "\xf0\x9f\x98\x81";
  for (size_t size = 1; size <= whole.size(); ++size) {
    size_t at = 0;
    const char32_t c = next_code_point(whole.substr(0, size), at);
    EXPECT_EQ(at, size);
    EXPECT_EQ(c == 0x1f601, size == whole.size()) << size;
  }
}

TEST(Utf8, RepairsLongestParts) {
  EXPECT_EQ(valid_utf8("a\xff"
                       "b"),
            "a\ufffdb");
  EXPECT_EQ(valid_utf8("\xf0\x9f\x91"), "\ufffd");
  EXPECT_EQ(valid_utf8("\xe2\x82"
                       "a\xc3"),
            "\ufffda\ufffd");
  EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\ufffd\ufffd\ufffd");  // a surrogate
  EXPECT_EQ(valid_utf8("\xc0\x80"), "\ufffd\ufffd");            // overlong
  EXPECT_EQ(valid_utf8("日"), "日");
}

}  // namespace
}  // namespace weft::text
