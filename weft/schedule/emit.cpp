#include "weft/schedule/emit.h"

#include <algorithm>
#include <numeric>

#include "weft/base/error.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/tuple.h"
#include "weft/graph/walks.h"
#include "weft/rewrite/driver.h"
#include "weft/schedule/axes.h"
#include "weft/schedule/reading.h"

namespace weft {
namespace {

bool is_empty(const KernelPlan& k) {
  return std::any_of(k.ranges.begin(), k.ranges.end(),
                     [](NodeRef r) { return r->op == Op::Range && is_int_const(r->src(0), 0); });
}

// Commands of one realization: past this it is a mistake, and memory would not hold them.
constexpr size_t kMostSteps = size_t{1} << 22;

/// What is moved or copied for a value.
NodeRef without_copies(NodeRef n) {
  for (n = moved(n); n->op == Op::Contiguous;) n = moved(n->src(0));
  return n;
}

/// A Repeat's bodies as a graph that can be scheduled: its inputs and the stacks of outs are Params
/// in this order, and a Variable says which slice is meant.
class Body {
 public:
  Body(Graph& g, NodeRef repeat) : g_(g), parts_(repeat) {
    place_ = g.variable(place_name(parts_.level()), 0, parts_.count - 1);
  }

  /// What is carried next, then the stacks of the outs `wanted`, from `slot` on, with these at
  /// their places.
  std::vector<NodeRef> results(std::span<const size_t> wanted, int64_t slot) {
    std::vector<NodeRef> roots(parts_.nexts.begin(), parts_.nexts.end());
    for (const size_t k : wanted) roots.push_back(parts_.outs[k]);
    note_in_memory(roots);
    const auto outs = std::span(roots).subspan(parts_.nexts.size());
    const auto place_of = [&](NodeRef out) {
      return slot + (std::ranges::find(outs, out) - outs.begin());
    };
    NodeMap<NodeRef> written;
    std::vector<NodeRef> made = rebuild_all(roots, [&](NodeRef n, std::span<const NodeRef> src) {
      NodeRef value = in_graph(n, src);
      if (!in_memory_.contains(n)) return value;
      return with_axis(g_, slice(written[n] = write(value, place_of(n))), 0, {});
    });
    for (size_t i = 0; i < outs.size(); ++i) {
      const int64_t own = slot + static_cast<int64_t>(i);
      const NodeRef* already = written.find(outs[i]);
      NodeRef& result = made[parts_.nexts.size() + i];
      result = already && place_of(outs[i]) == own ? *already : write(result, own);
    }
    return made;
  }

 private:
  /// Outs that products make or read are in memory anyway: whatever else the bodies compute of them
  /// finds them in their stacks. What is carried has buffers of its own, as have rounds that run
  /// side by side.
  void note_in_memory(std::span<const NodeRef> roots) {
    if (parts_.level() >= kInnerBlocksLevel) return;
    const auto outs = roots.subspan(parts_.nexts.size());
    const auto note = [&](NodeRef n) {
      if (contains(outs, n) && !contains(parts_.nexts, n) && n->op != Op::Param)
        in_memory_[n] = true;
    };
    for (NodeRef n : Toposort::evaluated(roots)) {
      if (n->op != Op::Reduce) continue;
      NodeRef product = without_copies(n->src(0));
      if (product->op != Op::Mul) continue;
      note(n);
      for (NodeRef factor : product->src()) note(without_copies(factor));
    }
  }

  std::vector<NodeRef> stacked(std::span<const NodeRef> dims) {
    std::vector<NodeRef> all{g_.index(parts_.count)};
    all.insert(all.end(), dims.begin(), dims.end());
    return all;
  }

  NodeRef slice(NodeRef stack) { return part(g_, stack, 0, place_, g_.index(1)); }

  NodeRef write(NodeRef value, int64_t slot) {
    NodeRef stack = g_.param(slot, value->dtype, stacked(value->shape->span()));
    return g_.make(Op::Assign, value->dtype,
                   {stack, slice(stack), with_axis(g_, value, 0, {1}, 0)});
  }

  NodeRef in_graph(NodeRef n, std::span<const NodeRef> src) {
    const int64_t slot = n->op == Op::Param ? param_slot(n) - parts_.slot : -1;
    if (slot < 0 || slot >= kSlotsPerLevel)
      return g_.intern({n->op, n->dtype, src, n->ints(), n->text(), n->lanes});
    if (slot >= static_cast<int64_t>(parts_.stacked.size()))
      return g_.param(slot, n->dtype, src, n->device);
    return with_axis(g_, slice(g_.param(slot, n->dtype, stacked(src), n->device)), 0, {});
  }

  Graph& g_;
  RepeatParts parts_;
  NodeRef place_;
  NodeMap<bool> in_memory_;
};

}  // namespace

std::string place_name(int64_t level) { return strformat("@{}", level); }

void Emitter::emit(const KernelPlan& k, NodeRef sink) {
  if (is_empty(k)) return;
  if (k.root->op == Op::Repeat) return emit_repeat(k);
  if (k.root->op == Op::Custom) return emit_custom(k);
  if (crosses_devices(k.root)) {
    out_.steps.push_back(
        {ScheduleStep::Kind::Copy, -1, {physical(k.root->src(0)), physical(k.root)}, k.origins});
    return;
  }
  std::vector<int> slots;
  ScheduleStep step;
  NodeRef numbered = number_kernel(plan_, k, use_physical(sink), slots);
  if (many_parts_ && (k.root->op == Op::Assign || k.root->op == Op::Contiguous))
    numbered = lift_offsets(plan_.g, numbered, step.fixed);
  const Known& known = simplified(numbered);
  step.kernel = known.kernel;
  step.origins = k.origins;
  for (int slot : known.slots) step.buffers.push_back(slots[static_cast<size_t>(slot)]);
  out_.steps.push_back(std::move(step));
}

/// Params named after the buffers they really are, so that a buffer read and written is one slot.
NodeRef Emitter::use_physical(NodeRef sink) {
  return rebuild(sink, [&](NodeRef n, std::span<const NodeRef> src) {
    if (n->op != Op::Param) return plan_.g.with_sources(n, src);
    return plan_.g.param(physical_[static_cast<size_t>(param_slot(n))], n->dtype, src);
  });
}

/// Equal kernels are simplified once.
const Emitter::Known& Emitter::simplified(NodeRef numbered) {
  if (const Known* known = seen_.find(numbered)) return *known;
  Known made{-1, {}};
  made.kernel = index_of(simplify_kernel(plan_.g, numbered, made.slots));
  return seen_.set(numbered, std::move(made));
}

int Emitter::index_of(NodeRef sink) {
  if (const int* known = kernels_.find(sink)) return *known;
  out_.kernels.push_back({out_.graph, sink, kernel_name(sink)});
  return kernels_.set(sink, static_cast<int>(out_.kernels.size()) - 1);
}

// ---- steps over whole buffers

std::vector<int> Emitter::buffers_of_inputs(NodeRef step) const {
  std::vector<int> buffers;
  for (NodeRef x : step->src().first(evaluated_sources(step))) buffers.push_back(physical(x));
  return buffers;
}

/// By input of a Repeat's body, whether no run changes it; empty where that gains nothing: where
/// rounds run side by side, each would have a copy of its own.
std::vector<bool> Emitter::constant_inputs(NodeRef step, const RepeatParts& parts) const {
  std::vector<bool> constant;
  if (plan_.options.constants.empty() || parts.level() == kBlocksLevel) return constant;
  const size_t count = parts.stacked.size() + parts.whole.size();  // what is carried changes
  for (NodeRef x : step->src().first(count)) constant.push_back(plan_.constants.contain(x));
  return constant;
}

/// -1 for results that nobody wants.
std::vector<int> Emitter::buffers_of_results(const KernelPlan& k) {
  std::vector<int> buffers(result_count(k.root), -1);
  for (const KernelOutput& o : k.outputs)
    buffers[static_cast<size_t>(o.node->int_arg(0))] = physical(o.node);
  return buffers;
}

/// A buffer of the schedule's own.
int Emitter::add_buffer(const BufferSpec& like) {
  out_.buffers.push_back(like);
  BufferSpec& b = out_.buffers.back();
  b.input = b.output = -1;
  b.numel = plan_.g.import(b.numel);
  return static_cast<int>(out_.buffers.size()) - 1;
}

BufferSpec Emitter::spec_like(NodeRef n, DeviceId device) {
  return {n->dtype, plan_.size_of(n), device, -1, -1, "row-major", false};
}

namespace {

/// A sum of ranges, each times the sizes of those with smaller factors.
bool is_mixed_radix(NodeRef index) {
  if (is_int_const(index, 0)) return true;
  std::vector<std::pair<int64_t, int64_t>> digits;  // factor, size
  std::vector<NodeRef> left{index};
  while (!left.empty()) {
    NodeRef n = left.back();
    left.pop_back();
    if (n->op == Op::Add) {
      left.insert(left.end(), n->src().begin(), n->src().end());
      continue;
    }
    const bool scaled = n->op == Op::Mul && n->src(1)->op == Op::Const;
    NodeRef range = scaled ? n->src(0) : n;
    if (range->op != Op::Range) return false;
    digits.emplace_back(scaled ? n->src(1)->vmin : 1, range->src(0)->vmin);
  }
  std::ranges::sort(digits);
  int64_t below = 1;
  for (const auto& [factor, size] : digits) {
    if (factor != below) return false;
    below *= size;
  }
  return true;
}

int64_t constant_part(NodeRef index) {
  if (index->op == Op::Add) index = index->src(1);
  return index->op == Op::Const ? index->vmin : 0;
}

/// False where two stores surely hit different elements: their indices have no common bounds, or
/// never leave the same remainder (the GCD test of dependence analysis).
bool may_meet(Graph& g, NodeRef a, NodeRef b) {
  if (a->src(0) != b->src(0)) return false;
  NodeRef i = a->src(1), j = b->src(1);
  if (i->vmax < j->vmin || j->vmax < i->vmin) return false;
  const int64_t ci = constant_part(i), cj = constant_part(j);
  const int64_t common =
      std::gcd(divisor_of(g.sub(i, g.index(ci))), divisor_of(g.sub(j, g.index(cj))));
  return common == 0 ? ci == cj : (ci - cj) % common == 0;
}

/// A user's stores happen one after the other, each over all its ranges. In one kernel they would
/// share loops and take turns, which is the same only where they do not meet.
std::vector<NodeRef> one_after_the_other(Graph& g, NodeRef sink) {
  std::vector<NodeRef> sinks, group;
  auto close = [&] { sinks.push_back(g.make({Op::Sink, DType::Void, group})); };
  for (NodeRef s : sink->src()) {
    if (std::ranges::any_of(group, [&](NodeRef t) { return may_meet(g, s, t); })) {
      close();
      group.clear();
    }
    group.push_back(s);
  }
  close();
  return sinks;
}

/// Whether one store writes every element: its index counts through them as its ranges nest.
bool fills(NodeRef store, NodeRef numel) {
  if (store->nsrc > 3 || store->int_arg(0) != 0 || numel->op != Op::Const) return false;
  NodeRef index = store->src(1);
  int64_t count = 1;
  for (NodeRef n : Toposort(index)) {
    if (n->op != Op::Range) continue;
    if (n->src(0)->op != Op::Const) return false;
    count *= n->src(0)->vmin;
  }
  // As many different values as places, all of them in range: each place is one of them when the
  // index is a mixed-radix number, whose largest digit is added last.
  return count == numel->vmin && index->vmin == 0 && index->vmax == count - 1 &&
         is_mixed_radix(index);
}

}  // namespace

/// Elements that a kernel may leave out, or that it adds to, begin as 0.
void Emitter::clear(NodeRef like, int buffer, const KernelPlan& k) {
  Graph& g = plan_.g;
  NodeRef size = plan_.size_of(like), at = g.range(size, 0),
          to = g.param(0, like->dtype, {&size, 1});
  NodeRef zero = g.constant(Value::of(like->dtype, 0));
  const int64_t set[] = {static_cast<int64_t>(Fold::Set), 1};
  const NodeRef src[] = {to, at, zero};
  NodeRef store = g.make({Op::Store, DType::Void, src, set});
  ScheduleStep step;
  step.kernel = index_of(g.make(Op::Sink, DType::Void, {store}));
  step.buffers = {buffer};
  step.origins = k.origins;
  out_.steps.push_back(std::move(step));
}

void Emitter::emit_custom(const KernelPlan& k) {
  NodeRef given_node = plan_.given_steps[number_of_step(k.root)];
  const CustomParts parts(k.root);
  NodeRef sink = plan_.g.import(CustomParts(given_node).sink);
  std::vector<int> given = buffers_of_results(k);
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] < 0) given[i] = add_buffer(spec_like(parts.outputs[i], k.root->device));
    const bool filled = std::ranges::any_of(sink->src(), [&](NodeRef s) {
      return param_slot(s->src(0)) == static_cast<int64_t>(i) &&
             fills(s, plan_.size_of(parts.outputs[i]));
    });
    if (!filled) clear(parts.outputs[i], given[i], k);
  }
  for (const int b : buffers_of_inputs(k.root)) given.push_back(b);
  for (NodeRef statements : one_after_the_other(plan_.g, sink)) {
    const Known& known = simplified(statements);
    out_.kernels[static_cast<size_t>(known.kernel)].name = std::string(given_node->text());
    ScheduleStep step;
    step.kernel = known.kernel;
    step.origins = k.origins;
    for (const int slot : known.slots) step.buffers.push_back(given[static_cast<size_t>(slot)]);
    out_.steps.push_back(std::move(step));
  }
}

/// Which buffer of the schedule each of a body's is, in one round.
struct Emitter::Round {
  const RepeatParts& parts;
  std::vector<int> buffers;                ///< of the body; -1: carried
  std::vector<int> inits, spares, finals;  ///< of each carry
  std::vector<int> carried_in;             ///< the body's buffers that hold them before, after
  std::vector<int> carried_out;
  std::vector<bool> constant;  ///< by input of the body, whether no run changes it

  /// Whether an input of the body is the same in all rounds.
  bool stays(int input) const {
    const auto slot = static_cast<size_t>(input), stacks = parts.stacked.size();
    const bool whole = slot >= stacks && slot < stacks + parts.whole.size();
    return whole || (slot < constant.size() && constant[slot]);
  }
  bool side_by_side() const { return parts.level() == kBlocksLevel && parts.count > 1; }
  bool ends_early(const Schedule& body) const {
    const bool stacks = body.outputs.size() > inits.size();
    return parts.until >= 0 && !stacks && !side_by_side();
  }
  /// The first step of a round asks whether it is done, where rounds have left to finals what the
  /// last one would: the rest may be left out then.
  bool asks(int64_t round) const { return round > 0 && (parts.count - round) % 2 == 0; }
  /// Rounds write to finals and spares in turn, so that the last writes to finals.
  int after(int64_t round, size_t k) const {
    return ((parts.count - 1 - round) % 2 == 0 ? finals : spares)[k];
  }
  void enter(int64_t round) {
    for (size_t k = 0; k < inits.size(); ++k) {
      if (carried_in[k] >= 0)
        buffers[static_cast<size_t>(carried_in[k])] = round == 0 ? inits[k] : after(round - 1, k);
      buffers[static_cast<size_t>(carried_out[k])] = after(round, k);
    }
  }
};

void Emitter::emit_repeat(const KernelPlan& k) {
  NodeRef repeat = plan_.given_steps[number_of_step(k.root)];
  const RepeatParts parts(repeat);
  const std::vector<int> results = buffers_of_results(k);
  std::vector<int> given = buffers_of_inputs(k.root);  // by input slot of the body
  const size_t carries = parts.nexts.size(), inputs = given.size();

  Graph g;
  Body body(g, repeat);
  std::vector<size_t> wanted;
  for (size_t i = carries; i < results.size(); ++i)
    if (results[i] >= 0) wanted.push_back(i - carries);
  std::vector<ScheduleOutput> outputs;
  for (NodeRef value : body.results(wanted, static_cast<int64_t>(given.size())))
    outputs.push_back({value, -1});
  for (size_t i = 0; i < wanted.size(); ++i) {
    outputs[carries + i].into = static_cast<int>(given.size());
    given.push_back(results[carries + wanted[i]]);
  }
  ScheduleOptions options = plan_.options;
  options.constants = constant_inputs(k.root, parts);
  options.in_rounds |= parts.level() >= kInnerBlocksLevel;
  const Schedule inner = make_schedule(outputs, plan_.target, options);

  Round round{parts, {}, {}, {}, {}, std::vector<int>(carries, -1), {}, options.constants};
  bind_buffers(round, inner, given, inputs - carries);
  for (size_t i = 0; i < carries; ++i) {
    const BufferSpec& spec = inner.buffers[static_cast<size_t>(inner.outputs[i])];
    round.inits.push_back(given[inputs - carries + i]);
    round.finals.push_back(results[i] >= 0 ? results[i] : add_buffer(spec));
    round.spares.push_back(parts.count > 1 ? add_buffer(spec) : -1);
    round.carried_out.push_back(inner.outputs[i]);
  }
  emit_rounds(round, inner, k);
}

/// The body's inputs are given, its intermediates are new; what is carried changes every time.
void Emitter::bind_buffers(Round& round, const Schedule& inner, std::span<const int> given,
                           size_t first_carry) {
  for (size_t b = 0; b < inner.buffers.size(); ++b) {
    BufferSpec spec = inner.buffers[b];
    spec.of_round |= round.side_by_side();
    const auto slot = static_cast<size_t>(spec.input);
    const bool carried =
        spec.input >= 0 && slot >= first_carry && slot < first_carry + round.carried_in.size();
    if (carried) round.carried_in[slot - first_carry] = static_cast<int>(b);
    if (carried || (spec.input < 0 && spec.output >= 0))
      round.buffers.push_back(-1);
    else
      round.buffers.push_back(spec.input < 0 ? add_buffer(spec) : given[slot]);
  }
}

namespace {

/// Which buffers of a body are other values in every round, and which of its steps make them.
class Variation {
 public:
  /// `varies`: by buffer, what is known of it. What several steps write, such as those of the
  /// rounds of a loop inside, holds what the last of them wrote.
  Variation(const Schedule& body, std::string_view place, std::vector<bool> varies)
      : buffers_(std::move(varies)) {
    std::vector<int> writers(buffers_.size());
    for (const ScheduleStep& s : body.steps)
      for (const int b : written_by(body, s))
        if (++writers[static_cast<size_t>(b)] > 1) buffers_[static_cast<size_t>(b)] = true;
    std::vector<bool> by_place;
    for (const Kernel& k : body.kernels) by_place.push_back(mentions(k.sink, place));
    for (const ScheduleStep& s : body.steps)
      steps_.push_back(s.kernel >= 0 && by_place[static_cast<size_t>(s.kernel)]);
    while (spread(body)) {}
  }

  bool varies(size_t step) const { return steps_[step]; }

 private:
  static bool mentions(NodeRef sink, std::string_view variable) {
    return std::ranges::any_of(
        Toposort(sink), [&](NodeRef n) { return n->op == Op::Variable && n->text() == variable; });
  }

  /// From buffers to whoever touches them, and to all that those write. Whether anything is new.
  bool spread(const Schedule& body) {
    bool found = false;
    for (size_t i = 0; i < body.steps.size(); ++i) {
      const ScheduleStep& s = body.steps[i];
      const auto varies = [this](int b) { return buffers_[static_cast<size_t>(b)]; };
      steps_[i] = steps_[i] || std::ranges::any_of(s.buffers, varies);
      if (steps_[i])
        for (const int b : written_by(body, s)) {
          found |= !varies(b);
          buffers_[static_cast<size_t>(b)] = true;
        }
    }
    return found;
  }

  static std::vector<int> written_by(const Schedule& body, const ScheduleStep& s) {
    if (s.kind == ScheduleStep::Kind::Copy) return {s.buffers[1]};
    std::vector<int> written;
    for (NodeRef n : Toposort(body.kernels[static_cast<size_t>(s.kernel)].sink))
      if (n->op == Op::Store)
        written.push_back(s.buffers[static_cast<size_t>(param_slot(n->src(0)))]);
    return written;
  }

  std::vector<bool> buffers_, steps_;
};

}  // namespace

/// What depends on no round is made in the first one and stays: weights as products read them. Not
/// where rounds run side by side, each with buffers of its own.
std::vector<bool> Emitter::steps_of_first_round(const Round& round, const Schedule& inner) {
  std::vector<bool> varies;
  for (const BufferSpec& b : inner.buffers)
    varies.push_back(b.input >= 0 ? !round.stays(b.input) : b.output >= 0);
  const Variation variation(inner, place_name(round.parts.level()), std::move(varies));
  std::vector<bool> once(inner.steps.size(), false);
  for (size_t i = 0; i < once.size(); ++i) once[i] = !round.side_by_side() && !variation.varies(i);
  return once;
}

namespace {

/// A buffer that the kernel has already is not there twice: it would have to expect that two are
/// the same.
void ask(ScheduleStep& step, int buffer) {
  auto at = std::ranges::find(step.buffers, buffer);
  if (at == step.buffers.end()) at = step.buffers.insert(at, buffer);
  step.asks = static_cast<int>(at - step.buffers.begin());
}

}  // namespace

void Emitter::emit_rounds(Round& round, const Schedule& inner, const KernelPlan& k) {
  const std::vector<bool> once = steps_of_first_round(round, inner);
  std::vector<int> kernels;
  for (const Kernel& kernel : inner.kernels)
    kernels.push_back(index_of(plan_.g.import(kernel.sink)));
  const std::string place = place_name(round.parts.level());
  const auto rounds = static_cast<size_t>(round.parts.count);
  if (!inner.steps.empty() && rounds > (kMostSteps - out_.steps.size()) / inner.steps.size())
    fail("scan.steps", "{} slices of {} kernels each are more than {} in one realization",
         round.parts.count, inner.steps.size(), kMostSteps);
  for (NodeRef v : inner.variables)
    if (v->text() != place) out_.variables.push_back(plan_.g.import(v));
  const int loop = round.ends_early(inner) ? out_.loops++ : -1;
  for (int64_t i = 0; i < round.parts.count; ++i) {
    round.enter(i);
    bool asks = loop >= 0 && round.asks(i);
    for (size_t s = 0; s < inner.steps.size(); ++s) {
      if (i > 0 && once[s]) continue;
      ScheduleStep step = inner.steps[s];
      for (int& b : step.buffers) b = round.buffers[static_cast<size_t>(b)];
      if (step.kernel >= 0) step.kernel = kernels[static_cast<size_t>(step.kernel)];
      step.origins = k.origins;
      if (round.side_by_side()) step.round = i;
      step.fixed.push_back({place, round.parts.reversed ? round.parts.count - 1 - i : i});
      if (loop >= 0)
        step.loop = loop, step.asks = -1;
      else if (step.loop >= 0)
        step.loop += out_.loops;
      if (asks && step.kind == ScheduleStep::Kind::Run) {
        ask(step, round.finals[static_cast<size_t>(round.parts.until)]);
        asks = false;
      }
      out_.steps.push_back(std::move(step));
    }
    if (loop < 0) out_.loops += inner.loops;
  }
}

}  // namespace weft
