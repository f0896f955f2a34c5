#include <charconv>
#include <cstdlib>

#include "weft/text/jinja/parser.h"

namespace weft::text::jinja {

namespace {
using Kind = Expression::Kind;
constexpr int kDeepest = 100;
}  // namespace

void Parser::fail_here(std::string_view problem) const {
  fail_syntax(what_, current().place, problem);
}

Token Parser::take() { return is(Token::Kind::End) ? current() : std::move(tokens_[at_++]); }

bool Parser::take_operator(std::string_view text) {
  if (!is_operator(text)) return false;
  ++at_;
  return true;
}

bool Parser::take_name(std::string_view text) {
  if (!is_name(text)) return false;
  ++at_;
  return true;
}

void Parser::expect(std::string_view text) {
  if (!take_operator(text)) fail_here(strformat("expected '{}'", text));
}

std::string Parser::name(std::string_view what) {
  if (!is(Token::Kind::Name)) fail_here(strformat("expected {}", what));
  return take().text;
}

void Parser::require_depth(int depth) const {
  if (depth > kDeepest) fail_here("nesting deeper than 100 levels");
}

ExpressionPtr Parser::make(Kind kind, Place place, std::string text) {
  auto e = std::make_unique<Expression>();
  e->kind = kind;
  e->place = place;
  e->text = std::move(text);
  return e;
}

void Parser::add(Expression& to, ExpressionPtr part) {
  if (part) to.depth = std::max(to.depth, part->depth + 1);
  require_depth(to.depth);
  to.parts.push_back(std::move(part));
}

void Parser::add(Expression& to, CallArguments arguments) {
  const auto deepen = [&](const ExpressionPtr& part) {
    if (part) to.depth = std::max(to.depth, part->depth + 1);
  };
  for (const ExpressionPtr& part : arguments.positional) deepen(part);
  for (const auto& [name, part] : arguments.named) deepen(part);
  deepen(arguments.spread);
  deepen(arguments.named_spread);
  require_depth(to.depth);
  to.arguments = std::move(arguments);
}

ExpressionPtr Parser::binary(Kind kind, Token operation, ExpressionPtr left, ExpressionPtr right) {
  ExpressionPtr e = make(kind, operation.place, std::move(operation.text));
  add(*e, std::move(left));
  add(*e, std::move(right));
  return e;
}

bool Parser::ends_tuple(std::string_view end) const {
  return is(Token::Kind::BlockEnd) || is(Token::Kind::OutputEnd) || is_operator(")") ||
         (!end.empty() && is_name(end));
}

/// One expression, or several with commas between.
ExpressionPtr Parser::tuple(bool conditional, std::string_view end, bool parentheses) {
  const Place place = current().place;
  std::vector<ExpressionPtr> parts;
  bool comma = false;
  while (!ends_tuple(end)) {
    parts.push_back(expression(conditional));
    if (!take_operator(",")) break;
    comma = true;
  }
  if (!comma && parts.size() == 1) return std::move(parts[0]);
  if (parts.empty() && !parentheses) fail_here("expected an expression");
  ExpressionPtr e = make(Kind::Tuple, place);
  for (ExpressionPtr& part : parts) add(*e, std::move(part));
  return e;
}

ExpressionPtr Parser::expression(bool with_condition) {
  require_depth(++nesting_);
  ExpressionPtr e = with_condition ? conditional() : either();
  --nesting_;
  return e;
}

ExpressionPtr Parser::conditional() {
  ExpressionPtr value = either();
  while (is_name("if")) {
    ExpressionPtr e = make(Kind::Conditional, take().place);
    add(*e, std::move(value));
    add(*e, either());
    add(*e, take_name("else") ? expression() : nullptr);
    value = std::move(e);
  }
  return value;
}

ExpressionPtr Parser::either() {
  ExpressionPtr left = both();
  while (is_name("or")) {
    Token operation = take();
    left = binary(Kind::Or, std::move(operation), std::move(left), both());
  }
  return left;
}

ExpressionPtr Parser::both() {
  ExpressionPtr left = negation();
  while (is_name("and")) {
    Token operation = take();
    left = binary(Kind::And, std::move(operation), std::move(left), negation());
  }
  return left;
}

ExpressionPtr Parser::negation() {
  if (!is_name("not")) return comparison();
  require_depth(++nesting_);
  Token operation = take();
  ExpressionPtr e = make(Kind::Unary, operation.place, "not");
  add(*e, negation());
  --nesting_;
  return e;
}

ExpressionPtr Parser::comparison() {
  const Place place = current().place;
  ExpressionPtr first = sum();
  ExpressionPtr e;
  while (true) {
    std::string operation;
    for (const std::string_view sign : {"==", "!=", "<", "<=", ">", ">="})
      if (is_operator(sign)) operation = sign;
    if (is_name("in")) operation = "in";
    if (is_name("not") && next().kind == Token::Kind::Name && next().text == "in") {
      take();
      operation = "not in";
    }
    if (operation.empty()) return e ? std::move(e) : std::move(first);
    if (!e) {
      e = make(Kind::Compare, place);
      add(*e, std::move(first));
    }
    take();
    e->operators.push_back(std::move(operation));
    add(*e, sum());
  }
}

ExpressionPtr Parser::sum() {
  ExpressionPtr left = concatenation();
  while (is_operator("+") || is_operator("-")) {
    Token operation = take();
    left = binary(Kind::Binary, std::move(operation), std::move(left), concatenation());
  }
  return left;
}

ExpressionPtr Parser::concatenation() {
  ExpressionPtr first = product();
  if (!is_operator("~")) return first;
  ExpressionPtr e = make(Kind::Concatenate, current().place);
  add(*e, std::move(first));
  while (take_operator("~")) add(*e, product());
  return e;
}

ExpressionPtr Parser::product() {
  ExpressionPtr left = power();
  while (is_operator("*") || is_operator("/") || is_operator("//") || is_operator("%")) {
    Token operation = take();
    left = binary(Kind::Binary, std::move(operation), std::move(left), power());
  }
  return left;
}

ExpressionPtr Parser::power() {
  ExpressionPtr left = unary();
  while (is_operator("**")) {
    Token operation = take();
    left = binary(Kind::Binary, std::move(operation), std::move(left), unary());
  }
  return left;
}

ExpressionPtr Parser::unary(bool with_filters) {
  ExpressionPtr e;
  if (is_operator("-") || is_operator("+")) {
    require_depth(++nesting_);
    Token operation = take();
    e = make(Kind::Unary, operation.place, std::move(operation.text));
    add(*e, unary(false));
    --nesting_;
  } else {
    e = primary();
  }
  e = postfix(std::move(e));
  return with_filters ? filters(std::move(e)) : std::move(e);
}

ExpressionPtr Parser::constant_of(Token token) {
  ExpressionPtr e = make(Kind::Constant, token.place);
  const std::string& text = token.text;
  if (token.kind == Token::Kind::Real) {
    e->constant = Value::real(std::strtod(text.c_str(), nullptr));
    return e;
  }
  const char prefix = text.size() > 1 ? static_cast<char>(text[1] | 0x20) : '\0';
  const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 10;
  int64_t value = 0;
  const char* digits = text.data() + (base == 10 ? 0 : 2);
  const auto [end, error] = std::from_chars(digits, text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size())
    fail_syntax(what_, token.place, strformat("{} is no number of 64 bits", text));
  e->constant = Value::integer(value);
  return e;
}

/// Strings side by side are one.
ExpressionPtr Parser::text_constant() {
  ExpressionPtr e = make(Kind::Text, current().place);
  while (is(Token::Kind::String)) e->text += take().text;
  e->constant = Value::text(e->text);
  return e;
}

ExpressionPtr Parser::primary() {
  const Place place = current().place;
  if (is(Token::Kind::String)) return text_constant();
  if (is(Token::Kind::Integer) || is(Token::Kind::Real)) return constant_of(take());
  if (is(Token::Kind::Name)) {
    ExpressionPtr e = make(Kind::Constant, place, take().text);
    if (e->text == "true" || e->text == "True")
      e->constant = Value::boolean(true);
    else if (e->text == "false" || e->text == "False")
      e->constant = Value::boolean(false);
    else if (e->text == "none" || e->text == "None")
      e->constant = Value::none();
    else
      e->kind = Kind::Name;
    return e;
  }
  if (is_operator("[")) return list();
  if (is_operator("{")) return dict();
  if (!take_operator("(")) fail_here("expected an expression");
  ExpressionPtr e = tuple(true, {}, true);
  expect(")");
  return e;
}

ExpressionPtr Parser::list() {
  ExpressionPtr e = make(Kind::List, take().place);
  while (!is_operator("]")) {
    add(*e, expression());
    if (!take_operator(",")) break;
  }
  expect("]");
  return e;
}

ExpressionPtr Parser::dict() {
  ExpressionPtr e = make(Kind::Dict, take().place);
  while (!is_operator("}")) {
    add(*e, expression());
    expect(":");
    add(*e, expression());
    if (!take_operator(",")) break;
  }
  expect("}");
  return e;
}

ExpressionPtr Parser::postfix(ExpressionPtr of) {
  while (true) {
    if (is_operator(".")) {
      const Place place = take().place;
      const bool number = is(Token::Kind::Integer);
      ExpressionPtr e = make(number ? Kind::Item : Kind::Attribute, place);
      add(*e, std::move(of));
      if (number)
        add(*e, constant_of(take()));
      else
        e->text = name("a name or a number after '.'");
      of = std::move(e);
    } else if (is_operator("[")) {
      of = subscript(std::move(of));
    } else if (is_operator("(")) {
      of = call(std::move(of));
    } else {
      return of;
    }
  }
}

ExpressionPtr Parser::subscript(ExpressionPtr of) {
  ExpressionPtr e = make(Kind::Item, take().place);
  add(*e, std::move(of));
  if (is_operator("]")) fail_here("expected an expression");
  add(*e, is_operator(":") ? nullptr : expression());
  while (e->parts.size() < 4 && take_operator(":")) {
    e->kind = Kind::Slice;
    add(*e, is_operator(":") || is_operator("]") ? nullptr : expression());
  }
  if (e->kind == Kind::Slice && e->parts.size() == 3) add(*e, nullptr);
  expect("]");
  return e;
}

CallArguments Parser::arguments() {
  CallArguments all;
  expect("(");
  while (!is_operator(")")) {
    if (take_operator("**")) {
      all.named_spread = expression();
    } else if (take_operator("*")) {
      all.spread = expression();
    } else if (is(Token::Kind::Name) && next().kind == Token::Kind::Operator &&
               next().text == "=") {
      std::string name = take().text;
      take();
      all.named.emplace_back(std::move(name), expression());
    } else {
      if (!all.named.empty() || all.named_spread)
        fail_here("an argument without a name after one with");
      all.positional.push_back(expression());
    }
    if (!take_operator(",")) break;
  }
  expect(")");
  return all;
}

ExpressionPtr Parser::call(ExpressionPtr of) {
  ExpressionPtr e = make(Kind::Call, current().place);
  add(*e, std::move(of));
  add(*e, arguments());
  return e;
}

ExpressionPtr Parser::filters(ExpressionPtr of) {
  while (true) {
    if (take_operator("|"))
      of = filter(std::move(of));
    else if (is_name("is"))
      of = test(std::move(of));
    else if (is_operator("("))
      of = call(std::move(of));
    else
      return of;
  }
}

ExpressionPtr Parser::filter(ExpressionPtr of) {
  const Place place = current().place;
  ExpressionPtr e = make(Kind::Filter, place, name("a filter's name"));
  while (take_operator(".")) e->text += "." + name("a filter's name");
  add(*e, std::move(of));
  if (is_operator("(")) add(*e, arguments());
  return e;
}

ExpressionPtr Parser::test(ExpressionPtr of) {
  take();
  const bool negated = take_name("not");
  const Place place = current().place;
  ExpressionPtr e = make(Kind::Test, place, name("a test's name"));
  add(*e, std::move(of));
  const bool value = is(Token::Kind::String) || is(Token::Kind::Integer) || is(Token::Kind::Real) ||
                     is_operator("[") || is_operator("{") ||
                     (is(Token::Kind::Name) && !is_name("else") && !is_name("or") &&
                      !is_name("and") && !is_name("if") && !is_name("not") && !is_name("in"));
  if (is_operator("(")) {
    add(*e, arguments());
  } else if (value) {
    if (is_name("is")) fail_here("tests cannot follow each other");
    CallArguments one;
    one.positional.push_back(postfix(primary()));
    add(*e, std::move(one));
  }
  if (!negated) return e;
  ExpressionPtr no = make(Kind::Unary, place, "not");
  add(*no, std::move(e));
  return no;
}

}  // namespace weft::text::jinja
