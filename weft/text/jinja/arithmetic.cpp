// Operators of numbers, texts and lists, as Python has them.
#include <algorithm>
#include <cmath>

#include "weft/text/jinja/evaluator.h"
#include "weft/text/jinja/python_text.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;

[[noreturn]] void refuse_kinds(std::string_view operation, const Value& left, const Value& right) {
  refuse("{} and {} have no '{}'", kind_name(left), kind_name(right), operation);
}

using Overflows = bool (*)(int64_t, int64_t, int64_t*);
bool sum(int64_t a, int64_t b, int64_t* r) { return __builtin_add_overflow(a, b, r); }
bool difference(int64_t a, int64_t b, int64_t* r) { return __builtin_sub_overflow(a, b, r); }
bool product(int64_t a, int64_t b, int64_t* r) { return __builtin_mul_overflow(a, b, r); }

int64_t checked(Overflows operation, int64_t a, int64_t b) {
  int64_t result = 0;
  if (operation(a, b, &result)) refuse("a number of more than 64 bits");
  return result;
}

int64_t floor_divide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

int64_t integer_power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = checked(product, result, base);
    if (exponent > 1) base = checked(product, base, base);
  }
  return result;
}

Value of_integers(std::string_view operation, int64_t a, int64_t b) {
  switch (operation[0]) {
    case '+': return Value::integer(checked(sum, a, b));
    case '-': return Value::integer(checked(difference, a, b));
    case '*':
      if (operation.size() == 1) return Value::integer(checked(product, a, b));
      if (b < 0) return Value::real(std::pow(static_cast<double>(a), static_cast<double>(b)));
      return Value::integer(integer_power(a, b));
    default: break;
  }
  if (b == 0) refuse("division by zero");
  if (operation == "/") return Value::real(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1)  // where -2^63 has no quotient
    return operation == "%" ? Value::integer(0) : of_integers("-", 0, a);
  const int64_t quotient = floor_divide(a, b);
  return Value::integer(operation == "//" ? quotient : a - quotient * b);
}

Value of_reals(std::string_view operation, double a, double b) {
  switch (operation[0]) {
    case '+': return Value::real(a + b);
    case '-': return Value::real(a - b);
    case '*': return Value::real(operation.size() == 1 ? a * b : std::pow(a, b));
    default: break;
  }
  if (b == 0) refuse("division by zero");
  if (operation == "/") return Value::real(a / b);
  double rest = std::fmod(a, b);
  if (rest != 0 && (rest < 0) != (b < 0)) rest += b;
  if (operation == "%") return Value::real(rest);
  return Value::real(std::floor((a - rest) / b + 0.5));
}

Value repeated(const Value& v, int64_t times, Workspace& work) {
  const auto count = static_cast<size_t>(std::max<int64_t>(times, 0));
  const bool text = v.is(Kind::Text);
  const size_t size = text ? v.as_text().size() : v.items().size() * sizeof(Value);
  if (size != 0 && count > SIZE_MAX / 2 / size) work.require(SIZE_MAX);
  work.require(size * count);
  work.spend_for(size * count);
  if (text) {
    std::string all;
    if (size != 0)
      for (size_t i = 0; i < count; ++i) all += v.as_text();
    return work.text(all);
  }
  std::vector<Value> all;
  if (size != 0)
    for (size_t i = 0; i < count; ++i) all.insert(all.end(), v.items().begin(), v.items().end());
  return v.is(Kind::List) ? work.list(all) : work.tuple(all);
}

Value joined(const Value& a, const Value& b, Workspace& work) {
  if (a.is(Kind::Text)) {
    TextBuilder out(work);
    append_text(out, a, work);
    append_text(out, b, work);
    return out.done();
  }
  work.require((a.items().size() + b.items().size()) * sizeof(Value));
  work.spend_for(a.items().size() + b.items().size());
  std::vector<Value> all(a.items().begin(), a.items().end());
  all.insert(all.end(), b.items().begin(), b.items().end());
  return a.is(Kind::List) ? work.list(all) : work.tuple(all);
}

bool is_sequence(const Value& v) { return v.is(Kind::Text) || v.is_list(); }
}  // namespace

Value arithmetic(std::string_view operation, const Value& left, const Value& right,
                 Workspace& work) {
  require_defined(left);
  if (operation == "%" && left.is(Kind::Text)) {
    const Value one[] = {right};
    return printf_formatted(left.as_text(), right.is(Kind::Tuple) ? right.items() : one, work);
  }
  require_defined(right);
  if (left.is_integer() && right.is_integer())
    return of_integers(operation, left.as_integer(), right.as_integer());
  if (left.is_number() && right.is_number())
    return of_reals(operation, left.as_real(), right.as_real());
  if (operation == "+" && left.kind() == right.kind() && is_sequence(left))
    return joined(left, right, work);
  if (operation == "*" && is_sequence(left) && right.is_integer())
    return repeated(left, right.as_integer(), work);
  if (operation == "*" && left.is_integer() && is_sequence(right))
    return repeated(right, left.as_integer(), work);
  refuse_kinds(operation, left, right);
}

Value sliced(const Value& of, const Value& from, const Value& to, const Value& step,
             Workspace& work) {
  require_defined(of);
  if (!is_sequence(of)) return Value::undefined("slice");
  const int64_t by = step.is(Kind::None) ? 1 : integer_of(step, "a slice's step");
  if (by == 0) refuse("a slice's step is 0");
  const std::span<const Value> items = sequence(of, work);
  const auto size = static_cast<int64_t>(items.size());
  const int64_t low = by < 0 ? -1 : 0, high = by < 0 ? size - 1 : size;
  const auto bound = [&](const Value& v, int64_t otherwise) {
    if (v.is(Kind::None)) return otherwise;
    int64_t i = integer_of(v, "a slice's bound");
    if (i < 0) i = i < -size ? -1 : i + size, i = i < 0 && by > 0 ? 0 : i;
    return std::clamp(i, low, high);
  };
  const int64_t begin = bound(from, by < 0 ? high : low), end = bound(to, by < 0 ? low : high);
  std::vector<Value> kept;
  for (int64_t i = begin; by > 0 ? i < end : i > end;) {
    kept.push_back(items[static_cast<size_t>(i)]);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  work.spend_for(kept.size() * 4);
  if (of.is(Kind::List)) return work.list(kept);
  if (of.is(Kind::Tuple)) return work.tuple(kept);
  TextBuilder out(work);
  for (const Value& c : kept) out.add(c.as_text());
  return out.done();
}

}  // namespace weft::text::jinja
