// CodeMemory: memory for generated machine code, never writable and executable at one address.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace weft {

/// Regions of shared memory, mapped twice: writable here, executable there. Code is copied in
/// without changing any protection, so that other threads' mappings are never disturbed.
///
/// A forked child shares the regions it inherits: it runs what is there, leaves them as they are
/// and adds to regions of its own. What its parent gives back later may change under it.
class CodeMemory : public std::enable_shared_from_this<CodeMemory> {
 public:
  CodeMemory() = default;
  ~CodeMemory();
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  /// Code in executable memory; the memory is given back with the last handle, which whoever runs
  /// the code holds.
  class Code {
   public:
    Code(std::shared_ptr<CodeMemory> memory, size_t region, size_t begin, size_t bytes);
    ~Code();
    Code(const Code&) = delete;
    Code& operator=(const Code&) = delete;
    const void* entry() const;
    size_t bytes() const { return bytes_; }

   private:
    std::shared_ptr<CodeMemory> memory_;
    size_t region_, begin_, bytes_;
  };

  /// Throws DeviceError where the system grants no executable memory. Any thread may call.
  std::shared_ptr<const Code> add(std::span<const std::byte> code);
  /// Bytes that are in use.
  size_t used() const;
  /// Bytes that are mapped.
  size_t reserved() const;

 private:
  struct Hole {
    size_t begin, bytes;
  };
  struct Region {
    std::byte* writable;
    const std::byte* executable;
    size_t bytes;
    pid_t owner;
    std::vector<Hole> holes;  // by position, never adjacent
  };
  size_t grow(size_t bytes);
  void give_back(size_t region, size_t begin, size_t bytes);

  mutable std::mutex mutex_;
  std::vector<Region> regions_;
  size_t used_ = 0;
};

}  // namespace weft
