#include "weft/base/options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "weft/base/error.h"

namespace weft {
namespace {

Options parse(std::vector<const char*> environment) {
  environment.push_back(nullptr);
  return Options::parse(environment.data());
}

std::string error_of(std::vector<const char*> environment) {
  try {
    parse(std::move(environment));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Options, DefaultsComeFromTheTable) {
  const Options options = parse({});
  EXPECT_EQ(options.debug, 0);
  EXPECT_EQ(options.dev, "CPU");
  EXPECT_TRUE(options.jit);
}

TEST(Options, ReadsEveryType) {
  const Options options =
      parse({"WEFT_DEBUG=4", "WEFT_DEV=INTERP", "WEFT_JIT=0", "WEFT_MEMORY_CAP=3M",
             "WEFT_DETERMINISTIC=1", "PATH=/bin", "OTHER=ignored", "malformed"});
  EXPECT_EQ(options.debug, 4);
  EXPECT_EQ(options.dev, "INTERP");
  EXPECT_FALSE(options.jit);
  EXPECT_TRUE(options.deterministic);
  EXPECT_EQ(options.memory_cap, 3 << 20);
  EXPECT_EQ(options.path, "/bin");
}

TEST(Options, BadValuesSayWhatWasExpected) {
  EXPECT_EQ(error_of({"WEFT_DEBUG=9"}),
            "[context] WEFT_DEBUG: got \"9\"; expected a whole number from 0 to 8");
  EXPECT_NE(error_of({"WEFT_DEBUG=2x"}).find("got \"2x\""), std::string::npos);
  EXPECT_NE(error_of({"WEFT_DEBUG="}).find("got \"\""), std::string::npos);
  EXPECT_NE(error_of({"WEFT_JIT=maybe"}).find("expected 0 or 1"), std::string::npos);
  EXPECT_NE(error_of({"WEFT_MEMORY_CAP=-1"}).find("a number of bytes"), std::string::npos);
  EXPECT_NE(error_of({"WEFT_MEMORY_CAP=9000000000000G"}).find("bytes"), std::string::npos);
  EXPECT_NE(error_of({"WEFT_MEMORY_CAP=G"}).find("bytes"), std::string::npos);
}

TEST(Options, UnknownNamesSuggestTheNearest) {
  EXPECT_NE(error_of({"WEFT_DEBGU=1"}).find("did you mean WEFT_DEBUG?"), std::string::npos);
  EXPECT_NE(error_of({"WEFT_QWERTYUIOP=1"}).find("there is no option WEFT_QWERTYUIOP;"),
            std::string::npos);
}

TEST(Options, CacheDirectoryFollowsXdg) {
  EXPECT_EQ(parse({"HOME=/h"}).cache_directory(), "/h/.cache/weft");
  EXPECT_EQ(parse({"HOME=/h", "XDG_CACHE_HOME=/x"}).cache_directory(), "/x/weft");
  EXPECT_EQ(parse({"HOME=/h", "XDG_CACHE_HOME=relative"}).cache_directory(), "/h/.cache/weft");
  EXPECT_EQ(parse({"HOME=/h", "WEFT_CACHE_DIR=/c"}).cache_directory(), "/c");
  EXPECT_EQ(parse({"HOME=/h"}).state_directory(), "/h/.local/state/weft");
  EXPECT_EQ(parse({"HOME=/h", "XDG_STATE_HOME=/x"}).state_directory(), "/x/weft");
  EXPECT_EQ(parse({"HOME=/h", "XDG_STATE_HOME=relative"}).state_directory(),
            "/h/.local/state/weft");
  EXPECT_EQ(parse({}).cache_directory(), "");
}

TEST(Options, RootKeepsNothingInAnotherUsersHome) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can write there";
  const std::string home = testing::TempDir() + "/weft_home_of_another_user";
  const char* const before = std::getenv("HOME");
  const std::string old = before == nullptr ? "" : before;
  std::filesystem::create_directories(home);
  ::setenv("HOME", home.c_str(), 1);
  EXPECT_EQ(Options::from_environment().home, home);
  ASSERT_EQ(::chown(home.c_str(), 65534, 65534), 0);
  EXPECT_EQ(Options::from_environment().home, "");
  before == nullptr ? ::unsetenv("HOME") : ::setenv("HOME", old.c_str(), 1);
  std::filesystem::remove(home);
}

TEST(Options, RowsDescribeEveryOption) {
  size_t count = 0;
  const OptionRow* rows = option_rows(count);
  for (size_t i = 0; i < count; ++i) {
    EXPECT_GT(std::string(rows[i].doc).size(), 10u) << rows[i].name;
    const std::string name = rows[i].name;
    if (name.starts_with("WEFT_") && std::string(rows[i].type) == "TEXT") {
      Options options;
      EXPECT_NO_THROW(options.set(name.substr(5), "x")) << name;
    }
  }
}

}  // namespace
}  // namespace weft
