// Generated pages of docs/: each test makes the page again and compares.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/generated_file.h"

namespace weft {

/// Fails where docs/<name> is not `text`, and prints the command that refreshes it.
void expect_page(const std::string& name, const std::string& text);

/// "a \| b": a table cell.
std::string cell(std::string_view text);

}  // namespace weft
