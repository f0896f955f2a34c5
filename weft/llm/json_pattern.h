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
enum class PatternText : uint8_t { Json, Plain };  ///< within the quotes of a JSON string; as it is
/// Texts that match an ECMA 262 pattern from their beginning to their end: not all of them, but
/// enough. Error: llm.schema, for what looks around or back.
std::string gbnf_pattern(std::string_view pattern, PatternText text = PatternText::Json);

}  // namespace weft::llm
