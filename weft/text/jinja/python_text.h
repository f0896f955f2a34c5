// What Python's str does, on UTF-8: white space, case, parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace weft::text::jinja {

/// str.isspace() of one character.
bool is_python_space(char32_t c);
enum class Side : uint8_t { Both, Left, Right };
/// Without the characters of `set` at its ends; white space where that is null.
std::string_view stripped(std::string_view text, Side side, const std::string_view* set = nullptr);
std::string lower(std::string_view text);
std::string upper(std::string_view text);
std::string title(std::string_view text);  // str.title()
std::string capitalized(std::string_view text);
std::string swapped_case(std::string_view text);
std::string filter_title(std::string_view text);  // what the filter `title` does
/// Whether letters with two cases are there, and all are what `change` (lower, upper) makes.
bool is_cased_as(std::string_view text, std::string (*change)(std::string_view));
std::vector<std::string_view> characters(std::string_view text);
size_t character_count(std::string_view text);
/// str.split: at white space where `separator` is null. At most `most` times, if that is not
/// negative; from the right as str.rsplit.
std::vector<std::string_view> split(std::string_view text, const std::string_view* separator,
                                    int64_t most, bool right);
std::vector<std::string_view> lines(std::string_view text, bool keep_ends);
/// Within quotes, as repr() shows it.
std::string quoted(std::string_view text);

}  // namespace weft::text::jinja
