// Expressions of a template.
#include <algorithm>

#include "weft/text/jinja/evaluator.h"
#include "weft/text/jinja/python_text.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;
}

void require_defined(const Value& v) {
  if (v.is(Kind::Undefined)) refuse("'{}' is undefined", v.as_text());
}

int64_t integer_of(const Value& v, std::string_view what) {
  require_defined(v);
  if (!v.is_integer()) refuse("{} is an int, got {}", what, kind_name(v));
  return v.as_integer();
}

const Value* Arguments::find(size_t place, std::string_view name) const {
  if (place < positional.size()) return &positional[place];
  for (const auto& [given, value] : named)
    if (given == name) return &value;
  return nullptr;
}

Arguments Arguments::without(size_t count) const {
  Arguments rest;
  if (count < positional.size())
    rest.positional.assign(positional.begin() + static_cast<std::ptrdiff_t>(count),
                           positional.end());
  rest.named = named;
  return rest;
}

Value Evaluator::evaluate(const Expression& e) {
  using E = Expression::Kind;
  const Deeper deeper(depth_);
  work_.spend(1);
  place_ = e.place;
  switch (e.kind) {
    case E::Constant:
    case E::Text: return e.constant;
    case E::Name: return lookup(e.text);
    case E::List:
    case E::Tuple: return constant_list(e);
    case E::Dict: return dict(e);
    case E::Attribute: {
      const Value of = evaluate(*e.parts[0]);
      place_ = e.place;
      return attribute(of, e.text);
    }
    case E::Item: {
      const Value of = evaluate(*e.parts[0]);
      const Value index = evaluate(*e.parts[1]);
      place_ = e.place;
      return item(of, index);
    }
    case E::Slice: return slice(e);
    case E::Call: return called(e);
    case E::Filter: return filtered(e);
    case E::Test: return tested(e);
    case E::Unary: return unary(e);
    case E::Binary: return binary(e);
    case E::And: {
      const Value left = evaluate(*e.parts[0]);
      return truth(left) ? evaluate(*e.parts[1]) : left;
    }
    case E::Or: {
      const Value left = evaluate(*e.parts[0]);
      return truth(left) ? left : evaluate(*e.parts[1]);
    }
    case E::Compare: return compare(e);
    case E::Concatenate: return concatenated(e);
    case E::Conditional: return conditional(e);
  }
  return {};
}

Value Evaluator::lookup(std::string_view name) {
  for (const Scope* scope = scope_; scope != nullptr; scope = scope->parent)
    for (const auto& [known, value] : scope->variables)
      if (known == name) return value;
  if (!is_global(name)) return Value::undefined(name);
  Function f;
  f.name = name;
  return Value::of(work_.new_function(f));
}

Value Evaluator::constant_list(const Expression& e) {
  std::vector<Value> items;
  for (const ExpressionPtr& part : e.parts) items.push_back(evaluate(*part));
  return e.kind == Expression::Kind::List ? work_.list(items) : work_.tuple(items);
}

Value Evaluator::dict(const Expression& e) {
  std::vector<Pair> pairs;
  for (size_t i = 0; i < e.parts.size(); i += 2) {
    const Value key = evaluate(*e.parts[i]);
    const Value value = evaluate(*e.parts[i + 1]);
    if (key.is(Kind::List) || key.is(Kind::Dict)) refuse("{} cannot be a key", kind_name(key));
    const auto same = std::find_if(pairs.begin(), pairs.end(),
                                   [&](const Pair& p) { return equal(p.key, key, work_); });
    same == pairs.end() ? pairs.push_back({key, value}) : void(same->value = value);
  }
  return work_.dict(pairs);
}

/// Its name; of dict, the other way to make one.
Value Evaluator::function_attribute(const Function& f, std::string_view name) {
  if (name == "name") return Value::text(f.name);
  if (f.kind != Function::Kind::Global || f.name != "dict" || name != "fromkeys")
    return Value::undefined(name);
  Function other;
  other.name = "dict.fromkeys";
  return Value::of(work_.new_function(other));
}

Value Evaluator::attribute(const Value& of, std::string_view name) {
  require_defined(of);
  if (of.is(Kind::Namespace)) {
    for (const auto& [known, value] : of.as_namespace()->members)
      if (known == name) return value;
    return Value::undefined(name);
  }
  if (of.is(Kind::Function)) return function_attribute(*of.as_function(), name);
  if (of.is_group() && (name == "grouper" || name == "list"))
    return of.items()[name == "list" ? 1 : 0];
  if (has_method(of, name)) {
    Function f;
    f.kind = Function::Kind::Method;
    f.name = name;
    f.self = of;
    return Value::of(work_.new_function(f));
  }
  if (of.is(Kind::Loop)) return loop_attribute(*of.as_loop(), name);
  if (of.is(Kind::Cycler) && name == "current") return of.as_loop()->items[of.as_loop()->at];
  if (of.is(Kind::Dict))
    if (const Value* value = find(of, Value::text(name), work_)) return *value;
  return Value::undefined(name);
}

Value Evaluator::item(const Value& of, const Value& index) {
  require_defined(of);
  if (of.is(Kind::Dict))
    if (const Value* value = find(of, index, work_)) return *value;
  if (index.is_integer() && (of.is_list() || of.is(Kind::Text))) {
    const int64_t size = length(of, work_);
    const int64_t i = index.as_integer() < 0 ? index.as_integer() + size : index.as_integer();
    if (i < 0 || i >= size) return Value::undefined("item");
    if (of.is_list()) return of.items()[static_cast<size_t>(i)];
    return Value::text(characters(of.as_text())[static_cast<size_t>(i)]);
  }
  return index.is(Kind::Text) ? attribute(of, index.as_text()) : Value::undefined("item");
}

Value Evaluator::path(const Value& of, const Value& name) {
  if (!name.is(Kind::Text)) return item(of, name);
  Value at = of;
  const std::string_view dot = ".";
  for (const std::string_view part : split(name.as_text(), &dot, -1, false)) {
    const bool number = !part.empty() && part.size() < 10 &&
                        part.find_first_not_of("0123456789") == std::string_view::npos;
    at = item(at, number ? Value::integer(std::stoll(std::string(part))) : Value::text(part));
  }
  return at;
}

Value Evaluator::slice(const Expression& e) {
  const Value of = evaluate(*e.parts[0]);
  Value bounds[3];
  for (size_t i = 0; i < 3; ++i)
    bounds[i] = e.parts[i + 1] ? evaluate(*e.parts[i + 1]) : Value::none();
  place_ = e.place;
  return sliced(of, bounds[0], bounds[1], bounds[2], work_);
}

Value Evaluator::unary(const Expression& e) {
  const Value v = evaluate(*e.parts[0]);
  place_ = e.place;
  if (e.text == "not") return Value::boolean(!truth(v));
  require_defined(v);
  if (!v.is_number()) refuse("{} has no sign", kind_name(v));
  if (e.text == "+") return v.is(Kind::Bool) ? Value::integer(v.as_integer()) : v;
  if (v.is(Kind::Float)) return Value::real(-v.as_real());
  return arithmetic("-", Value::integer(0), v, work_);
}

Value Evaluator::binary(const Expression& e) {
  const Value left = evaluate(*e.parts[0]);
  const Value right = evaluate(*e.parts[1]);
  place_ = e.place;
  return arithmetic(e.text, left, right, work_);
}

Value Evaluator::compare(const Expression& e) {
  Value left = evaluate(*e.parts[0]);
  for (size_t i = 0; i < e.operators.size(); ++i) {
    const Value right = evaluate(*e.parts[i + 1]);
    place_ = e.place;
    const std::string_view op = e.operators[i];
    bool holds = false;
    if (op == "==" || op == "!=") {
      holds = equal(left, right, work_) == (op == "==");
    } else if (op == "in" || op == "not in") {
      holds = contains(right, left, work_) == (op == "in");
    } else {
      require_defined(left);
      require_defined(right);
      const bool swapped = op[0] == '>';
      const Value &a = swapped ? right : left, &b = swapped ? left : right;
      holds = less(a, b, work_) || (op.size() == 2 && equal(a, b, work_));
    }
    if (!holds) return Value::boolean(false);
    left = right;
  }
  return Value::boolean(true);
}

Value Evaluator::concatenated(const Expression& e) {
  TextBuilder out(work_);
  for (const ExpressionPtr& part : e.parts) append_text(out, evaluate(*part), work_);
  return out.done();
}

Value Evaluator::conditional(const Expression& e) {
  if (truth(evaluate(*e.parts[1]))) return evaluate(*e.parts[0]);
  return e.parts[2] ? evaluate(*e.parts[2]) : Value::undefined("value");
}

Arguments Evaluator::arguments_of(const CallArguments& call) {
  Arguments all;
  for (const ExpressionPtr& part : call.positional) all.positional.push_back(evaluate(*part));
  if (call.spread)
    for (const Value& v : sequence(evaluate(*call.spread), work_)) all.positional.push_back(v);
  for (const auto& [name, part] : call.named) all.named.emplace_back(name, evaluate(*part));
  if (call.named_spread) {
    const Value more = evaluate(*call.named_spread);
    if (!more.is(Kind::Dict)) refuse("what follows ** is a dict, got {}", kind_name(more));
    for (const Pair& pair : more.pairs()) {
      if (!pair.key.is(Kind::Text)) refuse("an argument's name is a text");
      all.named.emplace_back(pair.key.as_text(), pair.value);
    }
  }
  return all;
}

Value Evaluator::filtered(const Expression& e) {
  const Value of = e.parts[0] ? evaluate(*e.parts[0]) : block_value_;
  const Arguments arguments = arguments_of(e.arguments);
  place_ = e.place;
  return filter(e.text, of, arguments);
}

Value Evaluator::tested(const Expression& e) {
  const Value of = evaluate(*e.parts[0]);
  const Arguments arguments = arguments_of(e.arguments);
  place_ = e.place;
  return Value::boolean(test(e.text, of, arguments));
}

Value Evaluator::called(const Expression& e) {
  const Value function = evaluate(*e.parts[0]);
  const Arguments arguments = arguments_of(e.arguments);
  place_ = e.place;
  return call(function, arguments);
}

Value Evaluator::call(const Value& function, const Arguments& arguments) {
  require_defined(function);
  if (function.is(Kind::Loop)) return call_loop(*function.as_loop(), arguments);
  if (!function.is(Kind::Function)) refuse("{} cannot be called", kind_name(function));
  const Function& f = *function.as_function();
  switch (f.kind) {
    case Function::Kind::Macro:
    case Function::Kind::Caller: return call_macro(f, arguments);
    case Function::Kind::Method: return method(f.self, f.name, arguments);
    case Function::Kind::Joiner: {  // nothing, and then what stands between
      Loop& state = *f.self.as_loop();
      return state.items[std::exchange(state.at, 1)];
    }
    case Function::Kind::Global: break;
  }
  return global(f.name, arguments);
}

}  // namespace weft::text::jinja
