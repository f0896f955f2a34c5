#include <algorithm>

#include "weft/text/jinja/parser.h"

namespace weft::text::jinja {

namespace {
using Kind = Statement::Kind;
}

Block parse_template(std::vector<Token> tokens, std::string_view what) {
  return Parser(std::move(tokens), what).block({});
}

void Parser::end_of_tag() {
  if (!is(Token::Kind::BlockEnd)) fail_here("expected the tag's end");
  ++at_;
}

Block Parser::block(std::initializer_list<std::string_view> ends) {
  Block all;
  require_depth(++nesting_);
  while (true) {
    const Place place = current().place;
    if (is(Token::Kind::End)) {
      if (ends.size() != 0) fail_here(strformat("the template ends before {}", *(ends.end() - 1)));
      break;
    }
    if (is(Token::Kind::BlockBegin)) {
      if (std::find(ends.begin(), ends.end(), next().text) != ends.end()) break;
      ++at_;
      all.push_back(statement(place));
      continue;
    }
    auto s = std::make_unique<Statement>();
    s->place = place;
    if (is(Token::Kind::Text)) {
      s->kind = Kind::Text;
      s->text = take().text;
    } else {
      ++at_;  // {{
      s->kind = Kind::Output;
      s->expression = tuple(true);
      if (!is(Token::Kind::OutputEnd)) fail_here("expected '}}'");
      ++at_;
    }
    all.push_back(std::move(s));
  }
  --nesting_;
  return all;
}

/// What a tag holds: the tag's end, a block, and the end tag's name (the last of `ends` closes).
Block Parser::body(std::initializer_list<std::string_view> ends) {
  end_of_tag();
  Block all = block(ends);
  ++at_;  // {%
  return all;
}

std::unique_ptr<Statement> Parser::statement(Place place) {
  struct Row {
    std::string_view name;
    Kind kind;
    void (Parser::*read)(Statement&);
  };
  static constexpr Row kTags[] = {
      {"if", Kind::If, &Parser::if_tag},
      {"for", Kind::For, &Parser::for_tag},
      {"set", Kind::Set, &Parser::set_tag},
      {"macro", Kind::Macro, &Parser::macro_tag},
      {"call", Kind::CallBlock, &Parser::call_tag},
      {"filter", Kind::Filter, &Parser::filter_tag},
      {"with", Kind::With, &Parser::with_tag},
      {"generation", Kind::Scope, &Parser::generation_tag},
      {"break", Kind::Break, &Parser::loop_control_tag},
      {"continue", Kind::Continue, &Parser::loop_control_tag},
  };
  const std::string tag = is(Token::Kind::Name) ? current().text : "";
  const auto* row =
      std::find_if(std::begin(kTags), std::end(kTags), [&](const Row& r) { return r.name == tag; });
  if (row == std::end(kTags)) fail_here(strformat("unknown tag '{}'", tag));
  ++at_;
  auto s = std::make_unique<Statement>();
  s->kind = row->kind;
  s->place = place;
  s->text = tag;
  (this->*row->read)(*s);
  end_of_tag();
  return s;
}

void Parser::if_tag(Statement& s) {
  ExpressionPtr condition = tuple(false);
  while (true) {
    Block then = body({"elif", "else", "endif"});
    const bool was_else = condition == nullptr;
    s.branches.emplace_back(std::move(condition), std::move(then));
    if (take_name("endif")) return;
    if (was_else) fail_here("expected endif");
    condition = take_name("elif") ? tuple(false) : (take(), nullptr);
  }
}

void Parser::for_tag(Statement& s) {
  s.target = target(false, true);
  if (!take_name("in")) fail_here("expected 'in'");
  s.expression = tuple(false, "recursive");
  if (take_name("if")) s.condition = expression();
  s.recursive = take_name("recursive");
  ++loops_;
  s.body = body({"else", "endfor"});
  --loops_;
  if (take_name("endfor")) return;
  ++at_;  // else
  s.otherwise = body({"endfor"});
  ++at_;
}

void Parser::set_tag(Statement& s) {
  s.target = target(true, true);
  if (take_operator("=")) {
    s.expression = tuple(true);
    return;
  }
  s.kind = Kind::SetBlock;
  if (is_operator("|")) s.expression = filters(nullptr);
  s.body = body({"endset"});
  ++at_;
}

std::vector<Parameter> Parser::parameters() {
  std::vector<Parameter> all;
  expect("(");
  while (!is_operator(")")) {
    Parameter p;
    p.name = name("a parameter's name");
    if (take_operator("=")) p.otherwise = expression();
    if (!p.otherwise && !all.empty() && all.back().otherwise)
      fail_here("a parameter without a default after one with");
    all.push_back(std::move(p));
    if (!take_operator(",")) break;
  }
  expect(")");
  return all;
}

void Parser::macro_tag(Statement& s) {
  s.text = name("the macro's name");
  s.parameters = parameters();
  const int outside = std::exchange(loops_, 0);
  s.body = body({"endmacro"});
  loops_ = outside;
  ++at_;
}

void Parser::call_tag(Statement& s) {
  if (is_operator("(")) s.parameters = parameters();
  s.text = "caller";
  s.expression = expression();
  if (s.expression->kind != Expression::Kind::Call) fail_here("expected a call");
  const int outside = std::exchange(loops_, 0);
  s.body = body({"endcall"});
  loops_ = outside;
  ++at_;
}

void Parser::filter_tag(Statement& s) {
  s.expression = filter(nullptr);
  while (take_operator("|")) s.expression = filter(std::move(s.expression));
  s.body = body({"endfilter"});
  ++at_;
}

void Parser::with_tag(Statement& s) {
  while (!is(Token::Kind::BlockEnd)) {
    if (!s.assignments.empty()) expect(",");
    ExpressionPtr to = target(false, false);
    expect("=");
    s.assignments.emplace_back(std::move(to), expression());
  }
  s.body = body({"endwith"});
  ++at_;
}

void Parser::generation_tag(Statement& s) {
  const int outside = std::exchange(loops_, 0);
  s.body = body({"endgeneration"});
  loops_ = outside;
  ++at_;
}

void Parser::loop_control_tag(Statement& s) {
  if (loops_ == 0) fail_syntax(what_, s.place, strformat("'{}' outside of a loop", s.text));
}

ExpressionPtr Parser::single_target(bool members) {
  const Place place = current().place;
  if (take_operator("(")) {
    require_depth(++nesting_);
    ExpressionPtr inner = target(members, true);
    --nesting_;
    expect(")");
    return inner;
  }
  ExpressionPtr e = make(Expression::Kind::Name, place, name("a variable's name"));
  for (const std::string_view word : {"true", "false", "none", "True", "False", "None"})
    if (e->text == word) fail_syntax(what_, place, strformat("'{}' cannot be set", word));
  if (!members || !take_operator(".")) return e;
  ExpressionPtr member = make(Expression::Kind::Attribute, place, name("a member's name"));
  add(*member, std::move(e));
  return member;
}

ExpressionPtr Parser::target(bool members, bool tuples) {
  const Place place = current().place;
  ExpressionPtr first = single_target(members);
  if (!tuples || !is_operator(",")) return first;
  ExpressionPtr e = make(Expression::Kind::Tuple, place);
  add(*e, std::move(first));
  while (take_operator(",") && !is_name("in") && !is_operator("=")) add(*e, single_target(members));
  return e;
}

}  // namespace weft::text::jinja
