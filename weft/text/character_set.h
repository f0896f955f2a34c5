// CharacterSet: code points, asked for one at a time, in constant time.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "weft/text/unicode.h"

namespace weft::text {

/// Sorted, those that touch or overlap made one.
CodeRanges merged(CodeRanges ranges);
CodeRanges complement(const CodeRanges& ranges);  // of merged ones
CodeRanges intersection(const CodeRanges& a, const CodeRanges& b);

class CharacterSet {
 public:
  explicit CharacterSet(const CodeRanges& ranges);

  bool contains(char32_t c) const {
    return (bits_[pages_[c / kPage] * kWords + c % kPage / 64] >> (c % 64) & 1) != 0;
  }

 private:
  static constexpr size_t kPage = 256, kWords = kPage / 64;
  std::array<uint16_t, (kLastCodePoint + 1) / kPage> pages_{};
  std::vector<uint64_t> bits_;  // of distinct pages
};

}  // namespace weft::text
