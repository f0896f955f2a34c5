// Kernels and linear programs: nesting of ranges, and what linear code may contain.
#include <algorithm>
#include <unordered_set>
#include <vector>

#include "weft/graph/node_map.h"
#include "weft/graph/verify.h"
#include "weft/graph/verify_parts.h"

namespace weft {
namespace {

// Sets of ranges are bit sets of this many words at most, per node.
constexpr size_t kMaxRanges = 1024;

/// Every step is seen from outside.
bool is_running(NodeRef n) {
  return n->op == Op::Scan || (n->op == Op::Loop && n->int_arg(3) != 0);
}

/// The ranges that a Reduce, Scan or Loop goes over.
std::span<const NodeRef> listed_by(NodeRef n) {
  if (n->op == Op::Reduce || n->op == Op::Scan) return n->src().subspan(1);
  if (n->op == Op::Loop) return n->src().subspan(static_cast<size_t>(2 * n->int_arg(2)));
  return {};
}

/// The ranges whose loops end with this node.
std::span<const NodeRef> closed_by(NodeRef n) {
  return is_running(n) ? std::span<const NodeRef>() : listed_by(n);
}

/// Which ranges each node's value still varies over.
class OpenRanges {
 public:
  explicit OpenRanges(std::span<const NodeRef> order) {
    for (NodeRef n : order)
      if (n->op == Op::Range) {
        const size_t bit = ranges_.size();
        index_[n] = bit;
        ranges_.push_back(n);
      }
    words_ = (ranges_.size() + 63) / 64;
    if (ranges_.size() > kMaxRanges) return;
    closed_.resize(ranges_.size());
    for (NodeRef n : order) add(n);
  }
  std::span<const NodeRef> ranges() const { return ranges_; }
  bool too_many() const { return ranges_.size() > kMaxRanges; }
  /// Some reduce ends the range's loop.
  bool closed(NodeRef range) const { return closed_[index_.at(range)]; }
  bool varies(NodeRef n, NodeRef range) const {
    const size_t bit = index_.at(range);
    return sets_[at_.at(n) + bit / 64] >> (bit % 64) & 1;
  }

 private:
  void add(NodeRef n) {
    const size_t base = sets_.size();
    at_[n] = base;
    sets_.resize(base + words_);
    for (NodeRef s : n->src())
      for (size_t w = 0; w < words_; ++w) sets_[base + w] |= sets_[at_.at(s) + w];
    if (n->op == Op::Range) put(base, n, true);
    for (NodeRef r : closed_by(n)) {
      put(base, r, false);
      closed_[index_.at(r)] = true;
    }
  }
  void put(size_t base, NodeRef range, bool open) {
    const size_t bit = index_.at(range);
    const uint64_t mask = uint64_t{1} << (bit % 64);
    uint64_t& word = sets_[base + bit / 64];
    word = open ? word | mask : word & ~mask;
  }

  std::vector<NodeRef> ranges_;
  std::vector<bool> closed_;
  NodeMap<size_t> index_;
  NodeMap<size_t> at_;
  std::vector<uint64_t> sets_;
  size_t words_ = 0;
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
  if (open.too_many()) return Problem{open.ranges()[0], "one of too many ranges"};
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

/// Nothing outside a reduce varies over the ranges it closes.
Found find_escape(const OpenRanges& open, std::span<const NodeRef> order) {
  for (NodeRef n : order) {
    if (n->op != Op::Store) continue;
    for (NodeRef r : open.ranges())
      if (open.closed(r) && open.varies(n, r))
        return Problem{n, "varies over a range that a reduce has closed"};
  }
  return std::nullopt;
}

/// Whether the loop of `a` lies around that of `b`, both around one value: open ranges by id, those
/// of reductions inside them. Vectors and copies are no loops.
bool lies_outside(const OpenRanges& open, NodeRef a, NodeRef b) {
  const Binding binding = range_binding(a);
  if (binding == Binding::Core || binding == Binding::Vector || binding == Binding::Unroll)
    return true;
  if (open.closed(a) != open.closed(b)) return open.closed(b);
  return range_id(a) < range_id(b);
}

/// What a running fold carries is kept in the loops around its own: a loop inside of those would go
/// on with what another of its iterations has left.
Found find_shared_state(const OpenRanges& open, std::span<const NodeRef> order) {
  for (NodeRef n : order) {
    if (!is_running(n)) continue;
    const std::span<const NodeRef> own = listed_by(n);
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
    if (visible(n)) return Problem{n, "is listed twice in a block"};
    if (n->op == Op::Range || n->op == Op::If) {
      if (runs_already(n)) return Problem{n, "a range runs inside itself"};
      open_.push_back(n);
      marks_.push_back(defined_.size());
    }
    seen_[n] = true;
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

  NodeMap<bool> seen_;
  std::vector<NodeRef> defined_;
  std::vector<NodeRef> open_;
  std::vector<size_t> marks_;
  bool started_ = false;
};

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
  const OpenRanges open(order.nodes());
  if (Found p = find_range_problem(open)) return p;
  if (Found p = find_escape(open, order.nodes())) return p;
  return find_shared_state(open, order.nodes());
}

Found find_program_problem(const LinearProgram& program) {
  Blocks blocks;
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
  return std::nullopt;
}

}  // namespace weft
