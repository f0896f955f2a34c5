// Parser: expressions (expression_parser.cpp) and statements (statement_parser.cpp) by recursive
// descent, in jinja2's order of precedence.
#pragma once

#include "weft/text/jinja/syntax.h"

namespace weft::text::jinja {

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view what)
      : tokens_(std::move(tokens)), what_(what) {}
  /// Up to a tag whose name is one of `ends`, which is not taken; the whole template where there
  /// are none.
  Block block(std::initializer_list<std::string_view> ends);

 private:
  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& next() const { return tokens_[at_ + (at_ + 1 < tokens_.size() ? 1 : 0)]; }
  bool is(Token::Kind kind) const { return current().kind == kind; }
  bool is(Token::Kind kind, std::string_view text) const {
    return is(kind) && current().text == text;
  }
  bool is_operator(std::string_view text) const { return is(Token::Kind::Operator, text); }
  bool is_name(std::string_view text) const { return is(Token::Kind::Name, text); }
  Token take();
  bool take_operator(std::string_view text);
  bool take_name(std::string_view text);
  void expect(std::string_view text);  // an operator
  std::string name(std::string_view what);
  void end_of_tag();
  [[noreturn]] void fail_here(std::string_view problem) const;

  // Expressions, from what binds least.
  ExpressionPtr tuple(bool conditional, std::string_view end = {}, bool parentheses = false);
  ExpressionPtr expression(bool conditional = true);
  ExpressionPtr conditional();
  ExpressionPtr either();
  ExpressionPtr both();
  ExpressionPtr negation();
  ExpressionPtr comparison();
  ExpressionPtr sum();
  ExpressionPtr concatenation();
  ExpressionPtr product();
  ExpressionPtr power();
  ExpressionPtr unary(bool filters = true);
  ExpressionPtr primary();
  ExpressionPtr constant_of(Token token);
  ExpressionPtr text_constant();
  ExpressionPtr list();
  ExpressionPtr dict();
  ExpressionPtr postfix(ExpressionPtr of);
  ExpressionPtr subscript(ExpressionPtr of);
  ExpressionPtr filters(ExpressionPtr of);
  ExpressionPtr filter(ExpressionPtr of);
  ExpressionPtr test(ExpressionPtr of);
  CallArguments arguments();
  ExpressionPtr call(ExpressionPtr of);
  bool ends_tuple(std::string_view end) const;

  ExpressionPtr make(Expression::Kind kind, Place place, std::string text = {});
  void add(Expression& to, ExpressionPtr part);
  void add(Expression& to, CallArguments arguments);
  ExpressionPtr binary(Expression::Kind kind, Token operation, ExpressionPtr left,
                       ExpressionPtr right);
  void require_depth(int depth) const;

  // Statements.
  std::unique_ptr<Statement> statement(Place place);
  void if_tag(Statement& s);
  void for_tag(Statement& s);
  void set_tag(Statement& s);
  void macro_tag(Statement& s);
  void call_tag(Statement& s);
  void filter_tag(Statement& s);
  void with_tag(Statement& s);
  void generation_tag(Statement& s);
  void loop_control_tag(Statement& s);
  ExpressionPtr target(bool members, bool tuples);
  ExpressionPtr single_target(bool members);
  std::vector<Parameter> parameters();
  Block body(std::initializer_list<std::string_view> ends);

  std::vector<Token> tokens_;
  std::string_view what_;
  size_t at_ = 0;
  int nesting_ = 0;  // of brackets and of blocks
  int loops_ = 0;    // around what is read
};

}  // namespace weft::text::jinja
