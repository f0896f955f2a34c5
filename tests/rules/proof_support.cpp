#include "tests/rules/proof_support.h"

#if __has_include(<z3++.h>) && defined(WEFT_HAVE_Z3)
#include <z3++.h>

#include <array>
#include <functional>
#include <optional>

#include "weft/base/bits.h"
#include "weft/rewrite/print.h"

namespace weft {
namespace {

enum class Sort { Int, Signed8, Unsigned8, Bool, Float8 };

constexpr unsigned kResources = 3'000'000;  // Z3's own count of steps: the same on every machine

struct Unsupported {};

/// A value of the theory, or an exact integer (literals, conditions).
struct Term {
  z3::expr e;
  bool literal = false;
};

/// One rule in one theory.
class Theory {
 public:
  Theory(z3::context& c, Sort sort, const std::array<std::optional<int64_t>, 4>& grid)
      : c_(c), sort_(sort), grid_(grid), facts_(c) {}

  /// Condition, facts about bounds, and that the sides differ: unsatisfiable when the rule is
  /// right.
  z3::expr_vector question(const Rule& r) {
    const z3::expr left = root(r.lhs), right = root(r.rhs, left);
    z3::expr_vector all(c_);
    if (!r.cond.empty()) all.push_back(condition(r.cond));
    for (unsigned i = 0; i < facts_.size(); ++i) all.push_back(facts_[i]);
    all.push_back(left != right);
    return all;
  }

 private:
  // ---- leaves
  z3::sort value_sort() {
    switch (sort_) {
      case Sort::Int: return c_.int_sort();
      case Sort::Bool: return c_.bool_sort();
      case Sort::Float8: return c_.fpa_sort(4, 4);
      default: return c_.bv_sort(8);
    }
  }
  bool is_bv() const { return sort_ == Sort::Signed8 || sort_ == Sort::Unsigned8; }

  static const char* slot_name(int s) {
    constexpr const char* names[] = {"x", "y", "z", "w", "p", "q", "c0", "c1", "c2", "c3"};
    return names[s];
  }
  z3::expr slot(int s) {
    if (s >= kFirstBoolSlot && s < kFirstConstSlot) return c_.bool_const(slot_name(s));
    if (s >= kFirstConstSlot)
      if (const auto& v = grid_[static_cast<size_t>(s - kFirstConstSlot)]) return literal(*v);
    return c_.constant(slot_name(s), value_sort());
  }
  z3::expr literal(int64_t v) {
    if (sort_ == Sort::Int) return c_.int_val(v);
    if (sort_ == Sort::Bool) return c_.bool_val(v != 0);
    if (sort_ == Sort::Float8) return real(static_cast<double>(v));
    return c_.bv_val(v, 8);
  }
  z3::expr real(double v) {
    if (sort_ != Sort::Float8) throw Unsupported();
    return z3::expr(c_, Z3_mk_fpa_numeral_double(c_, v, value_sort()));
  }

  /// A literal met by a bool is a bool.
  z3::expr as(const Term& t, const z3::sort& want, int64_t value) {
    if (!t.literal || z3::eq(t.e.get_sort(), want)) return t.e;
    if (want.is_bool()) return c_.bool_val(value != 0);
    return literal(value);
  }

  // ---- terms
  struct Entry {
    Term term;
    int64_t value = 0;  // of a literal
    bool real = false;
  };

  z3::expr root(const Pat& p, const std::optional<z3::expr>& like = {}) {
    std::vector<Entry> stack;
    for (int i = 0; i < p.size; ++i) step(p, p.node[i], stack, like);
    return settle(stack.back(), like ? like->get_sort() : stack.back().term.e.get_sort());
  }
  z3::expr settle(const Entry& e, const z3::sort& want) { return as(e.term, want, e.value); }

  void step(const Pat& p, const PatNode& n, std::vector<Entry>& stack,
            const std::optional<z3::expr>& like) {
    switch (n.kind) {
      case PatKind::Any:
      case PatKind::Const: return stack.push_back({{slot(n.arg)}});
      case PatKind::Int:
        return stack.push_back({{literal(p.literal[n.arg]), true}, p.literal[n.arg]});
      case PatKind::Float:
        return stack.push_back({{real(std::bit_cast<double>(p.literal[n.arg]))}});
      case PatKind::Op: return operation(n, stack, like);
      case PatKind::Bind: facts_.push_back(slot(n.arg) == stack.back().term.e); return;
      case PatKind::Fn: return function(n, stack);
      default: throw Unsupported();
    }
  }

  void operation(const PatNode& n, std::vector<Entry>& stack, const std::optional<z3::expr>& like) {
    const size_t count = n.nsrc;
    std::vector<Entry> args(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
    stack.erase(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
    const Op op = static_cast<Op>(n.op);
    const size_t first = op == Op::Where ? 1 : 0;
    // Literals take the sort of a neighbour that is none, else of the whole term.
    std::optional<z3::sort> want;
    bool all_literal = true;
    for (size_t i = first; i < count; ++i) {
      all_literal = all_literal && args[i].term.literal;
      if (!args[i].term.literal && !want) want = args[i].term.e.get_sort();
    }
    if (!want) want = like && !has_trait(op, kBoolResult) ? like->get_sort() : value_sort();
    std::vector<z3::expr> src;
    for (size_t i = 0; i < count; ++i)
      src.push_back(settle(args[i], i < first ? c_.bool_sort() : *want));
    Entry out{{op == Op::Cast ? cast_of_bool(args[0].term.e) : apply(op, src)}};
    if (all_literal && count == 1 && op == Op::Neg)
      out = {{literal(-args[0].value), true}, -args[0].value};
    stack.push_back(out);
  }

  z3::expr floor_div_int(const z3::expr& a, const z3::expr& b) {
    const z3::expr zero = c_.int_val(0);
    return z3::ite(b == 0, zero, z3::ite(b > 0, a / b, (-a) / (-b)));
  }

  /// To the theory's own sort, which stands for any; other casts are between sorts.
  z3::expr cast_of_bool(const z3::expr& b) {
    if (!b.is_bool() || sort_ == Sort::Bool) throw Unsupported();
    return z3::ite(b, literal(1), literal(0));
  }

  z3::expr apply(Op op, const std::vector<z3::expr>& s) {
    if (op == Op::Where) return z3::ite(s[0], s[1], s[2]);
    if (op == Op::Eq) return equal(s[0], s[1]);
    if (op == Op::Ne) return !equal(s[0], s[1]);
    if (s[0].is_bool()) return apply_bool(op, s);
    if (sort_ == Sort::Int) return apply_int(op, s);
    if (sort_ == Sort::Float8) return apply_float(op, s);
    return apply_bits(op, s);
  }
  z3::expr equal(const z3::expr& a, const z3::expr& b) {
    if (a.is_fpa()) return z3::expr(c_, Z3_mk_fpa_eq(c_, a, b));
    return a == b;
  }

  z3::expr apply_bool(Op op, const std::vector<z3::expr>& s) {
    switch (op) {
      case Op::And:
      case Op::Mul:
      case Op::Min: return s[0] && s[1];
      case Op::Or:
      case Op::Add:
      case Op::Max: return s[0] || s[1];
      case Op::Xor: return s[0] != s[1];
      case Op::Not: return !s[0];
      case Op::Neg: return s[0];
      case Op::Lt: return !s[0] && s[1];
      case Op::Le: return !s[0] || s[1];
      case Op::MulAcc: return (s[0] && s[1]) || s[2];
      default: throw Unsupported();
    }
  }

  z3::expr apply_int(Op op, const std::vector<z3::expr>& s) {
    switch (op) {
      case Op::Neg: return -s[0];
      case Op::Add: return s[0] + s[1];
      case Op::Mul: return s[0] * s[1];
      case Op::IDiv: return floor_div_int(s[0], s[1]);
      case Op::Mod:
        return z3::ite(s[1] == 0, c_.int_val(0), s[0] - s[1] * floor_div_int(s[0], s[1]));
      case Op::Max: return z3::ite(s[0] < s[1], s[1], s[0]);
      case Op::Min: return z3::ite(s[1] < s[0], s[1], s[0]);
      case Op::Lt: return s[0] < s[1];
      case Op::Le: return s[0] <= s[1];
      default: throw Unsupported();
    }
  }

  bool is_signed() const { return sort_ == Sort::Signed8; }
  z3::expr less(const z3::expr& a, const z3::expr& b) {
    return is_signed() ? z3::slt(a, b) : z3::ult(a, b);
  }
  z3::expr floor_div_bits(const z3::expr& a, const z3::expr& b) {
    const unsigned width = a.get_sort().bv_size();
    const z3::expr zero = c_.bv_val(0, width);
    if (!is_signed() && width == 8) return z3::ite(b == zero, zero, z3::udiv(a, b));
    const z3::expr q = a / b, r = z3::srem(a, b);
    const z3::expr down = r != zero && z3::slt(r, zero) != z3::slt(b, zero);
    return z3::ite(b == zero, zero, z3::ite(down, q - 1, q));
  }
  z3::expr shifted(Op op, const z3::expr& a, const z3::expr& by) {
    const z3::expr zero = c_.bv_val(0, 8);
    // By the low six bits of an 8-bit type every count of 8 or more is outside; so are negative
    // ones.
    const z3::expr inside = z3::ult(by, c_.bv_val(8, 8));
    if (op == Op::Shl) return z3::ite(inside, z3::shl(a, by), zero);
    const z3::expr sign = is_signed() ? z3::ashr(a, c_.bv_val(7, 8)) : zero;
    return z3::ite(inside, is_signed() ? z3::ashr(a, by) : z3::lshr(a, by), sign);
  }
  z3::expr apply_bits(Op op, const std::vector<z3::expr>& s) {
    switch (op) {
      case Op::Neg: return -s[0];
      case Op::Not: return ~s[0];
      case Op::Add: return s[0] + s[1];
      case Op::Mul: return s[0] * s[1];
      case Op::And: return s[0] & s[1];
      case Op::Or: return s[0] | s[1];
      case Op::Xor: return s[0] ^ s[1];
      case Op::IDiv: return floor_div_bits(s[0], s[1]);
      case Op::Mod:
        return z3::ite(s[1] == 0, c_.bv_val(0, 8), s[0] - s[1] * floor_div_bits(s[0], s[1]));
      // By 0 there is no quotient; Z3's is as good as any.
      case Op::CDiv: return is_signed() ? s[0] / s[1] : z3::udiv(s[0], s[1]);
      case Op::CMod: return is_signed() ? z3::srem(s[0], s[1]) : z3::urem(s[0], s[1]);
      case Op::Max: return z3::ite(less(s[0], s[1]), s[1], s[0]);
      case Op::Min: return z3::ite(less(s[1], s[0]), s[1], s[0]);
      case Op::Lt: return less(s[0], s[1]);
      case Op::Le: return !less(s[1], s[0]);
      case Op::Shl:
      case Op::Shr: return shifted(op, s[0], s[1]);
      case Op::MulAcc: return s[0] * s[1] + s[2];
      default: throw Unsupported();
    }
  }

  z3::expr apply_float(Op op, const std::vector<z3::expr>& s) {
    const z3::expr near(c_, Z3_mk_fpa_rne(c_)), to_zero(c_, Z3_mk_fpa_rtz(c_));
    auto lt = [this](const z3::expr& a, const z3::expr& b) {
      return z3::expr(c_, Z3_mk_fpa_lt(c_, a, b));
    };
    auto nan = [this](const z3::expr& a) { return z3::expr(c_, Z3_mk_fpa_is_nan(c_, a)); };
    auto extreme = [&](const z3::expr& picks_second) {
      return z3::ite(nan(s[0]), s[0], z3::ite(nan(s[1]), s[1], z3::ite(picks_second, s[1], s[0])));
    };
    switch (op) {
      case Op::Neg: return z3::expr(c_, Z3_mk_fpa_neg(c_, s[0]));
      case Op::Add: return z3::expr(c_, Z3_mk_fpa_add(c_, near, s[0], s[1]));
      case Op::Mul: return z3::expr(c_, Z3_mk_fpa_mul(c_, near, s[0], s[1]));
      case Op::Div: return z3::expr(c_, Z3_mk_fpa_div(c_, near, s[0], s[1]));
      case Op::MulAcc: return z3::expr(c_, Z3_mk_fpa_fma(c_, near, s[0], s[1], s[2]));
      case Op::Sqrt: return z3::expr(c_, Z3_mk_fpa_sqrt(c_, near, s[0]));
      case Op::Trunc: return z3::expr(c_, Z3_mk_fpa_round_to_integral(c_, to_zero, s[0]));
      case Op::Max: return extreme(lt(s[0], s[1]));
      case Op::Min: return extreme(lt(s[1], s[0]));
      case Op::Lt: return lt(s[0], s[1]);
      case Op::Le: return z3::expr(c_, Z3_mk_fpa_leq(c_, s[0], s[1]));
      default: throw Unsupported();
    }
  }

  // ---- conditions: exact integers; Int for Int, 32 bits for 8 (nothing overflows there)
  z3::expr number(int64_t v) { return is_bv() ? c_.bv_val(v, 32) : c_.int_val(v); }
  z3::expr widened(const z3::expr& e) {
    if (!is_bv()) return e;
    return is_signed() ? z3::sext(e, 24) : z3::zext(e, 24);
  }
  z3::expr truth(const z3::expr& e) { return e.is_bool() ? e : e != number(0); }

  z3::expr condition(const Pat& p) {
    if (sort_ == Sort::Float8) throw Unsupported();
    std::vector<z3::expr> stack;
    for (int i = 0; i < p.size; ++i) {
      const PatNode n = p.node[i];
      const size_t count = n.kind == PatKind::Op || n.kind == PatKind::Fn ? n.nsrc : 0;
      const std::vector<z3::expr> a(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
      stack.erase(stack.end() - static_cast<std::ptrdiff_t>(count), stack.end());
      switch (n.kind) {
        case PatKind::Any: stack.push_back(slot(n.arg)); break;
        case PatKind::Const: stack.push_back(widened(slot(n.arg))); break;
        case PatKind::Int: stack.push_back(number(p.literal[n.arg])); break;
        case PatKind::Fn: stack.push_back(asked(p, i, a)); break;
        case PatKind::Op: stack.push_back(condition_op(static_cast<Op>(n.op), a)); break;
        default: throw Unsupported();
      }
    }
    return truth(stack.back());
  }

  z3::expr condition_op(Op op, const std::vector<z3::expr>& a) {
    const bool int_sort = !is_bv();
    switch (op) {
      case Op::And: return truth(a[0]) && truth(a[1]);
      case Op::Or: return truth(a[0]) || truth(a[1]);
      case Op::Not: return !truth(a[0]);
      case Op::Neg: return -a[0];
      case Op::Add: return a[0] + a[1];
      case Op::Mul: return a[0] * a[1];
      case Op::Eq: return a[0] == a[1];
      case Op::Ne: return a[0] != a[1];
      case Op::Lt: return int_sort ? a[0] < a[1] : z3::slt(a[0], a[1]);
      case Op::Le: return int_sort ? a[0] <= a[1] : z3::sle(a[0], a[1]);
      case Op::Shl:
        if (int_sort) throw Unsupported();
        return z3::shl(a[0], a[1]);
      case Op::IDiv: return int_sort ? floor_div_int(a[0], a[1]) : floor_div_bits(a[0], a[1]);
      case Op::Mod:
        return int_sort ? a[0] - a[1] * floor_div_int(a[0], a[1])
                        : a[0] - a[1] * floor_div_bits(a[0], a[1]);
      default: throw Unsupported();
    }
  }

  /// A bound is some number the variable keeps to.
  z3::expr bound(const Pat& p, int at, bool upper) {
    const int s = p.node[at - 1].arg;
    const std::string name = std::string(upper ? "vmax_" : "vmin_") + slot_name(s);
    const z3::expr b = c_.constant(name.c_str(), is_bv() ? c_.bv_sort(32) : c_.int_sort());
    const z3::expr v = widened(slot(s));
    const z3::expr le =
        is_bv() ? (upper ? z3::sle(v, b) : z3::sle(b, v)) : (upper ? v <= b : b <= v);
    facts_.push_back(le);
    return b;
  }

  z3::expr asked(const Pat& p, int at, const std::vector<z3::expr>& a) {
    switch (static_cast<PatFn>(p.node[at].op)) {
      case PatFn::VMin: return bound(p, at, false);
      case PatFn::VMax: return bound(p, at, true);
      case PatFn::Divides: {
        if (is_bv()) throw Unsupported();
        return a[0] != 0 && a[1] == a[0] * floor_div_int(a[1], a[0]);
      }
      case PatFn::IsFloat: return c_.bool_val(sort_ == Sort::Float8);
      case PatFn::IsInt: return c_.bool_val(is_bv());
      case PatFn::IsSigned: return c_.bool_val(is_signed());
      case PatFn::IsBool: return c_.bool_val(sort_ == Sort::Bool);
      case PatFn::IsIndex: return c_.bool_val(sort_ == Sort::Int);
      case PatFn::Bits:
        if (!is_bv()) throw Unsupported();
        return number(8);
      // Of the machine nothing is known.
      case PatFn::Native: return c_.bool_const("native");
      case PatFn::IsPow2: {
        if (!is_bv()) throw Unsupported();
        return z3::sgt(a[0], number(0)) && (a[0] & (a[0] - 1)) == number(0);
      }
      default: throw Unsupported();
    }
  }

  /// The constant part of a right side.
  void function(const PatNode& n, std::vector<Entry>& stack) {
    if (static_cast<PatFn>(n.op) != PatFn::Log2 || !is_bv()) throw Unsupported();
    const z3::expr v = stack.back().term.e;
    z3::expr log = literal(0);
    for (int k = 1; k < 8; ++k) log = z3::ite(v == literal(int64_t{1} << k), literal(k), log);
    stack.back() = {{log}};
  }

  z3::context& c_;
  Sort sort_;
  const std::array<std::optional<int64_t>, 4>& grid_;
  z3::expr_vector facts_;
};

enum class Answer { Proved, Refuted, Unknown };

using Grid = std::array<std::optional<int64_t>, 4>;

Answer ask(const Rule& r, Sort sort, const Grid& grid, std::string& model) {
  z3::context c;
  z3::solver solver(c);
  z3::params limits(c);
  limits.set("rlimit", kResources);
  solver.set(limits);
  try {
    solver.add(Theory(c, sort, grid).question(r));
    switch (solver.check()) {
      case z3::unsat: return Answer::Proved;
      case z3::sat: break;
      default: return Answer::Unknown;
    }
    const z3::model m = solver.get_model();
    for (unsigned i = 0; i < m.num_consts(); ++i) {
      const z3::func_decl d = m.get_const_decl(i);
      model += (i ? ", " : "") + d.name().str() + " = " + m.get_const_interp(d).to_string();
    }
    return Answer::Refuted;
  } catch (const z3::exception&) {
    return Answer::Unknown;
  } catch (const Unsupported&) {
    return Answer::Unknown;
  }
}

/// All values for the variables, a grid for the constants.
Answer ask_on_grid(const Rule& r, Sort sort, std::string& model) {
  constexpr int64_t points[] = {-3, -1, 0, 1, 2, 3, 4, 6, 8, 12, 24};
  const uint32_t used = detail::bound_slots(r.lhs) >> kFirstConstSlot;
  if (used == 0 || used > 7) return Answer::Unknown;
  std::array<size_t, 4> at{};
  for (;;) {
    Grid grid;
    for (size_t k = 0; k < 4; ++k)
      if (used >> k & 1) grid[k] = points[at[k]];
    if (const Answer a = ask(r, sort, grid, model); a != Answer::Proved) return a;
    size_t k = 0;
    while (k < 4 && (!(used >> k & 1) || ++at[k] == std::size(points))) at[k++] = 0;
    if (k == 4) return Answer::Proved;
  }
}

/// `all` or `grid` when every sort says so, else "random"; `refuted` gets a counterexample.
std::string verdict(const Rule& r, std::span<const Sort> sorts, const char* all, const char* grid,
                    std::string& refuted) {
  std::string_view weakest = all;
  for (Sort sort : sorts) {
    std::string model;
    Answer a = ask(r, sort, {}, model);
    if (a == Answer::Unknown && grid) {
      a = ask_on_grid(r, sort, model);
      weakest = grid;
    }
    if (a == Answer::Refuted) refuted = model;
    if (a != Answer::Proved) return "random";
  }
  return std::string(weakest);
}

std::string verdict(const Rule& r, Domain d, std::string& refuted) {
  constexpr Sort integers[] = {Sort::Int}, bits[] = {Sort::Signed8, Sort::Unsigned8},
                 bools[] = {Sort::Bool}, floats[] = {Sort::Float8};
  switch (d) {
    case Domain::Index: return verdict(r, integers, "int", "grid", refuted);
    case Domain::Bits: return verdict(r, bits, "bv8", "bv8_grid", refuted);
    case Domain::Bool: return verdict(r, bools, "bool", nullptr, refuted);
    case Domain::Float: return verdict(r, floats, "fp8", nullptr, refuted);
    default: return "random";
  }
}

}  // namespace

bool has_prover() { return true; }

std::string prove(const RuleEntry& entry) {
  if (entry.is_native()) return "code";
  std::string out;
  for (Domain d : {Domain::Index, Domain::Bits, Domain::Bool, Domain::Float, Domain::Real}) {
    if (!has(entry.rule->domain, d)) continue;
    std::string refuted;
    const std::string v = verdict(*entry.rule, d, refuted);
    if (!refuted.empty()) return "refuted (" + domain_text(d) + ": " + refuted + ")";
    out += (out.empty() ? "" : " ") + domain_text(d) + ":" + v;
  }
  return out;
}

}  // namespace weft

#else

namespace weft {
bool has_prover() { return false; }
std::string prove(const RuleEntry& entry) { return entry.is_native() ? "code" : "random"; }
}  // namespace weft
#endif
