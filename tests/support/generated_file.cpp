#include "tests/support/generated_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/source_dir.h"

namespace weft {

std::string repository_file(const std::string& path) {
  std::ifstream in(std::string(source_dir()) + "/" + path);
  return {std::istreambuf_iterator<char>(in), {}};
}

void expect_generated(const std::string& path, const std::string& text, const std::string& why) {
  if (repository_file(path) == text) return;
  // Not in /tmp, which other checkouts have, too.
  const std::filesystem::path fresh = std::filesystem::path(build_dir()) / "fresh" / path;
  std::filesystem::create_directories(fresh.parent_path());
  std::ofstream(fresh) << text;
  ADD_FAILURE() << path << " is stale" << why << "; read what changed and then\n  cp "
                << fresh.string() << " " << source_dir() << "/" << path;
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
