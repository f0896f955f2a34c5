// Copies of product operands in another memory order. A product wants vectors along one of its
// output axes; an operand that lies otherwise would be gathered element by element, for every tile
// again. Where all others lie well along an axis and an operand is read often enough, its elements
// are put in order once, in a kernel of their own: convolution weights, mostly.
#include <algorithm>

#include "weft/graph/index_algebra.h"
#include "weft/schedule/operand_blocks.h"
#include "weft/schedule/plan.h"
#include "weft/schedule/tile_operands.h"

namespace weft {
namespace {

// Evaluations per element from which on a copy costs less than gathers, and where transposes in
// registers make the copy. Of rows of 7, which fill no vectors, depthwise 3 x 3 reads each element
// nine times (960 channels, batch 32, one core of Zen 4: image's gradient 9.1 -> 1.6 ms, weight's
// 7.3 -> 2.4); steps of 2, which read it 2.25 times, would lose as much as half.
constexpr double kReuse = 16, kReuseTurned = 6;
// And less than vectors along the sum would, or along one that is done before its lanes are added.
constexpr double kReuseOfSum = 64, kShortSum = 64;
// A constant's copy costs memory alone. Read once, both ways take as long as its bytes (5 %).
constexpr double kReuseOfConstant = 2;
// Of halves: fewer rows wait for memory either way, and each kind of a language model's steps would
// have a copy of the whole model (1.1 B in F16, 2 and 4 rows: 4 GB, and a third less speed).
constexpr double kReuseOfHalves = 7;
// Beside rows of a tile that are too long for L1 it costs that much for each of its elements: x of
// 64 rows of 3072 by 768 of them takes 1.2 times as long as with x in the other order.
constexpr double kBesideLongRows = 0.15, kRowsOfTile = 12;
// Sums along rows that are so long read more of them from L2 for each product, however they are
// tiled (64 x 256 over 3136: 800 us, and 570 with a copy of 64 rows in the other order).
constexpr double kAlongRows = 0.014;
constexpr int64_t kShortest = 8;  // output axis worth a vector
// In moves of an element: what is left to add up across a vector where sums run along one
// (measured: 4 ns an output, whatever its length), a kernel more, and an element of what is more
// than this many times L2.
constexpr double kAcrossVector = 8, kKernel = 5000, kTimesL2 = 2, kUncached = 3;
// How many times as much a copy costs that L3 does not hold (1024 x 768 by 50257: 10 ms for one of
// 154 MB, and the product takes 392 to 417 ms with it, 366 to 417 with results stored apart).
constexpr double kBeyondL3 = 2;
// A sum that walks down rows takes each vector from another page, which nothing fetches ahead; in
// panels one vector follows the other. How often elements have to be read for that, where L2 does
// not hold what is walked, and where it is a large part of it: 256 x 1024 x 1024 gains 2.4 times,
// 2048 cubed 1.8, 512 cubed 1.08, while 384 cubed loses 3 % and 16 x 1024 x 1024 a quarter.
constexpr double kReusePanels = 32, kReusePanelsInL2 = 512, kPartOfL2 = 1.0 / 2;
// Rows a multiple of this part of an L1 way apart share few places of all caches: without panels,
// products of 1024, 1280, 1536 and 2048 reach 1.15, 1.13, 1.18 and 1.3 times as much with a line
// between rows. How often elements have to be read for that: moving one costs as much as 15
// products in full vectors.
constexpr int64_t kPartOfWay = 4;
constexpr double kReuseDownRows = 512;
// The few rows of a tile, read along, gain 4 % (2048) and 18 % (4096), but lose 10 % at 1024.
constexpr double kReuseAlongRows = 2048, kPartOfL3 = 1.0 / 4;
constexpr double kPartOfL1 = 2.0 / 3;  // that a tile's lines of one operand may fill
constexpr int64_t kLeastPanel = 8;
constexpr double kProduct = 0.02;  // one multiplication and addition in full vectors
constexpr double kMoved = 0.75;    // an element moved by transposes in registers
// A result stored for itself instead of with its neighbours; and where all lanes' places share a
// set of L1, which holds fewer lines (512 x 3072 results: 3.2 ns each, 512 x 1536 of them 0.4).
constexpr double kFarStore = 1, kFarStoreOfOneSet = 6;

class OperandPacking {
 public:
  explicit OperandPacking(Planner& plan)
      : plan_(plan), loads_(operands_to_order(plan)), vectors_(loads_.size(), nullptr) {
    for (const auto& loads : loads_)
      for (const ProductOperand& o : loads) parts_[o.node] += part_read(o);
  }

  void run() {
    for (size_t k = 0; k < loads_.size(); ++k)
      if (loads_[k].size() >= 2) improve(k);
    put_in_tiles();
    // Items that compute with scalars are a GPU's: tiles go through registers or local memory.
    for (size_t k = 0; plan_.target.vector_bits > 0 && k < loads_.size(); ++k)
      if (loads_[k].size() >= 2) spread(k);
    insert_in_order();
  }

 private:
  struct Choice {
    NodeRef range = nullptr;
    std::vector<ProductOperand> moved = {};
    double elements = 0, bytes = 0, cost = 0;  // of what is moved, and of all
  };

  const Use& use(const ProductOperand& o) const { return plan_.uses.at(o.node)[o.use]; }

  static double bytes(NodeRef n) { return largest_numel(n->shape->span()) * bits(n->dtype) / 8; }

  BufferPlan& buffer(NodeRef n) const {
    return plan_.buffers[static_cast<size_t>(plan_.buffer_index(n))];
  }

  double part_read(const ProductOperand& o) const {
    double part = 1;
    for (size_t a = 0; a < o.node->rank(); ++a) {
      NodeRef i = use(o).access.index[a];
      const auto dim = static_cast<double>(o.node->dim(a)->vmax);
      part *= std::min(1.0, (static_cast<double>(i->vmax - i->vmin) + 1) / std::max(1.0, dim));
    }
    return part;
  }

  /// Whether its elements are moved once for many runs, into whole panels along `range`: what is
  /// read down long rows instead takes longer than sums along them.
  bool is_free(const ProductOperand& o, NodeRef range) const {
    if (!is_static(o.node) || !plan_.constants.contain(o.node)) return false;
    const int axis = moving_axis(plan_.g, use(o).access, range);
    return axis >= 0 && divides_into_panels(o.node, static_cast<size_t>(axis));
  }

  /// Of the operand's elements, those whose moving this use answers for. Where each reads a part,
  /// as the blocks of a long sum do, they share one copy, or copy that.
  double elements(const ProductOperand& o) const {
    return largest_numel(o.node->shape->span()) * part_read(o) / std::min(1.0, parts_.at(o.node));
  }

  /// What storing a result costs in moves of an element, with vectors along `range`.
  double store_cost(const KernelPlan& kernel, NodeRef range) const {
    double cost = 0;
    for (const KernelOutput& o : kernel.outputs) {
      const Access& at = plan_.uses.at(o.node)[static_cast<size_t>(o.use)].access;
      if (step_along(plan_, o.node, at, range) != Step::Far) continue;
      const int64_t apart = bytes_apart(o.node, moving_axis(plan_.g, at, range));
      const bool shared = apart > 0 && apart % plan_.target.machine.l1().way_bytes() == 0;
      cost = std::max(cost, shared ? kFarStoreOfOneSet : kFarStore);
    }
    return cost;
  }

  /// Of neighbours along `axis`, row-major; 0 where there is no such axis.
  static int64_t bytes_apart(NodeRef n, int axis) {
    if (axis < 0) return 0;
    int64_t elements = 1;
    for (size_t a = static_cast<size_t>(axis) + 1; a < n->rank(); ++a) elements *= n->dim(a)->vmax;
    return elements * bits(n->dtype) / 8;
  }

  /// Whether each element is used often enough, and moving it makes it contiguous along `range`.
  bool may_move(const ProductOperand& o, NodeRef range) const {
    if (!is_static(o.node) || moving_axis(plan_.g, use(o).access, range) < 0) return false;
    const double reads = iterations(use(o).scope);
    if (!is_free(o, range))
      return reads >= (is_turned_in_registers(o, range) ? kReuseTurned : kReuse) * elements(o);
    const double least = bits(o.node->dtype) <= 16 ? kReuseOfHalves : kReuseOfConstant;
    return reads >= least * largest_numel(o.node->shape->span());
  }

  /// Whether copies of these elements go by transposes in registers. Of words: what halves and
  /// bytes gain by copies was not measured.
  bool turns(DType dtype) const { return bits(dtype) >= 32 && plan_.target.permutes_pairs(dtype); }

  /// Whether its copy with vectors along `range` is rows transposed in registers: one with zeros
  /// around it is gathered.
  bool is_turned_in_registers(const ProductOperand& o, NodeRef range) const {
    const int axis = moving_axis(plan_.g, use(o).access, range);
    return o.node->op != Op::Pad && turns(o.node->dtype) &&
           divides_into_panels(o.node, static_cast<size_t>(axis));
  }

  /// Of the kernel that `o` is read by: whether its sum runs over more than fits L1 tile by tile.
  bool has_long_rows(const ProductOperand& o) const {
    const KernelPlan& kernel = plan_.kernels[static_cast<size_t>(use(o).kernel)];
    const double row =
        iterations(use(o).scope) / iterations(kernel.ranges) * bits(o.node->dtype) / 8;
    return kRowsOfTile * row > static_cast<double>(plan_.target.machine.l1().bytes);
  }

  /// What would have to move for vectors along `range`.
  bool consider(const std::vector<ProductOperand>& loads, NodeRef range, Choice& out) const {
    out = {range};
    for (const ProductOperand& o : loads) {
      if (step_along(plan_, o.node, use(o).access, range) != Step::Far) continue;
      if (!may_move(o, range)) return false;
      out.moved.push_back(o);
      if (is_free(o, range)) {
        if (has_long_rows(o)) out.cost += kBesideLongRows * elements(o);
        continue;
      }
      out.elements += elements(o);
      out.bytes += bytes(o.node);
    }
    return true;
  }

  bool moves_in_registers(const Choice& c) const {
    return !c.moved.empty() && turns(c.moved[0].node->dtype);
  }

  /// Sums along an axis that all operands lie along need no vectors along outputs.
  bool reduces_well(const KernelPlan& kernel, const std::vector<ProductOperand>& loads,
                    const Choice& other) const {
    const double products = iterations(use(loads[0]).scope), results = iterations(kernel.ranges);
    const bool reused = products >= kReuseOfSum * other.elements || products <= kShortSum * results;
    const bool free = !other.moved.empty() && other.elements == 0;
    const bool cached =
        other.bytes <= kTimesL2 * static_cast<double>(plan_.target.machine.l2().bytes);
    const double each = moves_in_registers(other) ? kMoved : cached ? 1 : kUncached;
    const double copying =
        (free ? 0 : other.elements * each + kKernel) + cost_of_widening(plan_, loads, other.range);
    const double slower = has_long_rows(loads[0]) ? kAlongRows * products : 0;
    if (reused && kAcrossVector * results + slower > copying) return false;
    for (NodeRef r : use(loads[0]).scope) {
      if (contains(kernel.ranges, r) || r->src(0)->vmin < kShortest) continue;
      if (std::all_of(loads.begin(), loads.end(), [&](const ProductOperand& o) {
            return step_along(plan_, o.node, use(o).access, r) == Step::Unit;
          }))
        return true;
    }
    return false;
  }

  /// What vectors along `range` cost: products in lanes that are partly idle, what has to be moved,
  /// and results that do not lie side by side.
  double cost(const KernelPlan& kernel, const std::vector<ProductOperand>& loads,
              const Choice& c) const {
    const double products = iterations(use(loads[0]).scope);
    const double moving = c.elements * (moves_in_registers(c) ? kMoved : 1) *
                          (is_beyond_l3(plan_.target, c.bytes) ? kBeyondL3 : 1);
    const double stores = store_cost(kernel, c.range) * iterations(kernel.ranges);
    const int64_t size = walked_as_one(plan_, kernel, loads, c.range);
    return products * kProduct / filled_lanes(size, plan_.target) + moving + stores;
  }

  /// Too short for vectors along it.
  bool is_short(const KernelPlan& kernel, const std::vector<ProductOperand>& loads,
                NodeRef range) const {
    return range->src(0)->vmin < kShortest &&
           walked_as_one(plan_, kernel, loads, range) < kShortest;
  }

  void improve(size_t k) {
    const KernelPlan& kernel = plan_.kernels[k];
    const std::vector<ProductOperand>& loads = loads_[k];
    Choice best;
    for (NodeRef r : kernel.ranges) {
      Choice choice;
      if (r->op != Op::Range || is_short(kernel, loads, r) || !consider(loads, r, choice)) continue;
      choice.cost += cost(kernel, loads, choice);
      if (!best.range || choice.cost < best.cost) best = std::move(choice);
    }
    if (!best.range || reduces_well(kernel, loads, best)) return;
    vectors_[k] = best.range;
    for (const ProductOperand& o : best.moved)
      reorder(static_cast<int>(k), o, moving_axis(plan_.g, use(o).access, best.range));
    for (const ProductOperand& o : loads) leave_as_it_came(o, best.range);
  }

  /// What the vectors' lanes share is read element by element, in any order in which the places of
  /// a tile lie side by side: in the one that makes it a copy of rows.
  void leave_as_it_came(const ProductOperand& o, NodeRef range) {
    if (o.node->op != Op::Pad || step_along(plan_, o.node, use(o).access, range) != Step::None ||
        !only_read_here(o.node))
      return;
    buffer(o.node).order.clear();
    const int axis = comes_along(plan_, o.node, o.node->rank() - 1);
    if (axis >= 0 && divides_into_panels(o.node, static_cast<size_t>(axis))) turn(o.node, axis);
  }

  /// Makes `axis` its innermost.
  void reorder(int kernel, const ProductOperand& o, int axis) {
    if (only_read_here(o.node)) return turn(o.node, axis);
    read_copy(kernel, o, axis);
  }

  /// Puts the axes of the sum behind those of the outputs.
  void reorder_sums(int kernel, const ProductOperand& o) {
    if (only_read_here(o.node))
      buffer(o.node).order = sums_innermost(plan_, o);
    else
      read_copy(kernel, o, kSumsInnermost);
  }

  /// A copy whose innermost axis is `axis`, or one of these.
  static constexpr int kRowsApart = -1;      // in the same order, with its rows apart
  static constexpr int kSumsInnermost = -2;  // outputs' axes first: a sum walks on, row by row
  static constexpr int kRowsOfTiles = -3;    // the sum's axis is the innermost one
  void read_copy(int kernel, const ProductOperand& o, int axis) {
    Access within = use(o).access;
    NodeRef from = axis < 0 ? o.node : block_read(plan_, o, within);
    const std::vector<NodeRef> sizes = sizes_read(o, from, axis);
    const std::vector<size_t> order = order_for(o, axis);
    const auto same = std::ranges::find_if(copies_, [&](const Copy& c) {
      return c.of == o.node && c.from == from && c.axis == axis && c.sizes == sizes &&
             (order.empty() || buffer(c.copy).order == order);
    });
    NodeRef copy = same != copies_.end() ? same->copy : make_copy(kernel, o, from, axis, sizes);
    if (from != o.node) read_block(plan_, o, copy, std::move(within));
    plan_.uses[o.node][o.use].packed = copy;
    plan_.read(kernel, copy);
    plan_.stop_reading(kernel, o.node);
  }

  /// Of a copy whose innermost axis is `axis`, as far as variables say that the product reads it;
  /// with room for all, so that steps are numbers. Parts of fixed sizes share one copy. All is
  /// copied of a constant, and of what is looked up by indices that only the product reads.
  std::vector<NodeRef> sizes_read(const ProductOperand& o, NodeRef from, int axis) {
    std::vector<NodeRef> sizes(from->shape->span().begin(), from->shape->span().end());
    if (plan_.constants.contain(o.node) || from != o.node) return sizes;
    for (size_t a = 0; a < sizes.size(); ++a) {
      NodeRef end = end_of_index(plan_.g, use(o).access.index[a]);
      if (!end || end->op == Op::Const || end->vmax > sizes[a]->vmax) continue;
      if (std::ranges::any_of(Toposort(end), is_lookup)) continue;
      // Whole panels: that they divide the axis is known.
      const auto whole = static_cast<int>(a) == axis ? panel(o.node) : int64_t{1};
      if (whole > 1 && !divides_into_panels(o.node, a)) continue;
      NodeRef unit = plan_.g.index(whole);
      sizes[a] = plan_.g.mul(plan_.g.idiv(plan_.g.add(end, plan_.g.index(whole - 1)), unit), unit);
    }
    return sizes;
  }

  /// An intermediate of this kernel's own may lie as it likes.
  bool only_read_here(NodeRef n) const {
    const auto& wanted = plan_.uses.at(n);
    return !plan_.buffers[static_cast<size_t>(plan_.buffer_index(n))].row_major &&
           std::count_if(wanted.begin(), wanted.end(), [](const Use& d) { return d.load; }) == 1;
  }

  /// Elements of a row that lie together: a vector.
  int64_t panel(NodeRef n) const {
    return std::max<int64_t>(kLeastPanel, plan_.target.lanes(n->dtype));
  }
  bool divides_into_panels(NodeRef n, size_t axis) const {
    return divisor_of(n->dim(axis)) % panel(n) == 0;
  }

  void turn(NodeRef n, int axis) {
    BufferPlan& b = buffer(n);
    const auto inner = static_cast<size_t>(axis);
    b.order = with_innermost(n, axis);
    if (divides_into_panels(n, inner)) b.block = panel(n);
  }

  /// Whether the sum walks down the rows of an operand: with every product in another one.
  bool walks_down(const KernelPlan& kernel, const ProductOperand& o) const {
    const Use& d = use(o);
    return std::any_of(d.scope.begin(), d.scope.end(), [&](NodeRef r) {
      return !contains(kernel.ranges, r) && step_along(plan_, o.node, d.access, r) == Step::Far;
    });
  }

  double reuse(const ProductOperand& o) const { return iterations(use(o).scope) / elements(o); }

  /// The innermost axis that has several elements: 1 x 1 weights have two behind it.
  size_t row_axis(NodeRef n) const {
    const BufferPlan& b = buffer(n);
    for (size_t i = n->rank(); i-- > 0;) {
      const size_t axis = b.order.empty() ? i : b.order[i];
      if (n->dim(axis)->vmax > 1) return axis;
    }
    return b.innermost();
  }

  double part_of(const CacheLevel& cache, const ProductOperand& o) const {
    return bytes(o.node) / static_cast<double>(cache.bytes);
  }

  /// Bytes that the sums for one row of the result read: of one matrix, where there are several.
  double walked(const KernelPlan& kernel, const ProductOperand& o) const {
    const Use& d = use(o);
    double elements = static_cast<double>(o.node->dim(row_axis(o.node))->vmax);
    for (NodeRef r : d.scope)
      if (!contains(kernel.ranges, r) && step_along(plan_, o.node, d.access, r) != Step::None)
        elements *= static_cast<double>(r->src(0)->vmax);
    return elements * bits(o.node->dtype) / 8;
  }

  /// Whether vectors of the result stay inside of panels of its rows.
  bool fits_panels(const KernelPlan& kernel, const ProductOperand& o) const {
    const BufferPlan& b = buffer(o.node);
    const size_t inner = row_axis(o.node);
    NodeRef along = use(o).access.index[inner];
    return is_static(o.node) && o.node->rank() >= 2 && b.block == 0 && b.gap == 0 &&
           contains(kernel.ranges, along) && divides_into_panels(o.node, inner);
  }

  /// Of kernels whose products are a matrix unit's: its tiles of an operand that lies along an
  /// output axis are runs, one after the other down the sum.
  void put_in_tiles() {
    const std::vector<size_t> kernels = kernels_by_tiles(plan_);
    for (const size_t k : kernels)
      for (const ProductOperand& o : loads_[k]) store_as_read(plan_, o);
    for (const size_t k : kernels) put_in_tiles(k);
  }

  void put_in_tiles(size_t k) {
    if (const ProductOperand* rows = rows_to_turn(k))
      read_copy(static_cast<int>(k), *rows, kRowsOfTiles);
    for (const ProductOperand& o : loads_[k]) {
      const BufferPlan& b = buffer(o.node);
      if (b.row_major || b.block > 0 || !is_static(o.node) || use(o).packed) continue;
      for (NodeRef r : plan_.kernels[k].ranges)
        if (step_along(plan_, o.node, use(o).access, r) == Step::Unit)
          return turn(o.node, static_cast<int>(row_axis(o.node)));
    }
  }

  /// Tiles want one operand's rows along the sum. Where both lie along output axes, as those of a
  /// weight's gradient do, one is turned: words are transposed in registers, the halves that they
  /// are made of are not.
  const ProductOperand* rows_to_turn(size_t k) const {
    const std::vector<ProductOperand>& loads = loads_[k];
    if (loads.size() != 2 ||
        !std::ranges::all_of(loads, [&](const auto& o) { return is_read_down(plan_, o); }))
      return nullptr;
    return &loads[cost_to_turn(k, 1) < cost_to_turn(k, 0) ? 1 : 0];
  }
  /// In moves of an element: of that operand, and of results where the other one's columns are not
  /// theirs (512 x 512 over 256: 70 us, and 210).
  double cost_to_turn(size_t k, size_t which) const {
    const KernelPlan& kernel = plan_.kernels[k];
    const ProductOperand& columns = loads_[k][1 - which];
    double cost = kMoved * elements(loads_[k][which]);
    for (NodeRef r : kernel.ranges)
      if (step_along(plan_, columns.node, use(columns).access, r) == Step::Unit)
        cost += store_cost(kernel, r) * iterations(kernel.ranges);
    return cost;
  }
  /// Puts panels in order, or takes rows apart that share few places of the caches: in place where
  /// only kernels see them. The rows of a tile, read along, only meet each other.
  void spread(size_t k) {
    for (const ProductOperand& o : loads_[k])
      if (!use(o).packed) spread(static_cast<int>(k), o);
  }

  bool pays_as_panels(const KernelPlan& kernel, const ProductOperand& o) const {
    if (plan_.constants.contain(o.node)) return true;
    const double part = walked(kernel, o) / static_cast<double>(plan_.target.machine.l2().bytes);
    return part >= kPartOfL2 && reuse(o) >= (part >= 1 ? kReusePanels : kReusePanelsInL2);
  }

  bool pays_apart(const ProductOperand& o, bool down) const {
    const Machine& machine = plan_.target.machine;
    if (down) return reuse(o) >= kReuseDownRows && part_of(machine.l2(), o) > 1;
    return reuse(o) >= kReuseAlongRows && part_of(machine.l3(), o) > kPartOfL3;
  }

  /// A copy is one more kernel, an order of its own costs nothing: 512 images of 32 x 24 x 24, read
  /// 800 times, gain as much as their copy takes.
  bool pays_reordered(const ProductOperand& o) const {
    return pays_apart(o, true) && (only_read_here(o.node) || reuse(o) >= 2 * kReuseDownRows) &&
           walks_along_sums(o);
  }

  /// Whether the next element along the sums' axes comes while its line is in L1. A sum's loops go
  /// from far to near (optimize/loop_order.cpp) by the steps of all operands: where that leaves the
  /// one along the innermost axis outside, each step inside of it is in another line.
  bool walks_along_sums(const ProductOperand& o) const {
    const KernelPlan& kernel = plan_.kernels[static_cast<size_t>(use(o).kernel)];
    const auto step = [&](NodeRef range) {
      double bytes = 0;
      for (const ProductOperand& of : loads_[static_cast<size_t>(use(o).kernel)]) {
        const bool same = of.node == o.node && of.use == o.use;
        bytes += step_bytes(plan_, of, same ? sums_innermost(plan_, o) : order_of(of.node), range);
      }
      return bytes;
    };
    NodeRef innermost = use(o).access.index[sums_innermost(plan_, o).back()];
    if (innermost->op != Op::Range) return true;
    double lines = kRowsOfTile;
    for (NodeRef r : use(o).scope)
      if (!contains(kernel.ranges, r) && r != innermost && step(r) < step(innermost))
        lines *= static_cast<double>(r->src(0)->vmax);
    return lines * Machine::kLine <=
           kPartOfL1 * static_cast<double>(plan_.target.machine.l1().bytes);
  }

  std::vector<size_t> order_of(NodeRef n) const {
    std::vector<size_t> order = buffer(n).order;
    for (size_t a = 0; order.size() < n->rank(); ++a) order.push_back(a);
    return order;
  }

  void spread(int k, const ProductOperand& o) {
    const KernelPlan& kernel = plan_.kernels[static_cast<size_t>(k)];  // until there is a copy
    const bool down = walks_down(kernel, o);
    const bool panels = down && fits_panels(kernel, o) && pays_as_panels(kernel, o);
    if (panels && is_beside_panels(kernel, o) && turns(o.node->dtype) && walks_along_sums(o))
      reorder_sums(k, o);
    else if (panels)
      reorder(k, o, static_cast<int>(row_axis(o.node)));
    else if (down && is_broadcast(kernel, o) && pays_reordered(o))
      reorder_sums(k, o);
    else if (shares_sets(o.node) && pays_apart(o, down))
      take_apart(k, o);
  }

  /// Whether vectors of the kernel may run along an output axis in which the operand does not vary:
  /// its elements are read one by one then. Not where others would have had to be put in order.
  bool is_broadcast(const KernelPlan& kernel, const ProductOperand& o) const {
    const auto k = static_cast<size_t>(use(o).kernel);
    const auto lies_well = [&](NodeRef r) {
      return r == vectors_[k] || std::ranges::none_of(loads_[k], [&](const ProductOperand& of) {
               return step_along(plan_, of.node, use(of).access, r) == Step::Far;
             });
    };
    return is_static(o.node) && buffer(o.node).block == 0 &&
           std::ranges::any_of(kernel.ranges, [&](NodeRef r) {
             return is_broadcast_along(plan_, o.node, use(o), r, loads_[k]) && lies_well(r);
           });
  }

  /// Whether the vectors that were chosen run along panels of another operand, and not along this
  /// one, which is read place by place, better down its rows (x^T @ y of 2048: 85 ms, and 63).
  bool is_beside_panels(const KernelPlan& kernel, const ProductOperand& o) const {
    const auto k = static_cast<size_t>(use(o).kernel);
    return vectors_[k] && is_broadcast_along(plan_, o.node, use(o), vectors_[k], loads_[k]) &&
           std::ranges::any_of(loads_[k], [&](const ProductOperand& of) {
             return step_along(plan_, of.node, use(of).access, vectors_[k]) == Step::Unit &&
                    (use(of).packed ? buffer(use(of).packed).block > 0
                                    : fits_panels(kernel, of) && pays_as_panels(kernel, of));
           });
  }

  void take_apart(int kernel, const ProductOperand& o) {
    if (buffer(o.node).row_major)
      read_copy(kernel, o, kRowsApart);
    else
      set_apart(o.node);
  }

  void set_apart(NodeRef n) {
    if (const size_t axis = row_axis(n); axis != buffer(n).innermost()) {
      turn(n, static_cast<int>(axis));
      buffer(n).block = 0;
    }
    buffer(n).gap = Machine::kLine * 8 / bits(n->dtype);
  }

  bool shares_sets(NodeRef n) const {
    const BufferPlan& b = buffer(n);
    if (!is_static(n) || n->rank() < 2 || b.block > 0 || b.gap > 0) return false;
    const int64_t row = n->dim(row_axis(n))->vmin * bits(n->dtype) / 8;
    return row > 0 && row % (plan_.target.machine.l1().way_bytes() / kPartOfWay) == 0;
  }

  NodeRef make_copy(int kernel, const ProductOperand& o, NodeRef from, int axis,
                    const std::vector<NodeRef>& sizes) {
    const int64_t which[] = {-1 - std::ssize(copies_)};  // distinct from all others
    NodeRef copy = plan_.g.intern({Op::Contiguous, o.node->dtype, {&from, 1}, which});
    copies_.push_back({o.node, from, axis, sizes, copy});
    plan_.stage_copy(copy, plan_.origin(plan_.kernels[static_cast<size_t>(kernel)].root),
                     axis == kRowsApart
                         ? "a product reads it often, and its rows share places in caches"
                         : "a product reads it along another axis than it lies",
                     sizes);
    if (axis == kRowsApart)
      set_apart(copy);
    else if (axis < 0)
      buffer(copy).order = order_for(o, axis);
    else
      turn(copy, axis);
    return copy;
  }

  /// Of a copy whose order is more than an innermost axis; else none.
  std::vector<size_t> order_for(const ProductOperand& o, int axis) const {
    if (axis == kSumsInnermost) return sums_innermost(plan_, o);
    if (axis != kRowsOfTiles) return {};
    return with_innermost(o.node, moving_axis(plan_.g, use(o).access, summed_range(plan_, o)));
  }

  /// Copies right behind what they are of.
  void insert_in_order() {
    if (copies_.empty()) return;
    std::vector<NodeRef> order;
    for (NodeRef n : plan_.order) {
      order.push_back(n);
      for (const Copy& c : copies_) {
        if (c.of != n) continue;
        if (c.from != n && !contains(order, c.from)) order.push_back(c.from);
        order.push_back(c.copy);
      }
    }
    plan_.order = std::move(order);
  }

  struct Copy {
    NodeRef of, from;  // the operand, and it or the block of it that is copied
    int axis;
    std::vector<NodeRef> sizes;  // of what is copied
    NodeRef copy;
  };

  Planner& plan_;
  std::vector<std::vector<ProductOperand>> loads_;  // inside reductions, by kernel
  std::vector<NodeRef> vectors_;  // by kernel: the axis that its vectors were chosen to run along
  NodeMap<double> parts_;         // of each node, read by all of these
  std::vector<Copy> copies_;
};

}  // namespace

void pack_operands(Planner& plan) {
  if (plan.options.layouts) OperandPacking(plan).run();
}

}  // namespace weft
