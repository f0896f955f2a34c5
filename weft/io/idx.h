// IDX: the array format of MNIST and its successors, plain or gzipped.
#pragma once

#include <string>
#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

class Context;

// Reads any rank and element type. The file's numbers are big-endian; the result's are the host's.
// A gzipped file is inflated once: the copy lies in the cache directory, is tied to this very
// source (path, size, time, checksum) and is verified before use. Without a usable cache directory
// the content is inflated into memory each time.
HostArray read_idx(const std::string& path, Context& context);
HostArray read_idx(const std::string& path);  // in the current context

// The same from bytes, without any file or cache. The result has memory of its own.
HostArray parse_idx(std::span<const std::byte> data, std::string_view what);

}  // namespace weft
