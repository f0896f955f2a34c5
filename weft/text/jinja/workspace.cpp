#include "weft/text/jinja/value.h"

#include <cstring>

namespace weft::text::jinja {

namespace {
[[noreturn]] void over_limit(std::string_view what) {
  throw Problem{"template.limit", strformat("it takes more {} than is allowed", what)};
}
constexpr size_t kBlock = 1 << 16;
}  // namespace

void Workspace::spend(uint64_t steps) {
  if (steps > steps_) over_limit("steps");
  steps_ -= steps;
}

void Workspace::require(size_t bytes) const {
  if (bytes > bytes_) over_limit("memory");
}

void Workspace::charge(size_t bytes) {
  require(bytes);
  bytes_ -= bytes;
}

void* Workspace::take(size_t bytes) {
  bytes = (bytes + 15) / 16 * 16;
  charge(bytes);
  if (bytes > block_left_) {
    const size_t block = bytes > kBlock / 4 ? bytes : kBlock;
    // A large one has a block to itself, and the one in use goes on.
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block));
    if (block == bytes) return blocks_.back().get();
    block_at_ = blocks_.back().get();
    block_left_ = block;
  }
  void* at = block_at_;
  block_at_ += bytes;
  block_left_ -= bytes;
  return at;
}

template <class T>
std::span<const T> Workspace::copy(std::span<const T> items) {
  if (items.empty()) return {};
  if (items.size() > UINT32_MAX / sizeof(T)) over_limit("memory");
  void* at = take(items.size_bytes());
  std::memcpy(at, static_cast<const void*>(items.data()), items.size_bytes());
  return {static_cast<const T*>(at), items.size()};
}
template std::span<const Value> Workspace::copy(std::span<const Value>);
template std::span<const Pair> Workspace::copy(std::span<const Pair>);

std::string_view Workspace::keep(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > UINT32_MAX) over_limit("memory");
  char* at = static_cast<char*>(take(text.size()));
  std::memcpy(at, text.data(), text.size());
  return {at, text.size()};
}

Namespace* Workspace::new_namespace() {
  charge(sizeof(Namespace));
  return &namespaces_.emplace_back();
}

Scope* Workspace::new_scope(Scope* parent) {
  charge(sizeof(Scope));
  Scope& scope = scopes_.emplace_back();
  scope.parent = parent;
  return &scope;
}

const Function* Workspace::new_function(const Function& f) {
  charge(sizeof(Function));
  return &functions_.emplace_back(f);
}

Loop* Workspace::new_loop() {
  charge(sizeof(Loop));
  return &loops_.emplace_back();
}

}  // namespace weft::text::jinja
