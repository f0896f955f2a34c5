#include "weft/app/bus_error.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "tests/io/scratch_dir.h"
#include "weft/app/app.h"
#include "weft/base/file.h"

namespace weft {
namespace {

class BusError : public ScratchDir {
 protected:
  /// What a child says on standard error, and how it ends.
  template <class Body>
  std::string said(const Body& body, int& status) {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::dup2(ends[1], STDERR_FILENO);
      explain_bus_errors();
      body();
      ::_exit(77);
    }
    ::close(ends[1]);
    std::string text;
    char part[512];
    for (ssize_t size; (size = ::read(ends[0], part, sizeof(part))) > 0;)
      text.append(part, static_cast<size_t>(size));
    ::close(ends[0]);
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return text;
  }
};

TEST_F(BusError, NamesTheFileThatWasCutShort) {
  const std::string path = write("a file", std::string(1 << 20, 'x'));
  int status = 0;
  const std::string text = said(
      [&] {
        const MappedFile file(path);
        if (::truncate(path.c_str(), 5) != 0) ::_exit(78);
        const volatile char last = file.text().back();
        ::_exit(last == 'x' ? 79 : 80);
      },
      status);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kExitFailure) << status;
  EXPECT_NE(text.find("weft: [file] " + path + " was cut short"), std::string::npos) << text;
}

TEST_F(BusError, LeavesOthersAsTheyWere) {
  int status = 0;
  const std::string text = said([] { ::raise(SIGBUS), ::raise(SIGBUS); }, status);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS) << status;
  EXPECT_EQ(text, "");
}

}  // namespace
}  // namespace weft
