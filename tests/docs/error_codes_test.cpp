// Every code that the sources throw can be explained: `weft explain CODE`.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "tests/source_dir.h"
#include "weft/base/error.h"

namespace weft {
namespace {

/// What stands as the first argument of fail() and its kin, and as a file's tag.
std::set<std::string> codes_in(const std::string& source) {
  static const std::regex thrown(
      R"re((?:\b(?:fail(?:_type|_index|_runtime|_memory|_errno)?|internal_error|\w+_ax[ie]s|checked_size)\(\s*|\bk\w*Tag(?:\[\])? = )"([^"]+)")re");
  std::set<std::string> codes;
  for (std::sregex_iterator m(source.begin(), source.end(), thrown), end; m != end; ++m)
    codes.insert((*m)[1]);
  return codes;
}

TEST(ErrorCodes, EveryCodeOfTheSourcesIsExplained) {
  size_t found = 0;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(source_dir()) + "/weft")) {
    if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    for (const std::string& code : codes_in(text.str())) {
      ++found;
      EXPECT_NE(find_error_code(code), nullptr)
          << entry.path() << " throws \"" << code << "\": give it a row in weft/base/errors.def";
    }
  }
  EXPECT_GT(found, 200u);
}

}  // namespace
}  // namespace weft
