// ObjectCache: compiled objects on disk, under the user's cache directory, checked when read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weft {

class Context;

/// What an object depends on, hashed twice so that a collision is out of the question.
struct ObjectKey {
  uint64_t a = 0, b = 0;
  static ObjectKey of(std::string_view text, std::string_view flags, std::string_view compiler);
};

/// Losing it costs time, never correctness: a damaged, foreign or unwritable entry counts as
/// absent. Any thread and process may use it at once. Beyond 256 MiB the oldest entries go.
class ObjectCache {
 public:
  /// Off where Options::cache is, or where there is no cache directory.
  explicit ObjectCache(Context& context);

  std::optional<std::string> find(ObjectKey key) const;
  void store(ObjectKey key, std::string_view object) const;

 private:
  std::string path(ObjectKey key) const;

  Context& context_;
  std::string folder_;
};

}  // namespace weft
