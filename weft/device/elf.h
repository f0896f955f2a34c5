// Loads relocatable x86-64 ELF objects (what a compiler's -c writes) into executable memory of
// ours.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace weft {

/// The machine code of one object, freed with it. Never writable and executable at once: it is
/// written first and then protected.
class CodeObject {
 public:
  /// Untrusted bytes: whatever does not hold together is an Error. The code may call memcpy,
  /// memmove, memset and memcmp; any other undefined symbol is an Error that names it.
  static std::shared_ptr<CodeObject> load(std::span<const std::byte> elf);

  ~CodeObject();
  CodeObject(const CodeObject&) = delete;
  CodeObject& operator=(const CodeObject&) = delete;

  /// A global function's address; null if there is none of this name.
  void* function(std::string_view name) const;
  size_t bytes() const { return size_; }

 private:
  CodeObject() = default;
  friend class ObjectLoader;

  std::byte* base_ = nullptr;
  size_t size_ = 0;
  std::map<std::string, void*, std::less<>> functions_;
};

}  // namespace weft
