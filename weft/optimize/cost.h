// The analytic cost model of a core: cycles of each innermost loop body for a choice of lanes and
// unroll factors.
#pragma once
#include <cmath>
#include <map>
#include <span>

#include "weft/optimize/bodies.h"
#include "weft/optimize/kernel_info.h"
#include "weft/optimize/optimize.h"
#include "weft/target/target.h"

namespace weft::optimize {

/// What is decided for each range: lanes of the vector it becomes, and unroll factor (of vectors).
struct Tiling {
  struct Of {
    int64_t lanes = 1;
    int64_t unroll = 1;
    int64_t size() const { return lanes * unroll; }
  };
  SmallVector<Of, 16> ranges;
  RangeMask vectors = 0;   ///< ranges with lanes > 1
  RangeMask unrolled = 0;  ///< ranges with an unroll factor over 1

  void set(size_t range, int64_t lanes, int64_t unroll);
};

/// Lanes of what is left where vectors are full: fewer steps than one for each element, on every
/// machine with vectors.
constexpr int64_t kFewLanes = 4;
/// That longer steps through memory take, in each iteration.
constexpr double kLongStepCycles = 2;
/// Of a kernel; below, one worker does all.
constexpr double kWorthSharingCycles = 5e4;
/// That tiles should keep busy, whatever there are.
constexpr double kWorkers = 8;
/// Whether workers that share a kernel are done before one that has it to itself could be with what
/// is worth sharing.
bool is_worth_sharing(double cycles);
/// How much longer than an equal share the longest takes, where workers share so many tiles.
double uneven_share(double tiles);
/// What comes by again and again while it is in L3, which others need too.
double l3_stream_bytes(const Machine& machine);
/// The same of L2, for what takes its operands faster than L3 gives them.
double l2_stream_bytes(const Machine& machine);
/// Tiles of a sum along each side that are summed together: each operand's tile is loaded once for
/// as many products, and all of them have registers.
int64_t tiles_together(const MatrixUnit& unit);

class CostModel {
 public:
  CostModel(const KernelInfo& info, const Target& target);
  CostModel(const KernelInfo&, Target&&) = delete;  // it refers to it

  const std::vector<Body>& bodies() const { return bodies_; }
  /// What one tile reads while its reductions run, when the loop over `innermost` (a range's
  /// position, or -1) runs right around the tile.
  struct Traffic {
    double total = 0;  ///< bytes of L1 they take
    double fresh = 0;  ///< bytes not in L2 from the tile before; more for short runs
    int innermost = -1;
    double tiles = 1;    ///< along it, before the loop around it goes on
    double renewed = 0;  ///< bytes not in L2 where it does
  };
  Traffic traffic(const Body& body, const Tiling& tiling) const;
  /// Cycles of all iterations of `body`.
  double cycles(const Body& body, const Tiling& tiling) const;
  /// Of all bodies. What is known to be `enough` or more may be told by another such number.
  double total(const Tiling& tiling, double enough = HUGE_VAL) const;
  /// The range whose loop should run right around the tiles of the most expensive body.
  int innermost(const Tiling& tiling) const;
  /// Whether the most expensive body takes what comes by again and again faster than L3 gives it.
  bool outruns_l3(const Tiling& tiling) const;
  /// Where lower/ loads the rows that gathers of `body` lie across whole, the range along them; -1
  /// where it does not. The machine fetches ahead what is walked along.
  int along_rows(const Body& body, const Tiling& tiling) const;
  /// Whether a tile's body is more code than instruction caches like.
  bool too_long(const Body& body, const Tiling& tiling) const;
  /// Bits of the widest element computed with in anything that depends on `range`.
  int widest(size_t range) const { return widest_[range]; }

 private:
  const Machine& machine() const { return target_.machine; }
  double l1_bytes() const;  ///< that a tile's operands may fill
  double l2_bytes() const;
  double l2_in_l3() const;
  double l1_ways() const;  ///< left for lines that share a set
  double tiles_of_any_length(size_t range, const Tiling::Of& tile) const;
  double iterations(RangeMask loops, RangeMask own, const Tiling& tiling) const;
  double copies(RangeMask deps, const Tiling& tiling) const;
  double copies_of(const Access& a, const Tiling& tiling) const;
  double held_between_steps(const Access& a, RangeMask own, const Tiling& tiling) const;
  double neighbours(const Access& a, const Tiling& tiling) const;
  struct Touched {
    double bytes, runs;
    double line;           // bytes that a run takes at least, beside its neighbours
    double first, second;  // bytes of each cache they take
    double span;           // bytes from the first element to the last
  };
  Touched touched(size_t access, RangeMask whole, const Tiling& tiling) const;
  std::vector<double> far_bytes(const Body& body, std::span<const Touched> of) const;
  /// The next tile along one range. Of all, the one with least traffic runs innermost.
  struct Step {
    int axis = -1;
    double tiles = 1;             // along it
    double beyond = 0, near = 0;  // bytes that come from beyond L2, and from there
    double traffic = 0;           // bytes that come from beyond L2, and go there
    bool in_a_line = false;       // what all tiles along it read
  };
  SmallVector<Step, 8> steps(const Body& body, const Tiling& tiling, std::span<const Touched> of,
                             std::span<const double> far) const;
  double loaded_bytes(const Access& a, const Touched& now, const Body& body,
                      const Tiling& tiling) const;
  /// Of what an access reads, the part that is new when the loop over `axis` moves on by `size`: a
  /// window that moves by less than its own size keeps most of what it covers.
  double fresh_share(const Access& a, RangeMask own, size_t axis, int64_t size) const;
  double fresh_bytes(const Access& a, const Touched& of, double far, RangeMask own, size_t axis,
                     int64_t size) const;
  bool is_near(const Access& a, size_t axis, int64_t size) const;
  bool has_window(const Body& body) const;
  double stored_bytes(size_t axis, const Tiling& tiling) const;
  double lines_of(size_t access, size_t range, double lanes) const;
  /// Whether lower/ leaves out the loops of a tile where its masks do not hold.
  bool skips(const Body& body, const Tiling& tiling) const;
  double busy_cycles(const Body& body, const Tiling& tiling) const;
  double cycles_each(const Body& body, const Tiling& tiling, double busy) const;
  /// Cycles of an iteration in which L3, or what is behind it, gives what is fresh.
  double far_cycles(const Body& body, const Tiling& tiling, double fresh) const;
  double with_memory(const Body& body, const Tiling& tiling, double busy) const;
  bool jumps(const Access& a) const;
  double gathered_bytes(const Access& a, const Tiling& tiling) const;
  double bytes_of_parts(size_t access, const Body& body, const Tiling& tiling) const;
  double lines_kept(int64_t apart) const;
  int stored_next(const Body& body, const Tiling& tiling, RangeMask but) const;
  double stream_cycles(const Body& body, const Tiling& tiling) const;
  int transposed_along(const Access& a, const Tiling& tiling) const;
  int64_t interleaved(const Access& a, const Tiling& tiling) const;
  int64_t registers_across(const Access& a, size_t range, int64_t lanes) const;
  int64_t held_for(size_t access, size_t range) const;
  double elements_of(size_t access, size_t range, double lanes) const;
  double tested_lanes(const Tiling& tiling, size_t range) const;
  int along_scattered(const Body& body, const Tiling& tiling) const;
  int stored_along(const Body& body, const Tiling& tiling) const;
  bool stored_once(const Access& a, const Tiling& tiling) const;
  double port_cycles(const Body& body, const Tiling& tiling) const;

  const KernelInfo& info_;
  const Target& target_;
  std::vector<Body> bodies_;
  SmallVector<int, 16> widest_;
  SmallVector<int64_t, 16> tested_;  // iterations of each range in which some mask may not hold
  std::vector<SmallVector<uint8_t, 12>>
      by_stride_;                                   // per access: its ranges, smallest stride first
  std::vector<SmallVector<int64_t, 12>> granules_;  // per access and range: Access::granule
  std::map<size_t, std::vector<int64_t>> steady_;   // steady_iterations(), of ranges of look-ups
  std::vector<double> room_;  // per access: elements there are where data says which, else no bound
  std::vector<char> stays_in_l2_;  // per access: whether all of what it reads does, beside others
};

}  // namespace weft::optimize
