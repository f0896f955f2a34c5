// What a value costs, estimated from its graph alone, before it is known what is computed with
// what.
#pragma once
#include <span>

#include "weft/graph/node_map.h"
#include "weft/target/target.h"

namespace weft {

/// The additive cost model, in units of about one cycle of one core for one element. Small on
/// purpose: it decides fusion, the schedule search decides speed.
namespace cycles {
constexpr double kOp = 0.1;         // one vectorised operation
constexpr double kHardOp = 0.5;     // division, square root
constexpr double kFunction = 1.25;  // exp2, log2, sin where they are polynomials
constexpr double kRounding = 0.7;   // to bf16 (codegen/x86/vector_casts.cpp)
constexpr double kLoad = 0.3;       // reading one element again
constexpr double kStore = 1.0;      // writing one element
constexpr double kBeyondL3 = 2.5;   // times these, of what is larger than that
constexpr double kLaunch = 2500;    // one more kernel
}  // namespace cycles

struct Estimates {
  NodeMap<double> work = {};    ///< per element, when computed from materialised values
  NodeMap<bool> full = {};      ///< some operand is read once per element: no reuse to exploit
  NodeMap<bool> heavy = {};     ///< reductions with reuse (products), and sums that merge with one
  NodeMap<double> visits = {};  ///< of sums of which views are summed: how often, at most
  NodeMap<int> users = {};      ///< nodes that it is a source of
};
/// Of all nodes, sources first. What is below a reduction, an output, or what is worth storing
/// counts as one load.
Estimates estimate(std::span<const NodeRef> order, const NodeMap<bool>& outputs,
                   const Target& target);

/// True for what gets a buffer whatever it costs.
bool always_staged(NodeRef n);
bool is_view(Op op);
inline bool is_reduction(NodeRef n) { return n->op == Op::Reduce || n->op == Op::Loop; }
bool is_sum(NodeRef n);
/// Number of elements, with symbolic extents at their largest.
double largest_numel(std::span<const NodeRef> dims);

}  // namespace weft
