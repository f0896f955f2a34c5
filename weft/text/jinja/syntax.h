// A template's tree: expressions and statements.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/text/jinja/lexer.h"
#include "weft/text/jinja/value.h"

namespace weft::text::jinja {

struct Expression;
struct Statement;
using ExpressionPtr = std::unique_ptr<Expression>;
using Block = std::vector<std::unique_ptr<Statement>>;

/// How a call, a filter or a test is called.
struct CallArguments {
  std::vector<ExpressionPtr> positional;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  ExpressionPtr spread, named_spread;  // *these, **those; null: none
};

struct Expression {
  enum class Kind : uint8_t {
    Constant,
    Text,       // text
    Name,       // text
    List,       // parts
    Tuple,      // parts
    Dict,       // keys and values in turns
    Attribute,  // parts[0].text
    Item,       // parts[0][parts[1]]
    Slice,      // parts[0][parts[1]:parts[2]:parts[3]]; null: not given
    Call,       // parts[0](arguments)
    Filter,     // parts[0] | text(arguments); parts[0] null: of a block
    Test,       // parts[0] is text(arguments)
    Unary,      // text: not - +
    Binary,     // text: + - * / // % **
    And,
    Or,
    Compare,      // parts[0] operators[0] parts[1] operators[1] ...
    Concatenate,  // parts ~
    Conditional,  // parts[0] if parts[1] else parts[2]; null: undefined
  } kind;
  Place place;
  std::string text;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::string> operators;
  CallArguments arguments;
  int depth = 1;  // of the tree below, which is evaluated by recursion
};

struct Parameter {
  std::string name;
  ExpressionPtr otherwise;  // null: none
};

struct Statement {
  enum class Kind : uint8_t {
    Text,
    Output,     // expression
    If,         // branches
    For,        // target in expression if condition: body, otherwise
    Set,        // target = expression
    SetBlock,   // target = body | expression
    Macro,      // text(parameters): body
    CallBlock,  // parameters; expression is the call; body is the caller's
    Filter,     // body | expression
    With,       // targets = values: body
    Scope,      // body, as {% generation %} has it
    Break,
    Continue
  } kind;
  Place place;
  std::string text;
  ExpressionPtr expression, target, condition;
  std::vector<std::pair<ExpressionPtr, Block>> branches;  // the last may be without condition
  std::vector<std::pair<ExpressionPtr, ExpressionPtr>> assignments;
  std::vector<Parameter> parameters;
  Block body, otherwise;
  bool recursive = false;  // of For
};

/// Errors: template.syntax, template.limit (deeper than 100 levels).
Block parse_template(std::vector<Token> tokens, std::string_view what);

}  // namespace weft::text::jinja
