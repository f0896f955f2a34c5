#include "weft/io/archive.h"

#include <algorithm>
#include <limits>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/io/gzip.h"
#include "weft/io/zstd.h"

namespace weft {

namespace {

constexpr uint64_t kMostBytes = uint64_t{256} << 20;
constexpr uint64_t kMostRatio = 100;

}  // namespace

uint64_t most_unpacked(const UnpackLimits& limits, uint64_t archive_bytes) {
  if (limits.most_bytes != 0) return limits.most_bytes;
  const auto scaled = checked_mul<uint64_t>(archive_bytes, kMostRatio);
  return std::max(kMostBytes, scaled.value_or(std::numeric_limits<uint64_t>::max()));
}

void check_unpacked(uint64_t bytes, const UnpackLimits& limits, uint64_t archive_bytes,
                    std::string_view code, std::string_view what) {
  const uint64_t most = most_unpacked(limits, archive_bytes);
  if (bytes <= most) return;
  fail_runtime(code,
               "{}: an archive of {} bytes unpacks to {}, more than {}; allow more (most_bytes, in "
               "Python max_bytes) if it is to be trusted",
               what, archive_bytes, bytes, most);
}

HostArray unpacked(HostArray file, std::string_view what, const UnpackLimits& limits) {
  const uint64_t most = most_unpacked(limits, file.bytes.size());
  std::vector<std::byte> content;
  if (is_gzip(file.bytes)) {
    content = gunzip_members(file.bytes, most, what);
  } else if (is_zstd(file.bytes)) {
    content = unzstd(file.bytes, most, what);
  } else {
    return file;
  }
  const auto size = static_cast<int64_t>(content.size());
  return HostArray::owned(DType::U8, {size}, std::move(content));
}

const char* wrong_member_name(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.find('\0') != name.npos) return "has a NUL in it";
  if (name.front() == '/') return "is an absolute path";
  if (name.find('\\') != name.npos) return "has a backslash, which is a path elsewhere";
  if (name.size() > 1 && name[1] == ':') return "begins with a drive";
  for (size_t at = 0; at <= name.size();) {
    const size_t slash = std::min(name.find('/', at), name.size());
    if (name.substr(at, slash - at) == "..") return "leads out of its folder";
    at = slash + 1;
  }
  return nullptr;
}

}  // namespace weft
