// Files of the checkout that tests make again and compare.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// The text of a file of the checkout; empty where there is none.
std::string repository_file(const std::string& path);

/// Fails where that file is not `text`, says `why`, and prints the command that refreshes it.
void expect_generated(const std::string& path, const std::string& text,
                      const std::string& why = "");

/// "a \| b": a table cell.
std::string cell(std::string_view text);

}  // namespace weft
