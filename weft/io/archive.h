// What archives and compressed files share: limits on what they unpack to, and members' names.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

/// Bounds on what a small file may ask for. Stored members, which are views, count for nothing.
struct UnpackLimits {
  /// Of all content that is decompressed; 0: the larger of 256 MiB and 100 times the archive. What
  /// is real seldom grows more; deflate's own limit is 1032 times, so a small file could fill
  /// memory.
  uint64_t most_bytes = 0;
  uint64_t most_members = uint64_t{1} << 18;
};

/// most_bytes for an archive of that size.
uint64_t most_unpacked(const UnpackLimits& limits, uint64_t archive_bytes);
/// An Error of that code where `bytes` are more.
void check_unpacked(uint64_t bytes, const UnpackLimits& limits, uint64_t archive_bytes,
                    std::string_view code, std::string_view what);

/// The file's bytes (u8), decompressed where they are gzip or zstd; each at most once, by what they
/// begin with.
HostArray unpacked(HostArray file, std::string_view what, const UnpackLimits& limits = {});

/// What is wrong with a member's name, for who would take it for a path: absolute, with "..", a
/// drive or a backslash, with a NUL; null where nothing is. Nothing here writes to a disk, but
/// callers have the names.
const char* wrong_member_name(std::string_view name);

}  // namespace weft
