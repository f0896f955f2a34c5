#include "weft/tensor/split_repeat.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/graph/tuple.h"
#include "weft/rewrite/driver.h"
#include "weft/tensor/batching.h"

namespace weft {

namespace {

bool is_sum(NodeRef n) {
  return n->op == Op::Reduce && static_cast<Fold>(n->int_arg(0)) == Fold::Add;
}
/// The same elements elsewhere.
bool is_move(NodeRef n) {
  return is_movement(n->op) || n->op == Op::Contiguous || n->op == Op::Detach;
}
NodeRef moved(NodeRef n) {
  while (is_move(n)) n = n->src(0);
  return n;
}
/// What is summed, where it is products; else null.
NodeRef product_of(NodeRef sum) {
  NodeRef product = is_sum(sum) ? moved(sum->src(0)) : nullptr;
  return product && product->op == Op::Mul ? product : nullptr;
}
/// What can be made for every round at once.
bool is_plain(NodeRef n) { return is_alu(n->op) || is_move(n) || n->op == Op::Reduce; }

std::span<const NodeRef> evaluated_from(NodeRef n) { return n->src().first(evaluated_sources(n)); }

double bytes_of(NodeRef n) {
  double bytes = bits(n->dtype) / 8.0;
  for (NodeRef dim : n->shape->span()) bytes *= static_cast<double>(dim->vmax);
  return bytes;
}

Dims without_first(const Tensor& x) {
  Dims dims = x.dims();
  dims.erase(0);
  return dims;
}

}  // namespace

SplitRepeat::SplitRepeat(TracedRepeat given)
    : rest_(std::move(given)), context_(Context::current()), g_(tensor_graph(context_)) {
  const Graph::Building building(g_);
  for (const Tensors* given_to : {&rest_.slices, &rest_.carried})
    for (const Tensor& x : *given_to) room_ += bytes_of(x.node());
  look();
  make_early();
  make_late();
  offer_products();
}

void SplitRepeat::look() {
  std::vector<NodeRef> roots = nodes_of(rest_.body.carried);
  for (const Tensor& out : rest_.body.outs) roots.push_back(out.node());
  order_.clear(), waits_ = {}, early_ = {}, uses_ = {};
  for (const Tensor& c : rest_.carried) waits_[c.node()] = true;
  for (const Tensor& s : rest_.slices) early_[s.node()] = true;
  for (NodeRef root : roots) ++uses_[root];
  for (NodeRef n : Toposort(roots))
    for (NodeRef s : n->src()) ++uses_[s];
  // What gradients that a body brings along would compute is no part of a round.
  for (NodeRef n : Toposort::evaluated(roots)) {
    bool waits = false, varies = false;
    for (NodeRef s : evaluated_from(n)) {
      waits |= waits_.contains(s);
      varies |= early_.contains(s);
    }
    if (waits || (varies && !is_plain(n)))
      waits_[n] = true;
    else if (varies)
      early_[n] = true;
    order_.push_back(n);
  }
}

int64_t SplitRepeat::uses(NodeRef n) const {
  const int64_t* found = uses_.find(n);
  return found ? *found : 0;
}

bool SplitRepeat::affords(std::span<const NodeRef> values) {
  double bytes = 0;
  for (NodeRef n : values) bytes += bytes_of(n);
  if (bytes > room_) return false;
  room_ -= bytes;
  return true;
}

NodeMap<NodeRef> SplitRepeat::stacks() const {
  NodeMap<NodeRef> images;
  for (size_t i = 0; i < rest_.slices.size(); ++i)
    images.set(rest_.slices[i].node(), rest_.inputs.stacked[i].node());
  return images;
}

/// With what the body is given whole in the place of placeholders.
Tensor SplitRepeat::with_whole(NodeRef value) const {
  NodeMap<NodeRef> given;
  for (size_t i = 0; i < rest_.whole.size(); ++i)
    given.set(rest_.whole[i].node(), rest_.inputs.whole[i].node());
  return TensorAccess::make(context_, substitute(g_, value, given));
}

// ---- before the rounds

/// Sums of products of what varies with what does not, the last ones on the way to what waits.
std::vector<NodeRef> SplitRepeat::early_products() const {
  const auto is_early = [this](NodeRef n) { return early_.contains(n); };
  const auto shares_whole = [&](NodeRef sum) {
    NodeRef product = product_of(sum);
    if (!product) return false;
    NodeRef a = product->src(0), b = product->src(1);
    return is_early(a) != is_early(b) && moved(is_early(a) ? b : a)->rank() > 0;
  };
  std::vector<NodeRef> found, left;
  NodeSet seen;
  for (NodeRef n : order_)
    if (waits_.contains(n))
      std::ranges::copy_if(evaluated_from(n), std::back_inserter(left), is_early);
  while (!left.empty()) {
    NodeRef n = left.back();
    left.pop_back();
    if (!seen.insert(n)) continue;
    if (shares_whole(n))
      found.push_back(n);
    else
      std::ranges::copy_if(n->src(), std::back_inserter(left), is_early);
  }
  return found;
}

void SplitRepeat::make_early() {
  const std::vector<NodeRef> products = early_products();
  if (products.empty() || !affords(products)) return;
  Batching batching(g_, g_.index(rest_.inputs.count), stacks());
  NodeMap<NodeRef> slices;
  for (NodeRef product : products) {
    const Tensor stack = with_whole(batching.batched(product));
    rest_.inputs.stacked.push_back(stack);
    rest_.slices.push_back(placeholder(stack, without_first(stack)));
    slices.set(product, rest_.slices.back().node());
  }
  for (Tensors* results : {&rest_.body.carried, &rest_.body.outs})
    for (Tensor& x : *results) x = TensorAccess::make(context_, substitute(g_, x.node(), slices));
  look();
}

void SplitRepeat::offer_products() {
  look();
  const auto is_whole = [this](NodeRef n) {
    return !waits_.contains(n) && !early_.contains(n) && moved(n)->rank() > 0;
  };
  const std::vector<NodeRef> outs = nodes_of(rest_.body.outs);
  for (NodeRef sum : order_) {
    NodeRef product = product_of(sum);
    if (!product || contains(outs, sum) || !waits_.contains(product)) continue;
    if (is_whole(product->src(0)) == is_whole(product->src(1)) || !affords({&sum, 1})) continue;
    offered_.push_back(TensorAccess::make(context_, sum));
  }
}

// ---- after the rounds

/// What is added in each round to something carried that is nowhere else looked at; else null.
NodeRef SplitRepeat::summand(size_t carry) const {
  NodeRef next = rest_.body.carried[carry].node(), before = rest_.carried[carry].node();
  if (next->op != Op::Add || uses(next) != 1 || uses(before) != 1) return nullptr;
  if (next->src(0) == before) return next->src(1);
  return next->src(1) == before ? next->src(0) : nullptr;
}

/// Of a sum that may have been moved.
bool SplitRepeat::is_used_once(NodeRef product) const {
  while (is_move(product) && uses(product) == 1) product = product->src(0);
  return is_sum(product) && uses(product) == 1;
}

/// The factors of a late product that are not early.
std::vector<NodeRef> SplitRepeat::late_factors(NodeRef value) const {
  NodeRef product = moved(moved(value)->src(0));
  std::vector<NodeRef> factors{product}, late;
  if (product->op == Op::Mul) factors = {moved(product->src(0)), moved(product->src(1))};
  for (NodeRef n : factors)
    if (waits_.contains(n)) late.push_back(n);
  return late;
}

void SplitRepeat::find_late() {
  for (size_t k = 0; k < rest_.carried.size(); ++k) {
    NodeRef value = summand(k);
    late_sums_.push_back(value && is_used_once(value) ? value : nullptr);
  }
  for (const Tensor& out : rest_.body.outs) {
    const bool late = waits_.contains(out.node()) && is_used_once(out.node());
    late_outs_.push_back(late ? out.node() : nullptr);
  }
  for (const auto* late : {&late_sums_, &late_outs_})
    for (NodeRef value : *late)
      if (value)
        for (NodeRef factor : late_factors(value))
          if (!contains(cuts_, factor)) cuts_.push_back(factor);
}

void SplitRepeat::make_late() {
  find_late();
  const std::vector<NodeRef> outs = nodes_of(rest_.body.outs);
  std::vector<NodeRef> more;
  for (NodeRef cut : cuts_)
    if (!contains(outs, cut)) more.push_back(cut);
  // A body is to have results.
  const auto all_late = [](const std::vector<NodeRef>& late) {
    return std::ranges::none_of(late, [](NodeRef n) { return n == nullptr; });
  };
  if ((cuts_.empty() && all_late(late_sums_) && all_late(late_outs_)) || !affords(more)) {
    late_sums_.assign(late_sums_.size(), nullptr);
    late_outs_.assign(late_outs_.size(), nullptr);
    return cuts_.clear();
  }
  leave_out();
}

/// The late ones from the rest; their factors are outs.
void SplitRepeat::leave_out() {
  const auto remove = [](Tensors& from, const std::vector<NodeRef>& late, Tensors* removed) {
    Tensors kept;
    for (size_t k = 0; k < from.size(); ++k) {
      if (!late[k]) kept.push_back(from[k]);
      if (late[k] && removed) removed->push_back(from[k]);
    }
    from = std::move(kept);
  };
  remove(rest_.inputs.carried, late_sums_, &begins_);
  remove(rest_.carried, late_sums_, nullptr);
  remove(rest_.body.carried, late_sums_, nullptr);
  remove(rest_.body.outs, late_outs_, nullptr);
  for (NodeRef cut : cuts_) {
    const std::vector<NodeRef> outs = nodes_of(rest_.body.outs);
    const auto place = std::ranges::find(outs, cut);
    places_.push_back(static_cast<size_t>(place - outs.begin()));
    if (place == outs.end()) rest_.body.outs.push_back(TensorAccess::make(context_, cut));
  }
}

RepeatBody SplitRepeat::results(const RepeatBody& of_rest) const {
  const Graph::Building building(g_);
  NodeMap<NodeRef> images = stacks();
  for (size_t i = 0; i < cuts_.size(); ++i) images.set(cuts_[i], of_rest.outs[places_[i]].node());
  Batching batching(g_, g_.index(rest_.inputs.count), std::move(images));
  const auto of_all = [&](NodeRef value) { return with_whole(batching.batched(value)); };

  RepeatBody all;
  size_t carried = 0, outs = 0, sums = 0;
  for (NodeRef value : late_sums_)
    all.carried.push_back(value ? begins_[sums++] + of_all(value).sum(0)
                                : of_rest.carried[carried++]);
  for (NodeRef value : late_outs_) all.outs.push_back(value ? of_all(value) : of_rest.outs[outs++]);
  return all;
}

}  // namespace weft
