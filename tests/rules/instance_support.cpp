#include "tests/rules/instance_support.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>

#include "weft/base/format.h"
#include "weft/graph/fold.h"
#include "weft/lower/lower.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

constexpr DType kIntTypes[] = {DType::I8, DType::I16, DType::I32, DType::I64,
                               DType::U8, DType::U16, DType::U32, DType::U64};
constexpr DType kFloatTypes[] = {DType::F16, DType::BF16, DType::F32, DType::F64};

template <class T, size_t N>
T pick(const T (&from)[N], Random& random) {
  return from[random() % N];
}

Value random_constant(DType d, Random& random) {
  constexpr int64_t favourites[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, -1, -2, -3, -4};
  constexpr double reals[] = {0.5, -0.25, 2.0, 1e30, -0.0, 3.1, 1.5, -8.0};
  if (is_float(d) && random() % 2) return Value::of(d, pick(reals, random));
  return Value::of(d, pick(favourites, random));
}

Value random_value(DType d, Random& random) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double specials[] = {0.0, -0.0,  1.0,    -1.0,   0.5,    inf,     -inf,
                                 NAN, 1e-40, 1e-310, 65504., 3.4e38, 1.7e308, -2.75};
  if (is_float(d)) {
    if (random() % 3 == 0) return Value::of(d, pick(specials, random));
    const double scale = std::ldexp(1.0, static_cast<int>(random() % 60) - 30);
    return Value::of(d, (static_cast<double>(random() % 2001) - 1000) / 1000 * scale);
  }
  if (d == DType::Bool) return Value::boolean(random() & 1);
  if (random() % 2) return Value::of(d, static_cast<int64_t>(random() % 17) - 8);
  return Value::of(d, static_cast<uint64_t>(random()) >> (random() % 64));
}

/// Builds a term top-down from a pattern in postfix order: each node knows what dtype it must have.
class Grower {
 public:
  Grower(Graph& g, const Rule& rule, DType main, Random& random, int form)
      : g_(g), p_(rule.lhs), main_(main), random_(random), form_(form), shaped_(random() % 2) {}

  NodeRef grow() { return term(p_.size - 1, DType::Void); }

 private:
  struct Span {
    int first, last;  // nodes of a subpattern; the last is its root
  };

  static int sources(const PatNode& n) {
    switch (n.kind) {
      case PatKind::Op: return n.nsrc;
      case PatKind::Bind:
      case PatKind::Typed: return 1;
      default: return 0;
    }
  }
  /// The roots of the sources of the node at `at`.
  std::vector<int> source_roots(int at) const {
    std::vector<int> roots;
    int end = at - 1;
    for (int k = sources(p_.node[at]); k > 0; --k) {
      roots.insert(roots.begin(), end);
      end = first_of(end) - 1;
    }
    return roots;
  }
  int first_of(int at) const {
    for (int need = 1; need > 0; --at) need += sources(p_.node[at]) - 1;
    return at + 1;
  }

  /// A variable of the domain stands here, seen through ops that keep the dtype.
  bool has_direct_variable(int at) const {
    const PatNode& n = p_.node[at];
    if (n.kind == PatKind::Any) return n.arg < kFirstBoolSlot;
    if (n.kind == PatKind::Const) return true;
    if (n.kind == PatKind::Op) {
      const Op op = static_cast<Op>(n.op);
      if (op == Op::Cast || op == Op::Bitcast || has_trait(op, kBoolResult)) return false;
    }
    std::vector<int> roots = source_roots(at);
    if (n.kind == PatKind::Op && static_cast<Op>(n.op) == Op::Where) roots.erase(roots.begin());
    for (int r : roots)
      if (has_direct_variable(r)) return true;
    return false;
  }
  bool has_bool_variable(int at) const {
    const PatNode& n = p_.node[at];
    if (n.kind == PatKind::Any) return n.arg >= kFirstBoolSlot;
    if (n.kind == PatKind::Op && has_trait(static_cast<Op>(n.op), kBoolResult)) return true;
    if (n.kind == PatKind::Op && !is_data_op(static_cast<Op>(n.op))) return false;
    std::vector<int> roots = source_roots(at);
    if (n.kind == PatKind::Op && static_cast<Op>(n.op) == Op::Where) roots.erase(roots.begin());
    for (int r : roots)
      if (has_bool_variable(r)) return true;
    return false;
  }
  static bool is_data_op(Op op) { return op != Op::Cast && op != Op::Bitcast; }

  DType any_dtype() {
    constexpr DType all[] = {DType::I8,  DType::I16, DType::I32, DType::I64,  DType::U8,
                             DType::U16, DType::U32, DType::U64, DType::F16,  DType::BF16,
                             DType::F32, DType::F64, DType::F32, DType::Bool, DType::I32};
    return pick(all, random_);
  }

  /// What dtype the subpattern at `at` gets when its surroundings do not say.
  DType own_dtype(int at) {
    if (has_direct_variable(at)) return main_;
    if (has_bool_variable(at)) return DType::Bool;
    return any_dtype();
  }

  NodeRef term(int at, DType want) {
    const PatNode& n = p_.node[at];
    switch (n.kind) {
      case PatKind::Any:
      case PatKind::Const: return variable(n, want);
      case PatKind::Int: return g_.constant(Value::of(want, p_.literal[n.arg]));
      case PatKind::Float: return literal_float(n, want);
      case PatKind::Typed: return term(at - 1, static_cast<DType>(n.arg));
      case PatKind::Bind: return bound(n, term(at - 1, want));
      case PatKind::Op: return operation(n, at, want);
      default: return nullptr;
    }
  }

  NodeRef literal_float(const PatNode& n, DType want) {
    if (!is_float(want)) return nullptr;
    return g_.constant(Value::of(want, std::bit_cast<double>(p_.literal[n.arg])));
  }

  NodeRef bound(const PatNode& n, NodeRef made) {
    NodeRef& slot = slot_[n.arg];
    if (slot && slot != made) return nullptr;
    return slot = made;
  }

  NodeRef variable(const PatNode& n, DType want) {
    NodeRef& slot = slot_[n.arg];
    const bool boolean = n.arg >= kFirstBoolSlot && n.arg < kFirstConstSlot;
    const DType d = want != DType::Void ? want : boolean ? DType::Bool : main_;
    if (slot) return slot->dtype == d ? slot : nullptr;
    if (boolean && d != DType::Bool) return nullptr;
    return slot = n.kind == PatKind::Const ? g_.constant(random_constant(d, random_)) : leaf(d);
  }

  NodeRef leaf(DType d) {
    const bool ranged = d == DType::Index || (is_int(d) && random_() % 2);
    const NodeRef dims[] = {g_.index(3)};
    const std::span<const NodeRef> shape(dims, shaped_ && random_() % 4 ? 1 : 0);
    if (!ranged) return g_.param(static_cast<int64_t>(random_() % 1000), d, shape);
    const int64_t multiple = random_() % 3 == 0 ? static_cast<int64_t>(2 + random_() % 4) : 1;
    const int64_t low = is_unsigned(d) || random_() % 2 ? 0 : -static_cast<int64_t>(random_() % 40);
    const int64_t high = low + static_cast<int64_t>(random_() % 100);
    NodeRef v =
        g_.variable(strformat("v{}", random_() % 1000), low * multiple, high * multiple, multiple);
    return d == DType::Index ? v : g_.cast(v, d);
  }

  NodeRef operation(const PatNode& n, int at, DType want) {
    const Op op = static_cast<Op>(n.op);
    const std::vector<int> roots = source_roots(at);
    const bool conversion = op == Op::Cast || op == Op::Bitcast;
    if (conversion && n.arg != Pat::kAnyArg) want = static_cast<DType>(n.arg - 1);
    if (has_trait(op, kBoolResult) && want != DType::Void && want != DType::Bool) return nullptr;
    DType result = want != DType::Void ? want : conversion ? any_dtype() : own_dtype(at);
    DType inner = result;
    if (conversion || has_trait(op, kBoolResult)) {
      inner = DType::Void;
      for (int r : roots)
        if (inner == DType::Void || has_direct_variable(r)) inner = own_dtype(r);
    }
    if (!op_allows(op, inner)) return nullptr;
    std::array<NodeRef, 3> src{};
    for (size_t i = 0; i < roots.size(); ++i) {
      const bool condition = op == Op::Where && i == 0;
      src[i] = term(roots[i], condition ? DType::Bool : inner);
      if (!src[i]) return nullptr;
    }
    if (op == Op::Bitcast && bits(src[0]->dtype) != bits(result)) return nullptr;
    return made(op, has_trait(op, kBoolResult) ? DType::Bool : result, {src.data(), roots.size()});
  }

  static bool op_allows(Op op, DType d) {
    if (has_trait(op, kFloatOnly)) return is_float(d);
    if (has_trait(op, kIntOnly)) return !is_float(d);
    return true;
  }

  NodeRef made(Op op, DType d, std::span<NodeRef> src) {
    // In a form, nothing is put into normal form: an op's operands keep the order asked for.
    const bool constant_right = src.size() == 2 && src[1]->op == Op::Const;
    if (form_ >= 0 && has_trait(op, kCommutative) && src[0]->op != Op::Const && !constant_right) {
      if (form_ >> swaps_++ & 1) std::swap(src[0], src[1]);
      return g_.intern({op, d, src});
    }
    if (form_ >= 0 && !(src.size() == 2 && src[0]->op == Op::Const)) return g_.intern({op, d, src});
    return g_.make({op, d, src});
  }

  Graph& g_;
  const Pat& p_;
  DType main_;
  Random& random_;
  int form_;
  int swaps_ = 0;
  bool shaped_;  // some leaves are tensors, so that shapes are kept too
  std::array<NodeRef, kPatSlots> slot_{};
};

}  // namespace

std::vector<DType> dtypes_of(Domain domain) {
  std::vector<DType> out;
  if (has(domain, Domain::Index)) out.push_back(DType::Index);
  if (has(domain, Domain::Bits)) out.insert(out.end(), std::begin(kIntTypes), std::end(kIntTypes));
  if (has(domain, Domain::Bool)) out.push_back(DType::Bool);
  if (has(domain, Domain::Float | Domain::Real))
    out.insert(out.end(), std::begin(kFloatTypes), std::end(kFloatTypes));
  return out;
}

NodeRef instance_of(Graph& g, const Rule& rule, DType main, Random& random, int form) {
  return Grower(g, rule, main, random, form).grow();
}

int swappable_ops(const Pat& lhs) {
  int count = 0;
  for (int i = 0; i < lhs.size; ++i)
    count +=
        lhs.node[i].kind == PatKind::Op && has_trait(static_cast<Op>(lhs.node[i].op), kCommutative);
  return count;
}

NodeMap<Value> random_binding(std::span<const NodeRef> roots, Random& random) {
  NodeMap<Value> out;
  for (NodeRef n : Toposort(roots)) {
    if (n->op == Op::Param) out[n] = random_value(n->dtype, random);
    if (n->op != Op::Variable && n->op != Op::Range) continue;
    const int64_t multiple = n->op == Op::Variable ? n->int_arg(2) : 1;
    const auto steps = static_cast<uint64_t>((n->vmax - n->vmin) / multiple) + 1;
    out[n] = Value::index(n->vmin + multiple * static_cast<int64_t>(random() % steps));
  }
  return out;
}

namespace {

/// The values of nodes from those of some of them. What depends on values that loops carry has none
/// outside of these.
class Evaluation {
 public:
  explicit Evaluation(const NodeMap<Value>& known) : values_(known) {}

  const Value* of(NodeRef n) const { return values_.find(n); }
  const NodeMap<Value>& values() const { return values_; }
  void run(std::span<const NodeRef> roots) {
    for (NodeRef n : Toposort(roots)) {
      if (n->op == Op::Loop) run_loop(n);
      if (of(n)) continue;
      if (const auto v = value_of(n)) values_[n] = *v;
    }
  }

 private:
  std::optional<Value> value_of(NodeRef n) const {
    if (n->op == Op::Const) return const_value(n);
    if (n->op == Op::Get) {
      const std::vector<Value>* carried = loops_.find(n->src(0));
      return carried ? std::optional((*carried)[static_cast<size_t>(n->int_arg(0))]) : std::nullopt;
    }
    std::array<Value, 3> src;
    for (size_t i = 0; i < n->nsrc && i < src.size(); ++i) {
      const Value* v = of(n->src(i));
      if (!v) return std::nullopt;
      src[i] = *v;
    }
    if (n->op == Op::Reshape || n->op == Op::Expand) return src[0];  // of one value
    const bool computed = n->nsrc > 0 && n->nsrc <= src.size() && n->op != Op::Range;
    return computed ? fold_constants(n->op, n->dtype, {src.data(), n->nsrc}) : std::nullopt;
  }

  /// (inits..., bodies..., range).
  void run_loop(NodeRef loop) {
    const auto count = static_cast<size_t>(loop->int_arg(2));
    const auto inits = loop->src().first(count), bodies = loop->src().subspan(count, count);
    const Value* times = of(loop->src().back()->src(0));
    std::vector<Value> carried;
    for (NodeRef init : inits)
      if (const Value* v = of(init)) carried.push_back(*v);
    if (!times || carried.size() < count) return;
    for (int64_t left = times->as_int(); left > 0; --left) {
      NodeMap<Value> known = values_;
      for (NodeRef n : Toposort(bodies))
        if (n->op == Op::Carry && n->int_arg(1) == loop->int_arg(0))
          known[n] = carried[static_cast<size_t>(n->int_arg(0))];
      Evaluation inside(known);
      inside.run(bodies);
      for (size_t k = 0; k < count; ++k) carried[k] = inside.values().at(bodies[k]);
    }
    loops_[loop] = carried;
  }

  NodeMap<Value> values_;
  NodeMap<std::vector<Value>> loops_;
};

}  // namespace

bool evaluate(NodeRef root, const NodeMap<Value>& leaves, Value& out) {
  Evaluation all(leaves);
  all.run({&root, 1});
  const Value* v = all.of(root);
  if (v) out = *v;
  return v != nullptr;
}

bool same_value(NodeRef term, Value a, Value b) {
  if (a == b) return true;
  if (a.dtype() != b.dtype() || !is_float(a.dtype())) return false;
  if (a.is_nan() && b.is_nan()) return true;
  if (!a.is_zero() || !b.is_zero()) return false;
  for (NodeRef n : Toposort(term))
    if (n->op == Op::Max || n->op == Op::Min) return true;
  return false;
}

bool is_evaluable(const RuleEntry& e) {
  const Pat& p = e.rule->lhs;
  if (e.by_op) return false;  // makes a node of another graph: tests/lower/op_rules_test.cpp
  for (int i = 0; i < p.size; ++i)
    if (p.node[i].kind == PatKind::Op && !detail::is_elementwise(static_cast<Op>(p.node[i].op)))
      return false;
  return true;
}

PoorMachine::PoorMachine(Graph& g, bool has_f64) : legaliser_(g, target_) {
  target_.dtypes = ~DTypeSet{0};
  if (!has_f64) target_.dtypes &= ~dtype_bit(DType::F64);
}
RuleMatcher::Call PoorMachine::call() {
  return {legaliser_.graph(), &legaliser_, lower::Decompositions::calls_of(legaliser_)};
}

std::vector<RuleSetRow> all_rule_sets() {
  std::vector<RuleSetRow> sets = simplify_rule_sets();
  for (RuleSetRow& row : lower_rule_sets()) sets.push_back(std::move(row));
  return sets;
}

std::vector<Composition> all_compositions() {
  Composition simplify{"simplify", {}, true}, decompose{"lower.decompose", {}, false};
  const auto add = [](std::span<const RuleEntry> entries, Composition& to) {
    std::ranges::copy_if(entries, std::back_inserter(to.entries),
                         [](const RuleEntry& e) { return !e.by_op; });
  };
  for (const RuleSetRow& row : simplify_rule_sets()) add(row.entries, simplify);
  add(bool_arithmetic_rules().entries(), decompose);
  for (const RuleSetRow& row : lower_rule_sets()) add(row.entries, decompose);
  return {simplify, decompose};
}

}  // namespace weft
