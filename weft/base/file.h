// Files: mapped for reading, replaced atomically when written, and where caches live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"

namespace weft {

struct Options;
class ThreadPool;

// A whole file mapped read-only. Missing, empty and unreadable files and directories are Errors.
// Touching bytes that another process has cut off ends the process with SIGBUS, and a library
// installs no handler: check() comes before a use, read() in the place of one.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  // The same as an owner of what lies in it, which of() knows again.
  static std::shared_ptr<const MappedFile> open(const std::string& path);
  static const MappedFile* of(const std::shared_ptr<const void>& owner);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;

  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }
  const std::string& path() const { return path_; }

  // An Error (file.shrunk) where the file has become shorter than what is mapped.
  void check() const;
  // The bytes from `offset` on, read instead of touched: the same Error, whenever it shrinks.
  void read(uint64_t offset, std::span<std::byte> out) const;
  // By several threads where that are many: one waits for the disk while another copies.
  void read(uint64_t offset, std::span<std::byte> out, ThreadPool& threads) const;
  // Brings these bytes of it to memory at once, in the order of the disk: who will touch all of
  // them would wait for it page by page.
  void fetch(std::span<const std::byte> part) const;
  // These bytes of it need not stay in memory: who touches them again finds them in the file.
  void let_go(std::span<const std::byte> part) const;
  // Differs after somebody wrote to the file: its size and times of change.
  uint64_t version() const;

 private:
  [[noreturn]] void fail_shrunk(uint64_t size) const;

  std::string path_;
  int fd_ = -1;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Buffered sequential output to a file descriptor; every failure is an Error with its reason.
class FileWriter {
 public:
  FileWriter(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}

  void write(std::span<const std::byte> data);
  void write(std::string_view text) {
    write(std::span(reinterpret_cast<const std::byte*>(text.data()), text.size()));
  }
  void flush();
  uint64_t position() const { return position_; }
  const std::string& path() const { return path_; }

 private:
  void write_through(const std::byte* data, size_t size);

  int fd_;
  std::string path_;
  std::vector<std::byte> buffer_;
  uint64_t position_ = 0;
};

// Whether a file has to be whole after the machine crashed, too. Checked files are caches: who
// reads them verifies the content and makes it again.
enum class Keep : uint8_t { Synced, Checked };

// Replaces `path` with what `write` produces, or leaves it exactly as it was: a temporary file in
// the same directory is written, synced, renamed, and the directory synced.
void atomic_write_file(const std::string& path, FunctionRef<void(FileWriter&)> write,
                       Keep keep = Keep::Synced);
void atomic_write_file(const std::string& path, std::string_view content);

// <cache directory>/<leaf>, made with mode 0700 where missing; empty when the options give none.
std::string make_cache_dir(const Options& options, std::string_view leaf);

// mkdir -p with this mode for each new directory.
void make_directories(const std::string& path, unsigned mode = 0777);

// A file of at least this many bytes, made where it is missing, with blocks on the disk for all of
// them: what is mapped must not meet a full disk when it is touched. New bytes are 0.
void grow_file(const std::string& path, uint64_t bytes);

// Puts `data` at `offset` of a file that is there, and leaves the rest of it. Of what is there
// already nothing is written.
void overwrite_file(const std::string& path, uint64_t offset, std::span<const std::byte> data);

// A path is what it looks like: an Error for one with a NUL, which the system would cut off there.
void check_path(std::string_view path);

bool file_exists(const std::string& path);
// The first 4 KiB of a file of /proc or /sys, which have no size and so are read, not mapped.
// Empty where it is missing.
std::string read_small_file(const std::string& path);
bool is_directory(const std::string& path);

}  // namespace weft
