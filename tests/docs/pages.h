// Generated pages of docs/: each test makes the page again and compares.
#pragma once

#include <string>

#include "tests/support/generated_file.h"

namespace weft {

/// Fails where docs/<name> is not `text`, and prints the command that refreshes it.
inline void expect_page(const std::string& name, const std::string& text) {
  expect_generated("docs/" + name, text);
}

}  // namespace weft
