// Ops with several results, seen as parts: Function, Repeat, Call, Custom. Their first sources are
// evaluated where the node is; the others (bodies, gradients, a kernel) are closed: they mention
// their inputs as params with inner slots, and nodes around them do not look inside.
#pragma once
#include <vector>

#include "weft/graph/graph.h"

namespace weft {

/// Params that stand for something within one node. A node's own slots lie a level above those of
/// the nodes inside its bodies, so that substitution may go through all of them.
constexpr int64_t kInnerSlots = int64_t{1} << 24, kInnerSlotsEnd = int64_t{1} << 28;
constexpr int64_t kSlotsPerLevel = int64_t{1} << 14;
constexpr int64_t kMostRounds = int64_t{1} << 24;  ///< of a Repeat

inline bool is_inner_param(NodeRef n) {
  return n->op == Op::Param && param_slot(n) >= kInnerSlots && param_slot(n) < kInnerSlotsEnd;
}
/// How many levels of inner slots are taken by what `n` is evaluated from and, where it closes
/// bodies, by itself: Node::levels, from those of its sources.
uint16_t inner_levels(NodeRef n);
/// The first slot for a node over these bodies.
int64_t inner_slots_above(std::span<const NodeRef> bodies);

/// results and inputs are tensors; a gradient that does not exist is an empty Sink.
struct FunctionParts {
  explicit FunctionParts(NodeRef function);
  std::span<const NodeRef> results, inputs, gradients;
  int64_t slot;
};

struct RepeatParts {
  explicit RepeatParts(NodeRef repeat);
  int64_t count;
  bool reversed;
  std::span<const NodeRef> stacked, whole, inits, nexts, outs;
  int64_t slot;  ///< of the first placeholder: stacked, whole, carries in this order
  /// Which carry, in i32, ends it: once none of its elements is 0, rounds change nothing more that
  /// is looked at afterwards, and may be left out. -1: none does.
  int64_t until = -1;

  /// How deep bodies lie in each other below this one.
  int64_t level() const { return (slot - kInnerSlots) / kSlotsPerLevel; }
};

struct CallParts {
  explicit CallParts(NodeRef call);
  std::span<const NodeRef> inputs, bodies;
  int64_t slot;  ///< of the first input's param
};

struct CustomParts {
  explicit CustomParts(NodeRef custom);
  std::span<const NodeRef> inputs, outputs;
  NodeRef sink;
};

/// The params among closed sources that have slots from `slot` on, by slot; null where none has.
std::vector<NodeRef> placeholders_in(std::span<const NodeRef> closed, int64_t slot, size_t count);

constexpr bool is_tuple(Op op) {
  return op == Op::Loop || op == Op::Function || op == Op::Repeat || op == Op::Call ||
         op == Op::Custom;
}
/// How many of its sources a node is evaluated from; the closed ones follow.
size_t evaluated_sources(NodeRef n);
inline std::span<const NodeRef> closed_sources(NodeRef n) {
  return n->src().subspan(evaluated_sources(n));
}

/// What get(k) gives: a node of the same dtype, and the shape.
size_t result_count(NodeRef tuple);
NodeRef result_like(NodeRef tuple, size_t k);
const Shape* result_shape(Graph& g, NodeRef tuple, size_t k);
NodeRef get_result(Graph& g, NodeRef tuple, size_t k);  ///< the Get itself

/// For node_problem(): null, or what is wrong with the parts.
const char* function_problem(const NodeSpec& s);
const char* repeat_problem(const NodeSpec& s);
const char* call_problem(const NodeSpec& s);
const char* custom_problem(const NodeSpec& s);

}  // namespace weft
