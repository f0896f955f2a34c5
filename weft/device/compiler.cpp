#include "weft/device/compiler.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/interrupt.h"
#include "weft/base/spans.h"

namespace weft {

namespace {

constexpr std::string_view kCandidates[] = {"clang-19", "clang", "gcc", "cc"};

std::optional<CCompiler> compiler_at(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (::access(path.c_str(), X_OK) != 0) return std::nullopt;
  CCompiler found;
  found.path = path;
  found.identity =
      strformat("{}:{}:{}.{}", path, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  found.is_clang = path.substr(path.rfind('/') + 1).find("clang") != std::string::npos;
  return found;
}

std::optional<CCompiler> search(std::string_view name, std::string_view path) {
  if (name.find('/') != std::string_view::npos) return compiler_at(std::string(name));
  while (true) {
    const size_t colon = path.find(':');
    const std::string_view folder = path.substr(0, colon);
    // An empty entry means the working directory; never run a program from there.
    if (!folder.empty()) {
      if (auto found = compiler_at(strformat("{}/{}", folder, name))) return found;
    }
    if (colon == std::string_view::npos) return std::nullopt;
    path.remove_prefix(colon + 1);
  }
}

class Fd {
 public:
  explicit Fd(int fd = -1) : fd_(fd) {}
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }
  void reset(int fd) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

// An anonymous file: neither side can block or be killed by a closed pipe.
int memory_file(const char* name) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) fail_errno("device.compile", "cannot make a file in memory", errno);
  return fd;
}

std::string read_all(int fd) {
  struct stat info;
  if (::fstat(fd, &info) != 0)
    fail_errno("device.compile", "cannot read the compiler's output", errno);
  std::string bytes(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        ::pread(fd, bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      fail_errno("device.compile", "cannot read the compiler's output", n < 0 ? errno : EIO);
    done += static_cast<size_t>(n);
  }
  return bytes;
}

std::string first_lines(std::string_view text, int count) {
  size_t end = 0;
  for (int i = 0; i < count && end < text.size(); ++i) {
    const size_t newline = text.find('\n', end);
    end = newline == std::string_view::npos ? text.size() : newline + 1;
  }
  while (end > 0 && text[end - 1] == '\n') --end;
  return std::string(text.substr(0, end));
}

// A folder of our own for compilers that cannot write an object to a pipe.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char name[] = "/tmp/weft-XXXXXX";
    if (::mkdtemp(name) == nullptr)
      fail_errno("device.compile", "cannot make a folder in /tmp", errno);
    path_ = name;
  }
  ~TemporaryFolder() {
    ::unlink(object().c_str());
    ::rmdir(path_.c_str());
  }
  std::string object() const { return path_ + "/k.o"; }

 private:
  std::string path_;
};

class CompilerRun {
 public:
  CompilerRun(Context& context, const CCompiler& compiler, std::span<const std::string> flags,
              const std::string& text)
      : compiler_(compiler),
        in_(memory_file("kernel.c")),
        out_(memory_file("kernel.o")),
        messages_(memory_file("messages")) {
    FileWriter writer(in_.get(), "kernel.c");
    writer.write(text);
    writer.flush();
    ::lseek(in_.get(), 0, SEEK_SET);
    // The assembler behind GCC seeks in its output and replaces what it cannot; Clang does neither.
    if (!compiler.is_clang) folder_.emplace();
    spawn(context, flags);
  }

  ~CompilerRun() {
    if (pid_ <= 0) return;
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {}
  }
  CompilerRun(const CompilerRun&) = delete;
  CompilerRun& operator=(const CompilerRun&) = delete;

  // Waits for the end; the object file.
  std::string finish(uint64_t deadline_ns, int seconds);

 private:
  void spawn(Context& context, std::span<const std::string> flags);
  [[noreturn]] void failed(int64_t status, std::string_view how);

  const CCompiler& compiler_;
  Fd in_, out_, messages_, process_;
  std::optional<TemporaryFolder> folder_;
  pid_t pid_ = -1;
};

// Between two looks for whether somebody wants to end this.
constexpr int kAskEveryMs = 50;

// What execve wants, over strings that stay.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> list;
  for (std::string& word : words) list.push_back(word.data());
  list.push_back(nullptr);
  return list;
}

void CompilerRun::spawn(Context& context, std::span<const std::string> flags) {
  std::vector<std::string> words{compiler_.path};
  words.insert(words.end(), flags.begin(), flags.end());
  for (const char* word : {"-x", "c", "-c", "-", "-o"}) words.emplace_back(word);
  words.push_back(folder_ ? folder_->object() : "-");
  // Only what a compiler driver needs to find its parts; messages in English, for our errors.
  std::vector<std::string> variables{"PATH=" + context.options().path, "LC_ALL=C"};

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  ::posix_spawn_file_actions_adddup2(&actions, in_.get(), 0);
  ::posix_spawn_file_actions_adddup2(&actions, out_.get(), 1);
  ::posix_spawn_file_actions_adddup2(&actions, messages_.get(), 2);
  // A group of its own, so that the driver's children die with it and a Ctrl-C is ours to handle.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  ::posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  const int status = ::posix_spawn(&pid_, compiler_.path.c_str(), &actions, &attributes,
                                   pointers(words).data(), pointers(variables).data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (status != 0) {
    pid_ = -1;
    fail_device("posix_spawn", status, compiler_.path, "cannot run the C compiler: {}",
                std::strerror(status));
  }
  process_.reset(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  context.tracer().add(Counter::CompilerCalls);
}

void CompilerRun::failed(int64_t status, std::string_view how) {
  const std::string said = first_lines(read_all(messages_.get()), 6);
  fail_device(
      "compile", status, compiler_.path,
      "the C compiler {}{}{}; set WEFT_CC to another compiler, or WEFT_DEV=CPU:INTERP to do "
      "without; WEFT_DEBUG=4 prints what it was given",
      how, said.empty() ? "" : ":\n", said);
}

std::string CompilerRun::finish(uint64_t deadline_ns, int seconds) {
  int status = 0;
  while (true) {
    const uint64_t now = now_ns();
    const int left = now >= deadline_ns ? 0 : static_cast<int>((deadline_ns - now) / 1'000'000) + 1;
    // Without a pidfd (an old kernel) look again every two milliseconds.
    pollfd event{process_.get(), POLLIN, 0};
    const int most = std::min(left, process_.get() >= 0 ? kAskEveryMs : 2);
    const int ready = ::poll(&event, process_.get() >= 0 ? 1 : 0, most);
    ask_interrupt();
    if (ready < 0 && errno != EINTR)
      fail_errno("device.compile", "cannot wait for the compiler", errno);
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_ || (got < 0 && errno == ECHILD)) break;  // ECHILD: SIGCHLD is ignored here
    if (left == 0) failed(ETIMEDOUT, strformat("gave no answer within {} s", seconds));
  }
  pid_ = -1;
  if (WIFSIGNALED(status))
    failed(WTERMSIG(status), strformat("was killed by signal {}", WTERMSIG(status)));
  if (WEXITSTATUS(status) != 0) failed(WEXITSTATUS(status), "refused the kernels");
  std::string object;
  if (folder_) {
    Fd file(::open(folder_->object().c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() >= 0) object = read_all(file.get());
  } else {
    object = read_all(out_.get());
  }
  if (object.empty()) failed(0, "wrote no object file");
  return object;
}

}  // namespace

std::optional<CCompiler> find_c_compiler(Context& context) {
  const Options& options = context.options();
  if (!options.cc.empty()) {
    if (auto found = search(options.cc, options.path)) return found;
    fail_device("open", ENOENT, "CPU:C", "WEFT_CC is \"{}\", which is no program on PATH; {}",
                options.cc, no_compiler_advice());
  }
  for (std::string_view name : kCandidates)
    if (auto found = search(name, options.path)) return found;
  return std::nullopt;
}

std::string no_compiler_advice() {
  return "install one (Debian: apt install clang-19, or gcc), name one with WEFT_CC, or use the "
         "device CPU:INTERP, which needs none";
}

std::vector<std::string> c_compiler_flags(const CpuFeatures& cpu) {
  std::vector<std::string> flags;
  // Values wrap, are rounded where the program says and nowhere else, and may change type in
  // memory. Nothing from outside is called.
  for (const char* flag :
       {"-O2", "-std=gnu11", "-w", "-fPIC", "-ffreestanding", "-nostdlib", "-ffp-contract=off",
        "-fno-math-errno", "-fno-trapping-math", "-fno-strict-aliasing", "-flax-vector-conversions",
        "-fno-stack-protector", "-fno-asynchronous-unwind-tables", "-fcf-protection=none",
        "-fvisibility=hidden", "-fno-ident"}) {
    flags.emplace_back(flag);
  }
  std::string features = cpu.compiler_flags();
  for (size_t at = 0; at < features.size();) {
    const size_t end = std::min(features.find(' ', at), features.size());
    flags.push_back(features.substr(at, end - at));
    at = end + 1;
  }
  if (cpu.has(CpuFeature::Avx512f)) flags.emplace_back("-mprefer-vector-width=512");
  return flags;
}

std::vector<std::string> compile_c(Context& context, const CCompiler& compiler,
                                   std::span<const std::string> flags,
                                   std::span<const std::string> texts, int seconds) {
  Span span(context.tracer(), "compile", compiler.path);
  const uint64_t deadline = now_ns() + static_cast<uint64_t>(seconds) * 1'000'000'000;
  std::deque<CompilerRun> runs;
  for (const std::string& text : texts) runs.emplace_back(context, compiler, flags, text);
  std::vector<std::string> objects;
  for (CompilerRun& run : runs) objects.push_back(run.finish(deadline, seconds));
  return objects;
}

}  // namespace weft
