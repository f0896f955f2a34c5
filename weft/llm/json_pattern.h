// Parts of a JSON schema's strings and numbers as GBNF.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft::llm {

/// A literal of GBNF.
std::string gbnf_literal(std::string_view text);
/// Integers from least to most, as JSON writes them.
std::string gbnf_integers(int64_t least, int64_t most);
/// What is within the quotes of a JSON string that matches an ECMA 262 pattern: not all such
/// strings, but enough. Error: llm.schema, for what looks around or back.
std::string gbnf_pattern(std::string_view pattern);

}  // namespace weft::llm
