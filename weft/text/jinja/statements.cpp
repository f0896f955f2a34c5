// Statements of a template.
#include <algorithm>

#include "weft/text/jinja/evaluator.h"

namespace weft::text::jinja {

namespace {
using Kind = Value::Kind;
}  // namespace

std::string Evaluator::run(const Block& block, const Value& variables) {
  TextBuilder out(work_);
  root_ = out_ = &out;
  scope_ = work_.new_scope(nullptr);
  for (const Pair& pair : variables.pairs())
    scope_->variables.emplace_back(pair.key.as_text(), pair.value);
  scope_ = work_.new_scope(scope_);
  run_block(block);
  return out.text();
}

void Evaluator::emit(std::string_view text) {
  if (out_->text().size() + text.size() > options_.most_output)
    throw Problem{"template.limit",
                  strformat("the output is more than {}",
                            human_bytes(static_cast<int64_t>(options_.most_output)))};
  out_->add(text);
}

void Evaluator::emit(const Value& v) {
  if (v.is(Kind::Text)) work_.spend_for(v.as_text().size());
  emit(text_of(v, work_));
}

Evaluator::Flow Evaluator::run_block(const Block& block) {
  const Deeper deeper(depth_);
  for (const auto& statement : block)
    if (const Flow flow = run_statement(*statement); flow != Flow::On) return flow;
  return Flow::On;
}

Evaluator::Flow Evaluator::run_in(Scope* scope, const Block& block) {
  Scope* outside = std::exchange(scope_, scope);
  const Flow flow = run_block(block);
  scope_ = outside;
  return flow;
}

Evaluator::Flow Evaluator::run_statement(const Statement& s) {
  work_.spend(1);
  place_ = s.place;
  switch (s.kind) {
    case Statement::Kind::Text: emit(s.text); break;
    case Statement::Kind::Output: emit(evaluate(*s.expression)); break;
    case Statement::Kind::If: return run_if(s);
    case Statement::Kind::For: return run_for(s);
    case Statement::Kind::Set: assign(*s.target, evaluate(*s.expression)); break;
    case Statement::Kind::SetBlock: run_set_block(s); break;
    case Statement::Kind::Macro: define_macro(s); break;
    case Statement::Kind::CallBlock: run_call_block(s); break;
    case Statement::Kind::Filter:
      block_value_ = captured(work_.new_scope(scope_), s.body);
      emit(evaluate(*s.expression));
      break;
    case Statement::Kind::With: return run_with(s);
    case Statement::Kind::Scope: run_generation(s); break;
    case Statement::Kind::Break: return Flow::Break;
    case Statement::Kind::Continue: return Flow::Continue;
  }
  return Flow::On;
}

Evaluator::Flow Evaluator::run_if(const Statement& s) {
  for (const auto& [condition, block] : s.branches)
    if (condition == nullptr || truth(evaluate(*condition))) return run_block(block);
  return Flow::On;
}

/// The items that the loop's condition holds for; it sees the loop's variables, but not `loop`.
std::span<const Value> Evaluator::filtered(const Statement& s, std::span<const Value> items) {
  std::vector<Value> kept;
  Scope* outside = scope_;
  for (const Value& item : items) {
    work_.spend(1);
    scope_ = work_.new_scope(outside);
    assign(*s.target, item);
    if (truth(evaluate(*s.condition))) kept.push_back(item);
  }
  scope_ = outside;
  return work_.keep(kept);
}

Evaluator::Flow Evaluator::run_for(const Statement& s) {
  const Value iterated = evaluate(*s.expression);
  place_ = s.expression->place;
  return run_loop(s, iterated, 1);
}

/// The loop once more, over other items, one deeper.
Value Evaluator::call_loop(const Loop& loop, const Arguments& arguments) {
  const Deeper deeper(depth_);
  if (loop.recursive == nullptr) refuse("loop() runs loops with 'recursive' only");
  if (arguments.positional.size() != 1)
    refuse("loop() takes what to go through, got {} arguments", arguments.positional.size());
  TextBuilder text(work_);
  TextBuilder* outside = std::exchange(out_, &text);
  Scope* scope = std::exchange(scope_, loop.outside);
  run_loop(*loop.recursive, arguments.positional[0], loop.depth + 1);
  scope_ = scope;
  out_ = outside;
  return text.done();
}

Evaluator::Flow Evaluator::run_loop(const Statement& s, const Value& iterated, int depth) {
  std::span<const Value> items = sequence(iterated, work_);
  if (s.condition) items = filtered(s, items);
  if (items.empty()) return run_in(work_.new_scope(scope_), s.otherwise);
  Loop* loop = work_.new_loop();
  loop->items = items;
  loop->depth = depth;
  Scope* outside = scope_;
  loop->outside = outside;
  if (s.recursive) loop->recursive = &s;
  for (size_t i = 0; i < items.size(); ++i) {
    work_.spend(1);
    loop->at = i;
    scope_ = work_.new_scope(outside);
    place_ = s.place;
    set("loop", Value::of(loop));
    assign(*s.target, items[i]);
    if (run_block(s.body) == Flow::Break) break;
  }
  scope_ = outside;
  return Flow::On;
}

Evaluator::Flow Evaluator::run_with(const Statement& s) {
  Scope* scope = work_.new_scope(scope_);
  for (const auto& [target, expression] : s.assignments) {
    const Value value = evaluate(*expression);
    Scope* outside = std::exchange(scope_, scope);
    assign(*target, value);
    scope_ = outside;
  }
  return run_in(scope, s.body);
}

void Evaluator::run_generation(const Statement& s) {
  const size_t from = out_->text().size();
  run_in(work_.new_scope(scope_), s.body);
  if (options_.generated != nullptr && out_ == root_)
    options_.generated->emplace_back(from, out_->text().size());
}

Value Evaluator::captured(Scope* scope, const Block& block) {
  TextBuilder text(work_);
  TextBuilder* outside = std::exchange(out_, &text);
  run_in(scope, block);
  out_ = outside;
  return text.done();
}

void Evaluator::run_set_block(const Statement& s) {
  Value text = captured(work_.new_scope(scope_), s.body);
  if (s.expression) {
    block_value_ = text;
    text = evaluate(*s.expression);
  }
  assign(*s.target, text);
}

void Evaluator::define_macro(const Statement& s) {
  Function f;
  f.kind = Function::Kind::Macro;
  f.name = s.text;
  f.macro = &s;
  f.scope = scope_;
  set(s.text, Value::of(work_.new_function(f)));
}

void Evaluator::run_call_block(const Statement& s) {
  Function caller;
  caller.kind = Function::Kind::Caller;
  caller.name = s.text;
  caller.macro = &s;
  caller.scope = scope_;
  const Value function = evaluate(*s.expression->parts[0]);
  Arguments arguments = arguments_of(s.expression->arguments);
  arguments.named.emplace_back("caller", Value::of(work_.new_function(caller)));
  place_ = s.place;
  emit(call(function, arguments));
}

Value Evaluator::call_macro(const Function& f, const Arguments& arguments) {
  const std::vector<Parameter>& parameters = f.macro->parameters;
  Scope* scope = work_.new_scope(f.scope);
  Scope* outside = std::exchange(scope_, scope);
  std::vector<Value> more;
  std::vector<Pair> more_named;
  for (size_t i = parameters.size(); i < arguments.positional.size(); ++i)
    more.push_back(arguments.positional[i]);
  for (const auto& [name, value] : arguments.named) {
    const auto known = [&, n = name](const Parameter& p) { return p.name == n; };
    if (name == "caller")
      set(name, value);
    else if (std::none_of(parameters.begin(), parameters.end(), known))
      more_named.push_back({Value::text(name), value});
  }
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Value* given = arguments.find(i, parameters[i].name);
    set(parameters[i].name, given != nullptr          ? *given
                            : parameters[i].otherwise ? evaluate(*parameters[i].otherwise)
                                                      : Value::undefined(parameters[i].name));
  }
  set("varargs", work_.tuple(more));
  set("kwargs", work_.dict(more_named));
  scope_ = outside;
  return captured(scope, f.macro->body);
}

void Evaluator::set(std::string_view name, const Value& value) {
  for (auto& [known, old] : scope_->variables) {
    if (known == name) {
      old = value;
      return;
    }
  }
  work_.charge(sizeof(std::pair<std::string_view, Value>));
  scope_->variables.emplace_back(name, value);
}

void Evaluator::assign(const Expression& target, const Value& value) {
  if (target.kind == Expression::Kind::Name) return set(target.text, value);
  place_ = target.place;
  if (target.kind == Expression::Kind::Attribute) {
    const Value of = evaluate(*target.parts[0]);
    if (!of.is(Kind::Namespace))
      refuse(
          "'{}.{}' is set, but only namespaces have members that "
          "can be",
          target.parts[0]->text, target.text);
    if (target.text[0] == '_') refuse("'{}' is no name for a namespace's member", target.text);
    auto& members = of.as_namespace()->members;
    const auto known = std::find_if(members.begin(), members.end(),
                                    [&](const auto& m) { return m.first == target.text; });
    if (known != members.end()) {
      known->second = value;
      return;
    }
    work_.charge(sizeof(members[0]));
    members.emplace_back(target.text, value);
    return;
  }
  const std::span<const Value> items = sequence(value, work_);
  if (items.size() != target.parts.size())
    refuse("{} values for {} variables", items.size(), target.parts.size());
  for (size_t i = 0; i < items.size(); ++i) assign(*target.parts[i], items[i]);
}

}  // namespace weft::text::jinja
