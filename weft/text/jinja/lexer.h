// Tokens of a template: text between tags, and what is written in them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::text::jinja {

struct Place {
  uint32_t line = 1, column = 1;
};

struct Token {
  enum class Kind : uint8_t {
    Text,         // between tags
    BlockBegin,   // {%
    BlockEnd,     // %}
    OutputBegin,  // {{
    OutputEnd,    // }}
    Name,
    String,  // without quotes, escapes resolved
    Integer,
    Real,
    Operator,
    End
  } kind = Kind::End;
  std::string text;
  Place place;
};

/// As jinja2's lexer with trim_blocks and lstrip_blocks, which transformers sets. Line endings
/// become \n, and one at the end goes. Errors: template.syntax.
std::vector<Token> tokens_of(std::string_view source, std::string_view what);

[[noreturn]] void fail_syntax(std::string_view what, Place place, std::string_view problem);

}  // namespace weft::text::jinja
