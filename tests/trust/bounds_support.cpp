#include "tests/trust/bounds_support.h"

#include "weft/graph/graph.h"
#include "weft/lower/lower.h"
#include "weft/optimize/optimize.h"
#include "weft/rewrite/pass.h"
#include "weft/schedule/schedule.h"

namespace weft::test {
namespace {

constexpr std::string_view kGuard = "lower.guard_accesses";

/// Shows what that pass leaves.
class GuardWatcher : public PassWatcher {
 public:
  using Visit = FunctionRef<void(const std::string&, NodeRef)>;
  explicit GuardWatcher(Visit visit) : visit_(visit) {}

  size_t begin(const char* pass, std::string_view subject, const StateParts*) override {
    open_.emplace_back(pass, subject);
    return open_.size() - 1;
  }
  void end(size_t at, uint64_t, std::span<const RewriteStep>, const StateParts& after) override {
    const auto [pass, subject] = open_.at(at);
    open_.resize(at);
    if (pass == kGuard) visit_(subject, after.nodes.at(0));
  }

 private:
  Visit visit_;
  std::vector<std::pair<std::string, std::string>> open_;
};

}  // namespace

void each_guarded_kernel(std::span<const NodeRef> roots, const Target& target,
                         FunctionRef<void(const std::string& name, NodeRef sink)> visit) {
  GuardWatcher watcher(visit);
  const PassTrace trace(false, false, &watcher);
  std::vector<ScheduleOutput> outputs;
  for (NodeRef n : roots) outputs.push_back({n});
  const Schedule schedule = make_schedule(outputs, target);
  for (const Kernel& k : schedule.kernels) lower_kernel(optimize_kernel(k, target, {}), target);
}

}  // namespace weft::test

#if __has_include(<z3++.h>) && defined(WEFT_HAVE_Z3)
#include <z3++.h>

#include <optional>

#include "weft/base/format.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print.h"

namespace weft::test {
namespace {

constexpr unsigned kResources = 2'000'000;  // Z3's own count of steps: the same on every machine

/// Index expressions as mathematical integers. What is not one (data, folds) is any number within
/// the bounds that the graph knows of it.
class Terms {
 public:
  explicit Terms(z3::context& c) : c_(c), facts_(c) {}

  z3::expr of(NodeRef root) {
    for (NodeRef n : Toposort(root))
      if (!terms_.contains(n)) terms_[n] = is_term(n) ? term(n) : any(n);
    return *terms_.at(root);
  }
  const z3::expr_vector& facts() const { return facts_; }

 private:
  static bool is_number(NodeRef n) { return !is_float(n->dtype) && n->dtype != DType::Void; }

  bool is_term(NodeRef n) const {
    if (n->rank() != 0 || !is_number(n)) return false;
    for (NodeRef s : n->src())
      if (!is_number(s)) return false;
    // Data wrap; sizes and positions do not, nor does what only chooses.
    const bool chooses =
        n->op == Op::Min || n->op == Op::Max || n->op == Op::Where || n->op == Op::Cast;
    return n->dtype == DType::Index || is_bool(n->dtype) || chooses;
  }

  std::optional<z3::expr> any(NodeRef n) {
    const std::string name = strformat("v{}", next_++);
    if (!is_number(n)) return std::nullopt;
    if (is_bool(n->dtype)) return c_.bool_const(name.c_str());
    const z3::expr x = c_.int_const(name.c_str());
    if (n->vmin != INT64_MIN) facts_.push_back(x >= number(n->vmin));
    if (n->vmax != INT64_MAX) facts_.push_back(x <= number(n->vmax));
    return x;
  }
  z3::expr number(int64_t v) { return c_.int_val(v); }
  const z3::expr& at(NodeRef n, size_t i) const { return **terms_.find(n->src(i)); }

  std::optional<z3::expr> term(NodeRef n) {
    switch (n->op) {
      case Op::Const: return is_bool(n->dtype) ? c_.bool_val(n->vmin != 0) : number(n->vmin);
      case Op::Variable: return variable(n);
      case Op::Range:
      case Op::WorkId: {
        const std::optional<z3::expr> x = any(n);
        facts_.push_back(*x >= 0 && *x < at(n, 0));
        return x;
      }
      case Op::Neg: return -at(n, 0);
      case Op::Cast: return cast(n);
      case Op::ToIndex: {
        const z3::expr &x = at(n, 0), &size = at(n, 1);
        return z3::ite(x < 0, number(0), z3::ite(x >= size, size - 1, x));
      }
      case Op::Not: return is_bool(n->dtype) ? !at(n, 0) : any(n);
      default: return n->nsrc == 2 ? binary(n) : n->op == Op::Where ? where(n) : any(n);
    }
  }
  std::optional<z3::expr> variable(NodeRef n) {
    const std::optional<z3::expr> x = any(n);
    if (n->int_arg(2) > 1) facts_.push_back(z3::mod(*x, number(n->int_arg(2))) == 0);
    return x;
  }
  /// Of what the dtype holds; other values wrap.
  std::optional<z3::expr> cast(NodeRef n) {
    NodeRef x = n->src(0);
    if (is_bool(n->dtype)) return is_bool(x->dtype) ? at(n, 0) : at(n, 0) != 0;
    if (is_bool(x->dtype)) return z3::ite(at(n, 0), number(1), number(0));
    const bool fits = n->dtype == DType::Index ||
                      (x->vmin >= int_min(n->dtype) && (x->vmin >= 0 || is_signed_int(n->dtype)) &&
                       (x->vmax < 0 || static_cast<uint64_t>(x->vmax) <= int_max(n->dtype)));
    return fits ? at(n, 0) : any(n);
  }
  std::optional<z3::expr> where(NodeRef n) { return z3::ite(at(n, 0), at(n, 1), at(n, 2)); }
  std::optional<z3::expr> binary(NodeRef n) {
    const bool bools = is_bool(n->src(0)->dtype);
    const z3::expr &a = at(n, 0), &b = at(n, 1);
    // Z3's division rounds down for positive divisors only.
    const bool divides = n->src(1)->vmin > 0;
    switch (n->op) {
      case Op::Add: return bools ? a || b : a + b;
      case Op::Mul: return bools ? a && b : a * b;
      case Op::IDiv: return divides && !bools ? a / b : any(n);
      case Op::Mod: return divides && !bools ? z3::mod(a, b) : any(n);
      case Op::Max: return bools ? a || b : z3::max(a, b);
      case Op::Min: return bools ? a && b : z3::min(a, b);
      case Op::And: return bools ? std::optional(a && b) : any(n);
      case Op::Or: return bools ? std::optional(a || b) : any(n);
      case Op::Xor: return bools ? std::optional(a != b) : any(n);
      case Op::Eq: return a == b;
      case Op::Ne: return a != b;
      case Op::Lt: return bools ? !a && b : a < b;
      case Op::Le: return bools ? !a || b : a <= b;
      default: return any(n);
    }
  }

  z3::context& c_;
  z3::expr_vector facts_;
  NodeMap<std::optional<z3::expr>> terms_;
  int next_ = 0;
};

/// Of a param, or of what a group shares.
NodeRef size_of(NodeRef access) {
  NodeRef memory = access->src(0);
  while (memory->op == Op::Barrier) memory = memory->src(0);
  return memory->src(0);
}

/// Of its dtype, that an access takes: words are several.
int64_t elements_of(NodeRef access) {
  return access->op == Op::Load ? bits(access->dtype) / bits(access->src(0)->dtype) : 1;
}

bool is_plain(NodeRef access) {
  NodeRef at = access->src(1), size = size_of(access);
  return at->vmin >= 0 && at->vmax <= size->vmin - elements_of(access);
}

void prove(NodeRef access, Bounds& out) {
  z3::context c;
  Terms terms(c);
  const size_t mask = access->op == Op::Load ? 2 : 3;
  const z3::expr at = terms.of(access->src(1));
  const z3::expr size = terms.of(size_of(access)) - c.int_val(elements_of(access) - 1);
  z3::solver solver(c);
  z3::params limits(c);
  limits.set("rlimit", kResources);
  solver.set(limits);
  if (access->nsrc > mask) solver.add(terms.of(access->src(mask)));
  for (unsigned i = 0; i < terms.facts().size(); ++i) solver.add(terms.facts()[i]);
  solver.add(at < 0 || at >= size);
  switch (solver.check()) {
    case z3::unsat: ++out.proved; return;
    case z3::unknown: ++out.unknown; return;
    default: break;
  }
  if (out.refuted.empty())
    out.refuted = strformat("{} of {} elements at {}, if {}", info(access->op).mnemonic,
                            expression(size_of(access)), expression(access->src(1)),
                            access->nsrc > mask ? expression(access->src(mask)) : "always");
}

}  // namespace

bool can_prove_bounds() { return true; }

Bounds prove_bounds(NodeRef sink, bool all) {
  Bounds out;
  for (NodeRef n : Toposort(sink)) {
    if (n->op != Op::Load && n->op != Op::Store) continue;
    if (!all && is_plain(n))
      ++out.plain;
    else
      prove(n, out);
  }
  return out;
}

}  // namespace weft::test

#else

namespace weft::test {
bool can_prove_bounds() { return false; }
Bounds prove_bounds(NodeRef, bool) { return {}; }
}  // namespace weft::test

#endif
