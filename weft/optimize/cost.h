// The analytic cost model: cycles of each innermost loop body for a choice of lanes and copies.
#pragma once
#include "weft/optimize/kernel_info.h"
#include "weft/optimize/optimize.h"
#include "weft/target/target.h"

namespace weft::optimize {

/// What is decided for each range: lanes of the vector it becomes, and copies (of vectors).
struct Tiling {
  struct Of {
    int64_t lanes = 1;
    int64_t copies = 1;
    int64_t size() const { return lanes * copies; }
  };
  SmallVector<Of, 16> ranges;
  RangeMask vectors = 0;  ///< ranges with lanes > 1
  RangeMask copied = 0;   ///< ranges with copies > 1

  void set(size_t range, int64_t lanes, int64_t copies);
};

/// What runs together in one innermost loop: the reductions over the same ranges at the same place,
/// or the stores and what only they need.
struct Body {
  RangeMask deps = 0;     ///< ranges whose loops it runs in
  RangeMask own = 0;      ///< ranges its reductions close; 0 for stores
  int results = 0;        ///< accumulators of one copy
  bool products = false;  ///< a sum of products: multiplication and addition are one operation
  RangeMask masked = 0;   ///< ranges that decide whether anything is folded at all
  struct Work {
    RangeMask deps;
    float cycles;   ///< per vector (or scalar, where it does not depend on the vector range)
    bool per_lane;  ///< masks and addresses, which are computed once per lane
  };
  SmallVector<Work, 8> work = {};
  void add_work(RangeMask in, double cycles, bool per_lane);
  SmallVector<uint32_t, 8> accesses = {};  ///< indices into KernelInfo::accesses
};

class CostModel {
 public:
  CostModel(const KernelInfo& info, const Target& target);
  CostModel(const KernelInfo&, Target&&) = delete;  // it refers to it

  const std::vector<Body>& bodies() const { return bodies_; }
  /// What one tile reads while its reductions run, when the loop over `innermost` (a range's
  /// position, or -1) runs right around the tile.
  struct Traffic {
    double total = 0;  ///< bytes of the first cache they take
    double fresh = 0;  ///< bytes not in the second cache from the tile before; more for short runs
    int innermost = -1;
  };
  Traffic traffic(const Body& body, const Tiling& tiling) const;
  /// Cycles of all iterations of `body`.
  double cycles(const Body& body, const Tiling& tiling) const;
  double total(const Tiling& tiling) const;
  /// The range whose loop should run right around the tiles of the most expensive reduction.
  int innermost(const Tiling& tiling) const;
  /// Copies of instructions in the body: what code size is limited by.
  double size(const Body& body, const Tiling& tiling) const;
  /// Bits of the widest element computed with in anything that depends on `range`.
  int widest(size_t range) const { return widest_[range]; }
  KernelCost cost(const Tiling& tiling) const;

 private:
  void add_reductions();
  void add_stores();
  void collect(Body& body, std::span<const NodeRef> roots);
  double iterations(RangeMask loops, RangeMask own, const Tiling& tiling) const;
  double copies(RangeMask deps, const Tiling& tiling) const;
  double copies_of(const Access& a, const Tiling& tiling) const;
  struct Touched {
    double bytes, runs;
    double first, second;  // bytes of each cache they take
  };
  Touched touched(size_t access, const Body& body, const Tiling& tiling) const;
  /// Of what an access reads, the part that is new when the loop over `axis` moves on by `size`: a
  /// window that moves by less than its own size keeps most of what it covers.
  double fresh_share(const Access& a, RangeMask own, size_t axis, int64_t size) const;
  double lines_of(size_t access, size_t range, double lanes) const;
  bool fits_registers(const Body& body, const Tiling& tiling, double chains) const;
  /// Whether lower/ leaves out the loops of a tile where its masks do not hold.
  bool skips(const Body& body, const Tiling& tiling) const;
  double memory_cycles(const Body& body, const Tiling& tiling) const;
  double gathered_bytes(const Access& a, const Tiling& tiling) const;
  double stream_cycles(const Body& body, const Tiling& tiling) const;
  double port_cycles(const Body& body, const Tiling& tiling) const;

  const KernelInfo& info_;
  const Target& target_;
  std::vector<Body> bodies_;
  SmallVector<int, 16> widest_;
  std::vector<SmallVector<uint8_t, 12>>
      by_stride_;                                   // per access: its ranges, smallest stride first
  std::vector<SmallVector<int64_t, 12>> granules_;  // per access and range: Access::granule
};

}  // namespace weft::optimize
