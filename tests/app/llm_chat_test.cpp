#include "weft/app/llm_chat.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "tests/app/command.h"
#include "tests/support/llm/fake_generator.h"
#include "weft/app/interrupt.h"
#include "weft/app/line_buffer.h"
#include "weft/base/context.h"
#include "weft/base/file.h"

namespace weft {
namespace {

TEST(LineBuffer, EditsClusters) {
  LineBuffer b;
  b.insert("ae\u0301👨‍👩‍👧日\x1b\x07");  // an accent of its own, a family, no control
                                                      // characters
  EXPECT_EQ(b.text(), "ae\u0301👨‍👩‍👧日");
  b.backspace();
  b.backspace();
  EXPECT_EQ(b.text(), "ae\u0301");
  b.left();
  EXPECT_EQ(b.cursor(), 1u);
  b.erase();
  EXPECT_EQ(b.text(), "a");
  b.set("one two  three");
  b.word_left();
  b.word_left();
  EXPECT_EQ(b.cursor(), 4u);
  b.erase_word();
  EXPECT_EQ(b.text(), "two  three");
  b.word_right();
  b.erase_to_end();
  EXPECT_EQ(b.text(), "two");
  b.erase_to_home();
  b.backspace();
  b.left();
  b.right();
  EXPECT_EQ(b.text(), "");
}

TEST(LineBuffer, GoesUpAndDownItsLines) {
  LineBuffer b;
  b.set("日本語\nab\nxyz");
  EXPECT_TRUE(b.up());
  EXPECT_EQ(b.cursor(), 12u);  // behind ab
  EXPECT_TRUE(b.up());
  EXPECT_EQ(b.cursor(), 6u);  // behind two characters
  EXPECT_FALSE(b.up());
  EXPECT_TRUE(b.down());
  b.home();
  EXPECT_EQ(b.cursor(), 10u);
  EXPECT_TRUE(b.down());
  EXPECT_FALSE(b.down());
}

TEST(LineBuffer, KnowsWhereItStands) {
  const auto place = [](std::string_view text, size_t columns) {
    const TextPlace p = place_after(text, {0, 2}, columns, 2);
    return std::pair(p.row, p.column);
  };
  using P = std::pair<size_t, size_t>;
  EXPECT_EQ(place("abc", 10), P(0, 5));
  EXPECT_EQ(place("日本", 10), P(0, 6));
  EXPECT_EQ(place("e\u0301", 10), P(0, 3));
  EXPECT_EQ(place("abcdefgh", 10), P(1, 0));
  EXPECT_EQ(place("abcdefg日", 10), P(1, 2));  // no half of it fits
  EXPECT_EQ(place("a\nb", 10), P(1, 3));
}

TEST(LineHistory, IsSavedAndLoaded) {
  LineHistory h;
  for (const char* line : {"one", "one", "", "two\nlines\\", "é"}) h.add(line);
  EXPECT_EQ(h.saved(), "one\ntwo\\nlines\\\\\né\n");
  LineHistory other;
  other.load(h.saved() + "\xff\nrest");
  EXPECT_EQ(other.lines(), (std::vector<std::string>{"one", "two\nlines\\", "é"}));
  for (int i = 0; i < 1500; ++i) other.add(std::to_string(i));
  EXPECT_EQ(other.lines().size(), 1000u);
}

/// What a chat on pipes writes, and its exit code.
struct Piped {
  std::string out, err;
  int code = 0;
};

Piped piped(const std::string& input, llm::FakeGenerator& generator, bool json = false) {
  int ends[2];
  EXPECT_EQ(::pipe(ends), 0);
  EXPECT_EQ(::write(ends[1], input.data(), input.size()), static_cast<ssize_t>(input.size()));
  ::close(ends[1]);
  std::FILE *out = std::tmpfile(), *err = std::tmpfile();
  Context context;
  Piped result;
  result.code = run_llm_chat({context, out, err, json}, generator, {}, ends[0]);
  ::close(ends[0]);
  result.out = taken(out);
  result.err = taken(err);
  return result;
}

TEST(LlmChat, AnswersLinesOfAPipe) {
  llm::FakeGenerator generator;
  const Piped p =
      piped("Hello\r\n\n/system Be nice\n/set temperature 0.5\n/set max_tokens 3\nlast", generator);
  EXPECT_EQ(p.out, "re: Hello\nre:\n");
  EXPECT_EQ(p.err, "");
  EXPECT_EQ(p.code, kExitOk);
  EXPECT_EQ(generator.last.sampling.temperature, 0.5f);
  EXPECT_EQ(generator.last.max_tokens, 3);
  EXPECT_NE(generator.prompt().find("Be nice"), std::string::npos);
}

TEST(LlmChat, AnswersInJson) {
  llm::FakeGenerator generator;
  const Piped p = piped("Hello\n/set max_tokens 3\nlast\n", generator, true);
  EXPECT_EQ(p.out.substr(0, p.out.find("prompt_tokens")),
            R"({"text":"re: Hello","finish":"stop",")");
  EXPECT_NE(p.out.find("}\n{\"text\":\"re:\",\"finish\":\"length\""), std::string::npos) << p.out;
}

TEST(LlmChat, SetsWhatTheCommandLineSays) {
  llm::FakeGenerator generator;
  piped(
      "/set stop END\n/set stop_tokens 1,2\n/set seed 7\n/retry\nx\n/set temperature 0.5\n/retry\n",
      generator);
  EXPECT_EQ(generator.last.stop, std::vector<std::string>{"END"});
  EXPECT_EQ(generator.last.stop_tokens, (std::vector<llm::TokenId>{1, 2}));
  EXPECT_EQ(generator.last.sampling.seed, 8U);  // another with every try
  piped("/set stop END\n/set pattern a\n/set stop\n/set pattern\nx\n", generator);
  EXPECT_TRUE(generator.last.stop.empty());
  EXPECT_EQ(generator.last.grammar, nullptr);
}

TEST(LlmChat, SaysWhatIsWrongAndGoesOn) {
  llm::FakeGenerator generator;
  const std::pair<const char*, const char*> kWrong[] = {
      {"/nosuch", "[llm] there is no command /nosuch; /help lists them"},
      {"/set temperature hot", "temperature is 'hot'; it has to be a number, 0 to 100"},
      {"/set temperature", "temperature is ''; it has to be a number"},
      {"/set grammar x ::= y", "[llm]"},
      {"/set heat 1", "there is no option 'heat'; there are: max_tokens"},
      {"/set top_p 2", "top_p is '2'; it has to be a number, 0 to 1"},
      {"/retry", "there is no answer yet to give again"},
      {"/save", "/save takes a file's name"},
      {"/load", "/load takes a file's name"},
      {"/load /nowhere/x", "/nowhere/x"},
      {"FAIL", "the answer could not be computed: the fake broke"},
  };
  for (const auto& [line, want] : kWrong) {
    const Piped p = piped(std::string(line) + "\nstill here\n", generator);
    EXPECT_NE(p.err.find(want), std::string::npos) << line << " -> " << p.err;
    EXPECT_EQ(p.out, "re: still here\n");
    EXPECT_EQ(p.code, kExitFailure);
  }
}

TEST(LlmChat, SavesAndLoads) {
  llm::FakeGenerator generator;
  const std::string path =
      std::filesystem::temp_directory_path() / ("weft_chat_" + std::to_string(::getpid()));
  const Piped p = piped(
      "one\n/save " + path + "\n/clear\n/load " + path + "\ntwo\n/retry\n/exit\nno\n", generator);
  std::filesystem::remove(path);
  EXPECT_EQ(p.out, "re: one\nre: two\nre: two\n");
  EXPECT_NE(generator.prompt().find("one"), std::string::npos);
}

/// Whatever terminal the tests run on.
Options an_editing_terminal() {
  Options options = Options::from_environment();
  options.term = "xterm";
  return options;
}

/// A chat on a terminal of 40 columns, in a thread.
class Terminal {
 public:
  explicit Terminal(const std::string& history) {
    master_ = ::posix_openpt(O_RDWR | O_NOCTTY);
    ::grantpt(master_);
    ::unlockpt(master_);
    slave_ = ::open(::ptsname(master_), O_RDWR | O_NOCTTY);
    const winsize size{24, 40, 0, 0};
    ::ioctl(slave_, TIOCSWINSZ, &size);
    thread_ = std::thread([this, history] {
      std::FILE* out = ::fdopen(::dup(slave_), "w");
      Context context(an_editing_terminal());
      LlmChatOptions options;
      options.history = history;
      code_ = run_llm_chat({context, out, out}, generator, options, slave_);
      std::fclose(out);
    });
  }
  ~Terminal() {
    ::close(master_);
    ::close(slave_);
  }
  void type(std::string_view text) const {
    EXPECT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// Reads until `text` comes, for ten seconds at most, and gives all up to its end; what is behind
  /// it stays for the next time.
  std::string wait_for(std::string_view text) {
    pollfd ready{master_, POLLIN, 0};
    size_t at = 0;
    while ((at = seen_.find(text)) == std::string::npos && ::poll(&ready, 1, 10000) > 0) {
      char part[1024];
      const ssize_t size = ::read(master_, part, sizeof(part));
      if (size <= 0) break;
      seen_.append(part, static_cast<size_t>(size));
    }
    EXPECT_NE(at, std::string::npos) << "no '" << text << "' in: " << seen_;
    std::string all = seen_.substr(0, at == std::string::npos ? at : at + text.size());
    seen_.erase(0, all.size());
    return all;
  }
  int end() {
    thread_.join();
    return code_;
  }

  llm::FakeGenerator generator;

 private:
  int master_ = -1, slave_ = -1, code_ = -1;
  std::string seen_;
  std::thread thread_;
};

TEST(LlmChat, LeavesTheTerminalAsItWasWhenEnded) {
  for (const int signal : {SIGTERM, SIGHUP, SIGINT}) {
    int master = -1, slave = -1;
    ASSERT_EQ(::openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    termios before{}, after{};
    ::tcgetattr(slave, &before);
    const pid_t child = ::fork();
    if (child == 0) {
      Context context(an_editing_terminal());
      llm::FakeGenerator generator;
      std::FILE* out = ::fdopen(slave, "w");
      ::_exit(run_llm_chat({context, out, out}, generator, {}, slave));
    }
    std::string seen;
    char part[1024];
    while (seen.find("\033[?2004h") == std::string::npos) {
      const ssize_t size = ::read(master, part, sizeof(part));
      ASSERT_GT(size, 0);
      seen.append(part, static_cast<size_t>(size));
    }
    ::kill(child, signal);
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    ::tcgetattr(slave, &after);
    EXPECT_EQ(after.c_lflag, before.c_lflag);
    EXPECT_EQ(after.c_iflag, before.c_iflag);
    ::close(master);
    ::close(slave);
  }
}

/// A chat in a process of its own, on a terminal.
class ChatProcess {
 public:
  explicit ChatProcess(const Options& options = an_editing_terminal()) {
    EXPECT_EQ(::openpty(&master_, &slave_, nullptr, nullptr, nullptr), 0);
    child_ = ::fork();
    if (child_ != 0) return;
    Context context(options);
    llm::FakeGenerator generator;
    std::FILE* out = ::fdopen(slave_, "w");
    ::_exit(run_llm_chat({context, out, out}, generator, {}, slave_));
  }
  ~ChatProcess() {
    ::close(master_);
    ::close(slave_);
  }
  void type(std::string_view text) const {
    EXPECT_EQ(::write(master_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  /// All up to `text`, and whatever came with it.
  std::string seen(std::string_view text) const {
    std::string all;
    char part[1024];
    pollfd ready{master_, POLLIN, 0};
    while (all.find(text) == std::string::npos && ::poll(&ready, 1, 10000) > 0) {
      const ssize_t size = ::read(master_, part, sizeof(part));
      if (size <= 0) break;
      all.append(part, static_cast<size_t>(size));
    }
    EXPECT_NE(all.find(text), std::string::npos) << all;
    return all;
  }
  void signal(int number) const { ::kill(child_, number); }
  int status() const {
    int status = 0;
    ::waitpid(child_, &status, 0);
    return status;
  }

 private:
  int master_ = -1, slave_ = -1;
  pid_t child_ = -1;
};

TEST(LlmChat, EndsInTheMiddleOfAnAnswer) {
  const ChatProcess chat;
  chat.seen("> ");
  chat.type("LONG 1000000\r");
  chat.seen("word word");
  chat.signal(SIGTERM);
  // A chat that only stops its answer waits for another line: this ends it with code 0.
  chat.type("\r/exit\r");
  const int status = chat.status();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) << status;
}

TEST(LlmChat, WritesNothingButTextToADumbTerminal) {
  Options options = an_editing_terminal();
  options.term = "dumb";
  const ChatProcess chat(options);
  std::string all = chat.seen("> ");
  chat.type("Hello\n");
  all += chat.seen("re: Hello");
  chat.type("/exit\n");
  EXPECT_EQ(chat.status(), 0);
  EXPECT_EQ(all.find('\033'), std::string::npos) << all;
}

TEST(InterruptScope, LeavesIgnoredSignalsAlone) {
  for (const bool ignored : {true, false}) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGINT, ignored ? SIG_IGN : SIG_DFL);
      const InterruptScope scope;
      ::raise(SIGINT);
      ::_exit(InterruptScope::requested() ? 1 : 0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : -1, ignored ? 0 : 1);
  }
}

TEST(LlmChat, PaintsOnceWhatComesAtOnce) {
  Terminal t("");
  t.wait_for("\033[?2004h");
  t.type(std::string(2000, 'a') + "\r");
  const std::string painted = t.wait_for("re: a");
  EXPECT_LT(painted.size(), 100000u);
  t.wait_for("\033[?2004h");
  t.type("\x04");
  EXPECT_EQ(t.end(), kExitOk);
}

TEST(LlmChat, IsATerminal) {
  const std::string history =
      std::filesystem::temp_directory_path() / ("weft_history_" + std::to_string(::getpid()));
  ::signal(SIGINT, SIG_DFL);  // whatever started us may have it ignored
  Terminal t(history);
  const std::string_view ready = "\033[?2004h";  // the editor reads again
  t.wait_for(ready);
  const auto ask = [&](std::string_view keys, std::string_view answer) {
    t.type(keys);
    t.wait_for(answer);
    t.wait_for(ready);
  };
  // Back over llo, e for x, to the end.
  ask("Hxllo\033[D\033[D\033[D\x7f"
      "e\x05 日\xe6\x9c\xac\r",
      "re: Hello 日本");
  ask("a\\\rb\r", "re: a\r\nb");
  ask("\033[200~x\ry\033[201~\r", "re: x\r\ny");
  ask("\033[A\033[A\033[A\033[A\033[A\r", "re: Hello 日本");  // y, x, b, a, Hello
  ask("gone\x03", "Ctrl-D ends");
  t.type("LONG 1000000\r");
  t.wait_for("word word");
  ::kill(::getpid(), SIGINT);
  t.wait_for("stopped");
  t.wait_for(ready);
  ask("/nosuch\r", "there is no command");
  ask("\x1b[2Jq\r", "re: q");  // no sequence of ours
  t.type("\x04");
  EXPECT_EQ(t.end(), kExitOk);
  const MappedFile saved(history);
  EXPECT_TRUE(std::string(saved.text()).starts_with("Hello 日本\na\\nb\nx\\ny\n")) << saved.text();
  std::filesystem::remove(history);
}

}  // namespace
}  // namespace weft
