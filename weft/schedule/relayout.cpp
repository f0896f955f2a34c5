// Copies of product operands in another memory order. A product wants vectors along one of its
// output axes; an operand that lies otherwise would be gathered element by element, for every tile
// again. Where all others lie well along an axis and an operand is read often enough, its elements
// are put in order once, in a kernel of their own: convolution weights, mostly.
#include <algorithm>

#include "weft/graph/index_algebra.h"
#include "weft/schedule/plan.h"

namespace weft {
namespace {

constexpr double kReuse =
    16;  // evaluations per element from which on a copy costs less than gathers
constexpr double kReuseOfSum = 64;  // and less than vectors along the sum would
constexpr int64_t kShortest = 8;    // output axis worth a vector
// In moves of an element: what is left to add up across a vector where sums run along one
// (measured: 4 ns an output, whatever its length), a kernel more, and an element of what fits no
// second cache.
constexpr double kAcrossVector = 8, kKernel = 5000, kCached = 1 << 19, kUncached = 3;
constexpr int64_t kBlock = 16;     // elements of a vector, or of a few
constexpr double kProduct = 0.02;  // one multiplication and addition in full vectors
constexpr double kFarStore = 2;    // a result stored for itself instead of with its neighbours

class Relayout {
 public:
  explicit Relayout(Planner& plan) : plan_(plan), loads_(reduced_operands(plan)) {}

  void run() {
    for (size_t k = 0; k < loads_.size(); ++k)
      if (loads_[k].size() >= 2) improve(k);
    insert_in_order();
  }

 private:
  struct Choice {
    NodeRef range = nullptr;
    std::vector<ProductOperand> moved = {};
    double elements = 0;  // of what is moved
    double cost = 0;
  };

  const Demand& demand(const ProductOperand& o) const { return plan_.demands.at(o.node)[o.demand]; }

  bool stores_well(const KernelPlan& kernel, NodeRef range) const {
    return std::all_of(kernel.outputs.begin(), kernel.outputs.end(), [&](const KernelOutput& o) {
      const Place& at = plan_.demands.at(o.node)[static_cast<size_t>(o.demand)].place;
      return step_along(plan_, o.node, at, range) != Step::Far;
    });
  }

  /// Whether each element is used often enough, and moving it makes it contiguous along `range`.
  bool may_move(const ProductOperand& o, NodeRef range) const {
    return is_static(o.node) && moving_axis(plan_.g, demand(o).place, range) >= 0 &&
           iterations(demand(o).scope) >= kReuse * largest_numel(o.node->shape->span());
  }

  /// What would have to move for vectors along `range`.
  bool consider(const std::vector<ProductOperand>& loads, NodeRef range, Choice& out) const {
    out = {range};
    for (const ProductOperand& o : loads) {
      if (step_along(plan_, o.node, demand(o).place, range) != Step::Far) continue;
      if (!may_move(o, range)) return false;
      out.moved.push_back(o);
      out.elements += largest_numel(o.node->shape->span());
    }
    return true;
  }

  /// Sums along an axis that all operands lie along need no vectors along outputs.
  bool reduces_well(const KernelPlan& kernel, const std::vector<ProductOperand>& loads,
                    double moved) const {
    const bool reused = iterations(demand(loads[0]).scope) >= kReuseOfSum * moved;
    const double moving = moved * (moved <= kCached ? 1 : kUncached) + kKernel;
    if (reused && kAcrossVector * iterations(kernel.ranges) > moving) return false;
    for (NodeRef r : demand(loads[0]).scope) {
      if (contains(kernel.ranges, r) || r->src(0)->vmin < kShortest) continue;
      if (std::all_of(loads.begin(), loads.end(), [&](const ProductOperand& o) {
            return step_along(plan_, o.node, demand(o).place, r) == Step::Unit;
          }))
        return true;
    }
    return false;
  }

  /// What vectors along `range` cost: products in lanes that are partly idle, what has to be moved,
  /// and results that do not lie side by side.
  double cost(const KernelPlan& kernel, const std::vector<ProductOperand>& loads,
              const Choice& c) const {
    const double products = iterations(demand(loads[0]).scope);
    const double stores = stores_well(kernel, c.range) ? 0 : kFarStore * iterations(kernel.ranges);
    return products * kProduct / filled_lanes(c.range->src(0)) + c.elements + stores;
  }

  void improve(size_t k) {
    const KernelPlan& kernel = plan_.kernels[k];
    const std::vector<ProductOperand>& loads = loads_[k];
    Choice best;
    for (NodeRef r : kernel.ranges) {
      Choice choice;
      if (r->op != Op::Range || r->src(0)->vmin < kShortest || !consider(loads, r, choice))
        continue;
      choice.cost = cost(kernel, loads, choice);
      if (!best.range || choice.cost < best.cost) best = std::move(choice);
    }
    if (!best.range || reduces_well(kernel, loads, best.elements)) return;
    for (const ProductOperand& o : best.moved) move(static_cast<int>(k), o, best.range);
  }

  void move(int kernel, const ProductOperand& o, NodeRef range) {
    const int axis = moving_axis(plan_.g, demand(o).place, range);
    if (only_read_here(o.node)) return turn(o.node, axis);
    const auto same = std::find_if(copies_.begin(), copies_.end(),
                                   [&](const Copy& c) { return c.of == o.node && c.axis == axis; });
    NodeRef copy = same != copies_.end() ? same->copy : make_copy(kernel, o.node, axis);
    plan_.demands[o.node][o.demand].relaid = copy;
    plan_.read(kernel, copy);
    plan_.stop_reading(kernel, o.node);
  }

  /// An intermediate of this kernel's own may lie as it likes.
  bool only_read_here(NodeRef n) const {
    const auto& wanted = plan_.demands.at(n);
    return !plan_.buffers[static_cast<size_t>(plan_.buffer_index(n))].row_major &&
           std::count_if(wanted.begin(), wanted.end(), [](const Demand& d) { return d.load; }) == 1;
  }

  void turn(NodeRef n, int axis) {
    BufferPlan& b = plan_.buffers[static_cast<size_t>(plan_.buffer_index(n))];
    const auto inner = static_cast<size_t>(axis);
    b.order.clear();
    for (size_t a = 0; a < n->rank(); ++a)
      if (a != inner) b.order.push_back(a);
    b.order.push_back(inner);
    if (divisor_of(n->dim(inner)) % kBlock == 0) b.block = kBlock;
  }

  NodeRef make_copy(int kernel, NodeRef n, int axis) {
    const NodeRef src[] = {n};
    const int64_t which[] = {-1 -
                             static_cast<int64_t>(copies_.size())};  // distinct from all others
    NodeRef copy = plan_.g.intern({Op::Contiguous, n->dtype, src, which});
    copies_.push_back({n, axis, copy});
    plan_.stage_copy(copy, plan_.origin(plan_.kernels[static_cast<size_t>(kernel)].root),
                     "a product reads it along another axis than it lies");
    turn(copy, axis);
    return copy;
  }

  /// Copies right behind what they are of.
  void insert_in_order() {
    if (copies_.empty()) return;
    std::vector<NodeRef> order;
    for (NodeRef n : plan_.order) {
      order.push_back(n);
      for (const Copy& c : copies_)
        if (c.of == n) order.push_back(c.copy);
    }
    plan_.order = std::move(order);
  }

  struct Copy {
    NodeRef of;
    int axis;
    NodeRef copy;
  };

  Planner& plan_;
  std::vector<std::vector<ProductOperand>> loads_;  // inside reductions, by kernel
  std::vector<Copy> copies_;
};

}  // namespace

void relay_operands(Planner& plan) {
  if (plan.options.layouts) Relayout(plan).run();
}

}  // namespace weft
