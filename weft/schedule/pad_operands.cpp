// Sums of products that a mask ends at an image's border, as the gradient of a convolution has
// them: sum of where(inside, image * weight, 0). The image is copied with zeros around it, once,
// and the mask goes: what lies outside is then zero times the weight. That is what a convolution
// over a padded image computes, and differs for infinite weights alone.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>

#include "weft/graph/index_algebra.h"
#include "weft/schedule/plan.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

constexpr double kReuse = 6;  // products per padded element from which on a copy is worth it
// The same for what a product leaves: it may lie so that a mask is one for all lanes of a vector.
// Depthwise convolutions of 3 x 3 read nine times (MobileNetV2: 3.8 ms with copies, 3.4 without).
constexpr double kReuseOfResults = 10;
constexpr double kMaskedReads = 3.5;  // and of those that masks reach, where it is stored for that
constexpr double kKernel = 65536;     // products whose masks cost as much as one more kernel
constexpr double kLargest = 8;        // times the image: mostly zeros would be mostly wasted

class Padder {
 public:
  explicit Padder(Planner& plan) : plan_(plan), g_(plan.g) {}

  void run() {
    const std::vector<NodeRef> order = plan_.order;
    for (NodeRef n : order)
      if (is_sum(n))
        for (size_t i = 0; i < plan_.uses.at(n).size(); ++i) consider(n, i);
    insert_in_order();
  }

 private:
  struct At {
    NodeRef node;
    size_t use;
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

  Use& use(At at) { return plan_.uses[at.node][at.use]; }
  At below(At at, size_t i) { return {at.node->src(i), static_cast<size_t>(use(at).source[i])}; }
  static bool is_sum(NodeRef n) { return n->op == Op::Reduce && fold_of(n) == Fold::Add; }
  static bool is_view(NodeRef n) { return is_movement(n->op) && n->op != Op::Gather; }

  bool follow_factor(At at, Factor& out) {
    while (!use(at).load) {
      if (!is_view(at.node) || use(at).source.empty()) return false;
      out.views.push_back(at);
      at = below(at, 0);
    }
    out.load = at;
    return !use(at).packed;
  }

  bool follow(At at, Product& out) {
    for (; is_view(at.node) || is_sum(at.node); at = below(at, 0)) {
      if (use(at).load || use(at).source.empty()) return false;
      out.path.push_back(at);
    }
    if (at.node->op != Op::Mul || !is_float(at.node->dtype) || use(at).source.empty()) return false;
    out.path.push_back(at);
    return follow_factor(below(at, 0), out.factors[0]) &&
           follow_factor(below(at, 1), out.factors[1]);
  }

  void consider(NodeRef sum, size_t i) {
    const At root{sum, i};
    Product p;
    if (use(root).load || use(root).source.empty() || !follow(below(root, 0), p)) return;
    NodeRef outside = use(root).access.valid, inside = use(p.path.back()).access.valid;
    if (inside == outside || !is_int_const(outside, 1)) return;
    for (size_t image : {0, 1})
      if (pad(p, p.factors[image], p.factors[1 - image], inside)) return;
  }

  /// True where the weight is the same for all masking the mask tells apart.
  bool is_weight(const Use& weight, NodeRef inside) {
    const auto& parallel = plan_.kernels[static_cast<size_t>(weight.kernel)].ranges;
    const std::vector<NodeRef> masking = used_ranges({&inside, 1}, parallel);
    const std::vector<NodeRef> used = used_ranges(weight.access.index, weight.scope);
    return std::none_of(masking.begin(), masking.end(),
                        [&](NodeRef r) { return contains(used, r); });
  }

  struct Walk {
    int64_t step, length;
  };
  struct Border {
    std::vector<NodeRef> before, after;
    double numel = 1;
    std::vector<NodeRef> inside;  // conditions that it stands for
  };

  /// Whether taps are moved over an image by this index, one place after the other and at least as
  /// far as they reach. In a phase of a transposed convolution it is the kernel that ends: the
  /// other factor is the image, whose infinities must not meet zeros.
  bool walks_image(const Use& read, NodeRef index) {
    const auto& parallel = plan_.kernels[static_cast<size_t>(read.kernel)].ranges;
    int64_t reach = 0, places = 0;
    std::vector<Walk> moves;
    for (NodeRef r : used_ranges({&index, 1}, read.scope)) {
      Stride s{};
      if (!split_stride(g_, index, r, s)) return true;  // a convolution's stride divides
      const Walk walk{std::abs(s.coefficient), std::abs(s.coefficient) * r->vmax};
      if (contains(parallel, r))
        moves.push_back(walk);
      else
        reach += walk.length;
    }
    for (const Walk& m : moves)
      if (m.step <= reach) places += m.length;  // else taps of another axis begin
    return reach > 0 && places >= reach;
  }

  /// The zeros that stand for the mask; false where it says nothing of the image.
  bool border_of(NodeRef image, const Use& read, NodeRef inside, Border& out) {
    const std::vector<NodeRef> all = conjuncts(inside);
    for (size_t a = 0; a < image->rank(); ++a) {
      NodeRef i = read.access.index[a], size = image->dim(a);
      const bool ends = walks_image(read, i);
      for (NodeRef condition : {g_.le(g_.index(0), i), g_.lt(i, size)})
        if (ends && contains(all, condition)) out.inside.push_back(condition);
      out.before.push_back(g_.index(ends ? std::max<int64_t>(0, -i->vmin) : 0));
      out.after.push_back(g_.index(ends ? std::max<int64_t>(0, i->vmax - size->vmin + 1) : 0));
      out.numel *= static_cast<double>(size->vmin + out.before[a]->vmin + out.after[a]->vmin);
    }
    return !out.inside.empty();
  }

  /// What a mask says beside "inside of the image": the steps of a stride.
  NodeRef rest_of(NodeRef mask, const Border& border) {
    NodeRef rest = g_.boolean(true);
    for (NodeRef condition : conjuncts(mask))
      if (!contains(border.inside, condition)) rest = g_.logical_and(rest, condition);
    return rest;
  }

  bool pad(const Product& p, const Factor& image, const Factor& weight, NodeRef inside) {
    const Use &read = use(image.load), &other = use(weight.load);
    NodeRef n = image.load.node;
    if (read.access.valid != inside || other.access.valid != inside || !is_static(n) ||
        !is_weight(other, inside) || is_shared(p))
      return false;
    Border border;
    if (!border_of(n, read, inside, border) ||
        border.numel > kLargest * largest_numel(n->shape->span()) ||
        !pays_padding(iterations(read.scope), border.numel))
      return false;
    replace(image.load, staged(n, border, read.kernel), border);
    const std::vector<At> load{weight.load};
    for (const auto* list : {&p.path, &image.views, &weight.views, &load})
      for (At at : *list) {
        NodeRef& mask = use(at).access.valid;
        mask = rest_of(mask, border);
      }
    return true;
  }

  /// Whether anything else in the kernel uses one of these values under its mask.
  bool is_shared(const Product& p) {
    std::vector<At> all = p.path;
    for (const Factor& f : p.factors) {
      all.insert(all.end(), f.views.begin(), f.views.end());
      all.push_back(f.load);
    }
    return std::any_of(all.begin(), all.end(), [&](At at) { return users(at) != 1; });
  }
  int users(At of) {
    if (uses_.size() == 0)
      for (NodeRef n : plan_.order)
        for (const Use& d : plan_.uses.at(n))
          for (size_t i = 0; i < d.source.size(); ++i)
            if (d.source[i] >= 0) ++uses_[n->src(i)][static_cast<size_t>(d.source[i])];
    return uses_[of.node][of.use];
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
    Use& old = use(load);
    Use now = old;
    now.access.valid = rest_of(old.access.valid, border);
    for (size_t a = 0; a < border.before.size(); ++a)
      now.access.index[a] = g_.add(now.access.index[a], border.before[a]);
    old.packed = padded;
    old.access.valid = g_.boolean(true);
    const int kernel = old.kernel;
    std::vector<Use>& wanted = plan_.uses[padded];
    use(load).packed_use = static_cast<int>(wanted.size());
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

namespace {

/// Whether a product's sum is finished by `n`, the only thing it is there for. (What tiles make
/// lies as they make it.)
bool finishes_product(NodeRef n, const Estimates& estimates, const Target& target) {
  constexpr size_t kLargestCone = 32;  // nodes looked at
  std::vector<NodeRef> cone{n};
  for (size_t i = 0; i < cone.size() && cone.size() <= kLargestCone; ++i) {
    if (is_reduction(cone[i])) {
      if (estimates.heavy.at(cone[i]) && !target.tile_unit(cone[i]->src(0)->op)) return true;
    } else if (is_alu(cone[i]->op) || is_movement(cone[i]->op)) {
      for (NodeRef s : cone[i]->src())
        if (!is_index(s->dtype) && !contains(cone, s)) cone.push_back(s);
    }
  }
  return false;
}

}  // namespace

/// Windows that reach over the border: a mask in the inner loop of a product costs more than a copy
/// that needs none.
bool Planner::worth_padding(NodeRef n, const std::vector<Use>& wanted) const {
  if (!is_static(n) || !options.fuse) return false;
  double total = 0;
  for (const Use& d : wanted)
    if (in_reduce(d)) total += evaluations(d);
  const double numel = largest_numel(n->shape->span());
  return pays_padding(total, numel) &&
         (total >= kReuseOfResults * numel || !finishes_product(n->src(0), estimates_, target));
}

/// Whether sums want an image's elements under a mask that ends at its border: what is in memory
/// gets a copy that needs none (schedule/pad_operands.cpp). Of long rows few vectors reach the
/// border: 2 of 7 are worth less than storing the image and copying it, 2 of 4 more.
bool Planner::is_read_to_its_border(NodeRef n, const std::vector<Use>& wanted) const {
  if (!is_static(n) || n->rank() == 0 || !options.fuse || !options.layouts) return false;
  double total = 0;
  for (const Use& d : wanted) {
    const std::vector<NodeRef> inside = conjuncts(d.access.valid);
    const bool ends = std::ranges::any_of(d.access.index, [&](NodeRef i) {
      return i->op == Op::Add && contains(inside, g.le(g.index(0), i));
    });
    if (ends && in_reduce(d)) total += evaluations(d);
  }
  const double numel = largest_numel(n->shape->span());
  const auto row = static_cast<double>(n->dim(n->rank() - 1)->vmax);
  const double vectors = std::ceil(row / static_cast<double>(target.lanes(n->dtype)));
  return pays_padding(total, numel) && total * std::min(1.0, 2 / vectors) >= kMaskedReads * numel;
}

void pad_operands(Planner& plan) {
  if (plan.options.layouts && plan.options.fuse) Padder(plan).run();
}

}  // namespace weft
