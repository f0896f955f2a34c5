// The part of the cost model that is about memory: what tiles touch, and from how far it comes.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <tuple>
#include <utility>

#include "weft/dtype/dtype.h"
#include "weft/optimize/cost.h"

namespace weft::optimize {
namespace {

constexpr int64_t kPrefetched = 4096;  // bytes, a page: prefetchers look no further ahead
constexpr double kBusyBeside = 0.1;    // of what waits for L3, that is not done meanwhile
constexpr double kRunStart = 128;      // bytes that could have been read instead
constexpr double kFewTiles = 4;        // that do not hide what the first of them waits for

}  // namespace

/// Bytes that L3 gives while L2 gives one.
double CostModel::l2_in_l3() const {
  return machine().l3().bytes_per_cycle / machine().l2().bytes_per_cycle;
}
/// Bytes of distinct elements that an access touches while a tile's reductions run, and the bytes
/// of each cache they take: caches place lines by the low bits of their address, so runs a power of
/// two apart push each other out.
CostModel::Touched CostModel::touched(size_t access, RangeMask whole, const Tiling& tiling) const {
  const Access& a = info_.accesses[access];
  const double size = bits(a.node->src(0)->dtype) / 8.0;
  double elements = static_cast<double>(a.unit()), run = elements, span = elements;
  int64_t apart = 0;            // the largest power of two that divides all steps between runs
  int64_t nearest = INT64_MAX;  // the first of these steps
  for (uint8_t r : by_stride_[access]) {
    // What data is looked up by lies side by side.
    const int64_t held = held_for(access, r);
    const int64_t each = (whole & bit(r)) != 0 ? info_.ranges[r].extent : tiling.ranges[r].size();
    const int64_t n = (each + held - 1) / held;
    if (n == 1) continue;
    const bool opaque = held == 1 && (a.opaque & bit(r)) != 0;
    const int64_t step = held > 1 ? 1 : std::abs(a.stride[r]);
    const auto wide = static_cast<double>(step);
    span += opaque ? HUGE_VAL : wide * static_cast<double>(n - 1);
    if (opaque || wide >= elements)
      elements *= static_cast<double>(n);
    else
      elements += wide * static_cast<double>(n - 1);
    if (!opaque && wide <= run)
      run = elements;
    else if (!opaque)
      apart |= step, nearest = std::min(nearest, step);
  }
  elements = std::min(elements, room_[access]);
  const double aligned = static_cast<double>(apart & -apart) * size;
  const double line = std::min<double>(Machine::kLine, static_cast<double>(nearest) * size);
  const double runs = elements / run;
  const auto in = [&](const CacheLevel& cache) {
    const double alias = std::min(aligned, static_cast<double>(cache.way_bytes()));
    return runs * std::max({run * size, apart == 0 ? 0 : line, alias});
  };
  return {elements * size, runs, line, in(machine().l1()), in(machine().l2()), span * size};
}

/// Of each access of a body, what its runs take where they come from beyond L2. Short ones whose
/// gaps are short come with these, once for all accesses that lie so among each other: the scales
/// and the codes of packed blocks.
std::vector<double> CostModel::far_bytes(const Body& body, std::span<const Touched> of) const {
  std::vector<double> bytes;
  NodeMap<double> among;
  const auto with_gaps = [&](size_t k) { return of[k].span + kRunStart < bytes[k]; };
  const auto memory = [&](size_t k) { return info_.accesses[body.accesses[k]].node->src(0); };
  for (const Touched& t : of) bytes.push_back(t.bytes + t.runs * kRunStart);
  for (size_t k = 0; k < of.size(); ++k)
    if (with_gaps(k)) among[memory(k)] += 1;
  for (size_t k = 0; k < of.size(); ++k)
    if (with_gaps(k)) bytes[k] = (of[k].span + kRunStart) / among[memory(k)];
  return bytes;
}

double CostModel::fresh_share(const Access& a, RangeMask own, size_t axis, int64_t size) const {
  double share = 1;
  each(a.deps & own, [&](size_t r) {
    if (a.stride[r] == 0 || a.stride[axis] % a.stride[r] != 0) return;
    const int64_t step = a.stride[axis] / a.stride[r];
    if (step > 0)
      share = std::min(share, static_cast<double>(step * size) /
                                  static_cast<double>(step * (size - 1) + info_.ranges[r].extent));
  });
  for (const Access::Quotient& q : a.quotients) {
    if ((q.deps & own) == 0 || (q.deps & bit(axis)) != 0 || a.stride[axis] % q.stride != 0)
      continue;
    const int64_t step = a.stride[axis] / q.stride;
    if (step > 0)
      share = std::min(share, static_cast<double>(step * size) /
                                  static_cast<double>(step * (size - 1) + q.values));
  }
  return share;
}

/// Whether what the next tile along `axis` touches is what prefetchers fetch ahead.
bool CostModel::is_near(const Access& a, size_t axis, int64_t size) const {
  return std::abs(a.stride[axis]) * size * bits(a.node->src(0)->dtype) / 8 <= kPrefetched;
}

/// Whether a window slides over what it reads.
bool CostModel::has_window(const Body& body) const {
  return std::ranges::any_of(body.accesses, [&](uint32_t i) {
    const Access& a = info_.accesses[i];
    bool slides = false;
    each(a.deps & ~body.own, [&](size_t r) { slides |= fresh_share(a, body.own, r, 1) < 1; });
    return slides;
  });
}

/// Bytes from beyond L2 for the next tile along `axis`, of the `far` that a tile takes. The next
/// places of a window in the same rows need no run to be started.
double CostModel::fresh_bytes(const Access& a, const Touched& of, double far, RangeMask own,
                              size_t axis, int64_t size) const {
  const double share = fresh_share(a, own, axis, size);
  return (share < 1 && is_near(a, axis, size) ? of.bytes : far) * share;
}

/// Bytes of the next tile's results along `axis`.
double CostModel::stored_bytes(size_t axis, const Tiling& tiling) const {
  double bytes = 0;
  for (size_t i = 0; i < info_.accesses.size(); ++i) {
    const Access& a = info_.accesses[i];
    if (!a.is_store() || stays_in_l2_[i]) continue;
    const Touched t = touched(i, 0, tiling);
    bytes += t.bytes + (is_near(a, axis, tiling.ranges[axis].size()) ? 0 : t.runs * kRunStart);
  }
  return bytes;
}

/// What the next tile along each of the loops around one takes, from the outermost range on.
SmallVector<CostModel::Step, 8> CostModel::steps(const Body& body, const Tiling& tiling,
                                                 std::span<const Touched> of,
                                                 std::span<const double> far) const {
  SmallVector<Step, 8> steps;
  const bool slides = has_window(body);
  for (RangeMask m = body.deps & ~body.own; m != 0; m &= m - 1) {
    const auto axis = static_cast<size_t>(std::countr_zero(m));
    const int64_t size = tiling.ranges[axis].size(), extent = info_.ranges[axis].extent;
    if (extent <= size || !info_.ranges[axis].free()) continue;
    Step step;
    step.axis = static_cast<int>(axis);
    step.tiles = static_cast<double>((extent + size - 1) / size);
    step.in_a_line = info_.in_a_line(axis);
    for (size_t k = 0; k < of.size(); ++k) {
      const Access& a = info_.accesses[body.accesses[k]];
      if ((a.deps & bit(axis)) == 0) continue;
      (stays_in_l2_[body.accesses[k]] ? step.near : step.beyond) +=
          fresh_bytes(a, of[k], far[k], body.own, axis, size);
    }
    step.traffic = step.beyond;
    // Rows that a window slides over are read near, or what it makes is stored near: not both.
    if (slides)
      step.traffic += stored_bytes(axis, tiling) + std::exchange(step.near, 0) * l2_in_l3();
    steps.push_back(step);
  }
  return steps;
}

CostModel::Traffic CostModel::traffic(const Body& body, const Tiling& tiling) const {
  SmallVector<Touched, 8> of;
  Traffic best;
  double placed = 0;
  for (uint32_t i : body.accesses) {
    of.push_back(touched(i, body.own, tiling));
    best.total += of.back().first;
    placed += of.back().second;
  }
  const std::vector<double> far = far_bytes(body, {of.data(), of.size()});
  best.fresh = best.renewed = std::accumulate(far.begin(), far.end(), 0.0);
  const auto steps = this->steps(body, tiling, {of.data(), of.size()}, far);
  const Step* inner = nullptr;  // of equal ones the last; rather panels than parts of one
  const auto rank = [](const Step& s) { return std::tuple{s.traffic, s.near, s.in_a_line}; };
  for (const Step& s : steps)
    if (inner == nullptr || rank(s) <= rank(*inner)) inner = &s;
  if (inner == nullptr) return best;
  best.innermost = inner->axis;
  best.tiles = inner->tiles;
  if (placed > l2_bytes()) return best;
  best.fresh = best.renewed = inner->beyond;
  double next = HUGE_VAL;
  for (const Step& s : steps)
    if (&s != inner) next = std::min(next, s.beyond);
  if (next != HUGE_VAL) best.renewed = std::max(best.fresh, next);
  return best;
}

/// Bytes of L2 that one iteration of a reduction reads of what L1 does not hold: whole lines, where
/// the next iteration is in others.
double CostModel::loaded_bytes(const Access& a, const Touched& now, const Body& body,
                               const Tiling& tiling) const {
  const double size = bits(a.node->src(0)->dtype) / 8.0;
  double next = Machine::kLine;  // bytes to the next iteration
  each(a.deps & body.own, [&](size_t r) {
    if (info_.ranges[r].extent > tiling.ranges[r].size() && (a.opaque & bit(r)) == 0)
      next = std::min(next, static_cast<double>(std::abs(a.stride[r])) * size);
  });
  double rows = 1;
  each(a.deps & tiling.unrolled & ~body.own, [&](size_t r) {
    const int64_t apart = a.stride[r] * bits(a.node->dtype) / 8;
    if (apart != 0 && apart % machine().l1().way_bytes() == 0)
      rows *= static_cast<double>(tiling.ranges[r].unroll);
  });
  // Rows of a matrix whose lines push each other out before their next element is read.
  const double thrown = rows > l1_ways() ? rows * Machine::kLine : 0;
  return std::max({now.bytes, now.runs * std::min(next, now.line), thrown});
}

double CostModel::far_cycles(const Body& body, const Tiling& tiling, double fresh) const {
  return fresh / machine().l3().bytes_per_cycle / iterations(body.own, body.own, tiling);
}

/// Cycles of one iteration of a reduction that is busy for some: all vectors it loads come out of
/// the L2 once a tile's data does not fit L1, and what is fresh from further away, while it
/// computes. The first tile of each row of tiles waits for what the others then read near, which a
/// few of them do not hide (8192 x 2048 halves by two rows, in tiles of one: 1300 us, of two: 950);
/// of many it is too little to choose by (256 x 2048 x 8192 in 32 tiles, not 52: 8 % slower). More
/// lines than one of which it reads a part come in turns with its own loads (x^T @ y of 256 rows
/// and 1024 columns each, in panels: four elements out of four lines take 1.22 times as long as out
/// of one).
double CostModel::with_memory(const Body& body, const Tiling& tiling, double busy) const {
  const Traffic t = traffic(body, tiling);
  const auto each_tile = [&](auto&& cycles) {
    const double later = cycles(far_cycles(body, tiling, t.fresh));
    if (t.tiles > kFewTiles) return later;
    return later + (cycles(far_cycles(body, tiling, t.renewed)) - later) / t.tiles;
  };
  if (t.total <= l1_bytes())
    return each_tile([&](double far) { return far > busy ? far + kBusyBeside * busy : busy; });
  double loaded = 0, beside = 0;
  for (uint32_t i : body.accesses) {
    if (info_.accesses[i].is_store()) continue;
    const Touched now = touched(i, 0, tiling);
    const double bytes = loaded_bytes(info_.accesses[i], now, body, tiling);
    loaded += bytes;
    beside += std::max(0.0, bytes - std::max<double>(now.bytes, Machine::kLine));
  }
  const double each = 1 / machine().l2().bytes_per_cycle;
  return each_tile([&](double far) { return std::max({busy, far, loaded * each}); }) +
         beside * each;
}

/// Bytes that come into L1 for one tile of a gather whose rows push each other's
/// lines out: a line for each, or what it has of one, of which copies along it are all that is
/// used.
double CostModel::gathered_bytes(const Access& a, const Tiling& tiling) const {
  const RangeMask vector = a.deps & tiling.vectors;
  if (vector == 0) return 0;
  const auto v = static_cast<size_t>(std::countr_zero(vector));
  if (std::abs(a.stride[v]) == a.unit()) return 0;
  const int64_t apart = a.stride[v] * bits(a.node->src(0)->dtype) / 8;
  const auto lanes = static_cast<double>(tiling.ranges[v].lanes);
  if (apart == 0 || (apart % machine().l1().way_bytes() == 0 && lanes <= l1_ways())) return 0;
  // Rows less than a page apart share L1's places with later ones, not among lanes.
  if (static_cast<double>(info_.ranges[v].extent) <= lines_kept(apart)) return 0;
  RangeMask across = 0;
  each(a.deps, [&](size_t r) { across |= std::abs(a.stride[r]) == 1 ? 0 : bit(r); });
  const auto each_lane = static_cast<double>(std::min<int64_t>(std::abs(apart), Machine::kLine));
  return lanes * each_lane * copies(across, tiling);
}

/// Bytes of the lines that one tile's vectors read a part of, where L1 has lost them when another
/// tile reads the rest, since stores walk along another range meanwhile: words that are packed.
double CostModel::bytes_of_parts(size_t access, const Body& body, const Tiling& tiling) const {
  const Access& a = info_.accesses[access];
  const RangeMask vector = a.deps & tiling.vectors;
  if (a.is_store() || vector == 0 ||
      std::abs(a.stride[static_cast<size_t>(std::countr_zero(vector))]) != a.unit())
    return 0;
  const Touched t = touched(access, 0, tiling);
  double run = t.bytes / t.runs;
  RangeMask walked = 0;
  while (run < Machine::kLine) {
    const int next = stored_next(body, tiling, walked);
    if (next < 0 || (a.opaque & bit(static_cast<size_t>(next))) != 0) return 0;
    const auto along = static_cast<size_t>(next);
    const int64_t size = tiling.ranges[along].size(), steps = info_.ranges[along].extent / size;
    const int64_t apart = std::abs(a.stride[along]) * size * bits(a.node->src(0)->dtype) / 8;
    if (apart > Machine::kLine)
      return steps <= lines_kept(apart) ? 0 : t.bytes * Machine::kLine / run;
    run = std::max(run, static_cast<double>(apart * steps));
    walked |= bit(along);
  }
  return 0;
}

/// Lines so far apart that L1 keeps at once, beside others.
double CostModel::lines_kept(int64_t apart) const {
  const int64_t page = machine().l1().way_bytes();
  const auto places = static_cast<double>(page / std::gcd(apart, page));
  return std::min(places, static_cast<double>(page) / Machine::kLine) * l1_ways();
}

/// Of all ranges but these the one along which tiles lie nearest where they are stored; -1: none.
int CostModel::stored_next(const Body& body, const Tiling& tiling, RangeMask but) const {
  int best = -1;
  int64_t nearest = INT64_MAX;
  for (uint32_t i : body.accesses) {
    const Access& a = info_.accesses[i];
    if (!a.is_store()) continue;
    each(a.deps & ~but, [&](size_t r) {
      const int64_t step = std::abs(a.stride[r]);
      if (info_.ranges[r].extent <= tiling.ranges[r].size() || !info_.ranges[r].free()) return;
      if (step == 0 || step >= nearest) return;
      nearest = step;
      best = static_cast<int>(r);
    });
  }
  return best;
}

/// Whether a loop that carries state, which stays the innermost, takes an access to another line in
/// each iteration.
bool CostModel::jumps(const Access& a) const {
  for (size_t r = info_.ranges.size(); r-- > 0;)
    if (info_.ranges[r].sequential && (a.deps & bit(r)) != 0)
      return std::abs(a.stride[r]) * bits(a.node->src(0)->dtype) / 8 >= Machine::kLine;
  return false;
}

/// Cycles that memory needs for one iteration outside reductions: of everything that no cache holds
/// afterwards, each element comes or goes once. Copies of a loop that waits for memory gain
/// nothing.
double CostModel::stream_cycles(const Body& body, const Tiling& tiling) const {
  double bytes = 0, footprint = 0;
  for (uint32_t i : body.accesses) {
    const Access& a = info_.accesses[i];
    double all = bits(a.node->src(0)->dtype) / 8.0, now = all;
    each(a.deps, [&](size_t r) {
      all *= static_cast<double>(info_.ranges[r].extent);
      now *= static_cast<double>(tiling.ranges[r].size());
    });
    if (all <= l1_bytes()) continue;
    footprint += all;
    bytes += std::max(now, a.is_store() ? 0 : gathered_bytes(a, tiling));
    if (jumps(a))
      bytes += kRunStart;
    else if (info_.has_folds())
      bytes += kRunStart * touched(i, 0, tiling).runs;
    else
      bytes += std::max(0.0, bytes_of_parts(i, body, tiling) - now);
  }
  return bytes / (footprint <= l2_bytes() ? machine().l2().bytes_per_cycle
                                          : machine().l3().bytes_per_cycle);
}

}  // namespace weft::optimize
