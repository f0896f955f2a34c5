// Gradients of nodes with several results: loops run backwards, functions as they say.
#include <algorithm>
#include <array>

#include "weft/graph/tuple.h"
#include "weft/rewrite/calls.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/gradients.h"
#include "weft/tensor/tracing.h"

namespace weft {

// ---- loops of scalars
//
// With c' = f(c, e) at every step and l the gradient of c' (what later steps and the step's own
// result want): l df/dc is the gradient of c and l df/de that of e. It runs from the last step to
// the first, over the carries of a forward run.

namespace {

class LoopReverse {
 public:
  LoopReverse(Backward& b) : b_(b), g_(b.g), loop_(b.n) {
    const auto elems = static_cast<size_t>(loop_->int_arg(1)),
               carries = static_cast<size_t>(loop_->int_arg(2));
    given_ = loop_->src().first(elems);
    inits_ = loop_->src().subspan(elems, carries);
    bodies_ = loop_->src().subspan(elems + carries, carries);
    for (NodeRef e : given_) elems_.push_back(along_one_axis(b_.tensor(e)));
    axis_ = stacked() ? loop_->int_arg(4) : static_cast<int64_t>(elems_[0].ndim()) - 1;
  }

  void run() {
    const std::vector<NodeRef> results = run_backwards();
    size_t next = 0;
    for (NodeRef init : inits_) {
      if (!is_float(init->dtype)) continue;
      const Tensor steps = b_.tensor(results[next++]);
      std::vector<DimPair> last(steps.ndim(), DimPair(0, 0));
      for (size_t i = 0; i < steps.ndim(); ++i) last[i] = {0, steps.dim(static_cast<int64_t>(i))};
      last[static_cast<size_t>(axis_)].first = steps.dim(axis_) - 1;
      if (b_.wants_node(init)) b_.give_to(init, steps.shrink(last).sum());
    }
    for (size_t i = 0; i < given_.size(); ++i)
      if (is_float(given_[i]->dtype))
        b_.give_to(given_[i], along_all_axes(b_.tensor(results[next++]).flip(axis_), given_[i]));
  }

 private:
  bool stacked() const { return loop_->int_arg(3) != 0; }
  std::span<const int64_t> axes() const { return loop_->ints().subspan(4); }

  /// Axes that are not looped over, then those that are.
  Ints axes_last(size_t rank) const {
    Ints order;
    for (int64_t i = 0; i < static_cast<int64_t>(rank); ++i)
      if (std::ranges::find(axes(), i) == axes().end()) order.push_back(i);
    for (const int64_t a : axes()) order.push_back(a);
    return order;
  }

  Tensor along_one_axis(const Tensor& x) const {
    if (stacked()) return x;
    const auto kept = static_cast<int64_t>(x.ndim() - axes().size());
    return x.permute(axes_last(x.ndim())).flatten(kept, -1);
  }

  Tensor along_all_axes(const Tensor& x, NodeRef like) const {
    if (stacked()) return x;
    const Ints order = axes_last(like->rank());
    Ints back = Ints::filled(order.size());
    Dims dims;
    for (size_t i = 0; i < order.size(); ++i) {
      back[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
      dims.push_back(Dim(like->dim(static_cast<size_t>(order[i]))));
    }
    return x.reshape(dims).permute(back);
  }

  /// The bodies on other elements and carries.
  std::vector<NodeRef> bodies_on(std::span<const NodeRef> elems,
                                 std::span<const NodeRef> carries) const {
    NodeMap<NodeRef> replacement;
    const auto put = [&](Op op, std::span<const NodeRef> values) {
      for (size_t k = 0; k < values.size(); ++k)
        replacement.set(build::loop_value(g_, op, k, loop_->int_arg(0), values[k]->dtype),
                        values[k]);
    };
    put(Op::Elem, elems);
    put(Op::Carry, carries);
    std::vector<NodeRef> out;
    for (NodeRef body : bodies_) out.push_back(substitute(g_, body, replacement));
    return out;
  }

  Tensor at_place(const Tensor& like) const {
    return b_.tensor(build::positions(g_, like.node()->shape->span(), axis_));
  }

  /// The carries as they were before every step.
  Tensors carries_before() const {
    std::vector<NodeRef> after;
    const std::vector<NodeRef> elems = nodes_of(elems_);
    const std::array<int64_t, 2> salt{axis_, static_cast<int64_t>(loop_->hash >> 1)};
    if (stacked()) {
      for (size_t k = 0; k < inits_.size(); ++k) after.push_back(get_result(g_, loop_, k));
    } else {
      after = build::loop(g_, elems, inits_, axis_, true, salt,
                          [&](auto in, auto carried) { return bodies_on(in, carried); });
    }
    Tensors before;
    for (size_t k = 0; k < after.size(); ++k) {
      const Tensor later = delayed(b_.tensor(after[k]), axis_, 0);
      before.push_back((at_place(later) == 0).where(b_.tensor(inits_[k]), later));
    }
    return before;
  }

  /// What each step's result itself is asked for.
  Tensor asked_of(size_t k) const {
    const Tensor grad = b_.result_gradient(k);
    if (stacked()) return grad;
    std::vector<DimPair> by(elems_[0].ndim(), DimPair(0, 0));
    by.back() = {elems_[0].dim(axis_) - 1, 0};
    return grad.unsqueeze(-1).pad(by);
  }

  /// Gradients of float carries and float elements, per step, last step first.
  std::vector<NodeRef> run_backwards() {
    std::vector<NodeRef> elems, inits;
    for (const Tensor& e : elems_) elems.push_back(e.flip(axis_).node());
    for (const Tensor& c : carries_before()) elems.push_back(c.flip(axis_).node());
    for (size_t k = 0; k < inits_.size(); ++k) {
      if (!is_float(inits_[k]->dtype)) continue;
      elems.push_back(asked_of(k).flip(axis_).node());
      inits.push_back(build::scalar(g_, inits_[k]->dtype, 0));
    }
    for (NodeRef e : given_)
      if (is_float(e->dtype)) inits.push_back(build::scalar(g_, e->dtype, 0));
    const std::array<int64_t, 2> salt{axis_, static_cast<int64_t>(loop_->hash >> 1)};
    return build::loop(g_, elems, inits, axis_, true, salt,
                       [&](auto in, auto carried) { return step(in, carried); });
  }

  /// One step backwards: in = elements, carries before, what is asked; carried = gradients.
  std::vector<NodeRef> step(std::span<const NodeRef> in, std::span<const NodeRef> carried) const {
    const auto elems = in.first(given_.size()), carries = in.subspan(given_.size(), inits_.size());
    const auto asked = in.subspan(given_.size() + inits_.size());
    const std::vector<NodeRef> bodies = bodies_on(elems, carries);
    std::vector<NodeRef> roots, targets;
    Tensors upstream;
    for (size_t k = 0; k < bodies.size(); ++k) {
      if (!is_float(bodies[k]->dtype)) continue;
      upstream.push_back(b_.tensor(carried[roots.size()]) + b_.tensor(asked[roots.size()]));
      roots.push_back(bodies[k]);
      targets.push_back(carries[k]);
    }
    for (NodeRef e : elems)
      if (is_float(e->dtype)) targets.push_back(e);
    const Tensors grads = Backward(b_.context(), g_).run(roots, upstream, targets);
    std::vector<NodeRef> out;
    for (size_t i = 0; i < grads.size(); ++i)
      out.push_back(grads[i].defined() ? grads[i].node() : build::scalar(g_, targets[i]->dtype, 0));
    return out;
  }

  Backward& b_;
  Graph& g_;
  NodeRef loop_;
  std::span<const NodeRef> given_, inits_, bodies_;
  Tensors elems_;  // over one axis
  int64_t axis_ = 0;
};

}  // namespace

void loop_gradient(Backward& b) { LoopReverse(b).run(); }

// ---- repeated bodies

namespace {

class RepeatReverse {
 public:
  explicit RepeatReverse(Backward& b) : b_(b), parts_(b.n) {
    for (size_t k = 0; k < parts_.outs.size(); ++k)
      if (b.has_result_gradient(parts_.nexts.size() + k)) asked_.push_back(k);
    for (size_t k = 0; k + parts_.nexts.size() < parts_.outs.size(); ++k)
      if (parts_.outs[k]->op == Op::Reduce) kept_.push_back(k);
  }

  void run() {
    const RepeatInputs inputs = reverse_inputs();
    const RepeatBody results =
        repeat(inputs, [this](const Tensors& slices, const Tensors& whole, const Tensors& carried) {
          return step(slices, whole, carried);
        });
    give(results);
  }

 private:
  std::span<const NodeRef> carries() const { return parts_.inits; }
  bool once() const { return parts_.count == 1; }

  RepeatInputs reverse_inputs() const {
    RepeatInputs in{parts_.count, !parts_.reversed, {}, {}, {}};
    for (NodeRef x : parts_.stacked) in.stacked.push_back(b_.tensor(x));
    // The last outs are what was carried: repeat() sees to it.
    for (size_t k = 0; k < carries().size(); ++k)
      in.stacked.push_back(b_.tensor(get_result(b_.g, b_.n, parts_.outs.size() + k)));
    for (const size_t k : asked_) in.stacked.push_back(b_.result_gradient(carries().size() + k));
    for (const size_t k : kept_)
      in.stacked.push_back(b_.tensor(get_result(b_.g, b_.n, carries().size() + k)));
    for (NodeRef x : parts_.whole) in.whole.push_back(b_.tensor(x));
    for (size_t k = 0; k < carries().size(); ++k)
      if (is_float(carries()[k]->dtype)) in.carried.push_back(b_.result_gradient(k));
    if (!once())
      for (NodeRef x : wanted(parts_.whole)) in.carried.push_back(b_.tensor(x).zeros_like());
    return in;
  }

  std::vector<NodeRef> wanted(std::span<const NodeRef> inputs) const {
    std::vector<NodeRef> out;
    for (NodeRef x : inputs)
      if (is_float(x->dtype) && b_.wants_node(x)) out.push_back(x);
    return out;
  }

  /// The placeholders of the bodies and what stands for them now.
  NodeMap<NodeRef> on(const Tensors& slices, const Tensors& whole) const {
    const size_t stacks = parts_.stacked.size();
    Tensors given(slices.begin(), slices.begin() + static_cast<std::ptrdiff_t>(stacks));
    given.insert(given.end(), whole.begin(), whole.end());
    for (size_t k = 0; k < carries().size(); ++k) given.push_back(slices[stacks + k]);
    const auto holes = placeholders_in(closed_sources(b_.n), parts_.slot, given.size());
    NodeMap<NodeRef> replacement;
    for (size_t i = 0; i < given.size(); ++i)
      if (holes[i]) replacement.set(holes[i], given[i].node());
    return replacement;
  }

  /// `grads`, which find reductions that the rounds have given where they are kept.
  void use_kept(Tensors& grads, const NodeMap<NodeRef>& replacement,
                std::span<const Tensor> kept) const {
    NodeMap<NodeRef> found;
    for (size_t i = 0; i < kept_.size(); ++i)
      found.set(substitute(b_.g, parts_.outs[kept_[i]], replacement), kept[i].node());
    for (Tensor& grad : grads)
      if (grad.defined()) grad = b_.tensor(substitute(b_.g, grad.node(), found));
  }

  /// slices: of the stacks, what was carried, gradients of outs, reductions that are kept. carried:
  /// gradients of what is carried, then sums for whole tensors.
  RepeatBody step(const Tensors& slices, const Tensors& whole, const Tensors& carried) const {
    const size_t stacks = parts_.stacked.size(), states = carries().size();
    const NodeMap<NodeRef> replacement = on(slices, whole);
    std::vector<NodeRef> roots, targets;
    Tensors upstream;
    for (size_t k = 0; k < states; ++k) {
      if (!is_float(parts_.nexts[k]->dtype)) continue;
      upstream.push_back(carried[roots.size()]);
      roots.push_back(substitute(b_.g, parts_.nexts[k], replacement));
      targets.push_back(slices[stacks + k].node());
    }
    const size_t flowing = roots.size();
    for (size_t i = 0; i < asked_.size(); ++i) {
      upstream.push_back(slices[stacks + states + i]);
      roots.push_back(substitute(b_.g, parts_.outs[asked_[i]], replacement));
    }
    add_wanted(targets, whole, parts_.whole);
    const size_t sums = once() ? flowing : targets.size();
    add_wanted(targets, slices, parts_.stacked);

    Tensors grads = Backward(b_.context(), b_.g).run(roots, upstream, targets);
    use_kept(grads, replacement, std::span(slices).last(kept_.size()));
    RepeatBody out;
    for (size_t i = 0; i < targets.size(); ++i) {
      const Tensor grad = grads[i].defined() ? grads[i] : b_.tensor(targets[i]).zeros_like();
      (i < sums ? out.carried : out.outs)
          .push_back(i >= flowing && i < sums ? carried[i] + grad : grad);
    }
    return out;
  }

  void add_wanted(std::vector<NodeRef>& targets, const Tensors& inside,
                  std::span<const NodeRef> outside) const {
    for (size_t i = 0; i < outside.size(); ++i)
      if (is_float(outside[i]->dtype) && b_.wants_node(outside[i]))
        targets.push_back(inside[i].node());
  }

  void give(const RepeatBody& results) {
    size_t carried = 0, outs = 0;
    for (NodeRef init : carries())
      if (is_float(init->dtype)) b_.give_to(init, results.carried[carried++]);
    for (NodeRef x : wanted(parts_.whole))
      b_.give_to(x, once() ? results.outs[outs++].squeeze(0) : results.carried[carried++]);
    for (NodeRef x : wanted(parts_.stacked)) b_.give_to(x, results.outs[outs++]);
  }

  Backward& b_;
  RepeatParts parts_;
  std::vector<size_t> asked_;  // outs that have a gradient
  std::vector<size_t> kept_;   // outs that are reductions
};

}  // namespace

void repeat_gradient(Backward& b) { RepeatReverse(b).run(); }

// ---- functions

void function_gradient(Backward& b) {
  const FunctionParts parts(b.n);
  NodeMap<NodeRef> replacement;
  const size_t results = parts.results.size();
  const auto holes = placeholders_in(parts.gradients, parts.slot, 2 * results);
  for (size_t k = 0; k < holes.size(); ++k)
    if (holes[k])
      replacement.set(
          holes[k], k < results ? b.result_gradient(k).node() : get_result(b.g, b.n, k - results));
  for (size_t i = 0; i < parts.inputs.size(); ++i) {
    if (parts.gradients[i]->op == Op::Sink || !b.wants_node(parts.inputs[i])) continue;
    b.give_to(parts.inputs[i], b.tensor(substitute(b.g, parts.gradients[i], replacement)));
  }
}

namespace {

/// The gradients of some inputs of a call from those of some of its results; of an input on which
/// none of these depends: false.
Tensors call_gradients(Backward& b, const Tensors& inputs, const Tensors& upstream,
                       std::span<const size_t> results, std::span<const size_t> wanted) {
  // On placeholders, as an input may be computed from another: what comes by that way is not ours.
  const Tensors holes = placeholders(inputs);
  const std::vector<NodeRef> values = results_on(b.g, b.n, nodes_of(holes));
  std::vector<NodeRef> roots, targets;
  for (size_t k : results) roots.push_back(values[k]);
  for (size_t i : wanted) targets.push_back(holes[i].node());
  Tensors grads = Backward(b.context(), b.g).run(roots, upstream, targets);
  for (Tensor& t : grads) t = t.defined() ? bound({t}, holes, inputs)[0] : Tensor::full({}, false);
  return grads;
}

}  // namespace

void call_gradient(Backward& b) {
  const CallParts parts(b.n);
  std::vector<size_t> results, wanted;
  Ints which;
  Tensors in;
  for (NodeRef x : parts.inputs) in.push_back(b.tensor(x));
  for (size_t k = 0; k < parts.bodies.size(); ++k) {
    if (!b.has_result_gradient(k)) continue;
    results.push_back(k);
    which.push_back(static_cast<int64_t>(k));
    in.push_back(b.result_gradient(k));
  }
  for (size_t i = 0; i < parts.inputs.size(); ++i) {
    if (!is_float(parts.inputs[i]->dtype) || !b.wants_node(parts.inputs[i])) continue;
    wanted.push_back(i);
    which.push_back(~static_cast<int64_t>(i));
  }
  if (wanted.empty()) return;
  const auto gradients = [&](const Tensors& all) {
    const auto upstream = all.begin() + static_cast<std::ptrdiff_t>(parts.inputs.size());
    return call_gradients(b, {all.begin(), upstream}, {upstream, all.end()}, results, wanted);
  };
  const Tensors made = called("gradient", which, in, gradients, parts.bodies);
  for (size_t t = 0; t < made.size(); ++t)
    if (!is_bool(made[t].dtype())) b.give_to(parts.inputs[wanted[t]], made[t]);
}

void custom_gradient(Backward&) {
  fail("gradient.custom_kernel",
       "this custom kernel has no gradient: give custom_kernel() one, or detach() its inputs");
}

}  // namespace weft
