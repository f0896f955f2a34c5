// Generated pages of docs/: each test makes the page again and compares.
#pragma once

#include <string>
#include <string_view>

namespace weft {

/// The text of a file of the checkout; empty where there is none.
std::string repository_file(const std::string& path);

/// Fails where docs/<name> is not `text`, and prints the command that refreshes it.
void expect_page(const std::string& name, const std::string& text);

/// "a \| b": a table cell.
std::string cell(std::string_view text);

}  // namespace weft
