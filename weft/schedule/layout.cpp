// The memory order of intermediates. A buffer only kernels see may lie in any order; the axis along
// which most of its readers can run with unit stride goes innermost. For batched training that
// makes the batch axis innermost everywhere, so products, windows and pools all vectorise over it
// without gathers.
#include <algorithm>
#include <cmath>

#include "weft/graph/index_algebra.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/tile_operands.h"

namespace weft {
namespace {

constexpr double kWorthIt =
    1.3;  // how much better than a later axis an axis must be to move inwards
constexpr double kAlongSum = 0.7;     // of a vector along an output axis: one along a reduced axis,
constexpr int64_t kFewVectors = 4;    // that share a number which all lanes take
constexpr int64_t kManyVectors = 16;  // beside which a remainder is little
constexpr double kWellFilled = 0.8;   // of the lanes of vectors along an axis
constexpr double kReadsToMove = 256;  // of an element of another operand, which is packed then
constexpr double kShifted = 0.75;     // and one along a window's, which starts anywhere in a line
constexpr double kLeastReads = 6;     // of an element of what may be put in order for vectors
constexpr double kStoredApart = 0.7;  // one whose lanes are results that do not lie side by side
constexpr double kRowsOfSum = 1.5;    // and one for all lanes, of a row that a sum walks along
constexpr double kWords = 2;          // and words of neighbours, which are one element then
constexpr double kGathered = 0.4;     // and one that gathers what lies as tiles made it

/// An axis divisible by this many elements vectorises without a remainder.
int64_t lanes_of(const Target& target) { return target.lanes(DType::F32); }

double divisibility(NodeRef dim, const Target& target) {
  // Vectors along a length overlap at its end, from one of them on.
  const bool overlap = dim->op != Op::Const && dim->vmin >= lanes_of(target);
  if (overlap || dim->vmax >= kManyVectors * lanes_of(target))
    return static_cast<double>(lanes_of(target));
  const int64_t n = dim->op == Op::Const ? dim->vmin : divisor_of(dim);
  if (n <= 0 || (n == 1 && dim->op != Op::Const)) return 0;
  return static_cast<double>(std::min(lanes_of(target), n & -n));
}

/// Of rows that a kernel sums and makes, the last vector overlaps the one before it: only what is
/// summed has a remainder (softmax of 800 x 250 with rows innermost 162 us, transposed 274).
double divisibility_of_rows(NodeRef dim, const Target& target) {
  return dim->vmin < lanes_of(target) ? divisibility(dim, target)
                                      : static_cast<double>(lanes_of(target));
}

/// The kernel's output range that `index` is, plus what moves a window or where a part begins (in
/// `shift`); null where there is none.
NodeRef shifted_range(Graph& g, NodeRef index, const KernelPlan& reader, Stride& shift) {
  for (NodeRef r : reader.ranges)
    if (r->op == Op::Range && split_stride(g, index, r, shift) && shift.coefficient == 1) return r;
  return nullptr;
}

/// Whether vectors along a reader's range would be stored one lane here, one there, where the order
/// of what it stores is given.
bool stores_apart(const Planner& plan, const KernelPlan& reader, NodeRef range) {
  return std::any_of(reader.outputs.begin(), reader.outputs.end(), [&](const KernelOutput& o) {
    const BufferPlan& b = plan.buffers[static_cast<size_t>(plan.buffer_index(o.node))];
    const Access& at = plan.uses.at(o.node)[static_cast<size_t>(o.use)].access;
    return b.row_major && step_along(plan, o.node, at, range) == Step::Far;
  });
}

/// Whether a reader puts neighbours along an axis together into words (schedule/matrix_units.cpp):
/// its places there are multiples of what a word holds, and a few on.
bool is_read_in_words(Graph& g, NodeRef index, DType dtype) {
  if ((bits(dtype) != 8 && bits(dtype) != 16) || index->op == Op::Const) return false;
  const int64_t elements = 32 / bits(dtype);
  return divisor_of(split_offset(g, index).rest) % elements == 0;
}

}  // namespace

bool depends_on(NodeRef n, NodeRef range) {
  if (n == range || n->op == Op::Const || n->op == Op::Range) return n == range;
  const Toposort nodes(n);
  return contains(nodes.nodes(), range);
}

int moving_axis(Graph& g, const Access& access, NodeRef range) {
  int axis = -1;
  for (size_t a = 0; a < access.index.size(); ++a) {
    if (!depends_on(access.index[a], range)) continue;
    Stride s;
    if (axis >= 0 || !split_stride(g, access.index[a], range, s) || s.coefficient != 1) return -1;
    axis = static_cast<int>(a);
  }
  return axis;
}

namespace {

/// Whether vectors along a range that walks `axis` of `n` panel by panel, as r / n and r % n, lie
/// in one.
bool walks_panels(NodeRef n, const Access& access, size_t axis, NodeRef range) {
  if (access.index.size() != n->rank()) return false;
  NodeRef index = access.index[axis];
  return index->op == Op::Mod && index->src(0) == range && index->src(1) == n->dim(axis);
}

}  // namespace

Step step_along(const Planner& plan, NodeRef n, const Access& access, NodeRef range) {
  if (std::none_of(access.index.begin(), access.index.end(),
                   [range](NodeRef i) { return depends_on(i, range); }))
    return Step::None;
  const BufferPlan& b = plan.buffers[static_cast<size_t>(plan.buffer_index(n))];
  size_t last = n->rank();
  while (last > 0 && is_int_const(n->dim(b.order.empty() ? last - 1 : b.order[last - 1]), 1))
    --last;
  if (last == 0) return Step::None;
  const size_t innermost = b.order.empty() ? last - 1 : b.order[last - 1];
  const bool unit = moving_axis(plan.g, access, range) == static_cast<int>(innermost) ||
                    walks_panels(n, access, innermost, range);
  return unit ? Step::Unit : Step::Far;
}

double step_bytes(const Planner& plan, const ProductOperand& o, std::span<const size_t> order,
                  NodeRef range) {
  const Access& access = plan.uses.at(o.node)[o.use].access;
  double step = 0, elements = bits(o.node->dtype) / 8.0;
  for (size_t i = order.size(); i-- > 0;) {
    Stride s{};
    if (split_stride(plan.g, access.index[order[i]], range, s))
      step += std::abs(static_cast<double>(s.coefficient)) * elements;
    elements *= static_cast<double>(o.node->dim(order[i])->vmax);
  }
  return step;
}

namespace {

/// Whether `access` moves by an element's rows with `outer` as it does by elements with `inner`, or
/// by neither.
bool walks_as_one(NodeRef n, const Access& access, NodeRef outer, NodeRef inner) {
  const std::span<const NodeRef> index = access.index;
  const auto moves = [&](NodeRef i) { return depends_on(i, outer) || depends_on(i, inner); };
  if (moves(access.valid)) return false;
  const auto last = std::ranges::find(index, inner);
  const auto moving = std::ranges::count_if(index, moves);
  if (last == index.end() || last == index.begin()) return moving == 0;
  const auto axis = static_cast<size_t>(last - index.begin());
  return moving == 2 && index[axis - 1] == outer && n->dim(axis) == inner->src(0);
}

}  // namespace

int64_t walked_as_one(const Planner& plan, const KernelPlan& kernel,
                      std::span<const ProductOperand> operands, NodeRef range) {
  int64_t size = range->src(0)->vmax;
  const auto follows = [&](NodeRef outer, NodeRef inner) {
    return std::ranges::all_of(operands,
                               [&](const ProductOperand& o) {
                                 return walks_as_one(o.node, plan.uses.at(o.node)[o.use].access,
                                                     outer, inner);
                               }) &&
           std::ranges::all_of(kernel.outputs, [&](const KernelOutput& o) {
             const Use& d = plan.uses.at(o.node)[static_cast<size_t>(o.use)];
             return walks_as_one(o.node, d.access, outer, inner);
           });
  };
  auto at = std::ranges::find(kernel.ranges, range);
  for (NodeRef inner = range; at != kernel.ranges.begin();) {
    NodeRef outer = *--at;
    if (outer->op != Op::Range) continue;
    if (inner->src(0)->op != Op::Const || !follows(outer, inner)) break;
    size *= outer->src(0)->vmax;
    inner = outer;
  }
  return size;
}

double filled_lanes(int64_t size, const Target& target) {
  const int64_t n = std::max<int64_t>(1, size);
  const int64_t widest = lanes_of(target);
  int64_t lanes = widest;
  while (lanes > n) lanes /= 2;
  const int64_t vectors = (n + lanes - 1) / lanes;
  return static_cast<double>(n) / static_cast<double>(vectors * widest);
}

namespace {

/// Iterations along which vectors may run with this range innermost. Only where results lie in a
/// given order: what lies as its readers want it, as between the layers of a network, has
/// channels innermost where rows are short, and needs no loop over all places (ResNet-50 forward,
/// batch 1: 29.5 ms, and 31.2 with one everywhere; MobileNetV2 3.9, and 4.7).
int64_t iterations_along(const Planner& plan, const KernelPlan& reader, NodeRef range,
                         std::span<const ProductOperand> operands) {
  const bool given = std::ranges::any_of(reader.outputs, [&](const KernelOutput& o) {
    return plan.buffers[static_cast<size_t>(plan.buffer_index(o.node))].row_major;
  });
  return given ? walked_as_one(plan, reader, operands, range) : range->src(0)->vmax;
}

bool fills_lanes(const Planner& plan, const Use& d, NodeRef range,
                 std::span<const ProductOperand> operands) {
  const KernelPlan& reader = plan.kernels[static_cast<size_t>(d.kernel)];
  return filled_lanes(iterations_along(plan, reader, range, operands), plan.target) >= kWellFilled;
}

}  // namespace

bool is_broadcast_along(const Planner& plan, NodeRef n, const Use& d, NodeRef range,
                        std::span<const ProductOperand> operands, double reads_to_move) {
  if (range->op != Op::Range || step_along(plan, n, d.access, range) != Step::None ||
      !fills_lanes(plan, d, range, operands))
    return false;
  bool along = false;
  for (const ProductOperand& o : operands) {
    const Use& of = plan.uses.at(o.node)[o.use];
    const Step step = step_along(plan, o.node, of.access, range);
    if (step == Step::Far && !plan.constants.contain(o.node) &&
        iterations(of.scope) < reads_to_move * largest_numel(o.node->shape->span()))
      return false;
    along = along || step != Step::None;
  }
  return along;
}

namespace {

/// Whether all lanes of vectors along `range` take one half of an operand.
bool takes_halves_singly(const Planner& plan, const ProductOperand& o, NodeRef range) {
  return is_half(o.node->dtype) &&
         step_along(plan, o.node, plan.uses.at(o.node)[o.use].access, range) == Step::None;
}

}  // namespace

double cost_of_widening(const Planner& plan, std::span<const ProductOperand> operands,
                        NodeRef range) {
  constexpr double kWidened = 2;  // cycles, or moves of an element
  const double lanes =
      std::min(static_cast<double>(range->vmax) + 1, static_cast<double>(lanes_of(plan.target)));
  double cost = 0;
  for (const ProductOperand& o : operands)
    if (takes_halves_singly(plan, o, range))
      cost += kWidened * iterations(plan.uses.at(o.node)[o.use].scope) / lanes;
  return cost;
}

namespace {

bool is_reordered(const Planner& plan, const KernelPlan& reader) {
  NodeRef result = reader.outputs.front().node;
  return !plan.buffers[static_cast<size_t>(plan.buffer_index(result))].order.empty();
}

/// The last range of more than one iteration.
NodeRef last_range(const KernelPlan& kernel) {
  const auto found = std::find_if(kernel.ranges.rbegin(), kernel.ranges.rend(),
                                  [](NodeRef r) { return r->op == Op::Range; });
  return found == kernel.ranges.rend() ? kernel.ranges.back() : *found;
}

/// The range along which a kernel's results lie side by side; their orders are chosen before those
/// of what they are made of.
NodeRef innermost_range(const Planner& plan, const KernelPlan& reader) {
  const KernelOutput& o = reader.outputs.front();
  const BufferPlan& b = plan.buffers[static_cast<size_t>(plan.buffer_index(o.node))];
  const Access& at = plan.uses.at(o.node)[static_cast<size_t>(o.use)].access;
  if (b.order.empty() || at.index.size() != o.node->rank()) return last_range(reader);
  NodeRef i = at.index[b.innermost()];
  return contains(reader.ranges, i) ? i : last_range(reader);
}

/// Whether the product that reads `n` can have vectors along an output axis in which `n` does not
/// vary: then it may lie in any order. The innermost one; where that is too short for vectors and
/// the result's order is given, lanes are stored apart whichever it is.
bool is_broadcast(const Planner& plan, NodeRef n, const Use& d,
                  std::span<const ProductOperand> operands) {
  const KernelPlan& reader = plan.kernels[static_cast<size_t>(d.kernel)];
  if (reader.ranges.empty() || !plan.in_reduce(d)) return false;
  NodeRef last = innermost_range(plan, reader);
  if (is_broadcast_along(plan, n, d, last, operands)) return true;
  if (last->op != Op::Range || fills_lanes(plan, d, last, operands)) return false;
  return std::any_of(reader.ranges.begin(), reader.ranges.end(), [&](NodeRef r) {
    return stores_apart(plan, reader, r) &&
           is_broadcast_along(plan, n, d, r, operands, kReadsToMove);
  });
}

/// 1, and less where vectors along a reader's range would be stored one lane here, one there, in
/// the order that was chosen for its results.
double stored_together(const Planner& plan, const KernelPlan& reader, NodeRef range) {
  return innermost_range(plan, reader) == range || !is_reordered(plan, reader) ? 1 : kStoredApart;
}

/// Whether vectors along an output axis would gather another operand, which lies as it was given
/// and is read too seldom to be put in order: keys along heads, where one query is multiplied by
/// each.
bool gathers_others(const Planner& plan, NodeRef n, NodeRef range,
                    std::span<const ProductOperand> operands) {
  return std::ranges::any_of(operands, [&](const ProductOperand& o) {
    const Use& d = plan.uses.at(o.node)[o.use];
    return o.node != n && plan.buffers[static_cast<size_t>(plan.buffer_index(o.node))].row_major &&
           !plan.constants.contain(o.node) &&
           step_along(plan, o.node, d.access, range) == Step::Far &&
           iterations(d.scope) < kLeastReads * largest_numel(o.node->shape->span());
  });
}

/// Whether vectors along so short an output axis would widen halves of another operand one by one.
bool widens_others(const Planner& plan, NodeRef n, NodeRef range,
                   std::span<const ProductOperand> operands) {
  return range->src(0)->vmax <= kFewVectors * lanes_of(plan.target) &&
         std::ranges::any_of(operands, [&](const ProductOperand& o) {
           return o.node != n && takes_halves_singly(plan, o, range);
         });
}

/// How many lanes a reader that indexes an axis like this fills along it; its length leaves `whole`
/// of them. Windows slide over padded images: with channels innermost every position would have a
/// line of its own, which pays only where what is made of it lies likewise.
double lanes_along(Planner& plan, NodeRef n, NodeRef index, NodeRef dim, double whole,
                   const Use& use, std::span<const ProductOperand> operands) {
  const KernelPlan& reader = plan.kernels[static_cast<size_t>(use.kernel)];
  if (index->op == Op::Range) {
    const bool padded = n->op == Op::Pad;
    if (!contains(reader.ranges, index)) return (padded ? 0 : kAlongSum) * whole;
    if ((padded || n->op == Op::Window) && stores_apart(plan, reader, index)) return 0;
    if (plan.in_reduce(use) &&
        (gathers_others(plan, n, index, operands) || widens_others(plan, n, index, operands)))
      return 0;
    const int64_t size = iterations_along(plan, reader, index, operands);
    const double each = size > dim->vmax ? filled_lanes(size, plan.target) : 0;
    return stored_together(plan, reader, index) *
           std::max(whole, each * static_cast<double>(lanes_of(plan.target)));
  }
  if (index->op != Op::Add) return 0;
  Stride shift;
  NodeRef r = shifted_range(plan.g, index, reader, shift);
  if (!r) return 0;
  // Rows that are copied with zeros around them are read once.
  const bool near = reader.root->op == Op::Pad ||
                    (shift.base->op == Op::Const && shift.base->vmin % lanes_of(plan.target) == 0);
  return (near ? 1 : kShifted) * stored_together(plan, reader, r) *
         static_cast<double>(lanes_of(plan.target)) * filled_lanes(r->src(0)->vmax, plan.target);
}

/// Whether a reader sums along this axis.
bool is_summed(const Planner& plan, const Use& d, size_t axis) {
  NodeRef i = d.access.index[axis];
  const auto& ranges = plan.kernels[static_cast<size_t>(d.kernel)].ranges;
  return i->op == Op::Range && !contains(ranges, i);
}

/// Whether the same kernel sums along this axis.
bool sums_rows(const Planner& plan, std::span<const Use* const> readers, const Use& d,
               size_t axis) {
  return std::ranges::any_of(
      readers, [&](const Use* o) { return o->kernel == d.kernel && is_summed(plan, *o, axis); });
}

/// What a reader's wish counts: one number of each row, as a loss reads logits, is nothing beside
/// all of them.
double part_read(NodeRef n, const Use& d) {
  return std::min(1.0, iterations(d.scope) / std::max(1.0, largest_numel(n->shape->span())));
}

/// How vectors along `range` of a kernel walk what a matrix unit's tiles made, which lies as they
/// make it: far along one such value if along any.
Step step_along_tiles(const Planner& plan, int kernel, NodeRef range,
                      const NodeMap<bool>& by_tiles) {
  Step found = Step::None;
  if (by_tiles.size() == 0 || range->op != Op::Range) return found;
  for (NodeRef n : plan.kernels[static_cast<size_t>(kernel)].reads) {
    if (!by_tiles.contains(n)) continue;
    for (const Use& d : plan.uses.at(n)) {
      if (d.kernel != kernel || !d.load) continue;
      const Step step = step_along(plan, n, d.access, range);
      if (step == Step::Far) return step;
      if (step == Step::Unit) found = step;
    }
  }
  return found;
}

/// What the kernel that makes `n` wishes for.
double lanes_of_maker(const Planner& plan, NodeRef n, size_t axis, const NodeMap<bool>& by_tiles) {
  const int* maker = plan.producer_of.find(n);
  if (!maker) return 0;
  for (const KernelOutput& o : plan.kernels[static_cast<size_t>(*maker)].outputs) {
    if (o.node != n) continue;
    const Access& at = plan.uses.at(n)[static_cast<size_t>(o.use)].access;
    if (at.index.size() == n->rank() &&
        step_along_tiles(plan, *maker, at.index[axis], by_tiles) == Step::Unit)
      return static_cast<double>(lanes_of(plan.target));
  }
  return 0;
}

/// The best innermost axis of a buffer, by its readers; the last axis when none is better.
size_t innermost_axis(Planner& plan, NodeRef n,
                      std::span<const std::vector<ProductOperand>> operands,
                      const NodeMap<bool>& by_tiles) {
  std::vector<const Use*> readers, anyhow;  // those that would have it in any order
  for (const Use& d : plan.uses.at(n)) {
    if (!d.load) continue;
    const bool any = is_broadcast(plan, n, d, operands[static_cast<size_t>(d.kernel)]);
    (any ? anyhow : readers).push_back(&d);
  }
  size_t best = n->rank() - 1;
  double best_score = -1;
  for (size_t a = n->rank(); a-- > 0;) {
    double score = lanes_of_maker(plan, n, a, by_tiles);
    for (const Use* d : anyhow)
      score += part_read(n, *d) * (is_summed(plan, *d, a) ? kRowsOfSum : 1) *
               static_cast<double>(lanes_of(plan.target));
    for (const Use* d : readers) {
      const double whole = sums_rows(plan, readers, *d, a)
                               ? divisibility_of_rows(n->dim(a), plan.target)
                               : divisibility(n->dim(a), plan.target);
      const double lanes = is_read_in_words(plan.g, d->access.index[a], n->dtype)
                               ? kWords * static_cast<double>(lanes_of(plan.target))
                               : lanes_along(plan, n, d->access.index[a], n->dim(a), whole, *d,
                                             operands[static_cast<size_t>(d->kernel)]);
      const bool gathers =
          step_along_tiles(plan, d->kernel, d->access.index[a], by_tiles) == Step::Far;
      score += part_read(n, *d) * lanes * (gathers ? kGathered : 1);
    }
    if (score > best_score * kWorthIt) {
      best = a;
      best_score = score;
    }
  }
  return best;
}

}  // namespace

bool Planner::is_row(NodeRef n, size_t axis) const {
  const int* index = buffer_of.find(n);
  if (!index) return false;
  const BufferPlan& b = buffers[static_cast<size_t>(*index)];
  bool inside = true, rows = false;
  for (size_t i = n->rank(); i-- > 0 && !b.row_major;) {
    const size_t a = b.order.empty() ? i : b.order[i];
    if (inside && a == axis)
      inside = false;
    else if (is_int_const(n->dim(a), 1))
      continue;
    else if (inside)
      return false;
    else
      rows = true;
  }
  return rows;
}

std::vector<std::vector<ProductOperand>> reduced_operands(const Planner& plan) {
  std::vector<std::vector<ProductOperand>> of(plan.kernels.size());
  for (const BufferPlan& b : plan.buffers) {
    const auto& wanted = plan.uses.at(b.node);
    for (size_t i = 0; i < wanted.size(); ++i)
      if (wanted[i].load && !wanted[i].packed && plan.in_reduce(wanted[i]) &&
          !plan.kernels[static_cast<size_t>(wanted[i].kernel)].sums_bytes)
        of[static_cast<size_t>(wanted[i].kernel)].push_back({b.node, i});
  }
  return of;
}

namespace {

/// Whether a matrix unit's tiles make `n` with the columns of an operand along its last axis: in
/// another order it would be made without them, where the other operand is not in words.
bool is_made_by_tiles(const Planner& plan, NodeRef n, std::span<const size_t> kernels,
                      std::span<const std::vector<ProductOperand>> operands) {
  const int* maker = plan.producer_of.find(n);
  if (!maker || std::ranges::find(kernels, static_cast<size_t>(*maker)) == kernels.end())
    return false;
  const auto k = static_cast<size_t>(*maker);
  NodeRef last = last_range(plan.kernels[k]);
  return std::ranges::any_of(operands[k], [&](const ProductOperand& o) {
    return step_along(plan, o.node, plan.uses.at(o.node)[o.use].access, last) == Step::Unit;
  });
}

/// What is widened once for few reads lies as it came: another order would be a transposition.
bool lies_as_it_came(const Planner& plan, NodeRef n) {
  if (!widens_half(n)) return false;
  double reads = 0;
  for (const Use& d : plan.uses.at(n))
    if (d.load) reads += iterations(d.scope);
  return reads < kLeastReads * largest_numel(n->shape->span());
}

}  // namespace

void choose_layouts(Planner& plan) {
  if (!plan.options.layouts) return;
  const std::vector<std::vector<ProductOperand>> operands = reduced_operands(plan);
  const std::vector<size_t> kernels = kernels_by_tiles(plan);
  NodeMap<bool> by_tiles;
  for (const BufferPlan& b : plan.buffers)
    if (b.node->rank() > 1 && is_made_by_tiles(plan, b.node, kernels, operands))
      by_tiles[b.node] = true;
  for (BufferPlan& b : plan.buffers) {
    NodeRef n = b.node;
    if (b.row_major || n->rank() < 2 || lies_as_it_came(plan, n)) continue;
    if (std::ranges::any_of(plan.uses.at(n), [&](const Use& d) {
          return d.load && plan.kernels[static_cast<size_t>(d.kernel)].sums_bytes;
        }))
      continue;
    if (by_tiles.contains(n)) continue;
    const size_t inner = innermost_axis(plan, n, operands, by_tiles);
    if (inner == n->rank() - 1) continue;
    for (size_t a = 0; a < n->rank(); ++a)
      if (a != inner) b.order.push_back(a);
    b.order.push_back(inner);
  }
}

}  // namespace weft
