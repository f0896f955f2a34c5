#include "weft/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bit>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "weft/base/error.h"
#include "weft/base/options.h"
#include "weft/base/resident_memory.h"

namespace weft {
namespace {

namespace fs = std::filesystem;

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/weft_file_test_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { fs::remove_all(dir_); }

  std::string at(const std::string& name) const { return dir_ + "/" + name; }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    std::stringstream all;
    all << in.rdbuf();
    return all.str();
  }
  size_t entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(dir_), {}));
  }

  std::string dir_;
};

template <class F>
std::string code_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.code();
  }
  return "no error";
}

TEST_F(FileTest, MapsContent) {
  std::ofstream(at("a")) << "hello";
  MappedFile file(at("a"));
  EXPECT_EQ(file.text(), "hello");
  MappedFile moved = std::move(file);
  EXPECT_EQ(moved.text(), "hello");
  EXPECT_EQ(moved.path(), at("a"));
}

TEST_F(FileTest, LetsPagesGoAndFindsThemAgain) {
  const size_t bytes = size_t{32} << 20;
  std::ofstream(at("a"), std::ios::binary) << std::string(bytes, 'x');
  const MappedFile file(at("a"));
  const auto sum = [&] {
    size_t n = 0;
    for (const std::byte b : file.bytes()) n += std::to_integer<size_t>(b);
    return n;
  };
  EXPECT_EQ(sum(), bytes * 'x');
  const int64_t before = resident_memory().now;
  file.let_go(file.bytes().subspan(5, bytes - 10));
  const int64_t left = before - (int64_t{24} << 20);
  EXPECT_TRUE(before == 0 || resident_memory().now < left);
  EXPECT_EQ(sum(), bytes * 'x');
  file.let_go(file.bytes().subspan(7, 9));  // less than a page: nothing
}

TEST_F(FileTest, LargeOnesBeginWhereHugePagesDo) {
  constexpr size_t kHuge = size_t{2} << 20;
  for (const size_t bytes : {kHuge, kHuge + 1, 3 * kHuge - 1}) {
    std::ofstream(at("a"), std::ios::binary) << std::string(bytes, 'x');
    const MappedFile file(at("a"));
    EXPECT_EQ(std::bit_cast<uintptr_t>(file.bytes().data()) % kHuge, 0U);
    EXPECT_EQ(file.text(), std::string(bytes, 'x'));
  }
}

TEST_F(FileTest, FetchesPagesAtOnce) {
  const size_t bytes = size_t{32} << 20;
  std::ofstream(at("a"), std::ios::binary) << std::string(bytes, 'x');
  const MappedFile file(at("a"));
  file.fetch({});
  const int64_t before = resident_memory().now;
  file.fetch(file.bytes().subspan(5, bytes - 10));
  const int64_t fetched = resident_memory().now - before;
  EXPECT_TRUE(before == 0 || fetched == 0 || fetched > (int64_t{24} << 20)) << fetched;
  EXPECT_EQ(file.text(), std::string(bytes, 'x'));
  // What another program cut off meanwhile is no fault.
  std::filesystem::resize_file(at("a"), bytes / 2);
  file.fetch(file.bytes());
}

TEST_F(FileTest, MissingEmptyAndDirectoryAreErrors) {
  std::ofstream(at("empty"));
  EXPECT_EQ(code_of([&] { MappedFile f(at("nope")); }), "file.missing");
  EXPECT_EQ(code_of([&] { MappedFile f(at("empty")); }), "file.empty");
  EXPECT_EQ(code_of([&] { MappedFile f(dir_); }), "file.read");
  EXPECT_EQ(code_of([&] { MappedFile f("/dev/null"); }), "file.read");
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);  // which nobody writes to
  EXPECT_EQ(code_of([&] { MappedFile f(at("pipe")); }), "file.read");
}

TEST_F(FileTest, WriteReplacesAndKeepsPermissions) {
  atomic_write_file(at("f"), "one");
  EXPECT_EQ(content(at("f")), "one");
  fs::permissions(at("f"), fs::perms::owner_read | fs::perms::owner_write);
  atomic_write_file(at("f"), "two");
  EXPECT_EQ(content(at("f")), "two");
  EXPECT_EQ(fs::status(at("f")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(entries(), 1u);
}

/// A write to a pipe would wait for a reader, and one through a link go elsewhere.
TEST_F(FileTest, CachesReplaceWhatIsNoFile) {
  const auto write = [&](const std::string& path) {
    atomic_write_file(path, [](FileWriter& w) { w.write("new"); }, Keep::Checked);
  };
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  write(at("pipe"));
  EXPECT_EQ(content(at("pipe")), "new");
  atomic_write_file(at("other"), "old");
  fs::create_symlink("other", at("link"));
  write(at("link"));
  EXPECT_EQ(content(at("link")), "new");
  EXPECT_EQ(content(at("other")), "old");
  fs::create_directory(at("folder"));
  EXPECT_EQ(code_of([&] { write(at("folder")); }), "file.write");
}

TEST_F(FileTest, LargeWritesArriveWhole) {
  std::string expected;
  atomic_write_file(at("f"), [&](FileWriter& writer) {
    for (int i = 0; i < 2000; ++i) {
      const std::string piece(static_cast<size_t>(i * 37 % 400), static_cast<char>('a' + i % 26));
      writer.write(piece);
      expected += piece;
    }
    const std::string big(300000, 'z');
    writer.write(big);
    expected += big;
    EXPECT_EQ(writer.position(), expected.size());
  });
  EXPECT_EQ(content(at("f")), expected);
}

TEST_F(FileTest, FailureLeavesTheOldFileAndNoLitter) {
  atomic_write_file(at("f"), "old");
  EXPECT_THROW(atomic_write_file(at("f"),
                                 [](FileWriter& writer) {
                                   writer.write(std::string(1 << 20, 'x'));
                                   fail("test", "changed my mind");
                                 }),
               Error);
  EXPECT_EQ(content(at("f")), "old");
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, FullDiskIsAClearError) {
  if (!file_exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  try {
    atomic_write_file("/dev/full", std::string(1 << 17, 'x'));
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("No space left"), std::string::npos) << error.what();
    EXPECT_EQ(error.code(), "file.write");
  }
}

TEST_F(FileTest, UnwritableTargetsAreErrors) {
  EXPECT_EQ(code_of([&] { atomic_write_file(dir_, "x"); }), "file.write");
  EXPECT_EQ(code_of([&] { atomic_write_file(at("no/such/dir"), "x"); }), "file.write");
}

TEST_F(FileTest, LinksAreFollowed) {
  atomic_write_file(at("real"), "one");
  fs::create_symlink(at("real"), at("link"));
  atomic_write_file(at("link"), "two");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(content(at("real")), "two");
}

TEST_F(FileTest, KilledWriterLosesNothing) {
  atomic_write_file(at("f"), "old");
  const pid_t child = ::fork();
  if (child == 0) {
    atomic_write_file(at("f"), [](FileWriter& writer) {
      writer.write(std::string(1 << 20, 'x'));
      writer.flush();
      ::kill(::getpid(), SIGKILL);
    });
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(content(at("f")), "old");
  const int nameless = ::open(dir_.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  if (nameless < 0) GTEST_SKIP() << "a file has a name at once here";
  ::close(nameless);
  EXPECT_EQ(entries(), 1u);
}

TEST_F(FileTest, CacheDirectoryIsPrivate) {
  Options options;
  options.cache_dir = at("cache/weft");
  const std::string made = make_cache_dir(options, "kernels");
  EXPECT_EQ(made, at("cache/weft/kernels"));
  EXPECT_EQ(fs::status(made).permissions(), fs::perms::owner_all);
  EXPECT_EQ(make_cache_dir(options, "kernels"), made);
  std::ofstream(at("file"));
  options.cache_dir = at("file/x");
  EXPECT_EQ(code_of([&] { make_cache_dir(options, ""); }), "file.write");
  EXPECT_EQ(make_cache_dir(Options(), "x"), "");
}

}  // namespace
}  // namespace weft
