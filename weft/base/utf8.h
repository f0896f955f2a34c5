// UTF-8 out of files: what is valid.
#pragma once

#include <cstddef>
#include <string_view>

namespace weft {

// Length of the sequence at `at`, 0 when it is not valid: cut, overlong, a surrogate, past
// U+10FFFF.
size_t utf8_length(std::string_view text, size_t at);
bool is_utf8(std::string_view text);

}  // namespace weft
