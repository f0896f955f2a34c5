#include <gtest/gtest.h>

#include <climits>
#include <cmath>
#include <set>
#include <string>

#include "weft/base/bits.h"
#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/json_writer.h"
#include "weft/base/version.h"

namespace weft {
namespace {

TEST(Bits, FloorDivisionMatchesTheReals) {
  for (int64_t a = -20; a <= 20; ++a) {
    for (int64_t b = -7; b <= 7; ++b) {
      if (b == 0) continue;
      const auto exact = static_cast<double>(a) / static_cast<double>(b);
      EXPECT_EQ(floor_div(a, b), static_cast<int64_t>(std::floor(exact))) << a << "/" << b;
      EXPECT_EQ(ceil_div(a, b), static_cast<int64_t>(std::ceil(exact))) << a << "/" << b;
      EXPECT_EQ(floor_mod(a, b), a - b * floor_div(a, b));
    }
  }
  EXPECT_EQ(round_up(0, 8), 0);
  EXPECT_EQ(round_up(9, 8), 16);
}

TEST(Bits, Logarithms) {
  EXPECT_EQ(floor_log2(1), 0);
  EXPECT_EQ(floor_log2(1023), 9);
  EXPECT_EQ(ceil_log2(1024), 10);
  EXPECT_EQ(ceil_log2(1025), 11);
  EXPECT_TRUE(is_power_of_two(64));
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_FALSE(is_power_of_two(INT64_MIN));
}

TEST(Checked, OverflowIsSeen) {
  EXPECT_EQ(checked_add<int64_t>(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(checked_mul<int64_t>(-3, 5), -15);
  EXPECT_THROW(mul_or_fail("reshape", int64_t{1} << 62, 4), Error);
  EXPECT_EQ(add_or_fail("reshape", 1, 2), 3);
}

TEST(Hash, IsPinnedForEver) {
  // Caches on disk and graph files hold these numbers.
  EXPECT_EQ(hash_mix(1), 0x5692161d100b05e5u);
  EXPECT_NE(hash_combine(1, 2), hash_combine(2, 1));
  EXPECT_EQ(hash_text("weft"), hash_text("weft"));
}

TEST(Hash, DistinguishesLengthsAndEveryByte) {
  std::set<uint64_t> seen;
  std::string zeros(100, '\0');
  for (size_t n = 0; n <= 100; ++n) EXPECT_TRUE(seen.insert(hash_bytes(zeros.data(), n)).second);
  for (size_t i = 0; i < 100; ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = zeros;
      flipped[i] = static_cast<char>(1 << bit);
      EXPECT_TRUE(seen.insert(hash_text(flipped)).second) << i;
    }
  }
  EXPECT_NE(hash_text("a", 1), hash_text("a", 2));
}

TEST(Json, NestsSeparatesAndEscapes) {
  JsonWriter json;
  json.begin_object().field("a", 1).field("b", "x\"\n\x01").key("c").begin_array();
  json.value(true).value(-2.5).null().begin_object().end_object().end_array();
  json.field("u", UINT64_MAX).field("n", std::nan("")).end_object();
  EXPECT_EQ(
      json.text(),
      R"({"a":1,"b":"x\"\n\u0001","c":[true,-2.5,null,{}],"u":18446744073709551615,"n":null})");
}

TEST(Json, InvalidUtf8BecomesReplacement) {
  EXPECT_EQ(json_quote("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(json_quote("\xff"
                       "a"),
            "\"\\ufffda\"");
  EXPECT_EQ(json_quote("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");  // a surrogate
  EXPECT_EQ(json_quote("\xe2\x82"), "\"\\ufffd\\ufffd\"");             // cut short
}

TEST(Version, BuildIdComesFromTheLinker) {
  EXPECT_NE(build_id(), hash_combine(hash_text(kVersion), 0)) << "no build id note was linked in";
}

}  // namespace
}  // namespace weft
