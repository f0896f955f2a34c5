#include "weft/optimize/cost.h"
#include "weft/base/bits.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "weft/dtype/dtype.h"
#include "weft/graph/index_algebra.h"
#include "weft/optimize/steady.h"
#include "weft/optimize/tested.h"
#include "weft/optimize/tiling.h"
#include "weft/target/transposed_rows.h"

namespace weft::optimize {
namespace {

// In cycles of a core that starts two vector operations and two loads per cycle, as Zen 5 and
// Sapphire Rapids do; only ratios matter. What differs between machines is the Target's Machine.
constexpr double kLoopOverhead = 1.2;     // counter, compare, branch, addresses
constexpr double kFoldLatency = 4;        // of a float addition, multiplication or FMA
constexpr double kStore = 1;              // one store a cycle
constexpr double kVector = 1.15;          // a vector's load or store, aligned as far as is known
constexpr double kMask = 2;               // a guarded access: test and branch or select
constexpr int64_t kRemainder = 2;         // iterations as long as it takes to start another loop
constexpr double kLastVector = 0.25;      // of a tile, which its last vectors take longer apart
constexpr double kInsert = 2;             // one lane into a vector
constexpr double kWidenOne = 2;           // an f16 that all lanes take: broadcast, then widened
constexpr double kPermute = 1;            // lanes of two vectors in another order
constexpr double kExtract = 0.75;         // and out of one
constexpr size_t kEnoughChains = 6;       // from here on, lower keeps one chain per accumulator
constexpr double kL1Share = 2.0 / 3;      // of L1 that a tile's operands may fill
constexpr double kL2Share = 225.0 / 256;  // and of L2
constexpr double kL3Share = 1.0 / 8;      // of L3 that a stream may fill
constexpr double kL2Stream = 1.0 / 2;     // of L2 that one operand of tiles may fill
constexpr double kOtherWays = 2;          // of L1, for what comes by beside
constexpr double kScatter = 6;            // a store of one lane that has a cache line for itself
constexpr double kSpill = 1;              // an accumulator stored and loaded again
// Beside what comes by and fills L2 this many times, only so much of its half stays: between two
// uses of an image its results and what is added to them pass through (1 x 1, 64 -> 256 of 56 with
// a sum: 470 -> 330 us).
constexpr double kPassing = 2, kBeside = 0.7;
constexpr double kLoadPressure = 0.05;  // of two equal tiles, the one that loads less
constexpr double kMaxBody = 400;        // instructions in the body of a tile of products
constexpr double kMaxPlainBody = 300;   // in any other body
constexpr double kPartsOfLongest[] = {1, 1.0 / 4, 1.0 / 16};  // lengths that are as likely
constexpr double kFirstTile = 0.5;                            // rows of a tile's time

int computing_bits(DType dtype) {
  // Half floats are computed with as f32.
  return is_float(dtype) ? std::max(32, static_cast<int>(bits(dtype)))
                         : static_cast<int>(bits(dtype));
}

struct TransposeCost {
  double loads = 0, permutations = 0;
};
/// What each of so many columns takes when pieces of rows are loaded and transposed: of whole
/// squares a load, and as many permutations as halvings; of fewer, pieces of several rows are
/// joined first.
TransposeCost transpose_cost(int64_t columns, int64_t lanes) {
  TransposeCost all;
  int64_t left = columns;
  for (int64_t piece = most_columns(lanes); piece > 1; piece /= 2) {
    const int64_t rows = lanes / piece, taken = left / piece * piece;
    left -= taken;
    all.loads += static_cast<double>(taken * rows);
    all.permutations += static_cast<double>(taken) *
                        (std::log2(static_cast<double>(piece)) + static_cast<double>(rows - 1));
  }
  const auto each = static_cast<double>(columns);
  return {all.loads / each, all.permutations / each};
}

/// Whether this is a store whose remainders are stored lane by lane, and are not peeled.
bool stores_in_order(const KernelInfo& info, const Access& a) {
  bool in_order = false;
  each(a.deps, [&](size_t r) { in_order |= info.ranges[r].in_order; });
  return a.is_store() && in_order;
}

}  // namespace

bool is_worth_sharing(double cycles) { return cycles * kWorkers >= kWorthSharingCycles; }

double uneven_share(double tiles) { return std::ceil(tiles / kWorkers) * kWorkers / tiles; }

double l3_stream_bytes(const Machine& machine) {
  return kL3Share * static_cast<double>(machine.l3().bytes);
}

double l2_stream_bytes(const Machine& machine) {
  return kL2Stream * static_cast<double>(machine.l2().bytes);
}

int64_t tiles_together(const MatrixUnit& unit) {
  int64_t n = 1;
  while ((n + 1) * (n + 1) + 2 * (n + 1) <= unit.registers) ++n;
  return n;
}

void Tiling::set(size_t range, int64_t lanes, int64_t unroll) {
  ranges[range] = {lanes, unroll};
  vectors = lanes > 1 ? vectors | bit(range) : vectors & ~bit(range);
  unrolled = unroll > 1 ? unrolled | bit(range) : unrolled & ~bit(range);
}

CostModel::CostModel(const KernelInfo& info, const Target& target)
    : info_(info), target_(target), bodies_(find_bodies(info)) {
  widest_.resize(info.ranges.size(), 8);
  for (NodeRef n : info.order) {
    if (is_index(n->dtype) || is_bool(n->dtype) || n->op == Op::Store || n->op == Op::Param)
      continue;
    each(info.deps(n),
         [&](size_t r) { widest_[r] = std::max(widest_[r], computing_bits(n->dtype)); });
  }
  each(looked_up(info), [&](size_t r) { steady_[r] = steady_iterations(info, r); });
  for (const Access& a : info.accesses) {
    auto& granules = granules_.emplace_back();
    for (size_t r = 0; r < info.ranges.size(); ++r) granules.push_back(a.granule(r));
    auto& list = by_stride_.emplace_back();
    each(a.deps, [&](size_t r) { list.push_back(static_cast<uint8_t>(r)); });
    // Where the address is not affine, every iteration counts as a new element.
    auto key = [&](uint8_t r) {
      if (held_for(by_stride_.size() - 1, r) > 1) return int64_t{1};
      return (a.opaque & bit(r)) != 0 ? INT64_MAX : std::abs(a.stride[r]);
    };
    std::sort(list.begin(), list.end(),
              [&](uint8_t x, uint8_t y) { return key(x) != key(y) ? key(x) < key(y) : x < y; });
  }
  for (const Access& a : info.accesses)
    room_.push_back(looks_up(a) ? static_cast<double>(buffer_size(a)) : HUGE_VAL);
  double all = 0;
  SmallVector<double, 8> whole;
  for (uint32_t i = 0; i < info.accesses.size(); ++i) {
    whole.push_back(touched(i, info.accesses[i].deps, {}).second);
    all += whole.back();
  }
  const double share = l2_stream_bytes(machine()) * (all > kPassing * l2_bytes() ? kBeside : 1);
  for (const double bytes : whole) stays_in_l2_.push_back(bytes <= share);
  tested_ = tested_iterations(info);
}

/// Elements that the lanes of a vector along `range` load one by one. Neighbours may share theirs.
double CostModel::elements_of(size_t access, size_t range, double lanes) const {
  return std::max(1.0, lanes / static_cast<double>(held_for(access, range)));
}

/// For so many iterations of `range` the address stays the same, as far as that is known.
int64_t CostModel::held_for(size_t access, size_t range) const {
  const auto known = steady_.find(range);
  return known == steady_.end() ? 1 : std::max<int64_t>(1, known->second[access]);
}

double CostModel::l1_bytes() const { return kL1Share * static_cast<double>(machine().l1().bytes); }
double CostModel::l2_bytes() const { return kL2Share * static_cast<double>(machine().l2().bytes); }
double CostModel::l1_ways() const { return machine().l1().ways - kOtherWays; }

double CostModel::copies(RangeMask deps, const Tiling& tiling) const {
  double n = 1;
  each(deps & tiling.unrolled,
       [&](size_t r) { n *= static_cast<double>(tiling.ranges[r].unroll); });
  return n;
}

/// Distinct addresses among the copies of an access: copies along a window and along what it moves
/// over share most of theirs.
double CostModel::copies_of(const Access& a, const Tiling& tiling) const {
  double n = 1;
  RangeMask left = a.deps & tiling.unrolled;
  while (left != 0) {
    const auto r = static_cast<size_t>(std::countr_zero(left));
    left &= left - 1;
    double span = static_cast<double>(tiling.ranges[r].unroll);
    each(left, [&](size_t q) {
      if (a.stride[q] == 0 || a.stride[r] == 0 || (a.opaque & (bit(q) | bit(r))) != 0) return;
      if (tiling.ranges[q].lanes > 1 || tiling.ranges[r].lanes > 1) return;
      // One in steps of several places of the other, which leave none out.
      const bool wider = a.stride[r] % a.stride[q] == 0;
      if (!wider && a.stride[q] % a.stride[r] != 0) return;
      const auto step =
          static_cast<double>(wider ? a.stride[r] / a.stride[q] : a.stride[q] / a.stride[r]);
      const auto other = static_cast<double>(tiling.ranges[q].unroll);
      const double steps = wider ? span : other, places = wider ? other : span;
      if (step < 1 || step > places) return;
      span = step * (steps - 1) + places;
      left &= ~bit(q);
    });
    n *= span;
  }
  return n;
}

/// Of what one copy along a sum reads, how much the next one reads again: it is loaded once, and
/// has a register meanwhile.
double CostModel::held_between_steps(const Access& a, RangeMask own, const Tiling& tiling) const {
  const double steps = copies(a.deps & own, tiling);
  return steps == 1 ? 0 : (copies(a.deps, tiling) - copies_of(a, tiling)) / (steps - 1);
}

/// Copies of an access whose elements lie side by side.
double CostModel::neighbours(const Access& a, const Tiling& tiling) const {
  double n = 1;
  each(a.deps & tiling.unrolled, [&](size_t r) {
    if (std::abs(a.stride[r]) == 1) n *= static_cast<double>(tiling.ranges[r].unroll);
  });
  return n;
}

/// Tiles of a loop that may be shorter than one, on average over lengths: what two tiles share is
/// computed twice. Of a short loop the first tile waits for what all others then have in a cache:
/// the more rows it has, the less it waits.
double CostModel::tiles_of_any_length(size_t range, const Tiling::Of& tile) const {
  const auto longest = static_cast<double>(info_.ranges[range].extent);
  const auto size = static_cast<double>(tile.size());
  double longer = 0;
  for (const double part : kPartsOfLongest) {
    const double length = std::max(1.0, std::floor(longest * part));
    longer += std::ceil(length / size) * size / length;
  }
  const double waits = tile.lanes == 1 ? 1 + kFirstTile / size : 1;
  return longest / size * waits * longer / std::size(kPartsOfLongest);
}

double CostModel::iterations(RangeMask loops, RangeMask own, const Tiling& tiling) const {
  double n = 1;
  each(loops, [&](size_t r) {
    const int64_t size = tiling.ranges[r].size(), extent = info_.ranges[r].extent;
    const bool reduced = (own & bit(r)) != 0;
    if (!reduced && size > 1 && !info_.ranges[r].constant && cut_of(info_, r, size) == Cut::Short) {
      n *= tiles_of_any_length(r, tiling.ranges[r]);
      return;
    }
    if (reduced && ends_in_vector(info_, r, tiling.ranges[r])) {
      const auto vectors = std::ceil(static_cast<double>(extent) / tiling.ranges[r].lanes);
      n *= vectors / static_cast<double>(tiling.ranges[r].unroll) + kLastVector;
      return;
    }
    // A reduction's remainder runs one element at a time, in a loop of its own.
    const int64_t rest = extent % size == 0 ? 0 : extent % size + kRemainder;
    n *= static_cast<double>(reduced ? extent / size + rest : (extent + size - 1) / size);
  });
  return n;
}

bool CostModel::skips(const Body& body, const Tiling& tiling) const {
  if (body.masked == 0 || (body.masked & (tiling.unrolled | tiling.vectors)) != 0) return false;
  const RangeMask own = body.own & body.masked;
  bool inside = false;
  each(body.own & ~body.masked, [&](size_t r) {
    inside |= bit(r) > own && info_.ranges[r].extent > tiling.ranges[r].size();
  });
  return inside;
}

/// Cache lines that a vector touches on average: one that starts anywhere lies in two.
double CostModel::lines_of(size_t access, size_t range, double lanes) const {
  const Access& a = info_.accesses[access];
  const double piece = bits(a.node->src(0)->dtype) / 8.0;
  const double size = piece * static_cast<double>(a.unit());
  const int64_t known = granules_[access][range];
  const double start = static_cast<double>(known & -known) * piece;
  return known == 0 ? 1 : 1 + std::max(0.0, lanes * size - start) / Machine::kLine;
}

/// The range along the rows of a gather that lower/ loads in pieces, because there are copies for
/// all columns of these; -1 where there are not. Rows as long as a vector are loaded whole: halves
/// of their lines would come twice.
int CostModel::transposed_along(const Access& a, const Tiling& tiling) const {
  const RangeMask vector = a.deps & tiling.vectors;
  if (vector == 0 || a.is_store() || a.masked != 0) return -1;
  const auto v = static_cast<size_t>(std::countr_zero(vector));
  const int64_t lanes = tiling.ranges[v].lanes, most = most_columns(lanes);
  if ((a.opaque & vector) != 0 || std::abs(a.stride[v]) <= 1 ||
      !turns_rows(target_, a.node->dtype, lanes))
    return -1;
  int found = -1;
  each(a.deps & tiling.unrolled & ~a.opaque & ~vector, [&](size_t r) {
    const bool is_short = info_.ranges[r].extent < most;
    const int64_t piece = is_short ? fewest_columns(a.node->dtype) : most;
    if (a.stride[r] == 1 && tiling.ranges[r].unroll % piece == 0) found = static_cast<int>(r);
  });
  return found;
}

/// Copies that lower/ interleaves, because with their vectors they fill what is stored; 0 where
/// they do not.
int64_t CostModel::interleaved(const Access& a, const Tiling& tiling) const {
  const RangeMask vector = a.deps & tiling.vectors;
  if (vector == 0 || !a.is_store() || ((a.opaque | a.masked) & vector) != 0) return 0;
  const auto v = static_cast<size_t>(std::countr_zero(vector));
  const int64_t apart = a.stride[v];
  if (apart < 2 || apart > kMostInterleaved ||
      !turns_rows(target_, a.node->src(2)->dtype, tiling.ranges[v].lanes))
    return 0;
  bool filled = false;
  each(a.deps & tiling.unrolled & ~a.opaque,
       [&](size_t r) { filled |= a.stride[r] == 1 && tiling.ranges[r].unroll == apart; });
  return filled ? apart : 0;
}

/// Whole registers from the first lane of a load to the last, at small equal distances, of which
/// the lanes are permuted; 0 where lanes are loaded one by one, or where what lies between them are
/// rows to transpose.
int64_t CostModel::registers_across(const Access& a, size_t range, int64_t lanes) const {
  const int64_t apart = a.stride[range];
  const DType dtype = a.node->dtype;
  if (a.is_store() || ((a.opaque | a.masked) & bit(range)) != 0 || apart < 2 || 2 * apart > lanes ||
      !target_.permutes_pairs(dtype))
    return 0;
  bool has_rows = false;
  each(a.deps & ~a.opaque, [&](size_t r) {
    has_rows |= a.stride[r] == 1 && info_.ranges[r].extent >= fewest_columns(dtype);
  });
  if (has_rows && turns_rows(target_, dtype, static_cast<int>(lanes))) return 0;
  const int64_t part = std::min<int64_t>(lanes, target_.lanes(dtype));
  return ceil_div(apart * (part - 1) + 1, part) * ceil_div(lanes, part);
}

int CostModel::along_rows(const Body& body, const Tiling& tiling) const {
  int along = -1;
  if (body.own != 0) return along;
  for (uint32_t i : body.accesses)
    along = std::max(along, transposed_along(info_.accesses[i], tiling));
  return along;
}

/// Lanes of each vector along a range whose masks are computed. Of those inside of the border it is
/// known that they hold, and of all copies only the outermost reach it.
double CostModel::tested_lanes(const Tiling& tiling, size_t range) const {
  const auto [lanes, unroll] = tiling.ranges[range];
  return std::min(static_cast<double>(lanes),
                  static_cast<double>(tested_[range]) / static_cast<double>(unroll));
}

/// Whether this is a store that is masked where tiles overlap.
bool CostModel::stored_once(const Access& a, const Tiling& tiling) const {
  if (!a.is_store() || info_.repeatable) return false;
  bool overlap = false;
  each(a.deps, [&](size_t r) { overlap |= info_.ranges[r].extent % tiling.ranges[r].size() != 0; });
  return overlap;
}

/// What arithmetic, load and store ports need for one iteration, whichever is most.
double CostModel::port_cycles(const Body& body, const Tiling& tiling) const {
  double alu = 0, loads = 0, stores = 0, operands = 0, largest = 0, held = 0;
  const double chains = body.own == 0 ? 0 : copies(body.deps & ~body.own, tiling) * body.results;
  const RangeMask vectors = body.deps & tiling.vectors;
  const auto vector_range = static_cast<size_t>(std::countr_zero(vectors | bit(63)));
  const double lanes = vectors == 0 ? 1 : static_cast<double>(tiling.ranges[vector_range].lanes);
  const double tested_lanes = vectors == 0 ? 1 : this->tested_lanes(tiling, vector_range);
  const bool skips = this->skips(body, tiling);
  for (const Body::Work& w : body.work)
    if (!(skips && w.per_lane))
      alu += w.cycles * copies(w.deps, tiling) *
             ((w.deps & vectors) != 0 && w.per_lane ? 2 * tested_lanes : 1);
  for (uint32_t i : body.accesses) {
    const Access& a = info_.accesses[i];
    const double n = copies_of(a, tiling);
    const double needed = copies(a.deps & ~body.own, tiling);
    operands += needed;
    held += held_between_steps(a, body.own, tiling);
    largest = std::max(largest, needed);
    double one = 1;
    if (RangeMask v = a.deps & vectors) {
      const int64_t stride = a.stride[static_cast<size_t>(std::countr_zero(v))];
      // Beside sums it takes too many registers.
      const int rows = body.own == 0 ? transposed_along(a, tiling) : -1;
      if (rows >= 0) {
        const auto of = transpose_cost(tiling.ranges[static_cast<size_t>(rows)].unroll,
                                       tiling.ranges[vector_range].lanes);
        one = kVector * of.loads;
        alu += n * of.permutations * kPermute;
      } else if (const int64_t columns = interleaved(a, tiling)) {
        one = kVector;
        alu += n * static_cast<double>(columns - 1) * kPermute;
      } else if (const int64_t registers =
                     registers_across(a, vector_range, tiling.ranges[vector_range].lanes)) {
        one = kVector * static_cast<double>(registers) * lines_of(i, vector_range, lanes);
        alu += n * static_cast<double>(registers - 1) * kPermute;
      } else if (stores_in_order(info_, a) && stored_once(a, tiling)) {
        one = lanes, alu += n * lanes * (kExtract + kMask);
      } else if ((a.masked & v) != 0 || (a.opaque & v) != 0 || std::abs(stride) > a.unit()) {
        const bool far = std::abs(stride) * bits(a.node->src(0)->dtype) >= 512;
        const bool same = stride == 0 && (a.opaque & v) == 0;  // but for those that are tested
        // Of one element in all lanes, that may be loaded anyway, the mask as a vector takes some;
        // where one vector is all, its lanes are known, and put together.
        const bool chosen = same && !a.is_store() && is_inside_anyway(a.node) &&
                            static_cast<double>(info_.ranges[vector_range].extent) > lanes;
        const double tested = (a.masked & v) != 0 && !chosen ? tested_lanes : 0;
        const double each =
            same ? std::min(lanes, tested + 1) : elements_of(i, vector_range, lanes);
        one = each * (a.is_store() && far ? std::max(1.0, kScatter / neighbours(a, tiling)) : 1);
        // Of a store to computed places both leave their vectors, value and place.
        const double moved = !a.is_store()         ? kInsert
                             : (a.opaque & v) != 0 ? 2 * kExtract
                                                   : kExtract;
        alu += n * (each * moved + tested * kMask);
      } else if (stride != 0) {
        one = kVector * lines_of(i, vector_range, lanes);
        alu += stride < 0 ? n : 0;
      }
    } else if (vectors != 0 && !a.is_store() && a.node->dtype == DType::F16) {
      alu += n * kWidenOne;
    }
    const bool tested =
        stored_once(a, tiling) || (a.masked != 0 && !(skips && (a.masked & ~body.masked) == 0));
    alu += tested ? n * kMask : 0;
    (a.is_store() ? stores : loads) += n * one;
  }
  double spills = 0;
  if (body.own != 0) {
    // Accumulators, all operands but the most numerous kind, one of that, and of it what the next
    // copies along the sum read again.
    const double wanted = chains + operands - largest + 1 + held;
    const double spilled = wanted - std::max(4, target_.vector_registers);
    // Where one has no register, most of them take turns.
    if (spilled > 0) spills = kSpill * chains * copies(body.own, tiling);
  }
  const double turns = vectors == 0 ? 1 : machine().turns(target_.vector_bits);
  alu *= turns * 2 / machine().vector_ops;
  loads *= turns / machine().loads;
  return std::max({alu, loads, stores * turns * kStore}) + kLoadPressure * loads + spills;
}

/// Cycles that one iteration computes, loads and stores for, were all memory as near as L1.
double CostModel::busy_cycles(const Body& body, const Tiling& tiling) const {
  double busy = port_cycles(body, tiling);
  if (body.own != 0) {
    const double chains = copies(body.deps & ~body.own, tiling) * body.results;
    const bool chained = body.products && chains >= kEnoughChains;
    busy = std::max(busy, kFoldLatency * (chained ? copies(body.own, tiling) : 1));
  }
  return busy + kLoopOverhead;
}

double CostModel::cycles_each(const Body& body, const Tiling& tiling, double busy) const {
  return body.own == 0 ? std::max(busy, stream_cycles(body, tiling))
                       : with_memory(body, tiling, busy);
}

double CostModel::cycles(const Body& body, const Tiling& tiling) const {
  return iterations(body.deps, body.own, tiling) *
         cycles_each(body, tiling, busy_cycles(body, tiling));
}

double CostModel::total(const Tiling& tiling, double enough) const {
  double sum = 0;
  for (const Body& b : bodies_) {
    const double n = iterations(b.deps, b.own, tiling), busy = busy_cycles(b, tiling);
    // What memory takes makes it no less.
    if (sum + n * busy >= enough) return sum + n * busy;
    sum += n * cycles_each(b, tiling, busy);
  }
  return sum;
}

int CostModel::innermost(const Tiling& tiling) const {
  double most = 0;
  int range = -1;
  for (const Body& b : bodies_) {
    const int along = b.own == 0 ? stored_along(b, tiling) : traffic(b, tiling).innermost;
    if (along < 0 || cycles(b, tiling) <= most) continue;
    most = cycles(b, tiling);
    range = along;
  }
  return range;
}

bool CostModel::outruns_l3(const Tiling& tiling) const {
  const auto cycles_of = [&](const Body& b) { return cycles(b, tiling); };
  const auto most = std::ranges::max_element(bodies_, {}, cycles_of);
  return most != bodies_.end() && most->own != 0 &&
         far_cycles(*most, tiling, traffic(*most, tiling).fresh) > busy_cycles(*most, tiling);
}

/// Outside of reductions, the range of vectors that are stored lane by lane, in lines that the next
/// vector goes on with as it does in those it is loaded from: rows of a transposition that
/// registers do not do. -1 where there is none.
int CostModel::along_scattered(const Body& body, const Tiling& tiling) const {
  const RangeMask vectors = body.deps & tiling.vectors;
  if (body.own != 0 || vectors == 0) return -1;
  const auto v = static_cast<size_t>(std::countr_zero(vectors));
  bool scattered = false;
  for (uint32_t i : body.accesses) {
    const Access& a = info_.accesses[i];
    if ((a.deps & vectors) == 0 || ((a.opaque | a.masked) & vectors) != 0) return -1;
    const int64_t step = std::abs(a.stride[v]);
    if (a.is_store()) {
      const int64_t bytes = step * bits(a.node->src(0)->dtype) / 8;
      if (step <= a.unit() || bytes > Machine::kLine) return -1;
      scattered = true;
    } else if (step != a.unit()) {
      return -1;
    }
  }
  return scattered ? static_cast<int>(v) : -1;
}

/// Outside of reductions, the range along which tiles lie side by side in memory, where there is
/// more than one: of what is transposed, or waits for memory.
int CostModel::stored_along(const Body& body, const Tiling& tiling) const {
  int along = along_rows(body, tiling);
  if (along < 0) along = along_scattered(body, tiling);
  if (along >= 0 || !info_.has_folds() || stream_cycles(body, tiling) <= busy_cycles(body, tiling))
    return along;
  return stored_next(body, tiling, 0);
}

bool CostModel::too_long(const Body& body, const Tiling& tiling) const {
  double n = 0;
  for (const Body::Work& w : body.work) n += 2 * w.cycles * copies(w.deps, tiling);
  for (uint32_t i : body.accesses) n += copies_of(info_.accesses[i], tiling);
  return n > (body.products ? kMaxBody : kMaxPlainBody);
}

}  // namespace weft::optimize
