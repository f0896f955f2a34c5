#include "weft/text/character_set.h"

#include <algorithm>
#include <map>

namespace weft::text {

CodeRanges merged(CodeRanges ranges) {
  std::sort(ranges.begin(), ranges.end());
  CodeRanges out;
  for (const auto& [first, last] : ranges) {
    if (!out.empty() && first <= out.back().second + 1)
      out.back().second = std::max(out.back().second, last);
    else
      out.emplace_back(first, last);
  }
  return out;
}

CodeRanges complement(const CodeRanges& ranges) {
  CodeRanges out;
  char32_t next = 0;
  for (const auto& [first, last] : ranges) {
    if (first > next) out.emplace_back(next, first - 1);
    next = last + 1;
  }
  if (next <= kLastCodePoint) out.emplace_back(next, kLastCodePoint);
  return out;
}

CodeRanges intersection(const CodeRanges& a, const CodeRanges& b) {
  CodeRanges outside = complement(merged(a));
  const CodeRanges more = complement(merged(b));
  outside.insert(outside.end(), more.begin(), more.end());
  return complement(merged(std::move(outside)));
}

CharacterSet::CharacterSet(const CodeRanges& ranges) {
  std::map<std::array<uint64_t, kWords>, uint16_t> known;
  auto range = ranges.begin();
  for (size_t page = 0; page < pages_.size(); ++page) {
    std::array<uint64_t, kWords> bits{};
    const auto begin = static_cast<char32_t>(page * kPage);
    const auto end = static_cast<char32_t>(begin + kPage - 1);
    while (range != ranges.end() && range->second < begin) ++range;
    for (auto r = range; r != ranges.end() && r->first <= end; ++r)
      for (char32_t c = std::max(r->first, begin); c <= std::min(r->second, end); ++c)
        bits[c % kPage / 64] |= uint64_t{1} << (c % 64);
    const auto [at, is_new] = known.emplace(bits, static_cast<uint16_t>(known.size()));
    if (is_new) bits_.insert(bits_.end(), bits.begin(), bits.end());
    pages_[page] = at->second;
  }
}

}  // namespace weft::text
