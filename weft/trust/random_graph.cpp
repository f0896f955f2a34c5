#include "weft/trust/random_graph.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"
#include "weft/trust/random_leaves.h"

namespace weft {
namespace {

constexpr DType kAllData[] = {DType::Bool, DType::I8,  DType::I16, DType::I32, DType::I64,
                              DType::U8,   DType::U16, DType::U32, DType::U64, DType::F16,
                              DType::BF16, DType::F32, DType::F64};
constexpr DType kIndexTypes[] = {DType::I32, DType::I64, DType::I8, DType::U32};

/// Every op of one operand and its dtype: those that take small integers to such, then those that
/// are rounded once, then approximate ones.
struct Choices {
  std::vector<Op> list;
  size_t exact, rounded;

  Choices(OpGroup group, std::vector<Op> first) : list(std::move(first)), group_(group) {
    add(kIntOnly, 0);
    exact = list.size();
    add(0, kApproximate);
    rounded = list.size();
    add(kApproximate, 0);
  }
  /// Ops with the trait `with` (0: any) and without the trait `without`.
  void add(uint16_t with, uint16_t without) {
    for (const OpInfo& row : kOps) {
      const bool converts = row.op == Op::Cast || row.op == Op::Bitcast || row.op == Op::ToIndex;
      const bool listed = std::find(list.begin(), list.end(), row.op) != list.end();
      if (row.group == group_ && !converts && !listed && (row.traits & with) == with &&
          (row.traits & (without | kBoolResult)) == 0)
        list.push_back(row.op);
    }
  }
  Op pick(Random& random, const RandomGraphOptions& options) const {
    return list[random.below(options.exact            ? exact
                             : options.transcendental ? list.size()
                                                      : rounded)];
  }

 private:
  OpGroup group_;
};

class Generator {
 public:
  Generator(Graph& graph, uint64_t seed, const RandomGraphOptions& options)
      : g_(graph), random_(seed), options_(options), leaves_(graph, random_, options) {
    dtypes_ = options.dtypes;
    if (dtypes_.empty()) dtypes_.assign(std::begin(kAllData), std::end(kAllData));
  }

  RandomGraph run() {
    pool_.push_back(fresh(nullptr));
    for (int done = 0, tries = 0; done < options_.steps && tries < 20 * options_.steps; ++tries) {
      // Mostly on top of the latest, so that graphs are deep.
      NodeRef n = step(random_.chance(60) ? pool_.back() : random_.pick(pool_));
      if (!n) continue;
      pool_.push_back(n);
      ++done;
    }
    RandomGraph out;
    out.roots.push_back(pool_.back());
    if (random_.chance(20)) out.roots.push_back(random_.pick(pool_));
    leaves_.give_inputs(out);
    return out;
  }

 private:
  using Dims = RandomDims;
  using Method = NodeRef (Generator::*)(NodeRef x);

  // ---- building

  /// Null where the node would not be valid; then the caller tries something else.
  NodeRef build(Op op, DType dtype, std::vector<NodeRef> src, std::vector<int64_t> ints = {}) {
    const NodeSpec spec{op, dtype, src, ints, {}, 1};
    if (node_problem(spec, static_cast<uint8_t>(Dialect::Tensor))) return nullptr;
    NodeRef n = options_.simplify ? g_.make(spec) : g_.intern(spec);
    int64_t most = 1;  // products of many sizes stay in range: each step multiplies by a few
    for (NodeRef d : n->shape->span()) most *= d->vmax;
    return most <= options_.largest ? n : nullptr;
  }
  NodeRef build_with_dims(Op op, NodeRef x, const Dims& dims, std::vector<int64_t> ints = {}) {
    std::vector<NodeRef> src = {x};
    src.insert(src.end(), dims.begin(), dims.end());
    return build(op, x->dtype, src, std::move(ints));
  }
  /// A number of elements that an axis of this size is sure to have.
  int64_t some_of(NodeRef size) { return random_.between(0, std::max<int64_t>(0, size->vmin)); }
  static Dims dims_of(NodeRef n) { return {n->shape->span().begin(), n->shape->span().end()}; }
  NodeRef param(DType dtype, const Dims& dims) { return leaves_.param(dtype, dims); }
  NodeRef one() { return g_.index(1); }

  // ---- leaves

  /// Something of this dtype that goes with x: x itself, another node, a new param or a constant.
  NodeRef partner(NodeRef x, DType dtype) {
    if (random_.chance(25)) return leaves_.number(dtype);
    std::vector<NodeRef> fitting;
    for (NodeRef n : pool_)
      if (n->dtype == dtype && n->shape == x->shape) fitting.push_back(n);
    if (!fitting.empty() && random_.chance(70)) return random_.pick(fitting);
    return param(dtype, dims_of(x));
  }

  // ---- elementwise

  NodeRef unary(NodeRef x) {
    static const Choices ops(OpGroup::Unary, {Op::Neg, Op::Not, Op::Trunc});
    return build(ops.pick(random_, options_), x->dtype, {x});
  }
  NodeRef binary(NodeRef x) {
    static const Choices ops(OpGroup::Binary, {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or,
                                               Op::Xor, Op::Shl, Op::Shr, Op::IDiv, Op::Mod});
    const Op op = ops.pick(random_, options_);
    NodeRef y = partner(x, x->dtype);
    return random_.chance(50) ? build(op, x->dtype, {x, y}) : build(op, x->dtype, {y, x});
  }
  NodeRef compare(NodeRef x) {
    constexpr Op ops[] = {Op::Lt, Op::Le, Op::Eq, Op::Ne};
    const Op op = random_.pick(ops);
    return build(op, DType::Bool, {x, partner(x, x->dtype)});
  }
  NodeRef where(NodeRef x) {
    return build(Op::Where, x->dtype, {partner(x, DType::Bool), x, partner(x, x->dtype)});
  }
  NodeRef multiply_add(NodeRef x) {
    return build(Op::MulAcc, x->dtype, {x, partner(x, x->dtype), partner(x, x->dtype)});
  }
  NodeRef cast(NodeRef x) { return build(Op::Cast, random_.pick(dtypes_), {x}); }
  NodeRef bitcast(NodeRef x) {
    // Any bits may come out, so a float would leave the exact values.
    const DType to = random_.pick(dtypes_);
    if (options_.exact && is_float(to)) return nullptr;
    // Which NaN an op gives is not defined, so none may show its bits.
    NodeRef number = is_float(x->dtype) ? build(Op::Eq, DType::Bool, {x, x}) : nullptr;
    NodeRef one = g_.constant(Value::of(x->dtype, 1));
    return build(Op::Bitcast, to, {number ? build(Op::Where, x->dtype, {number, x, one}) : x});
  }

  // ---- movement

  NodeRef reshape(NodeRef x) {
    Dims dims = dims_of(x);
    if (dims.size() >= 2 && random_.chance(50)) {
      const auto a = static_cast<size_t>(random_.below(static_cast<int64_t>(dims.size()) - 1));
      dims[a] = g_.mul(dims[a], dims[a + 1]);
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(a) + 1);
    } else {
      const auto at = random_.below(static_cast<int64_t>(dims.size()) + 1);
      dims.insert(dims.begin() + at, one());
      const auto a = static_cast<size_t>(at);
      NodeRef factor = g_.index(random_.between(2, 3));
      NodeRef part = a + 1 < dims.size() ? g_.idiv(dims[a + 1], factor) : nullptr;
      if (part && g_.mul(part, factor) == dims[a + 1]) {
        dims[a] = factor;
        dims[a + 1] = part;
      }
    }
    return build_with_dims(Op::Reshape, x, dims);
  }
  NodeRef expand(NodeRef x) {
    Dims dims = dims_of(x);
    dims.insert(dims.begin() + random_.below(static_cast<int64_t>(dims.size()) + 1), one());
    NodeRef reshaped = build_with_dims(Op::Reshape, x, dims);
    if (!reshaped) return nullptr;
    for (NodeRef& d : dims)
      if (d == one() && random_.chance(70)) d = leaves_.size(random_.chance(5) ? 0 : 1, 4);
    return build_with_dims(Op::Expand, reshaped, dims);
  }
  NodeRef permute(NodeRef x) {
    std::vector<int64_t> axes;
    for (int64_t a = 0; a < x->rank(); ++a) axes.insert(axes.begin() + random_.below(a + 1), a);
    return build(Op::Permute, x->dtype, {x}, axes);
  }
  NodeRef pad(NodeRef x) {
    Dims amounts(2 * x->rank());
    for (NodeRef& a : amounts) a = random_.chance(50) ? leaves_.size(0, 2) : g_.index(0);
    std::vector<int64_t> interior(x->rank());
    for (int64_t& i : interior) i = random_.chance(20) ? random_.between(1, 2) : 0;
    return build_with_dims(Op::Pad, x, amounts, interior);
  }
  NodeRef shrink_axes(NodeRef x) {
    Dims begins, sizes;
    std::vector<int64_t> steps;
    for (NodeRef d : dims_of(x)) {
      const int64_t step = random_.chance(30) ? random_.between(2, 3) : 1;
      const int64_t away = some_of(d);
      // From the front or, where that is not the same, some from the back.
      const bool back = d->op != Op::Const && random_.chance(30);
      NodeRef begin = back ? g_.sub(d, g_.index(away)) : g_.index(away);
      NodeRef room = g_.idiv(g_.add(g_.sub(d, begin), g_.index(step - 1)), g_.index(step));
      const bool all = random_.chance(70);
      steps.push_back(step);
      begins.push_back(begin);
      sizes.push_back(all ? room : g_.index(some_of(room)));
    }
    begins.insert(begins.end(), sizes.begin(), sizes.end());
    return build_with_dims(Op::Shrink, x, begins, steps);
  }
  NodeRef flip(NodeRef x) {
    std::vector<int64_t> axes;
    for (int64_t a = 0; a < x->rank(); ++a)
      if (random_.chance(50)) axes.push_back(a);
    return build(Op::Flip, x->dtype, {x}, axes);
  }
  NodeRef window(NodeRef x) {
    if (x->rank() == 0) return nullptr;
    const int64_t axis = random_.below(x->rank()), size = random_.between(1, 3);
    const int64_t stride = random_.between(1, 3), dilation = random_.between(1, 2);
    if (x->dim(static_cast<size_t>(axis))->vmin < dilation * (size - 1) + 1) return nullptr;
    return build(Op::Window, x->dtype, {x}, {axis, size, stride, dilation});
  }
  NodeRef unwindow(NodeRef x) {
    if (x->rank() < 2 || dims_of(x).back()->op != Op::Const) return nullptr;
    NodeRef n = leaves_.size(1, 8);
    return build(Op::Unwindow, x->dtype, {x, n},
                 {random_.below(x->rank() - 1), dims_of(x).back()->vmin, random_.between(1, 3),
                  random_.between(1, 2)});
  }

  // ---- folds, indices, stores

  int64_t random_fold(DType d) {
    if (!is_float(d)) return random_.between(1, 6);
    if (!options_.float_sums || (options_.exact && bits(d) < 32)) return random_.between(3, 4);
    const int64_t fold = random_.between(1, 4);
    const bool product = fold == static_cast<int64_t>(Fold::Mul);
    return options_.exact && product ? static_cast<int64_t>(Fold::Add) : fold;
  }
  NodeRef reduce(NodeRef x) {
    std::vector<int64_t> ints = {random_fold(x->dtype)};
    for (int64_t a = 0; a < x->rank(); ++a)
      if (random_.chance(60)) ints.push_back(a);
    if (ints.size() == 1) return nullptr;
    return build(Op::Reduce, x->dtype, {x}, ints);
  }
  /// A product with what lies the other way round, folded over several axes: which of them is the
  /// outer loop must not depend on which operand comes first.
  NodeRef contraction(NodeRef x) {
    if (x->rank() < 2 || options_.exact) return nullptr;  // exact values have to stay small
    if (NodeRef padded = random_.chance(70) ? pad(x) : nullptr) x = padded;
    const Dims dims = dims_of(x);
    std::vector<int64_t> axes;
    for (int64_t a = x->rank(); a-- > 0;) axes.push_back(a);
    NodeRef w = build(Op::Permute, x->dtype, {param(x->dtype, {dims.rbegin(), dims.rend()})}, axes);
    NodeRef product = w ? build(Op::Mul, x->dtype, {x, w}) : nullptr;
    return product ? reduce(product) : nullptr;
  }
  /// x with what a reduction of it gives, repeated along the axes that are gone: a normalisation.
  NodeRef beside_its_reduction(NodeRef x) {
    NodeRef reduced = reduce(x);
    if (!reduced) return nullptr;
    Dims kept = dims_of(reduced), dims;
    for (NodeRef d : dims_of(x)) {
      dims.push_back(!kept.empty() && kept.front() == d ? d : one());
      if (!kept.empty() && kept.front() == d) kept.erase(kept.begin());
    }
    NodeRef shaped = kept.empty() ? build_with_dims(Op::Reshape, reduced, dims) : nullptr;
    NodeRef repeated = shaped ? build_with_dims(Op::Expand, shaped, dims_of(x)) : nullptr;
    constexpr Op ops[] = {Op::Add, Op::Mul, Op::Max};
    const Op op = random_.pick(ops);
    return repeated ? build(op, x->dtype, {x, repeated}) : nullptr;
  }
  NodeRef scan(NodeRef x) {
    if (x->rank() == 0) return nullptr;
    const int64_t kind = random_fold(x->dtype);
    return build(Op::Scan, x->dtype, {x}, {kind, random_.below(x->rank())});
  }
  /// argmax-like: a running extreme and where it was first seen.
  NodeRef loop(NodeRef x) {
    if (x->rank() == 0) return nullptr;
    const int64_t axis = random_.below(x->rank()), id = ++loops_;
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    NodeRef place = build(Op::Iota, DType::I32, dims, {axis});
    NodeRef value = build(Op::Elem, x->dtype, {}, {0, id}),
            at = build(Op::Elem, DType::I32, {}, {1, id});
    NodeRef best = build(Op::Carry, x->dtype, {}, {0, id});
    NodeRef best_at = build(Op::Carry, DType::I32, {}, {1, id});
    NodeRef better = build(random_.chance(50) ? Op::Lt : Op::Le, DType::Bool, {best, value});
    NodeRef new_best = build(Op::Where, x->dtype, {better, value, best});
    NodeRef new_at = build(Op::Where, DType::I32, {better, at, best_at});
    std::vector<int64_t> ints = {id, 2, 2, random_.chance(options_.folds ? 70 : 30)};
    for (int64_t a = 0; a < x->rank(); ++a)
      if (a == axis || random_.chance(20)) ints.push_back(a);
    NodeRef n = build(Op::Loop, DType::Void,
                      {x, place, g_.constant(leaves_.value(x->dtype, -4, 4)),
                       g_.constant(Value::of(DType::I32, 0)), new_best, new_at},
                      ints);
    const int64_t k = random_.below(2);
    return n ? build(Op::Get, k ? DType::I32 : x->dtype, {n}, {k}) : nullptr;
  }
  NodeRef iota(NodeRef x) {
    if (x->rank() == 0) return nullptr;
    std::vector<NodeRef> dims(x->shape->span().begin(), x->shape->span().end());
    const bool as_index = random_.chance(30);
    const DType dtype = as_index ? DType::Index : random_.pick(kIndexTypes);
    NodeRef n = build(Op::Iota, dtype, dims, {random_.below(x->rank())});
    return n && as_index ? build(Op::Cast, DType::I32, {n}) : n;
  }
  /// Indices into an axis of x, some of them outside.
  NodeRef places(NodeRef x, int64_t axis) {
    Dims dims = dims_of(x);
    NodeRef& size = dims[static_cast<size_t>(axis)];
    const int64_t most = size->vmax;
    size = leaves_.size(1, 4);
    return leaves_.param(random_.pick(kIndexTypes), dims, -1, most);
  }
  NodeRef gather(NodeRef x) {
    if (x->rank() == 0) return nullptr;
    const int64_t axis = random_.below(x->rank());
    return build(Op::Gather, x->dtype, {x, places(x, axis)}, {axis});
  }
  NodeRef scatter(NodeRef x) {
    if (x->rank() == 0) return nullptr;
    const int64_t axis = random_.below(x->rank());
    NodeRef index = places(x, axis);
    if (is_int(x->dtype) && random_.chance(30))
      return build(Op::CumCount, x->dtype, {x, index}, {axis});
    const int64_t combine = random_.chance(50) ? 0 : random_fold(x->dtype);
    NodeRef values = param(x->dtype, dims_of(index));
    return build(Op::Scatter, x->dtype, {x, index, values}, {axis, combine, 0});
  }
  NodeRef assign(NodeRef x) {
    NodeRef view = x;
    for (int i = 0; i < 3; ++i) {
      constexpr Method views[] = {&Generator::reshape, &Generator::permute, &Generator::flip,
                                  &Generator::shrink_axes};
      NodeRef next = (this->*random_.pick(views))(view);
      if (next && is_movement(next->op)) view = next;
    }
    NodeRef value = random_.chance(50) ? param(x->dtype, dims_of(view)) : partner(view, x->dtype);
    return value->shape == view->shape ? build(Op::Assign, x->dtype, {x, view, value}) : nullptr;
  }
  /// Few parts, or enough of them that each is written where it belongs.
  NodeRef cat(NodeRef x) {
    if (x->rank() == 0) return nullptr;
    const int64_t axis = random_.below(x->rank());
    std::vector<NodeRef> parts{x};
    for (int64_t more = random_.chance(25) ? random_.between(8, 12) : random_.between(1, 3);
         more > 0; --more) {
      Dims dims = dims_of(x);
      if (random_.chance(50)) dims[static_cast<size_t>(axis)] = leaves_.size(0, 4);
      const bool again = dims == dims_of(x) && random_.chance(50);
      parts.push_back(again ? partner(x, x->dtype) : param(x->dtype, dims));
    }
    std::swap(parts[0], random_.pick(parts));
    return build(Op::Cat, x->dtype, parts, {axis});
  }
  NodeRef same(NodeRef x) {
    return build(random_.chance(50) ? Op::Contiguous : Op::Detach, x->dtype, {x});
  }
  /// One number everywhere.
  NodeRef full(NodeRef x) {
    const Dims ones(x->rank(), one());
    NodeRef n = build_with_dims(Op::Reshape, leaves_.number(random_.pick(dtypes_)), ones);
    return n ? build_with_dims(Op::Expand, n, dims_of(x)) : nullptr;
  }
  NodeRef fresh(NodeRef) {
    const DType dtype = random_.pick(dtypes_);
    return param(dtype, leaves_.shape());
  }

  NodeRef step(NodeRef x) {
    constexpr Method elementwise[] = {
        &Generator::unary,  &Generator::unary,        &Generator::binary,  &Generator::binary,
        &Generator::binary, &Generator::binary,       &Generator::compare, &Generator::where,
        &Generator::cast,   &Generator::multiply_add, &Generator::cast,    &Generator::bitcast,
        &Generator::full,   &Generator::reshape,      &Generator::expand,  &Generator::permute,
        &Generator::pad,    &Generator::flip,         &Generator::iota,    &Generator::shrink_axes,
        &Generator::same,   &Generator::fresh,
    };
    if (options_.elementwise) return (this->*random_.pick(elementwise))(x);
    constexpr Method steps[] = {
        &Generator::unary,        &Generator::binary,      &Generator::binary,
        &Generator::binary,       &Generator::compare,     &Generator::where,
        &Generator::multiply_add, &Generator::cast,        &Generator::bitcast,
        &Generator::reshape,      &Generator::expand,      &Generator::permute,
        &Generator::pad,          &Generator::flip,        &Generator::shrink_axes,
        &Generator::window,       &Generator::unwindow,    &Generator::reduce,
        &Generator::reduce,       &Generator::scan,        &Generator::loop,
        &Generator::iota,         &Generator::gather,      &Generator::scatter,
        &Generator::assign,       &Generator::same,        &Generator::fresh,
        &Generator::cat,          &Generator::contraction, &Generator::beside_its_reduction,
    };
    constexpr Method folds[] = {&Generator::beside_its_reduction, &Generator::scan,
                                &Generator::loop, &Generator::binary};
    if (options_.folds && random_.chance(70)) return (this->*random_.pick(folds))(x);
    return (this->*random_.pick(steps))(x);
  }

  Graph& g_;
  Random random_;
  const RandomGraphOptions& options_;
  std::vector<DType> dtypes_;
  RandomLeaves leaves_;
  std::vector<NodeRef> pool_;
  int64_t loops_ = 0;
};

}  // namespace

RandomGraph random_graph(Graph& graph, uint64_t seed, const RandomGraphOptions& options) {
  return Generator(graph, seed, options).run();
}

void end_in_sums(Graph& graph, RandomGraph& g, uint64_t seed) {
  Random random(seed);
  for (NodeRef& root : g.roots) {
    const DType stored = is_float(root->dtype) ? root->dtype : DType::F32;
    const DType carried = bits(stored) < 32 ? DType::F32 : stored;
    std::vector<int64_t> ints = {static_cast<int64_t>(Fold::Add)};
    for (int64_t a = 0; a < root->rank(); ++a)
      if (random.chance(70)) ints.push_back(a);
    const NodeRef src[] = {graph.cast(root, carried)};
    root = graph.cast(graph.make({Op::Reduce, carried, src, ints}), stored);
  }
}

std::vector<eval::Array> RandomGraph::evaluate(std::span<const NodeRef> nodes) const {
  std::vector<eval::Array> values;
  for (const eval::Inputs& binding : bindings)
    for (eval::Array& value : eval::evaluate(nodes, binding)) values.push_back(std::move(value));
  return values;
}

std::string describe(const RandomGraph& g) {
  std::vector<bool> used(g.bindings[0].params.size());
  for (NodeRef n : Toposort(g.roots))
    if (n->op == Op::Param) used[static_cast<size_t>(param_slot(n))] = true;
  std::string out;
  for (const eval::Inputs& binding : g.bindings) {
    for (const auto& [name, value] : binding.variables)
      out += strformat("# {} = {}\n", name, value);
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i]) out += strformat("# p{} = {}\n", i, binding.params[i].text(1000));
  }
  return out + print_graph(g.roots);
}

}  // namespace weft
