#if __has_include(<z3++.h>) && defined(WEFT_HAVE_Z3)
#include "tests/trust/terms_support.h"

#include <algorithm>

#include "weft/base/format.h"
#include "weft/eval/scalar.h"
#include "weft/graph/fold.h"

namespace weft::test {
namespace {

constexpr unsigned width_of(DType dtype) {
  return is_index(dtype) ? 64 : static_cast<unsigned>(bits(dtype));
}

uint64_t stored_bits(const Value& v) {
  if (is_index(v.dtype())) return v.as_uint();
  uint64_t bits = 0;
  v.store(&bits);
  return bits;
}

Value stored(DType dtype, uint64_t bits) { return Value::load(dtype, &bits); }

bool is_comparison(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Eq || op == Op::Ne; }

Value truncating(Op op, DType dtype, const Value& a, const Value& b) {
  if (b.is_zero()) throw Unsupported{"a division by zero"};
  const bool quotient = op == Op::CDiv;
  if (is_unsigned(dtype))
    return Value::of(dtype, quotient ? a.as_uint() / b.as_uint() : a.as_uint() % b.as_uint());
  if (b.as_int() == -1) return quotient ? eval::apply(Op::Neg, dtype, {{a}}) : Value::of(dtype, 0);
  return Value::of(dtype, quotient ? a.as_int() / b.as_int() : a.as_int() % b.as_int());
}

Value of_numbers(Op op, DType dtype, std::span<const Term> operands) {
  std::vector<Value> v;
  for (const Term& t : operands) v.push_back(t.value);
  if (op == Op::CDiv || op == Op::CMod) return truncating(op, dtype, v[0], v[1]);
  if (op == Op::ToIndex)
    return Value::index(
        std::clamp<int64_t>(v[0].as_int(), 0, std::max<int64_t>(v[1].as_int() - 1, 0)));
  if (is_float(dtype) && (op == Op::Ldexp || op == Op::Logb || op == Op::Mantissa))
    throw Unsupported{"exponents of floats"};
  return eval::apply(op, dtype, v);
}

// ---- integers

z3::expr zero_like(const z3::expr& x) { return x.ctx().bv_val(0, x.get_sort().bv_size()); }

z3::expr floor_quotient(const z3::expr& a, const z3::expr& b, bool has_sign) {
  const z3::expr zero = zero_like(a);
  if (!has_sign) return z3::ite(b == zero, zero, z3::udiv(a, b));
  const z3::expr q = a / b, r = z3::srem(a, b);
  const z3::expr down = r != zero && z3::slt(r, zero) != z3::slt(b, zero);
  return z3::ite(b == zero, zero, z3::ite(down, q - 1, q));
}

/// 0, or the sign, where the count is no bit's.
z3::expr shifted(Op op, const z3::expr& a, const z3::expr& by, bool has_sign) {
  const unsigned width = a.get_sort().bv_size();
  const z3::expr inside = z3::ult(by, a.ctx().bv_val(width, width)), zero = zero_like(a);
  if (op == Op::Shl) return z3::ite(inside, z3::shl(a, by), zero);
  if (!has_sign) return z3::ite(inside, z3::lshr(a, by), zero);
  return z3::ite(inside, z3::ashr(a, by), z3::ite(z3::slt(a, zero), ~zero, zero));
}

}  // namespace

z3::expr TermAlgebra::bits(uint64_t v, DType dtype) { return c_.bv_val(v, width_of(dtype)); }

Term TermAlgebra::unknown(const std::string& name, DType dtype) {
  if (is_bool(dtype)) return truth(c_.bool_const(name.c_str()));
  return {{}, c_.bv_const(name.c_str(), width_of(dtype)), dtype};
}

z3::expr TermAlgebra::expression(const Term& t) {
  if (!t.is_number()) return *t.unknown;
  if (is_bool(t.dtype)) return c_.bool_val(t.value.as_bool());
  return bits(stored_bits(t.value), t.dtype);
}

Term TermAlgebra::apply(Op op, DType dtype, std::span<const Term> operands) {
  if (std::ranges::all_of(operands, &Term::is_number)) return {of_numbers(op, dtype, operands)};
  if (op == Op::Where) return where(operands[0], operands[1], operands[2]);
  if (op == Op::ToIndex) return {{}, to_index(operands[0], operands[1]), dtype};
  const DType from = operands[0].dtype;
  std::vector<z3::expr> x;
  for (const Term& t : operands) x.push_back(expression(t));
  // Equal terms are easier to see where they are written alike.
  const bool turns = has_trait(op, kCommutative) || op == Op::MulAcc || op == Op::MulAdd;
  if (turns && x[0].id() > x[1].id()) std::swap(x[0], x[1]);
  // A bool is no bits here: the bits of one, and the bool of bits, are as a cast gives them.
  const bool same_sort = op == Op::Bitcast && !is_bool(from) && !is_bool(dtype);
  if (same_sort) return {{}, x[0], dtype};
  if (op == Op::Cast || op == Op::Bitcast) return {{}, cast(x[0], from, dtype), dtype};
  if (is_comparison(op)) return truth(compare(op, x[0], x[1], from));
  if (is_bool(from)) return truth(of_bools(op, x));
  return {{}, is_float(dtype) ? of_floats(op, x, dtype) : of_integers(op, x, dtype), dtype};
}

Term TermAlgebra::fold(Fold kind, const Term& a, const Term& b) {
  const Term operands[] = {a, b};
  return kind == Fold::Set ? b : apply(fold_op(kind), a.dtype, operands);
}

Term TermAlgebra::where(const Term& condition, const Term& a, const Term& b) {
  if (condition.is_number()) return condition.value.as_bool() ? a : b;
  if (a.is_number() && b.is_number() && a.value == b.value) return a;
  return {{}, z3::ite(expression(condition), expression(a), expression(b)), a.dtype};
}

Term TermAlgebra::both(const Term& a, const Term& b) {
  if (a.is_number()) return a.value.as_bool() ? b : a;
  if (b.is_number()) return b.value.as_bool() ? a : b;
  return truth(expression(a) && expression(b));
}

Term TermAlgebra::read(const std::vector<Term>& memory, const Term& at) {
  if (memory.empty()) throw Unsupported{"memory of no elements"};
  const Term nothing{Value::of(memory[0].dtype, 0)};
  if (at.is_number()) {
    const auto i = static_cast<uint64_t>(at.value.as_int());
    return i < memory.size() ? memory[i] : nothing;
  }
  Term out = nothing;
  const z3::expr place = expression(at);
  for (size_t i = 0; i < memory.size(); ++i)
    out = where(truth(place == bits(i, at.dtype)), memory[i], out);
  return out;
}

void TermAlgebra::write(std::vector<Term>& memory, const Term& at, const Term& value,
                        const Term& condition) {
  for (size_t i = 0; i < memory.size(); ++i) {
    if (at.is_number() && static_cast<uint64_t>(at.value.as_int()) != i) continue;
    const Term here =
        at.is_number() ? number(Value::boolean(true)) : truth(expression(at) == bits(i, at.dtype));
    memory[i] = where(both(condition, here), value, memory[i]);
  }
}

Term TermAlgebra::word(DType dtype, std::span<const Term> elements) {
  if (elements.size() == 1 && elements[0].dtype == dtype) return elements[0];
  z3::expr_vector parts(c_);
  uint64_t known = 0;
  for (size_t i = elements.size(); i-- > 0;) {
    const z3::expr part = expression(elements[i]);
    parts.push_back(part.is_bool() ? cast(part, DType::Bool, DType::U8) : part);
    if (elements[i].is_number())
      known |= stored_bits(elements[i].value) << (i * width_of(elements[i].dtype));
  }
  if (std::ranges::all_of(elements, &Term::is_number)) return {stored(dtype, known)};
  return {{}, parts.size() == 1 ? parts[0] : z3::concat(parts), dtype};
}

// ---- bools and integers

z3::expr TermAlgebra::of_bools(Op op, const std::vector<z3::expr>& x) {
  switch (op) {
    case Op::And:
    case Op::Mul:
    case Op::Min: return x[0] && x[1];
    case Op::Or:
    case Op::Add:
    case Op::Max: return x[0] || x[1];
    case Op::Xor: return x[0] != x[1];
    case Op::Not: return !x[0];
    case Op::Neg: return x[0];
    case Op::MulAcc: return (x[0] && x[1]) || x[2];
    default: throw Unsupported{strformat("{} of bools", info(op).mnemonic)};
  }
}

z3::expr TermAlgebra::of_integers(Op op, const std::vector<z3::expr>& x, DType dtype) {
  const bool has_sign = !is_unsigned(dtype);
  switch (op) {
    case Op::Neg: return -x[0];
    case Op::Not: return ~x[0];
    case Op::Add: return x[0] + x[1];
    case Op::Mul: return x[0] * x[1];
    case Op::And: return x[0] & x[1];
    case Op::Or: return x[0] | x[1];
    case Op::Xor: return x[0] ^ x[1];
    case Op::Shl:
    case Op::Shr: return shifted(op, x[0], x[1], has_sign);
    case Op::IDiv: return floor_quotient(x[0], x[1], has_sign);
    case Op::Mod:
      return z3::ite(x[1] == zero_like(x[1]), zero_like(x[0]),
                     x[0] - x[1] * floor_quotient(x[0], x[1], has_sign));
    case Op::CDiv: return has_sign ? x[0] / x[1] : z3::udiv(x[0], x[1]);
    case Op::CMod: return has_sign ? z3::srem(x[0], x[1]) : z3::urem(x[0], x[1]);
    case Op::Max: return z3::ite(compare(Op::Lt, x[0], x[1], dtype), x[1], x[0]);
    case Op::Min: return z3::ite(compare(Op::Lt, x[1], x[0], dtype), x[1], x[0]);
    case Op::MulAcc: return x[0] * x[1] + x[2];
    default: throw Unsupported{strformat("{} of integers", info(op).mnemonic)};
  }
}

z3::expr TermAlgebra::compare(Op op, const z3::expr& a, const z3::expr& b, DType dtype) {
  if (is_float(dtype)) {
    if (op == Op::Lt || op == Op::Le) return float_less(a, b, dtype, op == Op::Le);
    return op == Op::Eq ? float_equal(a, b, dtype) : !float_equal(a, b, dtype);
  }
  if (op == Op::Eq) return a == b;
  if (op == Op::Ne) return a != b;
  if (is_bool(dtype)) return op == Op::Lt ? !a && b : !a || b;
  if (is_unsigned(dtype)) return op == Op::Lt ? z3::ult(a, b) : z3::ule(a, b);
  return op == Op::Lt ? z3::slt(a, b) : z3::sle(a, b);
}

z3::expr TermAlgebra::to_index(const Term& x, const Term& size) {
  const z3::expr i = cast(expression(x), x.dtype, DType::Index), n = expression(size);
  const z3::expr zero = zero_like(i), last = n - 1;
  // A u64 past int64's end counts as large.
  const bool wide = is_unsigned(x.dtype) && width_of(x.dtype) == 64;
  const z3::expr below = wide ? c_.bool_val(false) : z3::slt(i, zero);
  const z3::expr above = wide ? z3::uge(i, n) : z3::sge(i, n);
  const z3::expr top = z3::ite(z3::slt(last, zero), zero, last);
  return z3::ite(below, zero, z3::ite(above, top, i));
}

z3::expr TermAlgebra::cast(const z3::expr& x, DType from, DType to) {
  if (from == to) return x;
  if (is_bool(from)) {
    const Value one = Value::of(to, 1), none = Value::of(to, 0);
    return z3::ite(x, bits(stored_bits(one), to), bits(stored_bits(none), to));
  }
  if (is_bool(to)) return is_float(from) ? !is_zero(x) : x != zero_like(x);
  const unsigned had = width_of(from), has = width_of(to);
  if (from == DType::BF16 && to == DType::F32) return z3::concat(x, c_.bv_val(0, 16));
  if (is_float(from) || is_float(to))
    return some_function(strformat("cast_{}_{}", name(from), name(to)), {x}, has);
  if (has <= had) return x.extract(has - 1, 0);
  return is_unsigned(from) ? z3::zext(x, has - had) : z3::sext(x, has - had);
}

// ---- floats

/// Of the dtype's infinity: the largest number that is no NaN where its formats have one.
z3::expr TermAlgebra::is_nan(const z3::expr& x, DType dtype) {
  if (is_float8(dtype)) throw Unsupported{"8-bit floats"};
  const unsigned width = x.get_sort().bv_size();
  const z3::expr size = x & ~z3::shl(c_.bv_val(1, width), c_.bv_val(width - 1, width));
  return z3::ugt(size, bits(stored_bits(Value::of(dtype, float_top(dtype))), dtype));
}
z3::expr TermAlgebra::is_zero(const z3::expr& x) {
  const unsigned width = x.get_sort().bv_size();
  return x.extract(width - 2, 0) == c_.bv_val(0, width - 1);
}
z3::expr TermAlgebra::float_less(const z3::expr& a, const z3::expr& b, DType dtype, bool or_equal) {
  const z3::expr zero = zero_like(a);
  const z3::expr numbers = !is_nan(a, dtype) && !is_nan(b, dtype);
  const z3::expr equal = a == b || (is_zero(a) && is_zero(b));
  const z3::expr below = z3::slt(a, zero), other_below = z3::slt(b, zero);
  const z3::expr less =
      z3::ite(below != other_below, below, z3::ite(below, z3::ult(b, a), z3::ult(a, b)));
  return numbers && (or_equal ? equal || less : !equal && less);
}
z3::expr TermAlgebra::float_equal(const z3::expr& a, const z3::expr& b, DType dtype) {
  return !is_nan(a, dtype) && !is_nan(b, dtype) && (a == b || (is_zero(a) && is_zero(b)));
}

z3::expr TermAlgebra::some_function(const std::string& name, const std::vector<z3::expr>& x,
                                    unsigned width) {
  guessed_ = true;
  z3::sort_vector domain(c_);
  z3::expr_vector arguments(c_);
  for (const z3::expr& e : x) domain.push_back(e.get_sort()), arguments.push_back(e);
  return c_.function(name.c_str(), domain, c_.bv_sort(width))(arguments);
}

z3::expr TermAlgebra::of_floats(Op op, const std::vector<z3::expr>& x, DType dtype) {
  const unsigned width = width_of(dtype);
  const auto is = [&](const z3::expr& e, double v) {
    return z3::eq(e, bits(stored_bits(Value::of(dtype, v)), dtype));
  };
  switch (op) {
    case Op::Neg: return x[0] ^ z3::shl(c_.bv_val(1, width), c_.bv_val(width - 1, width));
    case Op::Max:
    case Op::Min: {  // as ops.def defines them; of two zeros, and is +0 unless both are -0
      const z3::expr &a = op == Op::Max ? x[1] : x[0], &b = op == Op::Max ? x[0] : x[1];
      const z3::expr zeros = op == Op::Max ? x[0] & x[1] : x[0] | x[1];
      return z3::ite(float_less(a, b, dtype, false) || is_nan(x[0], dtype), x[0],
                     z3::ite(is_zero(x[0]) && is_zero(x[1]), zeros, x[1]));
    }
    default: break;
  }
  for (size_t i = 0; i < 2 && (op == Op::Add || op == Op::Mul); ++i)
    if (is(x[i], op == Op::Add ? -0.0 : 1.0)) return x[1 - i];
  return some_function(strformat("{}_{}", info(op).mnemonic, name(dtype)), x, width);
}

z3::expr TermAlgebra::differ(const Term& a, const Term& b) {
  const z3::expr x = expression(a), y = expression(b);
  if (!is_float(a.dtype) || is_float8(a.dtype)) return x != y;
  return x != y && !(is_nan(x, a.dtype) && is_nan(y, a.dtype));
}

}  // namespace weft::test
#endif
