#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "tests/docs/pages.h"
#include "tests/source_dir.h"

namespace weft {

std::string repository_file(const std::string& path) {
  std::ifstream in(std::string(source_dir()) + "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_page(const std::string& name, const std::string& text) {
  const std::string path = "docs/" + name;
  if (repository_file(path) == text) return;
  const std::string fresh = ::testing::TempDir() + name;
  std::ofstream(fresh) << text;
  ADD_FAILURE() << path << " is stale; read what changed, then from the top of the checkout\n  cp "
                << fresh << " " << path;
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
