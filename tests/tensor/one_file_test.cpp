// A derived op is one row of derived.def: no other source file may have to know it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/source_dir.h"

namespace weft {
namespace {

constexpr const char* kDerived[] = {
#define WEFT_DERIVED(name, declared, params, doc, ...) #name,
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
};

TEST(DerivedOps, LiveInOneFile) {
  const std::filesystem::path room = std::filesystem::path(source_dir()) / "weft" / "tensor";
  ASSERT_TRUE(std::filesystem::exists(room / "derived.def"));
  for (const auto& entry : std::filesystem::directory_iterator(room)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    const std::string source = text.str();
    for (const char* name : kDerived) {
      EXPECT_EQ(source.find("Tensor::" + std::string(name) + "("), std::string::npos)
          << entry.path() << " defines " << name;
      EXPECT_EQ(source.find("Tensor " + std::string(name) + "("), std::string::npos)
          << entry.path() << " declares " << name;
    }
  }
}

}  // namespace
}  // namespace weft
