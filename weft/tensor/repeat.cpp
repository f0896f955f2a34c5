// Repeat nodes: bodies traced once, closed, and run as often as there are slices.
#include "weft/base/small_vector.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/split_repeat.h"

namespace weft {

namespace {

Dims without_first(const Tensor& x) {
  Dims dims = x.dims();
  dims.erase(0);
  return dims;
}

/// Makes the bodies of a Repeat mention nothing but params of its own.
class Closure {
 public:
  Closure(Graph& g, const std::vector<NodeRef>& bodies, const std::vector<NodeRef>& holes)
      : g_(g), bodies_(bodies), holes_(holes), order_(bodies) {
    for (NodeRef n : order_) look_at(n);
    for (NodeRef n : order_)
      if (n->op == Op::Assign && depends_.contains(n)) keep_view(n);
    for (NodeRef n : bodies_) take_if_free(n);
    for (NodeRef n : order_)
      if (depends_.contains(n))
        for (NodeRef s : n->src().first(looked_into(n))) take_if_free(s);
  }

  /// Values from around the bodies, which are inputs now.
  const std::vector<NodeRef>& free() const { return free_; }

  std::vector<NodeRef> closed(const std::vector<NodeRef>& inputs, int64_t slot) const {
    NodeMap<NodeRef> replacement;
    for (size_t i = 0; i < inputs.size(); ++i)
      replacement.set(inputs[i], g_.param(slot + static_cast<int64_t>(i), inputs[i]->dtype,
                                          inputs[i]->shape->span(), inputs[i]->device));
    std::vector<NodeRef> out;
    for (NodeRef n : bodies_) out.push_back(substitute(g_, n, replacement));
    return out;
  }

 private:
  /// Gradients of functions are open to what is around them; other closed sources are not.
  static size_t looked_into(NodeRef n) {
    return n->op == Op::Function ? n->nsrc : evaluated_sources(n);
  }

  void look_at(NodeRef n) {
    bool inside = contains(holes_, n);
    int64_t bound = is_inner_param(n) ? param_slot(n) : 0;
    // What is to be in memory of its own, and depends on nothing inside, is computed once.
    bool data = n->op == Op::Buffer || n->op == Op::Param || n->op == Op::Contiguous;
    for (NodeRef s : n->src().first(looked_into(n))) {
      inside |= inside_.contains(s);
      bound = std::max(bound, bound_of(s));
      data |= data_.contains(s);
    }
    if (n->op == Op::Function && bound < FunctionParts(n).slot + kSlotsPerLevel) bound = 0;
    if (inside) inside_[n] = true;
    if (bound > 0) bound_[n] = bound;
    if (inside || bound > 0) depends_[n] = true;
    if (data) data_[n] = true;
  }
  int64_t bound_of(NodeRef n) const {
    const int64_t* slot = bound_.find(n);
    return slot ? *slot : 0;
  }

  /// The view of an assign is a chain on what is assigned to, and stays one.
  void keep_view(NodeRef assign) {
    for (NodeRef v = assign->src(1); v != assign->src(0); v = v->src(0)) depends_[v] = true;
  }

  void take_if_free(NodeRef n) {
    if (depends_.contains(n) || !data_.contains(n) || n->dtype == DType::Index) return;
    // Views cost nothing inside; as inputs they would be copies, and expanded ones large. Halves
    // are widened inside, where products may take them as they are.
    while ((is_whole_view(n->op) || widens_halves(n)) && data_.contains(n->src(0))) n = n->src(0);
    if (!contains(free_, n)) free_.push_back(n);
  }
  static bool is_whole_view(Op op) {
    return op == Op::Reshape || op == Op::Expand || op == Op::Permute || op == Op::Flip;
  }

  static bool widens_halves(NodeRef n) {
    return n->op == Op::Cast && n->dtype == DType::F32 && is_half(n->src(0)->dtype);
  }

  Graph& g_;
  const std::vector<NodeRef>& bodies_;
  const std::vector<NodeRef>& holes_;
  Toposort order_;
  NodeMap<bool> depends_, data_, inside_;
  /// The highest slot of a placeholder that a node mentions of a function around it; a function's
  /// gradients mention its own, which say nothing of the function itself.
  NodeMap<int64_t> bound_;
  std::vector<NodeRef> free_;
};

void append(std::vector<NodeRef>& to, const std::vector<NodeRef>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

void require_same(const char* tag, const Tensors& carried, const Tensors& next) {
  if (carried.size() != next.size())
    fail(tag, "the body gives {} carried tensors of {}: give one for each", next.size(),
         carried.size());
  for (size_t k = 0; k < next.size(); ++k)
    if (!(next[k].dims() == carried[k].dims()) || next[k].dtype() != carried[k].dtype())
      fail(tag,
           "carried tensor {} begins as {} {} and becomes {} {}: its shape and dtype must stay", k,
           name(carried[k].dtype()), carried[k].dims().text(), name(next[k].dtype()),
           next[k].dims().text());
}

std::vector<NodeRef> nodes_of(const Tensors& tensors) {
  std::vector<NodeRef> nodes;
  for (const Tensor& t : tensors) nodes.push_back(t.node());
  return nodes;
}

namespace {

/// The node over traced bodies.
NodeRef repeat_node(Graph& g, const TracedRepeat& r) {
  const RepeatInputs& in = r.inputs;
  std::vector<NodeRef> outer = nodes_of(r.slices), bodies = nodes_of(r.body.carried);
  append(outer, nodes_of(r.whole));
  append(bodies, nodes_of(r.body.outs));
  const std::vector<NodeRef> last = nodes_of(r.carried);
  std::vector<NodeRef> holes = outer;
  append(holes, last);
  const Closure closure(g, bodies, holes);
  append(outer, closure.free());
  append(outer, last);

  std::vector<NodeRef> sources = nodes_of(in.stacked);
  append(sources, nodes_of(in.whole));
  append(sources, closure.free());
  append(sources, nodes_of(in.carried));
  const int64_t slot = inner_slots_above(bodies);
  append(sources, closure.closed(outer, slot));
  const auto count = [](size_t n) { return static_cast<int64_t>(n); };
  SmallVector<int64_t, 7> ints{in.count,
                               in.reversed,
                               count(r.slices.size()),
                               count(r.whole.size() + closure.free().size()),
                               count(r.carried.size()),
                               slot};
  if (in.until >= 0) ints.push_back(in.until);
  return g.make({Op::Repeat, bodies[0]->dtype, sources, ints});
}

}  // namespace

Tensors results_of(Context& context, Graph& g, NodeRef tuple, size_t begin, size_t end) {
  Tensors out;
  for (size_t k = begin; k < end; ++k)
    out.push_back(TensorAccess::make(context, get_result(g, tuple, k)));
  return out;
}

namespace {

/// Slices that no round looks at are not given.
void leave_out_unused(TracedRepeat& r) {
  std::vector<NodeRef> bodies = nodes_of(r.body.carried);
  append(bodies, nodes_of(r.body.outs));
  NodeMap<bool> used;
  for (NodeRef n : Toposort(bodies)) used[n] = true;
  Tensors slices, stacked;
  for (size_t i = 0; i < r.slices.size(); ++i) {
    if (!used.contains(r.slices[i].node())) continue;
    slices.push_back(r.slices[i]);
    stacked.push_back(r.inputs.stacked[i]);
  }
  r.slices = std::move(slices);
  r.inputs.stacked = std::move(stacked);
}

RepeatBody repeated(TracedRepeat r, const Tensors& offered = {}) {
  const size_t states = r.carried.size(), asked = r.body.outs.size();
  // What is carried is an out too: gradients start from it. Where nobody asks, nothing is kept.
  for (const Tensors* more : {&offered, &std::as_const(r.carried)})
    r.body.outs.insert(r.body.outs.end(), more->begin(), more->end());
  leave_out_unused(r);
  Context& context = r.body.outs[0].context();
  Graph& g = tensor_graph(context);
  const Graph::Building building(g);
  NodeRef made = repeat_node(g, r);
  return {results_of(context, g, made, 0, states),
          results_of(context, g, made, states, states + asked)};
}

}  // namespace

RepeatBody repeat(const RepeatInputs& in, RepeatFunction function) {
  TracedRepeat r{in, {}, placeholders(in.whole), placeholders(in.carried), {}};
  for (const Tensor& x : in.stacked) r.slices.push_back(placeholder(x, without_first(x)));
  r.body = function(r.slices, r.whole, r.carried);
  require_same("scan", in.carried, r.body.carried);
  // What is split off runs for every round: also for those that are left out.
  if (in.count == 1 || in.apart || in.until >= 0) return repeated(std::move(r));
  const SplitRepeat split(std::move(r));
  return split.results(repeated(split.rest(), split.offered()));
}

}  // namespace weft
