// Decompressed copies of files, kept in the cache directory and checked against their source.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"

namespace weft {

class Context;
class MappedFile;

struct InflatedCopy {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

// The content of a gzip file: mapped from the cache when a copy made from this source (path, size,
// modification time, checksum) is there and intact, else inflated and, if possible, cached. A cache
// that cannot be read or written only costs time.
InflatedCopy inflated_copy(
    const MappedFile& source, Context& context,
    FunctionRef<std::vector<std::byte>(std::span<const std::byte>, std::string_view)> inflate);

}  // namespace weft
