#include "weft/optimize/loop_plan.h"

#include <charconv>

#include "weft/base/format.h"

namespace weft {
namespace {

// More than any plan has; what is over them was not written by text().
constexpr int64_t kMostRanges = 64, kMostCopies = 1 << 12, kMostStream = 16;

/// Reads its way through a line; after a mismatch nothing fits any more.
class LineReader {
 public:
  explicit LineReader(std::string_view line) : rest_(line) {}

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  template <class T>
  bool number(T& out, T least, T most, int base = 10) {
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), out, base);
    if (error != std::errc() || out < least || out > most) return false;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return true;
  }
  bool at_end() const { return rest_.empty(); }

 private:
  std::string_view rest_;
};

bool read_tiles(LineReader& in, std::vector<LoopPlan::Of>& ranges) {
  if (in.take("unit")) return true;
  do {
    LoopPlan::Of of;
    if (!in.number<int64_t>(of.lanes, 1, kMostCopies) || !in.take("x") ||
        !in.number<int64_t>(of.unroll, 1, kMostCopies))
      return false;
    ranges.push_back(of);
  } while (ranges.size() < kMostRanges && in.take(","));
  return true;
}

}  // namespace

std::string text(const LoopPlan& plan) {
  std::string tiles;
  for (const LoopPlan::Of& of : plan.ranges)
    append_format(tiles, "{}{}x{}", tiles.empty() ? "" : ",", of.lanes, of.unroll);
  return strformat("loops={:016x} tiles={} innermost={} stream={} borders={}", plan.loops,
                   plan.unit() ? "unit" : tiles, plan.innermost, plan.stream, plan.borders ? 1 : 0);
}

std::optional<LoopPlan> parse_loop_plan(std::string_view line) {
  LineReader in(line);
  LoopPlan plan;
  int borders = 1;
  const bool whole = in.take("loops=") && in.number<uint64_t>(plan.loops, 0, UINT64_MAX, 16) &&
                     in.take(" tiles=") && read_tiles(in, plan.ranges) && in.take(" innermost=") &&
                     in.number<int64_t>(plan.innermost, -1, kMostRanges) && in.take(" stream=") &&
                     in.number<int64_t>(plan.stream, -kMostStream, kMostStream) &&
                     in.take(" borders=") && in.number(borders, 0, 1) && in.at_end();
  plan.borders = borders == 1;
  // One way to write each.
  if (!whole || text(plan) != line) return std::nullopt;
  return plan;
}

}  // namespace weft
