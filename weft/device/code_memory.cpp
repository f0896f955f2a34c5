#include "weft/device/code_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "weft/base/error.h"

namespace weft {
namespace {

constexpr size_t kRegion = size_t{4} << 20;
constexpr size_t kAlignment = 64;  // a cache line, which fetching starts at

size_t aligned(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

[[noreturn]] void fail_mapping(const char* call) {
  fail_device(call, errno, "CPU",
              "the system grants no memory for generated code; use CPU:INTERP, or allow "
              "executable shared mappings");
}

}  // namespace

CodeMemory::~CodeMemory() {
  for (const Region& r : regions_) {
    ::munmap(r.writable, r.bytes);
    ::munmap(const_cast<std::byte*>(r.executable), r.bytes);
  }
}

CodeMemory::Code::Code(std::shared_ptr<CodeMemory> memory, size_t region, size_t begin,
                       size_t bytes)
    : memory_(std::move(memory)), region_(region), begin_(begin), bytes_(bytes) {}

CodeMemory::Code::~Code() { memory_->give_back(region_, begin_, bytes_); }

const void* CodeMemory::Code::entry() const {
  std::lock_guard lock(memory_->mutex_);
  return memory_->regions_[region_].executable + begin_;
}

std::shared_ptr<const CodeMemory::Code> CodeMemory::add(std::span<const std::byte> code) {
  const size_t bytes = aligned(std::max<size_t>(code.size(), 1), kAlignment);
  std::lock_guard lock(mutex_);
  for (size_t r = 0;; ++r) {
    if (r == regions_.size()) r = grow(bytes);
    if (regions_[r].owner != ::getpid()) continue;
    std::vector<Hole>& holes = regions_[r].holes;
    const auto hole = std::find_if(holes.begin(), holes.end(),
                                   [bytes](const Hole& h) { return h.bytes >= bytes; });
    if (hole == holes.end()) continue;
    const size_t begin = hole->begin;
    hole->begin += bytes;
    hole->bytes -= bytes;
    if (hole->bytes == 0) holes.erase(hole);
    used_ += bytes;
    std::memcpy(regions_[r].writable + begin, code.data(), code.size());
    return std::make_shared<Code>(shared_from_this(), r, begin, bytes);
  }
}

size_t CodeMemory::grow(size_t bytes) {
  const size_t size = aligned(bytes, kRegion);
  void* writable = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (writable == MAP_FAILED) fail_mapping("mmap");
  // An old size of 0 maps the same pages a second time (mremap(2)). Unlike a memfd's they count as
  // memory, not as a file, for the limits of a process.
  void* executable = ::mremap(writable, 0, size, MREMAP_MAYMOVE);
  const bool mapped = executable != MAP_FAILED;
  if (!mapped || ::mprotect(executable, size, PROT_READ | PROT_EXEC) != 0) {
    const int error = errno;
    ::munmap(writable, size);
    if (mapped) ::munmap(executable, size);
    errno = error;
    fail_mapping(mapped ? "mprotect" : "mremap");
  }
  regions_.push_back({static_cast<std::byte*>(writable),
                      static_cast<const std::byte*>(executable),
                      size,
                      ::getpid(),
                      {{0, size}}});
  return regions_.size() - 1;
}

void CodeMemory::give_back(size_t region, size_t begin, size_t bytes) {
  std::lock_guard lock(mutex_);
  used_ -= bytes;
  if (regions_[region].owner != ::getpid()) return;  // the parent of this process runs it
  std::vector<Hole>& holes = regions_[region].holes;
  // What is executed by mistake traps (int3).
  std::memset(regions_[region].writable + begin, 0xcc, bytes);
  auto after =
      std::find_if(holes.begin(), holes.end(), [begin](const Hole& h) { return h.begin > begin; });
  if (after != holes.end() && begin + bytes == after->begin) {
    after->begin = begin;
    after->bytes += bytes;
  } else {
    after = holes.insert(after, {begin, bytes});
  }
  if (after == holes.begin()) return;
  const auto before = after - 1;
  if (before->begin + before->bytes != after->begin) return;
  before->bytes += after->bytes;
  holes.erase(after);
}

size_t CodeMemory::used() const {
  std::lock_guard lock(mutex_);
  return used_;
}

size_t CodeMemory::reserved() const {
  std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const Region& r : regions_) bytes += r.bytes;
  return bytes;
}

}  // namespace weft
