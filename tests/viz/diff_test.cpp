#include "weft/viz/diff.h"

#include <gtest/gtest.h>

#include "weft/trust/random.h"

namespace weft::viz {
namespace {

std::string shown(const std::vector<DiffLine>& lines) {
  std::string out;
  for (const DiffLine& l : lines) {
    switch (l.kind) {
      case DiffLine::Kind::Same: (out += ' ') += l.text; break;
      case DiffLine::Kind::Removed: (out += '-') += l.text; break;
      case DiffLine::Kind::Added: (out += '+') += l.text; break;
      case DiffLine::Kind::Skipped: out += "@" + std::to_string(l.count);
    }
    out += '\n';
  }
  return out;
}

TEST(Diff, shows_what_differs) {
  EXPECT_EQ(shown(diff_lines("a\nb\nc\n", "a\nx\nc\n", 3)), " a\n-b\n+x\n c\n");
  EXPECT_EQ(shown(diff_lines("", "a\n", 3)), "+a\n");
  EXPECT_EQ(shown(diff_lines("a", "", 3)), "-a\n");
  EXPECT_EQ(shown(diff_lines("a\nb\n", "a\nb\n", 0)), "@2\n");
  EXPECT_EQ(shown(diff_lines("1\n2\n3\n4\n5\n6\n7\n", "1\n2\n3\nx\n5\n6\n7\n", 1)),
            "@2\n 3\n-4\n+x\n 5\n@2\n");
}

/// Both texts come out of it again, and no shorter script is found by what lines they share.
TEST(Diff, gives_both_texts_back) {
  Random random(7);
  for (int round = 0; round < 300; ++round) {
    std::string before, after;
    const int lines = static_cast<int>(random.below(30));
    for (int i = 0; i < lines; ++i) {
      const std::string line(1, static_cast<char>('a' + random.below(4)));
      if (random.below(5) != 0) before += line + "\n";
      if (random.below(5) != 0) after += line + "\n";
      if (random.below(9) == 0) after += "z\n";
    }
    if (before == after) continue;  // nothing to show
    std::string b, a;
    for (const DiffLine& l : diff_lines(before, after, 100)) {
      if (l.kind != DiffLine::Kind::Added) b += std::string(l.text) + "\n";
      if (l.kind != DiffLine::Kind::Removed) a += std::string(l.text) + "\n";
    }
    EXPECT_EQ(b, before);
    EXPECT_EQ(a, after);
  }
}

TEST(Diff, of_texts_that_share_nothing_ends) {
  std::string before, after;
  for (int i = 0; i < 5000; ++i) {
    before += "b" + std::to_string(i) + "\n";
    after += "a" + std::to_string(i) + "\n";
  }
  EXPECT_EQ(diff_lines(before, after, 3).size(), 10000u);
}

}  // namespace
}  // namespace weft::viz
