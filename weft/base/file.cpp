#include "weft/base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/options.h"
#include "weft/base/spans.h"
#include "weft/base/thread_pool.h"

namespace weft {

namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;
constexpr size_t kReadBytes = size_t{1} << 20;     // that one thread reads at a time
constexpr size_t kPieceBytes = size_t{256} << 10;  // that are compared and written as a whole
constexpr uint64_t kBlockBytes = 512;  // of stat::st_blocks, whatever the file system's are

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

int open_retrying(const std::string& path, int flags, mode_t mode = 0) {
  check_path(path);
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

void sync_retrying(int fd, const std::string& path) {
  int result;
  do {
    result = ::fsync(fd);
  } while (result != 0 && errno == EINTR);
  // EINVAL: a file system that has nothing to sync.
  if (result != 0 && errno != EINVAL) fail_errno("file.write", "cannot sync " + path, errno);
}

std::string parent_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Where a symbolic link leads, so that replacing the file keeps the link.
std::string resolve_link(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return path;
  char* real = ::realpath(path.c_str(), nullptr);
  if (real == nullptr) fail_errno("file.write", "cannot follow the link " + path, errno);
  std::string target = real;
  std::free(real);
  return target;
}

// A new file in the folder of `target`, gone again unless it was renamed. Where the file system
// can, it has no name until it is whole: then a process that is killed leaves nothing of it.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target)
      : folder_(target.substr(0, target.rfind('/') + 1)) {  // "" without one
    fd_ = open_retrying(folder_.empty() ? "." : folder_, O_WRONLY | O_TMPFILE, 0666);
    if (fd_ >= 0 && file_exists(link_of_descriptor())) return;
    if (fd_ >= 0) ::close(fd_);
    fd_ = with_new_name([this] { return open_retrying(path_, O_WRONLY | O_CREAT | O_EXCL, 0666); });
    if (fd_ < 0) fail_new(target, errno);
  }
  ~TemporaryFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_; }
  // Network file systems report a full disk only here.
  void close() {
    if (path_.empty()) link();
    const int fd = std::exchange(fd_, -1);
    if (::close(fd) != 0 && errno != EINTR) {
      fail_errno("file.write", "cannot close " + path_, errno);
    }
  }
  void rename_to(const std::string& target) {
    if (::rename(path_.c_str(), target.c_str()) != 0) {
      fail_errno("file.write", "cannot replace " + target, errno);
    }
    path_.clear();
  }

 private:
  /// With the name that was asked for: nobody knows the temporary one.
  [[noreturn]] void fail_new(const std::string& target, int why) const {
    if (why == ENOENT)
      fail_runtime("file.write", "cannot write {}: there is no folder {}; make it first", target,
                   folder_.empty() ? "." : folder_);
    fail_errno("file.write", "cannot write " + target, why);
  }
  std::string link_of_descriptor() const { return strformat("/proc/self/fd/{}", fd_); }
  /// Not the target's name with more behind it: that may be as long as names can be.
  int with_new_name(FunctionRef<int()> make) {
    int result;
    do {
      path_ = strformat("{}weft.{}.{}.tmp", folder_, ::getpid(), now_ns());
      result = make();
    } while (result < 0 && errno == EEXIST);
    return result;
  }
  /// A link may not replace a file, which renaming does.
  void link() {
    const std::string from = link_of_descriptor();
    const int result = with_new_name([&] {
      return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW);
    });
    if (result == 0) return;
    const int why = errno;
    fail_errno("file.write", "cannot create " + std::exchange(path_, ""), why);
  }

  std::string folder_, path_;
  int fd_ = -1;
};

// Devices and pipes cannot be replaced by a rename: written straight.
void write_in_place(const std::string& path, FunctionRef<void(FileWriter&)> write) {
  Descriptor fd(open_retrying(path, O_WRONLY));
  if (fd.get() < 0) fail_errno("file.write", "cannot write " + path, errno);
  FileWriter writer(fd.get(), path);
  write(writer);
  writer.flush();
}

// A large file is asked for in huge pages, which takes addresses that are multiples of them;
// without them everything works, slower. Reading 1 GB of weights in a cache of huge pages: 62
// instead of 42 GB/s (Zen 4, two cores).
constexpr size_t kHuge = size_t{2} << 20;

void* map_for_reading(int fd, size_t size) {
  if (size < kHuge) return ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  const size_t room = size + kHuge;
  void* whole =
      ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (whole == MAP_FAILED) return whole;
  auto* const begin = static_cast<std::byte*>(whole);
  std::byte* const at = begin + (-std::bit_cast<uintptr_t>(begin) % kHuge);
  void* data = ::mmap(at, size, PROT_READ, MAP_PRIVATE | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) {
    const int why = errno;
    ::munmap(whole, room);
    errno = why;
    return data;
  }
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  std::byte* const end = at + (size + page - 1) / page * page;
  if (at > begin) ::munmap(begin, static_cast<size_t>(at - begin));
  if (end < begin + room) ::munmap(end, static_cast<size_t>(begin + room - end));
  ::madvise(data, size, MADV_HUGEPAGE);
  return data;
}

}  // namespace

MappedFile::MappedFile(const std::string& path) : path_(path) {
  // A pipe that nobody writes to would block: it is told of below.
  Descriptor fd(open_retrying(path, O_RDONLY | O_NONBLOCK));
  if (fd.get() < 0) {
    const int why = errno;
    fail_errno(why == ENOENT ? "file.missing" : "file.read", "cannot open " + path, why);
  }
  struct stat info;
  if (::fstat(fd.get(), &info) != 0) fail_errno("file.read", "cannot examine " + path, errno);
  if (S_ISDIR(info.st_mode)) fail_errno("file.read", "cannot read " + path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    fail_runtime("file.read", "{} is not a regular file; copy its content to one first", path);
  }
  if (info.st_size == 0) {
    fail_runtime("file.empty", "{} is empty; was its download or copy interrupted?", path);
  }
  size_ = static_cast<size_t>(info.st_size);
  void* data = map_for_reading(fd.get(), size_);
  if (data == MAP_FAILED) fail_errno("file.read", "cannot map " + path, errno);
  data_ = static_cast<const std::byte*>(data);
  fd_ = fd.release();
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
  if (fd_ >= 0) ::close(fd_);
}

namespace {

/// What an owner is known by.
struct CloseMapped {
  const MappedFile* file;
  void operator()(const MappedFile* f) const { delete f; }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const auto* file = new MappedFile(path);
  return {file, CloseMapped{file}};
}

const MappedFile* MappedFile::of(const std::shared_ptr<const void>& owner) {
  const auto* close = std::get_deleter<CloseMapped>(owner);
  return close ? close->file : nullptr;
}

void MappedFile::check() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) fail_errno("file.read", "cannot examine " + path_, errno);
  const auto size = static_cast<uint64_t>(info.st_size);
  if (size < size_) fail_shrunk(size);
}

void MappedFile::read(uint64_t offset, std::span<std::byte> out) const {
  WEFT_CHECK(offset <= size_ && out.size() <= size_ - offset, "{} bytes at {} of {}", out.size(),
             offset, size_);
  while (!out.empty()) {
    const ssize_t got = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_errno("file.read", "cannot read " + path_, errno);
    if (got == 0) fail_shrunk(offset);
    offset += static_cast<uint64_t>(got);
    out = out.subspan(static_cast<size_t>(got));
  }
}

void MappedFile::read(uint64_t offset, std::span<std::byte> out, ThreadPool& threads) const {
  const auto pieces = static_cast<int64_t>((out.size() + kReadBytes - 1) / kReadBytes);
  if (pieces < 2) return read(offset, out);
  threads.parallel_for(pieces, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t at = static_cast<size_t>(i) * kReadBytes;
      read(offset + at, out.subspan(at, std::min(kReadBytes, out.size() - at)));
    }
  });
}

void MappedFile::fetch(std::span<const std::byte> part) const {
  // Only since Linux 5.14, and of a file that was cut short in the meantime a part: advice.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = std::bit_cast<uintptr_t>(part.data());
  const uintptr_t begin = from / page * page;
  if (!part.empty())
    ::madvise(std::bit_cast<void*>(begin), from + part.size() - begin, MADV_POPULATE_READ);
}

void MappedFile::let_go(std::span<const std::byte> part) const {
  // Whole pages of it only: others may still look at what lies beside it.
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto from = std::bit_cast<uintptr_t>(part.data());
  const uintptr_t begin = (from + page - 1) / page * page, end = (from + part.size()) / page * page;
  if (begin < end) ::madvise(std::bit_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

uint64_t MappedFile::version() const {
  struct stat info;
  if (::fstat(fd_, &info) != 0) fail_errno("file.read", "cannot examine " + path_, errno);
  uint64_t id = static_cast<uint64_t>(info.st_size);
  for (const timespec& at : {info.st_mtim, info.st_ctim}) {
    id = hash_combine(id, static_cast<uint64_t>(at.tv_sec));
    id = hash_combine(id, static_cast<uint64_t>(at.tv_nsec));
  }
  return id;
}

void MappedFile::fail_shrunk(uint64_t size) const {
  fail_runtime("file.shrunk",
               "{} had {} bytes when it was loaded and has {} now: another program cut it short. "
               "Load it again when that is done; programs that replace files by renaming new ones "
               "do no harm",
               path_, size_, size);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

void FileWriter::write(std::span<const std::byte> data) {
  position_ += data.size();
  if (buffer_.size() + data.size() > kBufferBytes) flush();
  if (data.size() >= kBufferBytes) {
    write_through(data.data(), data.size());
  } else {
    buffer_.insert(buffer_.end(), data.begin(), data.end());
  }
}

void FileWriter::flush() {
  write_through(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void FileWriter::write_through(const std::byte* data, size_t size) {
  while (size > 0) {
    const ssize_t written = ::write(fd_, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail_errno("file.write", "cannot write " + path_, errno);
    data += written;
    size -= static_cast<size_t>(written);
  }
}

void atomic_write_file(const std::string& path, FunctionRef<void(FileWriter&)> write, Keep keep) {
  check_path(path);
  // In a cache nobody meant a link or a pipe, at which a write would wait: a file takes its place.
  const bool cache = keep == Keep::Checked;
  const std::string target = cache ? path : resolve_link(path);
  struct stat old;
  const bool exists = ::lstat(target.c_str(), &old) == 0;
  const bool regular = exists && S_ISREG(old.st_mode);
  if (exists && S_ISDIR(old.st_mode)) fail_errno("file.write", "cannot write " + path, EISDIR);
  if (exists && !regular && !cache) return write_in_place(target, write);

  TemporaryFile temporary(target);
  if (regular && ::fchmod(temporary.fd(), old.st_mode & 07777) != 0) {
    fail_errno("file.write", "cannot copy the permissions of " + path, errno);
  }
  FileWriter writer(temporary.fd(), path);
  write(writer);
  writer.flush();
  if (keep == Keep::Synced) sync_retrying(temporary.fd(), path);
  temporary.close();
  temporary.rename_to(target);
  if (keep != Keep::Synced) return;

  // Without this a crash of the machine could forget the rename; failing to open it is harmless.
  Descriptor directory(open_retrying(parent_of(target), O_RDONLY | O_DIRECTORY));
  if (directory.get() >= 0) sync_retrying(directory.get(), path);
}

void atomic_write_file(const std::string& path, std::string_view content) {
  atomic_write_file(path, [&](FileWriter& writer) { writer.write(content); });
}

std::string make_cache_dir(const Options& options, std::string_view leaf) {
  std::string path = options.cache_directory();
  if (path.empty()) return "";
  if (!leaf.empty()) path += "/" + std::string(leaf);
  make_directories(path, 0700);
  return path;
}

void make_directories(const std::string& path, unsigned mode) {
  check_path(path);
  for (size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    struct stat info;
    const bool there = ::stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
    if (!there && ::mkdir(part.c_str(), mode) != 0) {
      const int why = errno;
      const bool raced = why == EEXIST && ::stat(part.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
      if (!raced) fail_errno("file.write", "cannot make the directory " + part, why);
    }
    if (slash == std::string::npos) return;
  }
}

void check_path(std::string_view path) {
  const size_t nul = path.find('\0');
  if (nul != std::string_view::npos)
    fail("file.name", "{} is followed by a NUL, where the system would end the name; remove it",
         path.substr(0, nul));
}

void grow_file(const std::string& path, uint64_t bytes) {
  check_path(path);
  struct stat info{};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  const bool large = exists && static_cast<uint64_t>(info.st_size) >= bytes;
  if (large && static_cast<uint64_t>(info.st_blocks) * kBlockBytes >= bytes) return;
  Descriptor fd(open_retrying(path, O_RDWR | O_CREAT, 0666));
  if (fd.get() < 0 && large && (errno == EACCES || errno == EROFS)) return;  // to be read only
  if (fd.get() < 0) fail_errno("file.write", "cannot write " + path, errno);
  int why;
  do {
    why = ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
  } while (why == EINTR);
  if (why == 0 || bytes == 0) return;
  if (!exists) ::unlink(path.c_str());
  fail_errno("file.write", strformat("cannot make room for {} bytes in {}", bytes, path), why);
}

namespace {

ssize_t retrying(FunctionRef<ssize_t()> call) {
  ssize_t result;
  do {
    result = call();
  } while (result < 0 && errno == EINTR);
  return result;
}

void write_at(int fd, uint64_t at, std::span<const std::byte> data, const std::string& path) {
  while (!data.empty()) {
    const ssize_t written =
        retrying([&] { return ::pwrite(fd, data.data(), data.size(), static_cast<off_t>(at)); });
    if (written < 0) fail_errno("file.write", "cannot write " + path, errno);
    at += static_cast<uint64_t>(written);
    data = data.subspan(static_cast<size_t>(written));
  }
}

}  // namespace

void overwrite_file(const std::string& path, uint64_t offset, std::span<const std::byte> data) {
  Descriptor fd(open_retrying(path, O_RDWR));
  if (fd.get() < 0) fail_errno("file.write", "cannot write " + path, errno);
  std::vector<std::byte> old(std::min(kPieceBytes, data.size()));
  for (size_t at = 0; at < data.size(); at += kPieceBytes) {
    const auto piece = data.subspan(at, std::min(kPieceBytes, data.size() - at));
    const ssize_t got = retrying([&] {
      return ::pread(fd.get(), old.data(), piece.size(), static_cast<off_t>(offset + at));
    });
    const bool same = got == static_cast<ssize_t>(piece.size()) &&
                      std::memcmp(old.data(), piece.data(), piece.size()) == 0;
    if (!same) write_at(fd.get(), offset + at, piece, path);
  }
}

bool is_directory(const std::string& path) {
  check_path(path);
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

std::string read_small_file(const std::string& path) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return text;
  char buffer[4096];
  text.assign(buffer, std::fread(buffer, 1, sizeof(buffer), file));
  std::fclose(file);
  return text;
}

}  // namespace weft
