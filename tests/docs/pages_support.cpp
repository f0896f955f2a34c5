#include "tests/docs/pages.h"

namespace weft {

void expect_page(const std::string& name, const std::string& text) {
  expect_generated("docs/" + name, text);
}

std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace weft
