// Sums of products that a mask ends at an image's border, as the gradient of a convolution has
// them: sum of where(inside, image * weight, 0). The image is copied with zeros around it, once,
// and the mask goes: what lies outside is then zero times the weight. That is what a convolution
// over a padded image computes, and differs for infinite weights alone.
#include <algorithm>
#include <map>

#include "weft/schedule/plan.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

constexpr double kReuse = 8;       // products per padded element from which on a copy is worth it
constexpr double kKernel = 65536;  // products whose masks cost as much as one more kernel
constexpr double kLargest = 8;     // times the image: mostly zeros would be mostly wasted

class Padder {
 public:
  explicit Padder(Planner& plan) : plan_(plan), g_(plan.g) {}

  void run() {
    const std::vector<NodeRef> order = plan_.order;
    for (NodeRef n : order)
      if (is_sum(n))
        for (size_t i = 0; i < plan_.demands.at(n).size(); ++i) consider(n, i);
    insert_in_order();
  }

 private:
  struct At {
    NodeRef node;
    size_t demand;
  };
  /// One factor: views down to a load.
  struct Factor {
    std::vector<At> views;
    At load;
  };
  struct Product {
    std::vector<At> path;  // from below the sum down to the multiplication
    Factor factors[2];
  };

  Demand& demand(At at) { return plan_.demands[at.node][at.demand]; }
  At below(At at, size_t i) { return {at.node->src(i), static_cast<size_t>(demand(at).source[i])}; }
  static bool is_sum(NodeRef n) { return n->op == Op::Reduce && fold_of(n) == Fold::Add; }
  static bool is_view(NodeRef n) { return is_movement(n->op) && n->op != Op::Gather; }

  bool follow_factor(At at, Factor& out) {
    while (!demand(at).load) {
      if (!is_view(at.node) || demand(at).source.empty()) return false;
      out.views.push_back(at);
      at = below(at, 0);
    }
    out.load = at;
    return !demand(at).relaid;
  }

  bool follow(At at, Product& out) {
    for (; is_view(at.node) || is_sum(at.node); at = below(at, 0)) {
      if (demand(at).load || demand(at).source.empty()) return false;
      out.path.push_back(at);
    }
    if (at.node->op != Op::Mul || !is_float(at.node->dtype) || demand(at).source.empty())
      return false;
    out.path.push_back(at);
    return follow_factor(below(at, 0), out.factors[0]) &&
           follow_factor(below(at, 1), out.factors[1]);
  }

  void consider(NodeRef sum, size_t i) {
    const At root{sum, i};
    Product p;
    if (demand(root).load || demand(root).source.empty() || !follow(below(root, 0), p)) return;
    NodeRef outside = demand(root).place.valid, inside = demand(p.path.back()).place.valid;
    if (inside == outside || !is_int_const(outside, 1)) return;
    for (size_t image : {0, 1})
      if (pad(p, p.factors[image], p.factors[1 - image], inside)) return;
  }

  /// True where the weight is the same for all places the mask tells apart.
  bool is_weight(const Demand& weight, NodeRef inside) {
    const auto& open = plan_.kernels[static_cast<size_t>(weight.kernel)].ranges;
    const std::vector<NodeRef> places = used_ranges({&inside, 1}, open);
    const std::vector<NodeRef> used = used_ranges(weight.place.index, weight.scope);
    return std::none_of(places.begin(), places.end(), [&](NodeRef r) { return contains(used, r); });
  }

  struct Border {
    std::vector<NodeRef> before, after;
    double numel = 1;
  };

  /// The zeros that stand for the mask; false where it says anything but "inside the image".
  bool border_of(NodeRef image, const Place& at, NodeRef inside, Border& out) {
    std::vector<NodeRef> left = conjuncts(inside);
    for (size_t a = 0; a < image->rank(); ++a) {
      NodeRef i = at.index[a], size = image->dim(a);
      std::erase(left, g_.le(g_.index(0), i));
      std::erase(left, g_.lt(i, size));
      out.before.push_back(g_.index(std::max<int64_t>(0, -i->vmin)));
      out.after.push_back(g_.index(std::max<int64_t>(0, i->vmax - size->vmin + 1)));
      out.numel *= static_cast<double>(size->vmin + out.before[a]->vmin + out.after[a]->vmin);
    }
    return left.empty();
  }

  bool pad(const Product& p, const Factor& image, const Factor& weight, NodeRef inside) {
    const Demand &read = demand(image.load), &other = demand(weight.load);
    NodeRef n = image.load.node;
    if (read.place.valid != inside || other.place.valid != inside || !is_static(n) ||
        !is_weight(other, inside) || is_shared(p))
      return false;
    Border border;
    if (!border_of(n, read.place, inside, border) ||
        border.numel > kLargest * largest_numel(n->shape->span()) ||
        !pays_padding(iterations(read.scope), border.numel))
      return false;
    replace(image.load, staged(n, border, read.kernel), border);
    for (const auto* list : {&p.path, &image.views, &weight.views})
      for (At at : *list) demand(at).place.valid = g_.boolean(true);
    demand(weight.load).place.valid = g_.boolean(true);
    return true;
  }

  /// Whether anything else in the kernel uses one of these values under its mask.
  bool is_shared(const Product& p) {
    std::vector<At> all = p.path;
    for (const Factor& f : p.factors) {
      all.insert(all.end(), f.views.begin(), f.views.end());
      all.push_back(f.load);
    }
    return std::any_of(all.begin(), all.end(), [&](At at) { return uses(at) != 1; });
  }
  int uses(At of) {
    if (uses_.size() == 0)
      for (NodeRef n : plan_.order)
        for (const Demand& d : plan_.demands.at(n))
          for (size_t i = 0; i < d.source.size(); ++i)
            if (d.source[i] >= 0) ++uses_[n->src(i)][static_cast<size_t>(d.source[i])];
    return uses_[of.node][of.demand];
  }

  NodeRef staged(NodeRef n, const Border& border, int kernel) {
    std::vector<NodeRef> src{n};
    src.insert(src.end(), border.before.begin(), border.before.end());
    src.insert(src.end(), border.after.begin(), border.after.end());
    const std::vector<int64_t> between(n->rank(), 0);
    NodeRef padded = g_.make({Op::Pad, n->dtype, src, between});
    if (!plan_.buffer_of.contains(padded)) {
      plan_.stage_copy(padded, plan_.origin(plan_.kernels[static_cast<size_t>(kernel)].root),
                       "padded once, not at every read");
      if (!contains(plan_.order, padded)) made_.push_back({n, padded});
    }
    return padded;
  }

  void replace(At load, NodeRef padded, const Border& border) {
    Demand& old = demand(load);
    Demand now = old;
    now.place.valid = g_.boolean(true);
    for (size_t a = 0; a < border.before.size(); ++a)
      now.place.index[a] = g_.add(now.place.index[a], border.before[a]);
    old.relaid = padded;
    old.place.valid = g_.boolean(true);
    const int kernel = old.kernel;
    std::vector<Demand>& wanted = plan_.demands[padded];
    demand(load).relaid_demand = static_cast<int>(wanted.size());
    wanted.push_back(std::move(now));
    plan_.read(kernel, padded);
    plan_.stop_reading(kernel, load.node);
  }

  /// Copies right behind what they are of.
  void insert_in_order() {
    if (made_.empty()) return;
    std::vector<NodeRef> order;
    for (NodeRef n : plan_.order) {
      order.push_back(n);
      for (const auto& [of, padded] : made_)
        if (of == n) order.push_back(padded);
    }
    plan_.order = std::move(order);
  }

  Planner& plan_;
  Graph& g_;
  NodeMap<std::map<size_t, int>> uses_;
  std::vector<std::pair<NodeRef, NodeRef>> made_;  // what a copy is of, the copy
};

}  // namespace

bool pays_padding(double reads, double elements) {
  return reads >= std::max(kKernel, kReuse * elements);
}

void pad_operands(Planner& plan) {
  if (plan.options.layouts && plan.options.fuse) Padder(plan).run();
}

}  // namespace weft
