#include "weft/base/crash_note.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <string_view>

#include "weft/base/exceptions.h"
#include "weft/base/file.h"
#include "weft/base/format.h"

namespace weft {
namespace {

constexpr std::string_view kBegin = "weft-", kEnd = ".running.repro";
constexpr int kMostFiles = 10'000;  // of one process
constexpr char kIdle = '#';

/// Of a file's name; 0 where it is no such file.
pid_t process_of(std::string_view name) {
  if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) return 0;
  pid_t process = 0;
  std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), process);
  return process;
}

/// Of processes that were ended while nothing ran.
void remove_idle(const std::string& folder) {
  DIR* files = ::opendir(folder.c_str());
  if (!files) return;
  while (const dirent* file = ::readdir(files)) {
    const pid_t process = process_of(file->d_name);
    if (process <= 0 || ::kill(process, 0) == 0 || errno != ESRCH) continue;
    const std::string path = strformat("{}/{}", folder, file->d_name);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) continue;
    char first = 0;
    if (::read(fd, &first, 1) == 1 && first == kIdle) ::unlink(path.c_str());
    ::close(fd);
  }
  ::closedir(files);
}

bool write_at(int fd, std::string_view text, off_t at) {
  while (!text.empty()) {
    const ssize_t written = ::pwrite(fd, text.data(), text.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<size_t>(written));
    at += written;
  }
  return true;
}

}  // namespace

CrashNote::~CrashNote() {
  if (fd_ < 0) return;
  if (process_ == ::getpid()) ::unlink(path_.c_str());
  ::close(fd_);
}

void CrashNote::forget_parent() {
  if (fd_ < 0 || process_ == ::getpid()) return;
  ::close(fd_);
  fd_ = -1;
  failed_ = false;
}

bool CrashNote::open() {
  if (fd_ >= 0 || failed_) return fd_ >= 0;
  process_ = ::getpid();
  try {
    make_directories(folder_);
    remove_idle(folder_);
    for (int i = 0; i < kMostFiles && fd_ < 0; ++i) {
      path_ = strformat("{}/{}{}-{}{}", folder_, kBegin, process_, i, kEnd);
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
      if (fd_ < 0 && errno != EEXIST) break;
    }
  } catch (const Error&) {}
  failed_ = fd_ < 0;
  key_ = 0;
  return !failed_;
}

void CrashNote::mark(char first) { write_at(fd_, {&first, 1}, 0); }

void CrashNote::begin(uint64_t key, FunctionRef<std::string()> text) {
  forget_parent();
  if (!open()) return;
  if (key != key_ || key == 0) {
    const std::string now = text();
    mark(kIdle);  // until all of it is there
    if (::ftruncate(fd_, 1) != 0 || now.empty() || !write_at(fd_, now.substr(1), 1)) return;
    first_ = now[0];
    key_ = key;
  }
  mark(first_);
}

void CrashNote::end() {
  if (fd_ >= 0 && process_ == ::getpid()) mark(kIdle);
}

}  // namespace weft
