// Tar archives (v7, ustar, pax, GNU's long names), read and never written to disk: the bytes of the
// regular files by name. Formats: POSIX.1-2017 pax, "ustar Interchange Format"; GNU tar's manual,
// "Basic Tar Format".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weft/io/archive.h"

namespace weft {

/// Regular files as bytes (u8), in the archive's order; views of it. Folders, links and devices are
/// left out. Sparse files, two files of a name, names that lead elsewhere, checksums that are wrong
/// and archives without an end are Errors.
std::vector<NamedArray> untar(std::span<const std::byte> data, std::string_view what,
                              std::shared_ptr<const void> owner = nullptr,
                              const UnpackLimits& limits = {});

/// Also of a .tar.gz or .tar.zst, which is unpacked into memory.
std::vector<NamedArray> read_tar(const std::string& path, const UnpackLimits& limits = {});

}  // namespace weft
