// Kernels and linear programs: nesting of ranges, and what linear code may contain.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "weft/graph/dependence.h"
#include "weft/graph/loops.h"
#include "weft/graph/node_map.h"
#include "weft/graph/verify.h"
#include "weft/graph/verify_parts.h"

namespace weft {
namespace {

// A set of ranges is kept for each node: what files may ask for is bounded.
constexpr int kMaxRanges = 1024;

/// Which ranges each node's value still varies over.
class OpenRanges {
 public:
  explicit OpenRanges(std::span<const NodeRef> order)
      : index_(positions_in(order)),
        dependence_(order, [this](NodeRef n) { return index_.at(n); }),
        reduced_(dependence_.ranges().size()) {
    for (NodeRef n : order)
      for (NodeRef r : reduction_ranges(n))
        if (r->op == Op::Range) reduced_[dependence_.position(r)] = true;
  }
  std::span<const NodeRef> ranges() const { return dependence_.ranges(); }
  /// Some reduction ends the range's loop.
  bool reduced(NodeRef range) const { return reduced_[dependence_.position(range)]; }
  bool varies(NodeRef n, NodeRef range) const {
    return dependence_.at(index_.at(n)).contains(dependence_.position(range));
  }

 private:
  NodeMap<uint32_t> index_;
  RangeDependence dependence_;
  std::vector<bool> reduced_;
};

Found find_kernel_node_problem(NodeRef n) {
  if (const char* what = node_problem(spec_of(n), static_cast<uint8_t>(Dialect::Kernel)))
    return Problem{n, what};
  if (n->op == Op::Param ? n->nsrc != 1 : n->rank() != 0)
    return Problem{n, n->op == Op::Param ? "a kernel's param has one size" : "is no scalar"};
  if (n->op == Op::Reduce && n->nints > 1) return Problem{n, "reduces axes in a kernel"};
  if (n->op == Op::Scan && n->nsrc == 1) return Problem{n, "scans an axis in a kernel"};
  if (n->op == Op::Loop && n->int_arg(1) > 0) return Problem{n, "runs over axes in a kernel"};
  if (n->op != Op::Load && n->op != Op::Store)
    for (NodeRef s : n->src())
      if (s->op == Op::Param) return Problem{n, "uses a param other than by load and store"};
  return std::nullopt;
}

/// Ids are distinct and at most one range is bound to Core.
Found find_range_problem(const OpenRanges& open) {
  std::unordered_set<int64_t> ids;
  NodeRef core = nullptr;
  for (NodeRef r : open.ranges()) {
    if (!ids.insert(range_id(r)).second) return Problem{r, "two ranges have its id"};
    if (range_binding(r) != Binding::Core) continue;
    if (core) return Problem{r, "a second core range"};
    core = r;
  }
  return std::nullopt;
}

bool is_launched(NodeRef range) {
  return range_binding(range) == Binding::Grid || range_binding(range) == Binding::Group;
}

/// Ranges that one axis stands for are the same number: of the grid there is one, those of a group
/// are of one constant size and meet in no value. Only a Reduce folds across a group.
Found find_launch_problem(const OpenRanges& open, std::span<const NodeRef> order) {
  std::vector<NodeRef> launched;
  std::ranges::copy_if(open.ranges(), std::back_inserter(launched), is_launched);
  for (NodeRef r : launched) {
    const bool grid = range_binding(r) == Binding::Grid;
    if (!grid && r->src(0)->op != Op::Const) return Problem{r, "a group's size is no number"};
    if (grid && open.reduced(r)) return Problem{r, "a reduction across the grid"};
    for (NodeRef other : launched) {
      if (other == r) break;
      if (range_binding(other) != range_binding(r) || range_axis(other) != range_axis(r)) continue;
      if (grid) return Problem{r, "a second range of one axis of the grid"};
      if (other->src(0) != r->src(0)) return Problem{r, "an axis of the group has two sizes"};
      for (NodeRef n : order)
        if (open.varies(n, r) && open.varies(n, other) && n->op != Op::Sink)
          return Problem{n, "varies over two ranges of one axis of the group"};
    }
  }
  if (launched.empty()) return std::nullopt;
  for (NodeRef n : order) {
    if (n->op == Op::Range && range_binding(n) == Binding::Core)
      return Problem{n, "a core range in a kernel of groups"};
    if (n->op != Op::Scan && n->op != Op::Loop) continue;
    if (std::ranges::any_of(listed_ranges(n), is_launched))
      return Problem{n, "carries state across a group"};
  }
  return std::nullopt;
}

/// Nothing outside a reduction varies over its ranges.
Found find_escape(const OpenRanges& open, std::span<const NodeRef> order) {
  for (NodeRef n : order) {
    if (n->op != Op::Store) continue;
    for (NodeRef r : open.ranges())
      if (open.reduced(r) && open.varies(n, r))
        return Problem{n, "varies over a range that a reduce has closed"};
  }
  return std::nullopt;
}

/// Whether the loop of `a` lies around that of `b`, both around one value: open ranges by id, those
/// of reductions inside them. Vectors, copies and tiles are no loops.
bool lies_outside(const OpenRanges& open, NodeRef a, NodeRef b) {
  const Binding binding = range_binding(a);
  if (binding == Binding::Core || binding == Binding::Vector || binding == Binding::Unroll ||
      binding == Binding::Tile)
    return true;
  if (open.reduced(a) != open.reduced(b)) return open.reduced(b);
  return range_id(a) < range_id(b);
}

/// What a running fold carries is kept in the loops around its own: a loop inside of those would go
/// on with what another of its iterations has left.
Found find_shared_state(const OpenRanges& open, std::span<const NodeRef> order) {
  for (NodeRef n : order) {
    if (!is_running(n)) continue;
    const std::span<const NodeRef> own = listed_ranges(n);
    for (size_t i = 0; i < own.size(); ++i) {
      if (range_binding(own[i]) != Binding::Loop) return Problem{n, "runs over no plain loop"};
      if (i > 0 && !lies_outside(open, own[i - 1], own[i]))
        return Problem{n, "runs over its ranges in another order than it lists them"};
      for (NodeRef r : open.ranges())
        if (open.varies(n, r) && std::ranges::find(own, r) == own.end() &&
            !lies_outside(open, r, own[i]))
          return Problem{n, "carries one state for all iterations of a loop inside of its own"};
    }
  }
  return std::nullopt;
}

// ---- linear programs

bool is_leaf(NodeRef n) { return group(n->op) == OpGroup::Leaf && n->op != Op::Range; }

bool computes_narrow_float(NodeRef n) {
  return is_narrow_float(n->dtype) && is_alu(n->op) && n->op != Op::Cast && n->op != Op::Bitcast &&
         n->op != Op::Where;
}

const char* linear_node_problem(NodeRef n) {
  if (const char* what = node_problem(spec_of(n), static_cast<uint8_t>(Dialect::Linear)))
    return what;
  if (n->op == Op::IDiv || n->op == Op::Mod) return "division must be cdiv or cmod by now";
  if (n->dtype == DType::Index && n->op != Op::Variable && n->op != Op::Const && n->op != Op::Param)
    return "an index must have a width by now";
  if (n->op == Op::Store && static_cast<Fold>(n->int_arg(0)) != Fold::Set)
    return "a store that combines must be a load, an operation and a store by now";
  if (n->op == Op::Store && n->nsrc > kStoreRanges) return "a store names ranges";
  if (is_float8(n->dtype)) return "an 8-bit float must be its bits by now";
  return computes_narrow_float(n) ? "arithmetic on f16 or bf16" : nullptr;
}

/// Follows the brackets of a program; a value may be used inside the block that defines it.
class Blocks {
 public:
  explicit Blocks(size_t instructions) : seen_(instructions) {}

  Found visit(NodeRef n) {
    if (const char* what = linear_node_problem(n)) return Problem{n, what};
    for (NodeRef s : n->src())
      if (!is_leaf(s) && !visible(s)) return Problem{n, "uses a value before or outside its block"};
    if (n->op == Op::Range && range_binding(n) == Binding::Core && started_)
      return Problem{n, "the core range is the first instruction"};
    started_ |= !is_leaf(n);
    if (n->op == Op::EndRange || n->op == Op::EndIf) {
      if (open_.empty() || open_.back() != n->src(0)) return Problem{n, "closes another block"};
      open_.pop_back();
      for (; defined_.size() > marks_.back(); defined_.pop_back()) seen_[defined_.back()] = false;
      marks_.pop_back();
      return std::nullopt;
    }
    bool& seen = seen_[n];
    if (seen) return Problem{n, "is listed twice in a block"};
    if (n->op == Op::Range || n->op == Op::If) {
      if (runs_already(n)) return Problem{n, "a range runs inside itself"};
      open_.push_back(n);
      marks_.push_back(defined_.size());
    }
    seen = true;
    defined_.push_back(n);
    return std::nullopt;
  }
  NodeRef unclosed() const { return open_.empty() ? nullptr : open_.back(); }

 private:
  bool runs_already(NodeRef range) const {
    return range->op == Op::Range && std::any_of(open_.begin(), open_.end(), [range](NodeRef o) {
             return o->op == Op::Range && range_id(o) == range_id(range);
           });
  }
  bool visible(NodeRef n) const {
    const bool* seen = seen_.find(n);
    return seen && *seen;
  }

  NodeMap<bool> seen_;  // false again where the block that defined it is closed
  std::vector<NodeRef> defined_;
  std::vector<NodeRef> open_;
  std::vector<size_t> marks_;
  bool started_ = false;
};

bool is_meeting(NodeRef n) { return n->op == Op::Barrier || n->op == Op::Shuffle; }

/// All items of a group come to each of its barriers and shuffles: around it nothing decides that
/// may differ between them, which is their place in the group and whatever memory and registers
/// hold.
class UniformFlow {
 public:
  Found visit(NodeRef n) {
    bool same = n->op != Op::Load && n->op != Op::GetAcc && n->op != Op::Acc;
    if (n->op == Op::WorkId) same = static_cast<Binding>(n->int_arg(0)) == Binding::Grid;
    for (NodeRef s : n->src()) same = same && !differs_.contains(s);
    if (!same) differs_[n] = true;
    if (n->op == Op::Range || n->op == Op::If) around_.push_back(same);
    // Blocks says which one it closes, or that there is none.
    if ((n->op == Op::EndRange || n->op == Op::EndIf) && !around_.empty()) around_.pop_back();
    const bool all_come = std::ranges::find(around_, false) == around_.end();
    if (is_meeting(n) && !all_come)
      return Problem{n, "not every item of a group comes to it equally often"};
    return std::nullopt;
  }

 private:
  NodeMap<bool> differs_;
  std::vector<bool> around_;  // of each open block: whether all items run it alike
};

Found find_flow_problem(std::span<const NodeRef> code) {
  if (std::ranges::none_of(code, is_meeting)) return std::nullopt;
  UniformFlow flow;
  for (NodeRef n : code)
    if (Found p = flow.visit(n)) return p;
  return std::nullopt;
}

}  // namespace

Found find_kernel_problem(NodeRef sink) {
  if (sink->op != Op::Sink) return Problem{sink, "a kernel ends in a sink"};
  for (NodeRef s : sink->src())
    if (s->op != Op::Store) return Problem{s, "a kernel's sink takes stores"};
  const Toposort order(sink);
  for (NodeRef n : order) {
    if (Found p = find_kernel_node_problem(n)) return p;
    if (n->op == Op::Loop)
      if (Found p = find_body_problem(n, false)) return p;
  }
  if (std::ranges::count(order, Op::Range, &Node::op) > kMaxRanges)
    return Problem{sink, "a kernel with too many ranges"};
  const OpenRanges open(order.nodes());
  if (Found p = find_range_problem(open)) return p;
  if (Found p = find_escape(open, order.nodes())) return p;
  if (Found p = find_launch_problem(open, order.nodes())) return p;
  return find_shared_state(open, order.nodes());
}

Found find_program_problem(const LinearProgram& program) {
  Blocks blocks(program.code.size());
  for (NodeRef n : program.code) {
    if (Found p = blocks.visit(n)) return p;
    if (n->op != Op::Param) continue;
    const int64_t slot = param_slot(n);
    if (slot >= static_cast<int64_t>(program.params.size()))
      return Problem{n, "the program declares fewer params"};
    if (program.params[static_cast<size_t>(slot)].dtype != n->dtype)
      return Problem{n, "the program declares another dtype"};
  }
  if (NodeRef open = blocks.unclosed()) return Problem{open, "is never closed"};
  if (Found p = find_flow_problem(program.code)) return p;
  return find_local_race(program);
}

}  // namespace weft
