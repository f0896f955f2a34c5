#include "weft/base/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "weft/base/error.h"
#include "weft/base/file.h"

namespace weft {

AppendFile::AppendFile(std::string path) : path_(std::move(path)) {
  if (path_.find('\0') != std::string::npos) fail("file.name", "{}: a path has a NUL in it", path_);
  const size_t slash = path_.rfind('/');
  if (slash != std::string::npos && slash > 0) make_directories(path_.substr(0, slash), 0700);
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
  if (fd_ < 0) fail_errno("file.write", strformat("cannot write {}", path_), errno);
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::append(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd_, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_errno("file.write", strformat("cannot write {}", path_), errno);
    data = data.subspan(static_cast<size_t>(n));
  }
}

uint64_t AppendFile::size() const {
  struct stat info{};
  return ::fstat(fd_, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

}  // namespace weft
