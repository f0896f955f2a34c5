// Deciding, from the outputs towards the inputs, what is materialised. When a node is visited,
// every kernel that wants it and every access it is wanted at are known; it is then either computed
// there (fused) or given a buffer and a kernel (staged).
#include "weft/schedule/plan.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/index_algebra.h"
#include "weft/graph/loops.h"
#include "weft/graph/tuple.h"

namespace weft {

using namespace cycles;
namespace {

constexpr double kMinParallel = 8;   // outer iterations a kernel with hoisted reductions must keep
constexpr double kSmallWork = 4096;  // below this many elements parallelism does not matter
// Sizes of code, which take time to compile long before they take time to run.
constexpr int kMaxKernelSize = 2000;  // instructions, about: compilers and registers take no more
constexpr size_t kMostParts = 128;    // small parts of one buffer that one kernel writes
constexpr double kSmallPart = 64;     // elements of such a part

/// Axes of size 1 have the index 0 where others have a range.
double extent(NodeRef range) {
  if (range->op != Op::Range) return 1;
  return static_cast<double>(std::max<int64_t>(1, range->src(0)->vmax));
}
bool subset(std::span<const NodeRef> a, std::span<const NodeRef> b) {
  return std::all_of(a.begin(), a.end(), [b](NodeRef r) { return contains(b, r); });
}

}  // namespace

double iterations(std::span<const NodeRef> ranges) {
  double p = 1;
  for (NodeRef r : ranges) p *= extent(r);
  return p;
}

namespace {

/// What is read: not what is only assigned to, nor the views that say where.
NodeMap<bool> find_read(std::span<const NodeRef> order) {
  NodeMap<bool> places, read;
  for (NodeRef n : order)
    if (n->op == Op::Assign)
      for (NodeRef v = n->src(1); v != n->src(0); v = v->src(0)) places[v] = true;
  if (places.size() == 0) return read;
  for (size_t i = order.size(); i-- > 0;) {
    NodeRef n = order[i];
    if (places.contains(n) && !read.contains(n)) continue;
    for (NodeRef x : n->src().subspan(n->op == Op::Assign ? 2 : 0)) read[x] = true;
  }
  return read;
}

}  // namespace

Demands find_demands(std::span<const NodeRef> order, std::span<const NodeRef> outputs) {
  Demands found;
  for (NodeRef n : outputs) found.whole[n] = true;
  for (size_t i = order.size(); i-- > 0;) {
    NodeRef n = order[i];
    const bool updates = n->op == Op::Assign || n->op == Op::Scatter || n->op == Op::CumCount;
    if (updates) found.update[n->src(0)] = n;
    // Between devices whole buffers are copied.
    if (updates || crosses_devices(n)) found.whole[n->src(0)] = true;
    if (is_step(n))
      for (NodeRef x : n->src().first(evaluated_sources(n))) found.whole[x] = true;
  }
  found.read = find_read(order);
  return found;
}

Planner::Planner(Graph& graph, std::vector<ScheduleOutput> wanted, NodeMap<uint64_t> given,
                 std::vector<NodeRef> steps, const Target& machine, const ScheduleOptions& opts)
    : g(graph),
      outputs(std::move(wanted)),
      origins(std::move(given)),
      given_steps(std::move(steps)),
      target(machine),
      options(opts),
      constants(opts.constants) {}

bool is_size_of_round(NodeRef size) {
  if (size->op == Op::Const) return false;
  const std::string places[] = {place_name(kBlocksLevel), place_name(kInnerBlocksLevel)};
  const Toposort nodes(size);
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeRef n) {
    return n->op == Op::Variable && std::ranges::find(places, n->text()) != std::end(places);
  });
}

NodeRef Planner::room_along(NodeRef n, size_t axis) {
  NodeRef d = n->dim(axis);
  if (d->op == Op::Const) return d;
  // What a round makes for itself is small, and steps through it that are numbers are fast.
  const bool own = options.in_rounds && n->op != Op::Param && n->op != Op::Assign;
  if (own || is_size_of_round(d)) return g.index(d->vmax);
  return is_row(n, axis) ? g.index(d->vmax) : d;
}

NodeRef Planner::size_of(NodeRef n) {
  NodeRef size = g.index(1);
  for (size_t a = 0; a < n->rank(); ++a) size = g.mul(size, room_along(n, a));
  const int* index = buffer_of.find(n);
  if (!index || buffers[static_cast<size_t>(*index)].gap == 0) return size;
  const BufferPlan& b = buffers[static_cast<size_t>(*index)];
  NodeRef row = room_along(n, b.innermost());
  return g.mul(g.idiv(size, row), g.add(row, g.index(b.gap)));
}

NodeRef Planner::param_of(NodeRef n) {
  const NodeRef src[] = {size_of(n)};
  return g.param(buffer_index(n), n->dtype, src);
}

void Planner::run() {
  std::vector<NodeRef> roots;
  for (const ScheduleOutput& o : outputs) roots.push_back(o.value);
  const Toposort sorted(roots);
  order.assign(sorted.begin(), sorted.end());
  uses.reserve(order.size());
  for (NodeRef n : order) uses[n];
  NodeMap<bool> are_outputs;
  for (NodeRef n : roots) are_outputs[n] = true;
  estimates_ = estimate(order, are_outputs, target);
  demands_ = find_demands(order, roots);
  for (size_t i = order.size(); i-- > 0;) visit(order[i]);
}

// ---- one node

void Planner::visit(NodeRef n) {
  std::vector<Use>& wanted = uses[n];
  const bool root = demands_.whole.contains(n);
  if (n->dtype == DType::Index && !root && wanted.empty()) return;
  if (n->op == Op::Param) {
    if (is_inner_param(n)) return;
    place_buffer(n);
    for (Use& d : wanted) {
      d.load = true;
      read(d.kernel, n);
    }
    return;
  }
  if (wanted.empty() && !root) return;
  const Verdict verdict = decide(n, wanted);
  if (options.explain) decisions.push_back({n, verdict.stage, verdict.reason, origin(n)});
  if (verdict.stage) return stage(n, wanted);
  leave_buffer(n, wanted);
  if (n->op == Op::CumCount) producer_of[n] = wanted[0].kernel;  // of what it counts in
  for (size_t i = 0; i < wanted.size(); ++i) push_sources(n, i);
}

Planner::Verdict Planner::decide(NodeRef n, std::vector<Use>& wanted) {
  if (demands_.whole.contains(n)) return {true, "asked for"};
  if (n->op == Op::CumCount && counts_on_the_way(n, wanted))
    return {false, "counted where elements are placed"};
  if (always_staged(n)) return {true, "a boundary by its meaning"};
  if (is_far(n, wanted)) return {true, "reading it costs less than the index it is wanted at"};
  if (is_tuple(n->op)) return {false, "each of its results decides"};
  if (n->op == Op::Get || n->op == Op::Reduce) return decide_reduce(n, wanted);
  if (n->op == Op::Pad && worth_padding(n, wanted)) return {true, "padded once, not at every read"};
  if (!pieces_.contains(n) && worth_thinning(n, wanted))
    return {true, "a product reads every other element often"};
  if (is_view(n->op) && n->op != Op::Gather) return {false, "a view"};
  if (n->dtype == DType::Index) return {false, "an index expression"};
  if (n->nsrc == 0 || n->op == Op::Iota) return {false, "computed from nothing"};
  return decide_elementwise(n, wanted);
}

/// Elements with gaps between, as a stride leaves them: side by side, the axes of small images are
/// one, and lines hold nothing else.
bool Planner::worth_thinning(NodeRef n, const std::vector<Use>& wanted) const {
  constexpr double kReads = 256;  // of an element, by products: some five moves (pack_operands.cpp)
  const bool thin = n->op == Op::Shrink
                        ? std::ranges::any_of(n->ints(), [](int64_t step) { return step > 1; })
                        : n->op == Op::Window && n->int_arg(1) == 1 && n->int_arg(2) > 1;
  if (!thin || !is_static(n) || !options.fuse || !options.layouts) return false;
  double total = 0;
  for (const Use& d : wanted)
    if (in_reduce(d)) total += evaluations(d);
  return total >= kReads * largest_numel(n->shape->span());
}

/// Whether its kernels load `n`, or what it is a piece of, as words (optimize/read_words.h): they
/// have no other use for that memory, and do not walk across it with vectors.
bool Planner::reads_words(NodeRef n, const std::vector<Use>& wanted) {
  if (pieces_.contains(n)) return true;
  if (!target.machine_code || !may_be_word(n)) return false;
  const Element first = word_in_memory(g, n);
  if (!first.memory) return false;
  const auto* others = uses.find(first.memory);
  const bool aligned = n->dtype == DType::U32 && is_aligned(first, n->dtype);
  if (std::ranges::any_of(wanted, [&](const Use& d) {
        const auto& ranges = kernels[static_cast<size_t>(d.kernel)].ranges;
        // A sum takes words from anywhere, but tiles columns as they are copied.
        if (d.scope.size() > ranges.size() && !is_column_of_tiles(*this, n, d)) return false;
        return !aligned || (others && is_wanted_by(*others, d.kernel)) || ranges.empty() ||
               !used_ranges(d.access.index, {&ranges.back(), 1}).empty();
      }))
    return false;
  for (std::vector<NodeRef> open{n}; !open.empty();) {
    NodeRef piece = open.back();
    open.pop_back();
    pieces_[piece] = true;
    for (NodeRef s : piece->src())
      if (is_alu(s->op) || is_view(s->op)) open.push_back(s);
  }
  return true;
}

Planner::Verdict Planner::decide_elementwise(NodeRef n, const std::vector<Use>& wanted) {
  if (reads_words(n, wanted)) return {false, "words that lie in memory"};
  note_coded(n, wanted);
  if (coded_.contains(n)) return {false, "a sum of bytes, for whose rows it is decoded once"};
  const double numel = largest_numel(n->shape->span());
  const double work = estimates_.work.at(n);
  double total = 0;
  for (const Use& d : wanted) total += evaluations(d);
  if (!options.fuse && n->rank() > 0) return {true, "fusion is off"};
  for (const Use& d : wanted)
    if (kernels[static_cast<size_t>(d.kernel)].size > kMaxKernelSize)
      return {true, "its consumer is a large kernel already"};
  for (const Use& d : wanted)
    if (!has_room(n, d.kernel)) return {true, "its consumer takes no more buffers"};
  if (work <= 2 * kOp && estimates_.full.find(n) && !estimates_.full.at(n))
    return {false, "cheap, and larger than what it is made of"};
  if (wanted.size() == 1 && total <= numel * 1.01) return {false, "used once"};
  if (is_decoded_in_registers(n, wanted, total)) return {false, "the rows of a tile share it"};
  if (gathers_halves(n, wanted, total)) return {true, "vectors would gather halves"};
  if (is_widened(n, wanted, total)) return {false, "the rows of a tile share what is widened"};
  if (widens_singly(n, wanted, total)) return {true, "halves are widened in vectors"};
  if (is_taken_apart(n, total)) return {false, "the bytes of a word share it"};
  if (is_wanted_all_over(wanted)) return {true, "wanted at many places of one kernel"};
  if (is_read_to_its_border(n, wanted)) return {true, "a copy with zeros around it needs no masks"};
  if (finishes_reduction(n)) return {true, "stored in the place of the reduction it finishes"};
  const double fuse_cost = total * work;
  const double beyond = stays_in_l3(n, wanted) ? 1 : kBeyondL3;
  double moves = numel * kStore * beyond;
  for (const Use& d : wanted) {
    const double reads = evaluations(d);
    moves += kLoad * (reads + std::min(reads, numel) * (beyond - 1));
  }
  const double stage_cost = kLaunch + numel * work + moves;
  if (fuse_cost <= stage_cost) return {false, "cheaper to compute again than to store"};
  return {true, "used often enough to store"};
}

/// Whether it would be there still for the last of those who want it: what other buffers hold that
/// are used between the first and the last of them comes through the cache, too.
bool Planner::stays_in_l3(NodeRef n, const std::vector<Use>& wanted) const {
  double first = 0, last = placed_;
  for (const Use& d : wanted) {
    const double behind = kernels[static_cast<size_t>(d.kernel)].behind;
    first = std::max(first, behind), last = std::min(last, behind);
  }
  const double bytes = largest_numel(n->shape->span()) * bits(n->dtype) / 8;
  return std::max(bytes, first - last) <= static_cast<double>(target.machine.l3().bytes);
}

Planner::Verdict Planner::decide_reduce(NodeRef n, const std::vector<Use>& wanted) {
  NodeRef reduce = n->op == Op::Get ? n->src(0) : n;
  if (wanted.size() != 1) return {true, "a reduction with several uses"};
  if (coded_.contains(n)) return {false, "a sum of bytes inside of a sum of such"};
  if (!options.fuse) return {true, "fusion is off"};
  const Use& d = wanted[0];
  if (!has_room(reduce->src(0), d.kernel)) return {true, "its consumer takes no more buffers"};
  if (kernels[static_cast<size_t>(d.kernel)].parts.size() > 1)
    return {true, "its consumer writes many parts"};
  const double numel = largest_numel(n->shape->span());
  const double evaluated = iterations(d.scope);
  const bool light = !estimates_.heavy.at(reduce);
  if (is_sum(n) && d.linear_in == static_cast<int>(Fold::Add) && merging_pays(n, evaluated) &&
      merging_keeps_digits(n, d))
    return {false, "a sum of sums is one sum"};
  if (evaluated <= numel && !in_reduce(d))
    return crowds(reduce, d) ? Verdict{true, "its consumer's registers hold another product's sums"}
                             : Verdict{false, "its only consumer finishes it"};
  const double body = largest_numel(reduce->src(0)->shape->span());
  if (light && evaluated <= numel &&
      (iterations(kernels[static_cast<size_t>(d.kernel)].ranges) >= kMinParallel ||
       body <= kSmallWork))
    return {false, "a short reduction inside another"};
  if (is_small_beside(reduce, d))
    return {true, "a small reduction, whose consumer's loops keep their order"};
  if (light && try_hoist(reduce, d)) return {false, "computed once outside the inner loops"};
  return {true, "a reduction"};
}

bool Planner::in_reduce(const Use& d) const {
  const std::vector<NodeRef>& own = kernels[static_cast<size_t>(d.kernel)].ranges;
  return std::any_of(d.scope.begin(), d.scope.end(),
                     [&own](NodeRef r) { return !contains(own, r); });
}

/// How often a value wanted like this is computed, given that invariant code moves out of loops.
double Planner::evaluations(const Use& d) const {
  const KernelPlan& k = kernels[static_cast<size_t>(d.kernel)];
  std::vector<NodeRef> nest;
  for (const auto& set : k.hoisted)
    for (NodeRef r : set)
      if (!contains(nest, r) && contains(d.scope, r)) nest.push_back(r);
  for (NodeRef r : d.scope)
    if (!contains(nest, r)) nest.push_back(r);
  const std::vector<NodeRef> used = used_ranges(d.access.index, d.scope);
  NodeRef last_used = nullptr;
  double total = 1, at_last_used = 1, around_it = 1;
  for (NodeRef r : nest) {
    const double around = total;
    total *= extent(r);
    if (contains(used, r)) last_used = r, at_last_used = total, around_it = around;
  }
  if (last_used == nullptr) return 1;
  const auto steps = static_cast<double>(steady_steps(d.access.index, last_used));
  return std::max(around_it, at_last_used / steps);
}

/// The loops around a reduction that is wanted like this, and the mask of what is inside of it.
/// Where its index stays inside the array anyway, a mask that varies in more loops than the index
/// is for who wanted it: inside, it would have the reduction computed again in each of them.
Planner::Surroundings Planner::surroundings(NodeRef reduce, const Use& d) const {
  Surroundings around{used_ranges(d.access.index, d.scope), d.access.valid};
  if (is_int_const(around.valid, 1)) return around;
  const std::vector<NodeRef> masking = used_ranges({&around.valid, 1}, d.scope);
  if (subset(masking, around.ranges)) return around;
  bool inside = true;
  for (size_t a = 0; a < d.access.index.size(); ++a) {
    NodeRef i = d.access.index[a];
    inside = inside && i->vmin >= 0 && i->vmax < reduce->dim(a)->vmin;
  }
  if (inside) return {std::move(around.ranges), nullptr};
  for (NodeRef r : masking)
    if (!contains(around.ranges, r)) around.ranges.push_back(r);
  return around;
}

/// A reduction may be computed outside the loops it does not depend on when those can be innermost
/// in its kernel.
bool Planner::can_hoist(NodeRef reduce, const Use& d, std::vector<NodeRef>& used) const {
  const KernelPlan& k = kernels[static_cast<size_t>(d.kernel)];
  if (k.root->op == Op::Assign || k.root->op == Op::Scatter) return false;
  used = surroundings(reduce, d).ranges;
  if (!subset(used, k.ranges)) return false;
  if (iterations(used) < kMinParallel && iterations(d.scope) > kSmallWork) return false;
  return std::all_of(k.hoisted.begin(), k.hoisted.end(),
                     [&used](const auto& set) { return subset(set, used) || subset(used, set); });
}

bool Planner::try_hoist(NodeRef reduce, const Use& d) {
  std::vector<NodeRef> used;
  if (!can_hoist(reduce, d, used)) return false;
  auto& sets = kernels[static_cast<size_t>(d.kernel)].hoisted;
  const auto smaller = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  sets.insert(std::upper_bound(sets.begin(), sets.end(), used, smaller), used);
  return true;
}

/// A running fold's own ranges, in their order, lie inside of all others.
void Planner::run_innermost(KernelPlan& k, std::span<const NodeRef> own) {
  std::vector<NodeRef> around;
  for (NodeRef r : k.ranges)
    if (r->op == Op::Range && !contains(own, r)) around.push_back(r);
  for (NodeRef r : own) {
    k.hoisted.push_back(around);
    around.push_back(r);
  }
}

// ---- staging

void Planner::place_buffer(NodeRef n) {
  if (buffer_of.contains(n)) return;
  BufferPlan b;
  b.node = n;
  b.row_major = n->op == Op::Param || demands_.whole.contains(n) || n->op == Op::Assign ||
                n->op == Op::Scatter || n->op == Op::Copy || n->op == Op::Contiguous ||
                is_step_result(n);
  if (n->op == Op::Param) b.input = static_cast<int>(param_slot(n));
  buffer_of[n] = static_cast<int>(buffers.size());
  buffers.push_back(b);
  placed_ += largest_numel(n->shape->span()) * bits(n->dtype) / 8;
}

void Planner::read(int kernel, NodeRef n) {
  KernelPlan& k = kernels[static_cast<size_t>(kernel)];
  if (contains(k.reads, n)) return;
  k.reads.push_back(n);
  if (const int* producer = producer_of.find(n)) k.after.push_back(*producer);
}

bool Planner::depends(int kernel, int on) const {
  std::vector<int> stack{kernel};
  std::vector<bool> seen(kernels.size());
  while (!stack.empty()) {
    const int k = stack.back();
    stack.pop_back();
    if (k == on) return true;
    if (seen[static_cast<size_t>(k)]) continue;
    seen[static_cast<size_t>(k)] = true;
    for (int a : kernels[static_cast<size_t>(k)].after) stack.push_back(a);
  }
  return false;
}

/// Whether a kernel that assigns may have to come after others. Where only the schedule's results
/// go, as to the stacks of a repeated body, nobody reads what was there before. (Of what is joined
/// in a buffer of the schedule's own, blocks of factorisations above all, parts that compute for
/// others would be a kernel each.)
bool Planner::overwrites(NodeRef assign) const {
  NodeRef base = assign;
  while (base->op == Op::Assign) base = base->src(0);
  return base->op != Op::Param || demands_.read.contains(base);
}

/// Whether the kernel of wanted[host] may compute `n` for itself and store it for everyone else.
bool Planner::can_host(NodeRef n, const std::vector<Use>& wanted, size_t host) const {
  const Use& d = wanted[host];
  const KernelPlan& k = kernels[static_cast<size_t>(d.kernel)];
  if (k.root->op == Op::Scatter || k.root->op == Op::Copy || k.root->op == Op::Scan ||
      is_step(k.root) || (k.root->op == Op::Assign && overwrites(k.root)))
    return false;
  if (k.size > kMaxKernelSize || !is_int_const(d.access.valid, 1)) return false;
  if (k.buffers >= target.most_buffers || !has_room(n, d.kernel)) return false;
  std::vector<NodeRef> used;
  for (size_t a = 0; a < n->rank(); ++a) {
    NodeRef i = d.access.index[a];
    if (is_int_const(n->dim(a), 1) && is_int_const(i, 0)) continue;
    if (i->op != Op::Range || i->src(0) != n->dim(a) || !contains(k.ranges, i) || contains(used, i))
      return false;
    used.push_back(i);
  }
  // A kernel that may have nothing to do does nothing for others either.
  for (NodeRef r : k.ranges)
    if (r->op == Op::Range && r->src(0)->vmin <= 0 && !contains(used, r)) return false;
  NodeRef reduce = n->op == Op::Get ? n->src(0) : n;
  if (is_reduction(reduce)) {
    const bool light = !estimates_.heavy.at(reduce);
    const bool once = iterations(d.scope) <= largest_numel(n->shape->span()) && !in_reduce(d);
    if (!once && !(light && can_hoist(reduce, d, used))) return false;
    if (!once && is_small_beside(reduce, d)) return false;
    if (once && crowds(reduce, d)) return false;
  } else if (evaluations(d) > largest_numel(n->shape->span()) * 1.01) {
    return false;
  }
  for (size_t i = 0; i < wanted.size(); ++i)
    if (i != host && depends(d.kernel, wanted[i].kernel)) return false;
  return true;
}

int Planner::new_kernel(NodeRef root, std::span<const NodeRef> dims) {
  KernelPlan k;
  k.root = root;
  k.behind = placed_;
  for (NodeRef d : dims) {
    const bool one = is_int_const(d, 1);
    k.ranges.push_back(one ? g.index(0) : g.range(d, k.next_range));
    if (!one) ++k.next_range;
  }
  kernels.push_back(std::move(k));
  return static_cast<int>(kernels.size()) - 1;
}

/// A new kernel, except that all results of one tuple share theirs. Over `sizes`, or all of it.
int Planner::kernel_for(NodeRef n, std::span<const NodeRef> sizes) {
  if (!sizes.empty()) return new_kernel(n, sizes);
  switch (n->op) {
    case Op::Assign: return kernel_for_part(n);
    case Op::Scatter: {
      NodeRef counted = counted_places(n);
      return new_kernel(n, (counted ? counted : n->src(2))->shape->span());
    }
    case Op::Get: break;
    default: return new_kernel(n, n->shape->span());
  }
  if (const int* shared = loop_kernel_.find(n->src(0))) return *shared;
  if (is_step(n->src(0))) return loop_kernel_.set(n->src(0), new_kernel(n->src(0), {}));
  return loop_kernel_.set(n->src(0), new_kernel(n, n->shape->span()));
}

/// Whether a part is to be written by the kernel of others: a small one, or one of few that have
/// much in common, of what is made there and not changed, or copied into what is new.
bool Planner::joins_parts(NodeRef assign, const KernelPlan& k) const {
  if (largest_numel(assign->src(1)->shape->span()) <= kSmallPart)
    return k.parts.size() < kMostParts;
  std::vector<NodeRef> values{assign->src(2)};
  for (const KernelOutput& o : k.outputs)
    if (o.node->op == Op::Assign) values.push_back(o.node->src(2));
  return (fills_by_copies(assign, values) || !overwrites(assign)) && share_a_kernel(values);
}

/// Parts of one buffer, written one after the other, share a kernel where none is written twice:
/// small ones, and few that have much in common. Only the next part's view has `assign` as its
/// base, and nobody else reads it.
int Planner::kernel_for_part(NodeRef assign) {
  NodeRef view = assign->src(1);
  const NodeRef* next = demands_.update.find(assign);
  if (next && uses.at(assign).empty()) {
    const int shared = producer_of.at(*next);
    KernelPlan& k = kernels[static_cast<size_t>(shared)];
    const bool fits = k.root->op == Op::Assign && k.root->src(1)->shape == view->shape &&
                      joins_parts(assign, k) && k.size <= kMaxKernelSize &&
                      has_room(assign, shared);
    if (fits) {
      NodeRef place = place_of_part(assign, k);
      if (std::ranges::all_of(k.parts, [&](NodeRef p) { return never_meet(p, place); })) {
        k.parts.push_back(place);
        return shared;
      }
    }
  }
  const int k = new_kernel(assign, view->shape->span());
  KernelPlan& made = kernels[static_cast<size_t>(k)];
  made.parts.push_back(place_of_part(assign, made));
  return k;
}

NodeRef Planner::place_of_part(NodeRef assign, const KernelPlan& kernel) const {
  const Access at = written_access(g, assign, {kernel.ranges, g.boolean(true)});
  return flatten_index(g, at.index, assign->shape->span());
}

/// The whole of a value, for a step that takes or makes whole buffers.
Access Planner::first_access(NodeRef n) {
  return {std::vector<NodeRef>(n->rank(), g.index(0)), g.boolean(true)};
}

void Planner::stage(NodeRef n, std::vector<Use>& wanted, std::span<const NodeRef> sizes) {
  place_buffer(n);
  if (is_unwritten(n)) return;
  const bool hostable = !always_staged(n) && n->op != Op::Get && options.fuse;
  size_t host = wanted.size();
  for (size_t i = 0; i < wanted.size() && hostable && host == wanted.size(); ++i)
    if (can_host(n, wanted, i)) host = i;
  if (host < wanted.size()) {
    if (is_reduction(n) && iterations(wanted[host].scope) > largest_numel(n->shape->span()))
      try_hoist(n, wanted[host]);
    producer_of[n] = wanted[host].kernel;
  } else {
    const int k = kernel_for(n, sizes);
    const KernelPlan& plan = kernels[static_cast<size_t>(k)];
    Use d{.kernel = k, .access = {plan.ranges, g.boolean(true)}};
    if (is_step(plan.root)) d.access = first_access(n);
    if (n->op == Op::Scatter) d.access = placed_access(n, plan);
    for (NodeRef r : plan.ranges)
      if (r->op == Op::Range) d.scope.push_back(r);
    wanted.push_back(std::move(d));
    producer_of[n] = k;
    ++kernels[static_cast<size_t>(k)].buffers;
  }
  const int producer = producer_of.at(n);
  // Known now, so that no kernel that reads the update comes to produce what the update is made of.
  if (const NodeRef* update = demands_.update.find(n))
    kernels[static_cast<size_t>(producer_of.at(*update))].after.push_back(producer);
  kernels[static_cast<size_t>(producer)].outputs.push_back({n, static_cast<int>(host)});
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i == host) continue;
    wanted[i].load = true;
    read(wanted[i].kernel, n);
  }
  push_sources(n, host);
}

void Planner::stop_reading(int kernel, NodeRef n) {
  const std::vector<Use>& wanted = uses.at(n);
  const bool still = std::any_of(wanted.begin(), wanted.end(), [kernel](const Use& d) {
    return d.kernel == kernel && d.load && !d.packed;
  });
  if (!still) std::erase(kernels[static_cast<size_t>(kernel)].reads, n);
}

void Planner::stage_copy(NodeRef copy, uint64_t origin, const char* reason,
                         std::span<const NodeRef> sizes) {
  origins[copy] = origin;
  stage(copy, uses[copy], sizes);
  NodeRef from = copy->src(0);
  for (; !buffer_of.contains(from); from = from->src(0)) push_sources(from, uses[from].size() - 1);
  uses[from].back().load = true;
  read(uses[from].back().kernel, from);
  if (options.explain) decisions.push_back({copy, true, reason, origin});
}

}  // namespace weft
