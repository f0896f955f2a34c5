// A process of its own for what may crash or hang.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>

#include "weft/base/error.h"
#include "weft/trust/outcome.h"

namespace weft::trust {
namespace {

using Clock = std::chrono::steady_clock;

/// What the child says: a digit for the kind, the code, a newline, what.
std::string message_of(const Outcome& o) {
  return strformat("{}{}\n{}", static_cast<int>(o.kind), o.code, o.what);
}
Outcome outcome_of(std::string_view message) {
  const size_t line = message.find('\n');
  if (message.empty() || message[0] < '0' || message[0] > '4' || line == message.npos)
    return {Outcome::Kind::Crash, "0", "it ended without a word"};
  return {static_cast<Outcome::Kind>(message[0] - '0'), std::string(message.substr(1, line - 1)),
          std::string(message.substr(line + 1))};
}

/// What of a process came through its pipe, and how it ended.
struct Ended {
  bool in_time;
  int status;
  std::string message;
};

/// A crash is what is looked for: no handler is in its way.
void forget_handlers() {
  for (int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT}) ::signal(signal, SIG_DFL);
}

/// All that comes before the end or the limit; false at the limit.
bool read_until(int fd, Clock::time_point limit, std::string& out) {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(limit - Clock::now()).count();
    pollfd wait{fd, POLLIN, 0};
    if (left <= 0) return false;
    if (::poll(&wait, 1, static_cast<int>(std::min<int64_t>(left, 1 << 30))) <= 0) continue;
    char buffer[4096];
    const ssize_t got = ::read(fd, buffer, sizeof buffer);
    if (got == 0) return true;
    if (got > 0) out.append(buffer, static_cast<size_t>(got));
    if (got < 0 && errno != EINTR) return true;
  }
}

/// `child(fd)` in a process of its own, which must not return; it has ended when nobody has the
/// other end of its pipe any more.
Ended run_process(FunctionRef<void(int)> child, const Isolation& isolation) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail_errno("trust.process", "cannot make a pipe", errno);
  const pid_t id = ::fork();
  if (id < 0) {
    const int why = errno;
    ::close(ends[0]), ::close(ends[1]);
    fail_errno("trust.process", "cannot start a process", why);
  }
  if (id == 0) {
    ::close(ends[0]);
    forget_handlers();
    child(ends[1]);
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended ended{true, 0, {}};
  ended.in_time = read_until(ends[0], Clock::now() + isolation.limit, ended.message);
  ::close(ends[0]);
  if (!ended.in_time) ::kill(id, SIGKILL);
  while (::waitpid(id, &ended.status, 0) < 0 && errno == EINTR) continue;
  return ended;
}

/// Where it did not end by itself.
std::optional<Outcome> cut_off(const Ended& ended, const Isolation& isolation) {
  if (!ended.in_time)
    return Outcome{
        Outcome::Kind::Hang,
        {},
        strformat("no end after {} ms, of which the reference may take most; --limit gives it more",
                  isolation.limit.count())};
  if (WIFSIGNALED(ended.status))
    return Outcome{Outcome::Kind::Crash, std::to_string(WTERMSIG(ended.status)),
                   "a signal ended it"};
  return std::nullopt;
}

void write_all(int fd, std::string_view left) {
  while (!left.empty()) {
    const ssize_t written = ::write(fd, left.data(), left.size());
    if (written < 0 && errno != EINTR) return;
    left.remove_prefix(static_cast<size_t>(std::max<ssize_t>(written, 0)));
  }
}

}  // namespace

Outcome run_apart(FunctionRef<Outcome()> run, const Isolation& isolation) {
  const auto child = [&run](int fd) {
    try {
      write_all(fd, message_of(run()));
    } catch (const std::exception& error) {
      write_all(fd, message_of({Outcome::Kind::Error, "exception", error.what()}));
    }
  };
  const Ended ended = run_process(child, isolation);
  const std::optional<Outcome> cut = cut_off(ended, isolation);
  return cut ? *cut : outcome_of(ended.message);
}

Outcome run_words(std::span<const std::string> words, const Settings& settings, bool quiet,
                  const Isolation& isolation) {
  const auto child = [&](int fd) {
    ::fcntl(fd, F_SETFD, 0);  // so that its end is the command's
    for (const auto& [name, value] : settings) ::setenv(name.c_str(), value.c_str(), 1);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    if (const int nowhere = quiet ? ::open("/dev/null", O_WRONLY) : -1; nowhere >= 0)
      ::dup2(nowhere, 1), ::dup2(nowhere, 2);
    ::execvp(arguments[0], arguments.data());
    ::_exit(kCannotStart);
  };
  const Ended ended = run_process(child, isolation);
  if (const std::optional<Outcome> cut = cut_off(ended, isolation)) return *cut;
  const int status = WEXITSTATUS(ended.status);
  if (status == 0) return {};
  return {Outcome::Kind::Error, std::to_string(status), strformat("it exits with {}", status)};
}

}  // namespace weft::trust
