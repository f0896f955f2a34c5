#include "tests/support/index_expression.h"

#include "weft/base/error.h"
#include "weft/base/format.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print.h"

namespace weft {

namespace {

int64_t floored(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t apply_index(Op op, const std::vector<int64_t>& v) {
  switch (op) {
    case Op::Neg: return -v[0];
    case Op::Add: return v[0] + v[1];
    case Op::Mul: return v[0] * v[1];
    case Op::IDiv: return v[1] == 0 ? 0 : floored(v[0], v[1]);
    case Op::Mod: return v[1] == 0 ? 0 : v[0] - v[1] * floored(v[0], v[1]);
    case Op::Max: return v[0] > v[1] ? v[0] : v[1];
    case Op::Min: return v[0] < v[1] ? v[0] : v[1];
    case Op::Lt: return v[0] < v[1];
    case Op::Le: return v[0] <= v[1];
    case Op::Eq: return v[0] == v[1];
    case Op::Ne: return v[0] != v[1];
    case Op::And: return v[0] & v[1];
    case Op::Or: return v[0] | v[1];
    case Op::Not: return !v[0];
    case Op::Where: return v[0] ? v[1] : v[2];
    default: internal_error("test", "{} in an index expression", info(op).mnemonic);
  }
}

constexpr Op kIndexOps[] = {Op::Add,  Op::Add, Op::Add, Op::Mul, Op::Mul,
                            Op::IDiv, Op::Mod, Op::Max, Op::Min, Op::Neg};
constexpr Op kCompareOps[] = {Op::Lt, Op::Le, Op::Eq, Op::Ne};
constexpr Op kBoolOps[] = {Op::And, Op::Or, Op::Not};
// Past this, products of products would leave int64.
constexpr int64_t kLargest = 1 << 20;

}  // namespace

int64_t index_value(NodeRef root, const LeafValues& leaves) {
  NodeMap<int64_t> values;
  std::vector<int64_t> operands;
  for (NodeRef n : Toposort(root)) {
    if (n->op == Op::Const) {
      values[n] = n->vmin;
    } else if (n->op == Op::Range || n->op == Op::Variable) {
      values[n] = leaves.at(n);
    } else {
      operands.clear();
      for (NodeRef s : n->src()) operands.push_back(values.at(s));
      values[n] = apply_index(n->op, operands);
    }
  }
  return values.at(root);
}

RandomIndex::RandomIndex(Graph& graph, uint64_t seed) : graph_(graph), random_(seed) {
  const int64_t multiple = random_.chance(30) ? 2 : 1;
  const int64_t least = multiple * random_.between(0, 2);
  NodeRef n = graph.variable("n", least, least + multiple * random_.between(0, 2), multiple);
  NodeRef r0 = graph.range(random_.between(1, 6), 0);
  NodeRef r1 = graph.range(random_.chance(30) ? n : graph.index(random_.between(1, 5)), 1);
  NodeRef r2 = graph.range(
      random_.chance(30) ? graph.add(r0, graph.index(1)) : graph.index(random_.between(1, 4)), 2);
  for (NodeRef leaf : {n, r0, r1, r2}) add_leaf(leaf);
  find_points();
}

void RandomIndex::add_leaf(NodeRef n) {
  written_.push_back({n->op, 0, n, {}});
  nodes_.push_back(n);
}

void RandomIndex::find_points() {
  NodeRef n = nodes_[0];
  for (int64_t v = n->int_arg(0); v <= n->int_arg(1); v += n->int_arg(2)) {
    std::vector<LeafValues> points = {{{n, v}}};
    for (size_t i = 1; i < 4; ++i) {
      std::vector<LeafValues> longer;
      for (const LeafValues& p : points)
        for (int64_t r = 0; r < index_value(nodes_[i]->src(0), p); ++r) {
          longer.push_back(p);
          longer.back()[nodes_[i]] = r;
        }
      points = std::move(longer);
    }
    points_.insert(points_.end(), points.begin(), points.end());
  }
}

size_t RandomIndex::pick(bool boolean) {
  // Constants are as likely as what is there already; recent expressions nest.
  if (!boolean && random_.chance(35)) {
    const int64_t constants[] = {0, 1, 2, 3, 4, 5, 6, 8, 12, -1, -2, -3, -7};
    const int64_t c = constants[random_.below(13)];
    written_.push_back({Op::Const, c, nullptr, {}});
    nodes_.push_back(graph_.index(c));
    return nodes_.size() - 1;
  }
  for (int attempt = 0; attempt < 50; ++attempt) {
    const auto i = static_cast<size_t>(random_.below(static_cast<int64_t>(nodes_.size())));
    const bool small = nodes_[i]->vmin > -kLargest && nodes_[i]->vmax < kLargest;
    if (is_bool(i) == boolean && small) return i;
  }
  if (!boolean) return 1;
  add(Op::Lt, {1, 2});
  return nodes_.size() - 1;
}

void RandomIndex::add(Op op, std::vector<size_t> args) {
  std::vector<NodeRef> src;
  for (const size_t a : args) src.push_back(nodes_[a]);
  const DType dtype = has_trait(op, kBoolResult) ? DType::Bool
                      : op == Op::Where          ? src[1]->dtype
                                                 : src[0]->dtype;
  nodes_.push_back(graph_.make({op, dtype, src}));
  written_.push_back({op, 0, nullptr, std::move(args)});
}

void RandomIndex::grow() {
  const int64_t kind = random_.below(10);
  if (kind < 7) {
    const Op op = kIndexOps[random_.below(10)];
    std::vector<size_t> args = {pick(false)};
    if (info(op).arity == 2) args.push_back(pick(false));
    return add(op, std::move(args));
  }
  if (kind == 7) {
    const size_t a = pick(false), b = pick(false);
    return add(kCompareOps[random_.below(4)], {a, b});
  }
  if (kind == 8) {
    const Op op = kBoolOps[random_.below(3)];
    std::vector<size_t> args = {pick(true)};
    if (info(op).arity == 2) args.push_back(pick(true));
    return add(op, std::move(args));
  }
  const size_t c = pick(true), a = pick(false), b = pick(false);
  add(Op::Where, {c, a, b});
}

int64_t RandomIndex::value(size_t i, const LeafValues& leaves) const {
  std::vector<int64_t> values(i + 1), operands;
  for (size_t k = 0; k <= i; ++k) {
    const WrittenExpression& w = written_[k];
    operands.clear();
    for (const size_t a : w.args) operands.push_back(values[a]);
    values[k] = w.leaf              ? leaves.at(w.leaf)
                : w.op == Op::Const ? w.constant
                                    : apply_index(w.op, operands);
  }
  return values[i];
}

std::string RandomIndex::text(size_t i) const {
  const WrittenExpression& w = written_[i];
  if (w.leaf) return expression(w.leaf);
  if (w.op == Op::Const) return strformat("{}", w.constant);
  std::string out = std::string(info(w.op).mnemonic) + "(";
  for (size_t a = 0; a < w.args.size(); ++a) out += (a ? ", " : "") + text(w.args[a]);
  return out + ")";
}

}  // namespace weft
