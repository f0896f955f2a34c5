#include "weft/app/viz_server.h"

#ifdef WEFT_NO_SERVE
#include "weft/base/error.h"

namespace weft {

int serve_recording(const Session&, const VizOptions&) {
  fail("viz",
       "this weft was built without its server; build it with -DWEFT_SERVE=ON, or use --text");
}
int serve_program(const Session& session, VizOptions options) {
  return serve_recording(session, options);
}

}  // namespace weft

#else

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "weft/app/app.h"
#include "weft/app/interrupt.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/viz/server.h"

namespace weft {

namespace {

constexpr std::chrono::milliseconds kBetweenLooks(50);

// A process of another program, whose end somebody waits for.
class Child {
 public:
  /// With this process's environment and `more`, "NAME=value". Error: viz.
  Child(const std::vector<std::string>& words, const std::vector<std::string>& more, bool silent) {
    std::vector<char*> arguments, environment;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    for (const std::string& variable : more)
      environment.push_back(const_cast<char*>(variable.c_str()));
    for (char** variable = environ; *variable != nullptr; ++variable)
      environment.push_back(*variable);
    arguments.push_back(nullptr);
    environment.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    for (const int stream : {0, 1, 2})
      if (silent) ::posix_spawn_file_actions_addopen(&actions, stream, "/dev/null", O_RDWR, 0);
    status_ = ::posix_spawnp(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(),
                             environment.data());
    ::posix_spawn_file_actions_destroy(&actions);
    if (status_ != 0) fail("viz", "cannot run \"{}\": {}", words[0], std::strerror(status_));
  }

  /// Looks at it.
  bool has_ended() {
    if (!ended_ && ::waitpid(pid_, &status_, WNOHANG) == pid_) ended_ = true;
    return ended_;
  }
  void stop() {
    if (!has_ended()) ::kill(pid_, SIGTERM);
  }
  /// As shells say it: 128 and more for a signal.
  int exit_code() const {
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
};

bool has_variable(std::string_view start) {
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::string_view(*variable).starts_with(start)) return true;
  return false;
}

// Nothing is lost where there is no browser: the address was printed.
void open_browser(const std::string& address) {
  if (!has_variable("DISPLAY=") && !has_variable("WAYLAND_DISPLAY=")) return;
  try {
    Child({"xdg-open", address}, {}, true);
  } catch (const Error&) {}
}

void announce(const Session& session, const viz::Server& server, const std::string& file) {
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("address", server.address()).field("file", file).end_object();
    session.print("{}\n", json.text());
  } else {
    session.print("{} at {}; Ctrl-C stops\n", file, session.bold(server.address()));
  }
  std::fflush(session.out);
}

int serve(const Session& session, const VizOptions& options, Child* child) {
  viz::Server server(options.file,
                     {.port = static_cast<uint16_t>(options.port), .history = options.history});
  announce(session, server, options.file);
  if (!options.no_browser) open_browser(server.address());
  bool told = child == nullptr;
  server.run([&] {
    if (!told && child->has_ended()) {
      told = true;
      session.print("the program has ended with {}; its recording is {}\n", child->exit_code(),
                    options.file);
      std::fflush(session.out);
    }
    return InterruptScope::requested();
  });
  if (child != nullptr) child->stop();
  return kExitOk;
}

std::string new_file(const Session& session) {
  const std::string state = session.context.options().state_directory();
  const std::filesystem::path folder = state.empty() ? "." : state + "/viz";
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure)
    fail_runtime("viz", "cannot make the folder {}: {}", folder.string(), failure.message());
  return strformat("{}/{}-{}.weftviz", folder.string(),
                   std::chrono::duration_cast<std::chrono::seconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count(),
                   ::getpid());
}

bool has_content(const std::string& file) {
  struct stat facts;
  return ::stat(file.c_str(), &facts) == 0 && facts.st_size > 0;
}

}  // namespace

int serve_recording(const Session& session, const VizOptions& options) {
  const InterruptScope interrupt;
  return serve(session, options, nullptr);
}

int serve_program(const Session& session, VizOptions options) {
  if (options.file.empty()) options.file = new_file(session);
  const InterruptScope interrupt;
  Child child(options.command, {"WEFT_VIZ=1", "WEFT_VIZ_FILE=" + options.file}, false);
  while (!has_content(options.file) && !child.has_ended() && !InterruptScope::requested())
    std::this_thread::sleep_for(kBetweenLooks);
  if (!has_content(options.file))
    fail("viz", "{} has written no recording to {}; it has to be a program that uses weft",
         options.command[0], options.file);
  return serve(session, options, &child);
}

}  // namespace weft

#endif
