#include "weft/graph/verify.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/loops.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/graph/verify_parts.h"

namespace weft {
namespace {

Found node_by_node(std::span<const NodeRef> nodes, Dialect dialect) {
  for (NodeRef n : nodes)
    if (const char* what = node_problem(spec_of(n), static_cast<uint8_t>(dialect)))
      return Problem{n, what};
  return std::nullopt;
}

// ---- loop bodies of tensor graphs

// Bodies are a few scalar expressions; this bounds the work on hostile graphs.
constexpr size_t kMaxBody = 4096;

std::span<const NodeRef> bodies_of(NodeRef loop) { return loop_parts(loop).values; }

/// carry(k, loop) and elem(k, loop) inside the body of `loop` name what it has, with its dtype.
const char* loop_value_problem(NodeRef loop, NodeRef n) {
  if (n->int_arg(1) != loop->int_arg(0)) return "belongs to another loop than the one around it";
  const int64_t k = n->int_arg(0), elems = loop->int_arg(1);
  if (k >= (n->op == Op::Elem ? elems : loop->int_arg(2))) return "the loop has fewer of these";
  NodeRef given = loop->src(static_cast<size_t>(n->op == Op::Elem ? k : elems + k));
  return given->dtype == n->dtype ? nullptr : "has another dtype than the loop gives it";
}

/// Nodes of `loop`'s bodies, without those of loops inside of it; empty when there are too many.
std::vector<NodeRef> body_nodes(NodeRef loop) {
  std::vector<NodeRef> order, stack(bodies_of(loop).begin(), bodies_of(loop).end());
  NodeMap<bool> seen;
  while (!stack.empty()) {
    NodeRef n = stack.back();
    stack.pop_back();
    if (seen.contains(n)) continue;
    seen[n] = true;
    order.push_back(n);
    if (order.size() > kMaxBody) return {};
    const std::span<const NodeRef> src = n->src();
    const auto inner = n->op == Op::Loop ? bodies_of(n) : src.last(0);
    const auto begin = static_cast<size_t>(inner.data() - src.data());
    for (size_t i = 0; i < src.size(); ++i)
      if (i < begin || i >= begin + inner.size()) stack.push_back(src[i]);
  }
  return order;
}

}  // namespace

Found find_body_problem(NodeRef loop, bool scalars_only) {
  const std::vector<NodeRef> nodes = body_nodes(loop);
  if (nodes.empty()) return Problem{loop, "its bodies are too large"};
  for (NodeRef n : nodes) {
    if (n->op == Op::Carry || n->op == Op::Elem) {
      if (const char* what = loop_value_problem(loop, n)) return Problem{n, what};
    } else if (scalars_only && group(n->op) != OpGroup::Leaf && !is_alu(n->op)) {
      return Problem{n, "stands in a loop body; only scalar expressions do"};
    }
  }
  return std::nullopt;
}

namespace {

/// A carry or elem that is reached without going through a loop's bodies.
Found find_stray_loop_value(std::span<const NodeRef> nodes, std::span<const NodeRef> roots) {
  NodeMap<bool> open;
  for (NodeRef n : nodes) {
    bool is_open = n->op == Op::Carry || n->op == Op::Elem;
    size_t closed = n->nsrc;
    if (n->op == Op::Loop) closed = n->nsrc - bodies_of(n).size();
    for (size_t i = 0; i < closed; ++i) is_open |= open.contains(n->src(i));
    if (is_open) open[n] = true;
    if (is_open && n->rank() > 0) return Problem{n, "uses a value of a loop outside its body"};
  }
  for (NodeRef n : roots)
    if (open.contains(n)) return Problem{n, "has no value outside its loop"};
  return std::nullopt;
}

// ---- assign

/// The view must reach `old` through reshape, permute, shrink and flip.
Found find_view_problem(NodeRef assign) {
  NodeRef v = assign->src(1);
  while (v != assign->src(0)) {
    const bool allowed =
        v->op == Op::Reshape || v->op == Op::Permute || v->op == Op::Shrink || v->op == Op::Flip;
    if (!allowed)
      return Problem{assign, "its view is no chain of views that ends in its first source"};
    v = v->src(0);
  }
  return std::nullopt;
}

[[noreturn]] void report(std::string_view step, const Problem& p) {
  internal_error("verify", "after {}: {}: {}", step, summary(p.node), p.what);
}

[[noreturn]] void refuse(std::string_view what, const Problem& p) {
  fail("verify", "{}: {}: {}; the graph is damaged or from another program", what, summary(p.node),
       p.what);
}

// ---- kernels of the user's

/// What a KernelWriter writes. Other ops and bindings are the optimizer's, which relies on its own.
const char* user_kernel_problem(NodeRef n) {
  switch (n->op) {
    case Op::Const:
    case Op::Param:
    case Op::ToIndex:
    case Op::Reduce:
    case Op::Sink: return nullptr;
    case Op::Load:
    case Op::Store:
      return n->src(1)->dtype == DType::Index ? nullptr : "its position is of another dtype";
    case Op::Range:
      if (n->dtype != DType::Index || n->src(0)->op != Op::Const)
        return "its ranges are indices of known sizes";
      return range_binding(n) == Binding::Loop ? nullptr : "binds a range";
    default: return is_alu(n->op) ? nullptr : "does not belong in a kernel of the user's";
  }
}

/// Whether a kernel's param has as many elements as the tensor it stands for.
bool is_size_of(NodeRef param, NodeRef given) {
  if (!is_static(given) || param->rank() != 1) return false;
  return is_int_const(param->dim(0), static_numel(given));
}

/// A kernel over the outputs and inputs of `n`, whose slots they are.
Found find_custom_problem(NodeRef n) {
  const CustomParts parts(n);
  if (Found p = find_kernel_problem(parts.sink)) return p;
  std::vector<NodeRef> given(parts.outputs.begin(), parts.outputs.end());
  given.insert(given.end(), parts.inputs.begin(), parts.inputs.end());
  for (NodeRef p : Toposort(parts.sink)) {
    if (const char* what = user_kernel_problem(p)) return Problem{p, what};
    if (p->op != Op::Param) continue;
    const auto slot = static_cast<size_t>(param_slot(p));
    if (slot >= given.size() || given[slot]->dtype != p->dtype || !is_size_of(p, given[slot]))
      return Problem{n, "its kernel takes what it is not given"};
  }
  return std::nullopt;
}

/// What the bodies of `n` may mention: their placeholders from `slot` on, which are what is given,
/// or slices of the first `stacked`.
Found find_placeholder_problem(NodeRef n, int64_t slot, size_t stacked) {
  if (slot < inner_slots_above(closed_sources(n)))
    return Problem{n, "its slots are those of a node in its bodies"};
  const auto given = n->src().first(evaluated_sources(n));
  for (NodeRef p : Toposort::evaluated(closed_sources(n))) {
    if (p->op != Op::Param) continue;
    const int64_t k = param_slot(p) - slot;
    if (k < 0 || k >= static_cast<int64_t>(given.size()))
      return Problem{n, "its bodies mention what is not theirs"};
    const auto dims = given[static_cast<size_t>(k)]->shape->span();
    const auto wanted = dims.subspan(static_cast<size_t>(k) < stacked ? 1 : 0);
    if (!std::ranges::equal(p->shape->span(), wanted) ||
        p->dtype != given[static_cast<size_t>(k)]->dtype)
      return Problem{n, "a placeholder differs from what it stands for"};
  }
  return std::nullopt;
}

/// Bodies may have bodies in them; `roots` are what is evaluated together.
void add_bodies(NodeRef n, std::vector<std::vector<NodeRef>>& roots) {
  const auto closed = closed_sources(n);
  if (n->op != Op::Custom && !closed.empty()) roots.emplace_back(closed.begin(), closed.end());
}

Found find_problem_at(NodeRef n) {
  if (n->op == Op::Reduce && n->nsrc > 1) return Problem{n, "reduces ranges in a tensor graph"};
  if (n->op == Op::Scan && n->nsrc > 1) return Problem{n, "scans a range in a tensor graph"};
  if (n->op == Op::Loop) return find_body_problem(n, true);
  if (n->op == Op::Assign) return find_view_problem(n);
  if (n->op == Op::Repeat)
    return find_placeholder_problem(n, RepeatParts(n).slot, RepeatParts(n).stacked.size());
  if (n->op == Op::Call) return find_placeholder_problem(n, CallParts(n).slot, 0);
  if (n->op == Op::Custom) return find_custom_problem(n);
  return std::nullopt;
}

// ---- what stands for memory

/// The first source of `n` that is a size.
size_t first_size(NodeRef n) {
  switch (n->op) {
    case Op::Param:
    case Op::Buffer:
    case Op::Iota: return 0;
    case Op::Reshape:
    case Op::Expand:
    case Op::Pad:
    case Op::Shrink:
    case Op::Unwindow: return 1;
    default: return n->nsrc;
  }
}

/// Sizes are known before anything is computed: arithmetic on constants and variables.
Found find_size_problem(std::span<const NodeRef> nodes) {
  NodeMap<bool> known;
  for (NodeRef n : nodes) {
    const auto is_known = [&](NodeRef s) { return known.contains(s); };
    for (NodeRef s : n->src().subspan(first_size(n)))
      if (!is_known(s)) return Problem{n, "has a size that is computed from elements"};
    const bool leaf = n->op == Op::Const || n->op == Op::Variable || n->op == Op::Bind;
    if (leaf || (is_alu(n->op) && std::ranges::all_of(n->src(), is_known))) known[n] = true;
  }
  return std::nullopt;
}

/// What is computed has elements; a body's results are memory, too. An empty Sink stands for a
/// gradient that does not exist.
Found find_root_problem(std::span<const NodeRef> roots, bool outermost) {
  for (NodeRef n : roots) {
    if (!outermost && n->op == Op::Sink && n->nsrc == 0) continue;
    if (is_tuple(n->op) || n->dtype == DType::Void)
      return Problem{n, "has no value: its parts have"};
    if (!outermost && !is_data(n->dtype)) return Problem{n, "is an index where a tensor should be"};
  }
  return std::nullopt;
}

Found find_stray_placeholder(std::span<const NodeRef> nodes) {
  for (NodeRef n : nodes)
    if (is_inner_param(n)) return Problem{n, "stands for something outside of its body"};
  return std::nullopt;
}

/// What is evaluated together, without the bodies of what is in it.
Found find_problem_in(std::span<const NodeRef> nodes, std::span<const NodeRef> roots,
                      bool outermost) {
  if (Found p = node_by_node(nodes, Dialect::Tensor)) return p;
  if (Found p = outermost ? find_stray_placeholder(nodes) : std::nullopt) return p;
  if (Found p = find_size_problem(nodes)) return p;
  for (NodeRef n : nodes)
    if (Found p = find_problem_at(n)) return p;
  if (Found p = find_stray_loop_value(nodes, roots)) return p;
  return find_root_problem(roots, outermost);
}

}  // namespace

Found find_tensor_problem(std::span<const NodeRef> roots) {
  std::vector<std::vector<NodeRef>> left{{roots.begin(), roots.end()}};
  NodeMap<bool> known;
  bool outermost = true;
  while (!left.empty()) {
    const std::vector<NodeRef> together = std::move(left.back());
    left.pop_back();
    const Toposort order = Toposort::evaluated(together);
    if (Found p = find_problem_in(order.nodes(), together, outermost)) return p;
    for (NodeRef n : order) {
      if (!known.contains(n)) add_bodies(n, left);
      known[n] = true;
    }
    outermost = false;
  }
  return std::nullopt;
}

void verify_tensor_graph(std::span<const NodeRef> roots, std::string_view step) {
  if (Found p = find_tensor_problem(roots)) report(step, *p);
}
void verify_kernel(const Kernel& kernel, std::string_view step) {
  if (Found p = find_kernel_problem(kernel.sink)) report(step, *p);
}
void verify_program(const LinearProgram& program, std::string_view step) {
  if (Found p = find_program_problem(program)) report(step, *p);
}
void check_tensor_graph(std::span<const NodeRef> roots, std::string_view what) {
  if (Found p = find_tensor_problem(roots)) refuse(what, *p);
}
void check_kernel(NodeRef sink, std::string_view what) {
  if (Found p = find_kernel_problem(sink)) refuse(what, *p);
}

namespace {

/// Whether source `i` may be a node without a value of its own: where its parts are taken, a sink's
/// stores, a kernel, a gradient that does not exist, what a linear program closes.
bool takes_whole(const NodeSpec& s, size_t i) {
  switch (s.op) {
    case Op::Get:
    case Op::Sink:
    case Op::Barrier:
    case Op::EndIf: return true;
    case Op::Custom: return i + 1 == s.src.size();
    case Op::Function: return static_cast<int64_t>(i) >= s.ints[0] + s.ints[1];
    default: return false;
  }
}

}  // namespace

const char* source_without_value(const NodeSpec& s) {
  for (size_t i = 0; i < s.src.size(); ++i)
    if ((is_tuple(s.src[i]->op) || s.src[i]->dtype == DType::Void) && !takes_whole(s, i))
      return "takes a node that has no value of its own";
  return nullptr;
}

}  // namespace weft
