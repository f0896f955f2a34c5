// The steps of optimising as passes, and what they hand each other.
#pragma once
#include <optional>

#include "weft/optimize/groups.h"
#include "weft/optimize/optimize.h"
#include "weft/optimize/tile_product.h"
#include "weft/optimize/tiling.h"
#include "weft/rewrite/pass.h"

namespace weft {
namespace optimize {

/// A kernel on its way to a faster one.
struct State {
  Kernel kernel;            ///< in a graph of its own
  const Target& target;     ///< outlives the state
  OptimizeOptions options;  ///< its own: callers often pass a temporary
  KernelInfo info;          ///< of `kernel` as the last pass but `tile` left it
  GroupPlan groups =
      {};  ///< where it has any, the passes that tile for one item have nothing to do
  std::optional<TileProduct> tiles = {};  ///< of a matrix unit; else `tiling`
  Tiling tiling = {};
  int innermost = -1;        ///< the range, by position, whose loop runs right around the tile
  int64_t stream = 0;        ///< LoopPlan::stream
  bool keeps_order = false;  ///< loops stay in each other as they are
  bool foreign = false;      ///< the plan given is of another kernel

  std::string_view name() const { return kernel.name; }
  PassView view() const;
  std::string text() const;
  StateParts parts() const;
};

/// A kernel as the passes begin with it; null where it may not be changed at all.
std::optional<State> open_kernel(const Kernel& kernel, const Target& target,
                                 const OptimizeOptions& options);
/// Runs the passes before the one that chooses a plan; false where there is none to choose.
bool prepare_choice(State& state);

}  // namespace optimize

/// In order. They run where a kernel may be changed at all.
std::span<const Pass<optimize::State>> optimize_passes();

}  // namespace weft
