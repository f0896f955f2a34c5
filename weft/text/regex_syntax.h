// Oniguruma's syntax written in PCRE2's.
#pragma once

#include <string>
#include <string_view>

namespace weft::text {

/// Throws an Error ("regex.pattern") for what has no counterpart.
std::string pcre2_syntax(std::string_view pattern);

[[noreturn]] void refuse_pattern(std::string_view pattern, std::string_view problem, size_t at);

}  // namespace weft::text
