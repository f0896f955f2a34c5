// `weft repro`, `weft bisect`, `weft fuzz`: another program beside this one, which has the oracle.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {
namespace {

constexpr const char* kProgram = "weft-trust";

/// In the directory of this program.
std::string program_path() {
  std::string path(4096, '\0');
  const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
  path.resize(static_cast<size_t>(std::max<ssize_t>(size, 0)));
  return path.substr(0, path.rfind('/') + 1) + kProgram;
}

/// Waits as a shell does: what the terminal sends is for the other program.
int wait_for(pid_t id) {
  const auto before = std::signal(SIGINT, SIG_IGN);
  int status = 0;
  while (::waitpid(id, &status, 0) < 0 && errno == EINTR) continue;
  std::signal(SIGINT, before);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int run_trust(const Session& session, std::span<const std::string> words) {
  const std::string path = program_path();
  if (!file_exists(path))
    fail("trust.missing",
         "`weft {}` is done by the program {}, which is not there; it is built with the target "
         "weft-trust and has to lie beside weft",
         words[0], path);
  std::vector<char*> arguments = {const_cast<char*>(path.c_str())};
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  std::fflush(session.out);
  std::fflush(session.err);
  const pid_t id = ::fork();
  if (id < 0) fail_errno("trust.process", "cannot start " + path, errno);
  if (id == 0) {
    ::dup2(::fileno(session.out), 1), ::dup2(::fileno(session.err), 2);
    ::execv(path.c_str(), arguments.data());
    ::_exit(127);
  }
  const int code = wait_for(id);
  std::fseek(session.out, 0, SEEK_END);  // of a file, where the other one's output ends
  std::fseek(session.err, 0, SEEK_END);
  return code;
}

}  // namespace weft
