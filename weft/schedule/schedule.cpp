#include "weft/schedule/schedule.h"
#include "weft/schedule/axes.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/base/hash.h"
#include "weft/base/small_vector.h"
#include "weft/graph/print.h"
#include "weft/graph/tuple.h"
#include "weft/schedule/convolution.h"
#include "weft/schedule/decoded_products.h"
#include "weft/schedule/passes.h"
#include "weft/schedule/row_blocks.h"

namespace weft {
namespace {

constexpr size_t kLargestCone = 32;  // nodes looked at to find who reads what is overwritten

bool is_update(NodeRef n) { return n->op == Op::Assign || n->op == Op::Scatter; }

/// Whether a node can own a kernel and a buffer. Views, leaves and constants are copied into one
/// when they are outputs.
bool computes(NodeRef n) {
  switch (n->op) {
    case Op::Reduce:
    case Op::Scan:
    case Op::CumCount:
    case Op::Get:
    case Op::Contiguous:
    case Op::Copy:
    case Op::Assign:
    case Op::Scatter: return true;
    default: return is_alu(n->op);
  }
}

/// Brings a tensor graph into the form the planner expects: outputs that own buffers, and updates
/// whose base is theirs alone.
class Preparer {
 public:
  /// `given`: what values were before passes changed them, by their hashes.
  Preparer(Graph& g, std::span<const ScheduleOutput> outputs, const Target& target,
           const std::vector<bool>& constants, NodeMap<uint64_t> given)
      : g_(g), target_(target), constants_(constants), given_(std::move(given)) {
    std::vector<NodeRef> roots;
    for (const ScheduleOutput& o : outputs) roots.push_back(o.value);
    count_uses(roots);
    NodeMap<bool> results;
    for (NodeRef root : roots) results[unshaped(root)] = true;
    for (const ScheduleOutput& o : outputs) note_in_place(o, results);
    const Toposort order = Toposort::evaluated(roots);
    note_inner_sums(order);
    note_landings(order);
    spread_ = spread_sums(order);
    copies_.reserve(order.size());
    origins_.reserve(order.size());
    for (NodeRef n : order) {
      NodeRef copy = copies_[n] = rebuild(n);
      if (computes(copy)) origins_[copy] = hash_of(n);
    }
  }

  /// What goes into an input has the value's own buffer, which may be that input's: others that
  /// have the same value get copies.
  std::vector<ScheduleOutput> outputs(std::span<const ScheduleOutput> wanted) {
    std::vector<ScheduleOutput> out(wanted.begin(), wanted.end());
    NodeMap<bool> taken;
    for (const bool goes_into_input : {true, false})
      for (ScheduleOutput& o : out)
        if ((o.into >= 0) == goes_into_input) o.value = output_of(o, taken);
    return out;
  }

  NodeMap<uint64_t> take_origins() { return std::move(origins_); }
  std::vector<NodeRef> take_steps() { return std::move(steps_); }

 private:
  NodeRef output_of(const ScheduleOutput& o, NodeMap<bool>& taken) {
    NodeRef value = unshaped(copies_.at(o.value));
    // One memory for two tensors would let a later update of one in place show in the other.
    if (!computes(value) || taken.contains(value) || updates_another(value, o.into))
      value = owned(value, o.value);
    taken[value] = true;
    return value;
  }

  /// Whether the value lies in an input that another result goes to: what was no link of that one's
  /// chain until its sources turned out to be equal.
  static bool updates_another(NodeRef value, int into) {
    if (!is_update(value)) return false;
    while (is_update(value)) value = value->src(0);
    return value->op == Op::Param && !is_unwritten(value) && param_slot(value) != into;
  }

  /// The same bytes in the shape they are computed in: a product of matrices that is written to a
  /// flat buffer keeps its two axes.
  static NodeRef unshaped(NodeRef n) {
    NodeRef inner = n;
    while (inner->op == Op::Reshape) inner = inner->src(0);
    return computes(inner) || inner->op == Op::Param ? inner : n;
  }

  /// A copy for the sake of `user`, with a buffer of its own, distinct from every other copy.
  NodeRef owned(NodeRef n, NodeRef user) {
    const NodeRef src[] = {n};
    const int64_t which[] = {next_copy_++};
    NodeRef copy = g_.intern({Op::Contiguous, n->dtype, src, which});
    origins_[copy] = hash_of(user);
    return copy;
  }

  /// When it was given.
  uint64_t hash_of(NodeRef n) const {
    const uint64_t* given = given_.find(n);
    return given ? *given : n->hash;
  }

  /// How often each value is read. An assign's view names places of its base; it does not read it.
  void count_uses(std::span<const NodeRef> roots) {
    std::vector<NodeRef> stack;
    auto use = [&](NodeRef n) {
      if (uses_[n]++ == 0) stack.push_back(n);
    };
    for (NodeRef n : roots) use(n);
    while (!stack.empty()) {
      NodeRef n = stack.back();
      stack.pop_back();
      for (size_t i = 0; i < evaluated_sources(n); ++i)
        if (n->op != Op::Assign || i != 1) use(n->src(i));
    }
  }

  /// The input at the end of a chain of updates may be updated where it is when the result goes
  /// there anyway. A link of the chain that is a result, too, needs memory that the last one does
  /// not go to.
  void note_in_place(const ScheduleOutput& o, const NodeMap<bool>& results) {
    NodeRef n = o.value;
    if (o.into < 0 || !is_update(n)) return;
    for (n = n->src(0); is_update(n); n = n->src(0))
      if (results.contains(n)) return;
    if (n->op == Op::Param && param_slot(n) == o.into && sole_use(n)) in_place_[n] = true;
  }

  /// Sums that are only part of another.
  void note_inner_sums(const Toposort& order) {
    for (NodeRef n : order)
      if (n->op == Op::Add && n->rank() > 0)
        for (NodeRef s : n->src())
          if (s->op == Op::Add && sole_use(s)) inner_[s] = true;
  }

  /// Values that are there to be assigned: written in parts, they are written where they go.
  void note_landings(const Toposort& order) {
    for (NodeRef n : order) {
      if (n->op == Op::Assign)
        if (NodeRef value = landing(n->src(2))) lands_[value] = true;
      if (n->op == Op::Cat) note_nested(n);
    }
  }

  /// The value behind reshapes, where nobody else reads it; else null.
  NodeRef landing(NodeRef value) const {
    while (value->op == Op::Reshape && sole_use(value)) value = value->src(0);
    return sole_use(value) ? value : nullptr;
  }

  /// Parts of parts that one kernel writes, where they belong in the whole.
  void note_nested(NodeRef cat) {
    std::vector<NodeRef> inner, parts;
    for (NodeRef s : cat->src()) {
      NodeRef value = landing(s);
      if (!value || value->op != Op::Cat) return;
      inner.push_back(value);
      parts.insert(parts.end(), value->src().begin(), value->src().end());
    }
    if (!share_a_kernel(parts)) return;
    nests_[cat] = true;
    for (NodeRef value : inner) lands_[value] = true;
  }

  /// An assign of a value that is written in parts: these, in the place of a copy; else null.
  NodeRef assigned_in_parts(NodeRef n, std::span<const NodeRef> src) {
    NodeRef given = n->src(2), value = src[2];
    while (given->op == Op::Reshape) given = given->src(0);
    while (value->op == Op::Reshape) value = value->src(0);
    if (!lands_.contains(given)) return nullptr;
    const std::vector<NodeRef> parts = written_parts(value);
    NodeRef out = src[0];
    for (NodeRef p : parts)
      out = written_again(p, rebase(g_, src[1], src[0], out), out, hash_of(given));
    return parts.empty() ? nullptr : out;
  }

  /// The assigns, the first one first, of what is written in parts; else none.
  static std::vector<NodeRef> written_parts(NodeRef value) {
    std::vector<NodeRef> parts;
    while (value->op == Op::Reshape) value = value->src(0);
    for (; value->op == Op::Assign; value = value->src(0)) parts.push_back(value);
    if (!is_unwritten(value)) parts.clear();
    std::ranges::reverse(parts);
    return parts;
  }

  /// What `assign` writes, written to its place within `whole`, a view of `out`.
  NodeRef written_again(NodeRef assign, NodeRef whole, NodeRef out, uint64_t origin) {
    NodeRef view = reshaped(g_, whole, assign->shape->span());
    NodeRef place = rebase(g_, assign->src(1), assign->src(0), view);
    NodeRef made = g_.make(Op::Assign, assign->dtype, {out, place, assign->src(2)});
    origins_[made] = origin;
    return made;
  }

  /// A cat whose parts are all written in parts: these, in the place of copies; else null.
  NodeRef joined_in_parts(NodeRef cat, std::span<const NodeRef> src) {
    if (!nests_.contains(cat)) return nullptr;
    std::vector<std::vector<NodeRef>> parts;
    for (NodeRef s : src) {
      parts.push_back(written_parts(s));
      if (parts.back().empty()) return nullptr;
    }
    const auto axis = static_cast<size_t>(cat->int_arg(0));
    NodeRef out = unwritten(cat), begin = g_.index(0);
    for (size_t i = 0; i < src.size(); ++i) {
      for (NodeRef p : parts[i])
        out = written_again(p, part(g_, out, axis, begin, src[i]->dim(axis)), out, hash_of(cat));
      begin = g_.add(begin, src[i]->dim(axis));
    }
    return out;
  }

  /// The padded parts that `sum` adds up; none where it adds anything else.
  std::vector<NodeRef> padded_parts(NodeRef sum) const {
    std::vector<NodeRef> parts, left(sum->src().begin(), sum->src().end());
    while (!left.empty()) {
      NodeRef n = left.back();
      left.pop_back();
      if (inner_.contains(n))
        left.insert(left.end(), n->src().begin(), n->src().end());
      else if (n->op == Op::Pad)
        parts.push_back(copies_.at(n));
      else
        return {};
    }
    return parts;
  }

  /// A sum of parts that do not meet; null where it is not one, or better added up.
  NodeRef disjoint_sum(NodeRef n) {
    if (n->op != Op::Add || n->rank() == 0 || inner_.contains(n)) return nullptr;
    const std::vector<NodeRef> parts = padded_parts(n);
    return parts.empty() ? nullptr : write_disjoint(g_, parts, unwritten(n), lands_.contains(n));
  }

  bool sole_use(NodeRef n) const {
    const int* uses = uses_.find(n);
    return uses && *uses == 1;
  }

  /// Whether whatever reads the base of `update` is there for the update's value alone, as in
  /// x[i] = x[i - 1] + 1: a value with a buffer of its own is then all that has to come before.
  bool is_read_for(NodeRef update) const {
    NodeRef base = update->src(0);
    if (update->src(2) == base) return false;
    std::vector<NodeRef> cone{base, update->src(2)};
    std::vector<int> read{1, 1};  // by the cone and the update
    for (size_t i = 1; i < cone.size(); ++i) {
      if (cone.size() > kLargestCone) return false;
      for (size_t k = 0; k < evaluated_sources(cone[i]); ++k) {
        if (cone[i]->op == Op::Assign && k == 1) continue;
        const size_t at = place_in(cone, cone[i]->src(k));
        if (at == read.size()) read.push_back(0);
        ++read[at];
      }
    }
    const std::vector<bool> reads_base = dependents(cone);
    for (size_t i = 0; i < cone.size(); ++i)
      if (reads_base[i] && uses_.at(cone[i]) != read[i]) return false;
    return true;
  }

  /// Where `n` is in the list, at whose end it is put where it is not.
  static size_t place_in(std::vector<NodeRef>& list, NodeRef n) {
    const auto at = std::ranges::find(list, n);
    const auto place = static_cast<size_t>(at - list.begin());
    if (at == list.end()) list.push_back(n);
    return place;
  }

  /// Which of a few nodes depend on the first.
  static std::vector<bool> dependents(std::span<const NodeRef> nodes) {
    std::vector<bool> found(nodes.size());
    found[0] = true;
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 1; i < nodes.size(); ++i) {
        if (found[i]) continue;
        for (size_t k = 0; k < nodes.size() && !found[i]; ++k)
          found[i] = found[k] && contains(nodes[i]->src(), nodes[k]);
        changed = changed || found[i];
      }
    }
    return found;
  }

  /// Whole buffers for inputs; of what is closed only what results are like.
  NodeRef step(NodeRef n) {
    std::vector<NodeRef> src;
    const size_t inputs = evaluated_sources(n);
    for (size_t i = 0; i < inputs; ++i) {
      NodeRef x = unshaped(copies_.at(n->src(i)));
      src.push_back(computes(x) || x->op == Op::Param ? x : owned(x, n));
    }
    for (NodeRef like : n->src().subspan(inputs))
      src.push_back(like->op == Op::Sink ? g_.intern({Op::Sink, DType::Void, {}})
                                         : g_.param(kInnerSlots, like->dtype, like->shape->span()));
    std::vector<int64_t> ints(n->ints().begin(), n->ints().end());
    ints.back() = static_cast<int64_t>(steps_.size());
    steps_.push_back(n);
    return g_.intern({n->op, n->dtype, src, ints, n->text()});
  }

  /// A buffer that holds nothing, for a value of this form.
  NodeRef unwritten(NodeRef like) {
    const int64_t which[] = {next_copy_++};
    const NodeRef src[] = {g_.param(kInnerSlots, like->dtype, like->shape->span(), like->device)};
    return g_.intern({Op::Contiguous, like->dtype, src, which});
  }

  NodeRef joined(NodeRef cat, std::span<const NodeRef> parts) {
    if (NodeRef written = joined_in_parts(cat, parts)) return written;
    const bool written_anyway = lands_.contains(cat) && share_a_kernel(parts);
    if (!written_anyway && is_better_selected(cat, target_)) return select_parts(g_, cat, parts);
    NodeRef begin = unwritten(cat), out = write_parts(g_, cat, parts, begin);
    for (NodeRef n = out; n != begin; n = n->src(0)) origins_[n] = hash_of(cat);
    return out;
  }

  /// The gradient of a sum: what is multiplied by it needs no memory of its own.
  static bool is_one(NodeRef n) {
    while (n->op == Op::Expand || n->op == Op::Reshape) n = n->src(0);
    return n->op == Op::Const && is_float(n->dtype) && const_value(n).as_double() == 1;
  }

  /// Whether what `n` would copy was written into memory for it alone.
  bool has_own_buffer(NodeRef n) const {
    return n->op == Op::Contiguous && n->src(0)->op == Op::Cat && sole_use(n->src(0)) &&
           copies_.at(n->src(0))->op == Op::Assign;
  }

  NodeRef rebuild(NodeRef n) {
    if (is_step(n)) return step(n);
    std::vector<NodeRef> src;
    for (NodeRef s : n->src()) src.push_back(copies_.at(s));
    if (n->op == Op::Scatter && n->int_arg(2) == 2) {
      src[0] = unwritten(n);
    } else if (is_update(n)) {
      NodeRef base = n->src(0);
      bool mine =
          (is_update(base) && sole_use(base)) || in_place_.contains(base) || is_unwritten(src[0]);
      if (!mine && is_update(base) && n->op == Op::Assign && is_read_for(n)) {
        src[2] = owned(src[2], n);
        mine = true;
      }
      if (!mine) {
        NodeRef copy = owned(src[0], n);
        if (n->op == Op::Assign) src[1] = rebase(g_, src[1], src[0], copy);
        src[0] = copy;
      }
    }
    if (n->op == Op::Assign)
      if (NodeRef written = assigned_in_parts(n, src)) return written;
    if (n->op == Op::Bind || has_own_buffer(n)) return src[0];
    if (n->op == Op::CumCount) src[0] = owned(src[0], n);  // it counts in this memory
    if (n->op == Op::Cat) return joined(n, src);
    if (NodeRef written = disjoint_sum(n)) return written;
    if (n->op == Op::Mul)
      for (const size_t i : {0, 1})
        if (is_one(src[1 - i]) && src[i]->shape == n->shape) return src[i];
    if (NodeRef made = fast_gradient_of_image(g_, n, target_, constants_, copies_)) {
      note_parts(made, nullptr, hash_of(n));
      return made;
    }
    if (NodeRef scaled = exponentials_by_reciprocal(g_, n, src)) {
      note_parts(scaled, src[0], hash_of(n));
      return scaled;
    }
    NodeRef copy = g_.with_sources(n, src);
    if (copy->op != Op::Reduce && copy->op != Op::Scan) return copy;
    NodeRef split =
        copy->op == Op::Scan ? split_long_scan(g_, copy) : in_steps(copy, spread_.contains(n));
    note_parts(split, copy->src(0), hash_of(n));
    return split;
  }

  NodeRef in_steps(NodeRef whole, bool is_spread) {
    if (!is_spread) {
      NodeRef total = nullptr;
      for (NodeRef sum : sums_of_products(g_, whole)) {
        NodeRef made = in_steps(sum, false);
        total = total ? g_.add(g_.make(Op::Contiguous, total->dtype, {total}), made) : made;
      }
      if (total) return total;
    }
    NodeRef reduce = reduced_once(g_, whole);
    if (reduce == whole)
      if (NodeRef made = fast_convolution(g_, whole, target_, constants_)) return made;
    NodeRef made = is_spread ? nullptr : by_matrix_unit(g_, reduce, target_, constants_);
    if (!made)
      made = sums_scaled_bytes(reduce)
                 ? reduce
                 : split_large_reduction(g_, by_spread_windows(g_, reduce, target_, constants_),
                                         target_, constants_);
    return reduce == whole ? made : expanded(g_, made, whole);
  }

  /// What was made of `x` belongs to the node it was made for.
  void note_parts(NodeRef made, NodeRef x, uint64_t origin) {
    SmallVector<NodeRef, 16> stack{made};
    while (!stack.empty()) {
      NodeRef n = stack.back();
      stack.pop_back();
      if (n == x || origins_.contains(n)) continue;
      if (computes(n)) origins_[n] = origin;
      for (NodeRef s : n->src())
        if (!is_index(s->dtype)) stack.push_back(s);
    }
  }

  Graph& g_;
  const Target& target_;
  const ConstantValues constants_;
  const NodeMap<uint64_t> given_;
  NodeMap<NodeRef> copies_;
  NodeMap<uint64_t> origins_;
  NodeMap<int> uses_;
  NodeMap<bool> in_place_, spread_;
  NodeMap<bool> inner_;
  NodeMap<bool> lands_;
  NodeMap<bool> nests_;
  std::vector<NodeRef> steps_;
  int64_t next_copy_ = 1;
};

using schedule::State;

/// What is decided so far: who writes which buffer from which, and how buffers lie in memory.
std::string describe(const Planner& plan) {
  std::string out;
  const auto say = [&](const char* what, const std::string& which) { (out += what) += which; };
  for (const KernelPlan& k : plan.kernels) {
    say("kernel of ", summary(k.root) + " over");
    for (NodeRef r : k.ranges) say(" ", expression(r));
    for (NodeRef n : k.reads) say("\n  reads ", std::to_string(plan.buffer_index(n)));
    for (const KernelOutput& o : k.outputs)
      say("\n  writes ", std::to_string(plan.buffer_index(o.node)));
    out += '\n';
  }
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    say("buffer ", std::to_string(i) + ": " + summary(plan.buffers[i].node));
    for (size_t axis : plan.buffers[i].order) say(" ", std::to_string(axis));
    out += '\n';
  }
  return out;
}

void import_outputs(State& s) {
  std::vector<NodeRef> roots;
  for (const ScheduleOutput& o : s.given) roots.push_back(o.value);
  const std::vector<NodeRef> copies = s.graph->import_all(roots);
  for (size_t i = 0; i < copies.size(); ++i) s.outputs.push_back({copies[i], s.given[i].into});
}

void block_rows(State& s) {
  if (!s.options.fuse) return;
  std::vector<NodeRef> values;
  for (const ScheduleOutput& o : s.outputs) values.push_back(o.value);
  values = by_row_blocks(*s.graph, values, s.target, s.options, s.origins);
  for (size_t i = 0; i < values.size(); ++i) s.outputs[i].value = values[i];
}

void prepare(State& s) {
  Preparer prepared(*s.graph, s.outputs, s.target, s.options.constants, std::move(s.origins));
  s.outputs = prepared.outputs(s.outputs);
  s.origins = prepared.take_origins();
  s.steps = prepared.take_steps();
}

void plan(State& s) {
  s.plan.emplace(*s.graph, s.outputs, std::move(s.origins), std::move(s.steps), s.target,
                 s.options);
  s.plan->run();
}

constexpr Pass<State> kPasses[] = {
    {"schedule.import", "the values are in a graph of the schedule's own", import_outputs},
    Pass<State>{"schedule.block_rows", "attention is computed one block of rows after the other",
                block_rows}
        .as_optional(),
    {"schedule.prepare",
     "outputs and updates have buffers; joins and long reductions are what kernels have", prepare},
    {"schedule.plan", "every value is fused into its readers or has a kernel and a buffer", plan},
    Pass<State>{"schedule.pad_operands", "masked products read copies with zeros around them",
                [](State& s) { pad_operands(*s.plan); }}
        .as_optional(),
    Pass<State>{"schedule.choose_layouts", "every buffer has an order of its axes",
                [](State& s) { choose_layouts(*s.plan); }}
        .as_optional(),
    Pass<State>{"schedule.pack_operands",
                "operands that no vector could run along are copied in order",
                [](State& s) { pack_operands(*s.plan); }}
        .as_optional(),
    {"schedule.build", "kernels as graphs, steps in a safe order",
     [](State& s) { s.made = build_schedule(*s.plan, s.graph); }},
};

}  // namespace

namespace schedule {

PassView State::view() const {
  if (!plan) {
    std::vector<NodeRef> roots;
    for (const ScheduleOutput& o : outputs) roots.push_back(o.value);
    return {static_cast<int64_t>(Toposort(roots).size()), hash_text(text())};
  }
  return {static_cast<int64_t>(made.graph ? made.kernels.size() : plan->kernels.size()),
          hash_text(text())};
}

std::string State::text() const {
  std::string out;
  if (!plan) {
    std::vector<NodeRef> roots;
    for (const ScheduleOutput& o : outputs) roots.push_back(o.value);
    return roots.empty() ? out : print_graph(roots);
  }
  for (const Kernel& k : made.kernels)
    append_format(out, "kernel {}\n{}", k.name, print_graph(k.sink));
  return made.graph ? out : describe(*plan);
}

StateParts State::parts() const {
  StateParts out;
  if (made.graph) {
    out.kind = StateParts::Kind::Kernels;
    for (const Kernel& k : made.kernels) out.nodes.push_back(k.sink), out.names.push_back(k.name);
    return out;
  }
  if (plan) return StateParts::text(describe(*plan));
  for (const ScheduleOutput& o : outputs) out.nodes.push_back(o.value);
  out.kind = StateParts::Kind::Graph;
  return out;
}

}  // namespace schedule

std::span<const Pass<schedule::State>> schedule_passes() { return kPasses; }

Schedule make_schedule(std::span<const ScheduleOutput> outputs, const Target& target,
                       const ScheduleOptions& options) {
  schedule::State state{outputs, target, options, std::make_shared<Graph>()};
  run_passes(schedule_passes(), state);
  return std::move(state.made);
}

}  // namespace weft
