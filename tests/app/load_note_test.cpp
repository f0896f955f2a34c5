#include "weft/app/load_note.h"

#include <gtest/gtest.h>
#include <pty.h>
#include <unistd.h>

#include "tests/app/command.h"
#include "weft/base/context.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

TEST(LoadNote, IsSeenOnATerminalAndGoes) {
  int terminal = -1, its_end = -1;
  ASSERT_EQ(::openpty(&terminal, &its_end, nullptr, nullptr, nullptr), 0);
  std::FILE* err = ::fdopen(its_end, "w");
  Context context;
  std::string text;
  char part[4096];
  {
    const LoadNote quick({context, stdout, err}, "quick.gguf", std::chrono::hours(1));
    const LoadNote note({context, stdout, err}, "models/large.gguf", milliseconds(1));
    text.assign(part, static_cast<size_t>(::read(terminal, part, sizeof(part))));  // waits for it
  }
  while (text.find("\033[K") == std::string::npos)
    text.append(part, static_cast<size_t>(::read(terminal, part, sizeof(part))));
  EXPECT_EQ(text.find("\rloading large.gguf: "), 0u) << text;
  EXPECT_TRUE(text.ends_with("\r\033[K")) << text;
  EXPECT_EQ(text.find("quick"), std::string::npos);
  std::fclose(err);
  ::close(terminal);
}

TEST(LoadNote, SaysNothingElsewhere) {
  Context context;
  std::FILE* err = std::tmpfile();
  { const LoadNote note({context, stdout, err}, "large.gguf", milliseconds(0)); }
  EXPECT_EQ(taken(err), "");
}

}  // namespace
}  // namespace weft
