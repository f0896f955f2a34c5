#include "weft/viz/diff.h"

#include <algorithm>
#include <cstdint>

#include "weft/base/hash.h"

namespace weft::viz {
namespace {

// Steps times lines: memory is the square of the steps.
constexpr size_t kMostSteps = 2000;

struct Lines {
  std::vector<std::string_view> text;
  std::vector<uint64_t> hash;  // equal for equal lines

  explicit Lines(std::string_view all) {
    while (!all.empty()) {
      const size_t end = std::min(all.find('\n'), all.size());
      text.push_back(all.substr(0, end));
      hash.push_back(hash_text(text.back()));
      all.remove_prefix(std::min(all.size(), end + 1));
    }
  }
  size_t size() const { return text.size(); }
};

class Differ {
 public:
  Differ(const Lines& before, const Lines& after) : before_(before), after_(after) {}

  std::vector<DiffLine> run() {
    size_t begin = 0, end = 0;
    const size_t least = std::min(before_.size(), after_.size());
    while (begin < least && before_.hash[begin] == after_.hash[begin]) ++begin;
    while (end < least - begin &&
           before_.hash[before_.size() - 1 - end] == after_.hash[after_.size() - 1 - end])
      ++end;
    for (size_t i = 0; i < begin; ++i) same(i, i);
    middle(begin, before_.size() - end, after_.size() - end);
    for (size_t i = 0; i < end; ++i) same(before_.size() - end + i, after_.size() - end + i);
    return std::move(out_);
  }

 private:
  void same(size_t b, size_t a) {
    out_.push_back({DiffLine::Kind::Same, b + 1, a + 1, before_.text[b]});
  }
  void removed(size_t b) { out_.push_back({DiffLine::Kind::Removed, b + 1, 0, before_.text[b]}); }
  void added(size_t a) { out_.push_back({DiffLine::Kind::Added, 0, a + 1, after_.text[a]}); }

  /// Of lines `begin` up to the ends, which differ at both.
  void middle(size_t begin, size_t before_end, size_t after_end) {
    const auto n = static_cast<int64_t>(before_end - begin),
               m = static_cast<int64_t>(after_end - begin);
    std::vector<std::vector<int64_t>> steps;
    if (!reach(begin, n, m, steps)) {
      for (size_t i = begin; i < before_end; ++i) removed(i);
      for (size_t i = begin; i < after_end; ++i) added(i);
      return;
    }
    walk_back(begin, n, m, steps);
  }

  /// steps[d][k + d]: how far into the first text d changes lead on diagonal k.
  bool reach(size_t begin, int64_t n, int64_t m, std::vector<std::vector<int64_t>>& steps) const {
    for (int64_t d = 0; d <= static_cast<int64_t>(kMostSteps); ++d) {
      std::vector<int64_t> now(static_cast<size_t>(2 * d + 1), -1);
      for (int64_t k = -d; k <= d; k += 2) {
        int64_t x = d == 0 ? 0 : from(steps.back(), d, k);
        while (x < n && x - k < m && x >= 0 && x - k >= 0 && equal(begin, x, x - k)) ++x;
        now[static_cast<size_t>(k + d)] = x;
        if (x >= n && x - k >= m) {
          steps.push_back(std::move(now));
          return true;
        }
      }
      steps.push_back(std::move(now));
    }
    return false;
  }
  bool equal(size_t begin, int64_t x, int64_t y) const {
    return before_.hash[begin + static_cast<size_t>(x)] ==
           after_.hash[begin + static_cast<size_t>(y)];
  }
  /// Where step d on diagonal k begins: by an insertion from k + 1, or by a removal from k - 1.
  static bool inserts(const std::vector<int64_t>& last, int64_t d, int64_t k) {
    if (k == -d) return true;
    if (k == d) return false;
    return at(last, d - 1, k - 1) < at(last, d - 1, k + 1);
  }
  static int64_t at(const std::vector<int64_t>& row, int64_t d, int64_t k) {
    return row[static_cast<size_t>(k + d)];
  }
  static int64_t from(const std::vector<int64_t>& last, int64_t d, int64_t k) {
    return inserts(last, d, k) ? at(last, d - 1, k + 1) : at(last, d - 1, k - 1) + 1;
  }

  void walk_back(size_t begin, int64_t x, int64_t y,
                 const std::vector<std::vector<int64_t>>& steps) {
    const size_t first = out_.size();
    const auto line = [begin](int64_t i) { return begin + static_cast<size_t>(i); };
    for (auto d = static_cast<int64_t>(steps.size()) - 1; d >= 0; --d) {
      const int64_t k = x - y;
      const bool insert = d > 0 && inserts(steps[static_cast<size_t>(d - 1)], d, k);
      const int64_t start = d == 0 ? 0 : from(steps[static_cast<size_t>(d - 1)], d, k);
      for (; x > start && y > 0; --x, --y) same(line(x - 1), line(y - 1));
      if (d == 0) break;
      if (insert)
        added(line(--y));
      else
        removed(line(--x));
    }
    std::reverse(out_.begin() + static_cast<ptrdiff_t>(first), out_.end());
  }

  const Lines &before_, &after_;
  std::vector<DiffLine> out_;
};

/// Without equal lines that are farther than `context` from what differs.
std::vector<DiffLine> shortened(const std::vector<DiffLine>& all, size_t context) {
  std::vector<bool> kept(all.size());
  size_t last = SIZE_MAX;  // that differs
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].kind != DiffLine::Kind::Same) last = i;
    kept[i] = last != SIZE_MAX && i - last <= context;
  }
  last = SIZE_MAX;
  for (size_t i = all.size(); i-- > 0;) {
    if (all[i].kind != DiffLine::Kind::Same) last = i;
    if (last != SIZE_MAX && last - i <= context) kept[i] = true;
  }
  std::vector<DiffLine> out;
  for (size_t i = 0; i < all.size(); ++i) {
    if (kept[i])
      out.push_back(all[i]);
    else if (!out.empty() && out.back().kind == DiffLine::Kind::Skipped)
      ++out.back().count;
    else
      out.push_back({DiffLine::Kind::Skipped, 0, 0, {}, 1});
  }
  return out;
}

}  // namespace

std::vector<DiffLine> diff_lines(std::string_view before, std::string_view after, size_t context) {
  const Lines b(before), a(after);
  return shortened(Differ(b, a).run(), context);
}

}  // namespace weft::viz
