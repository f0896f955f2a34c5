// Tensors that are files ("DISK:path"): mapped and read where they are used, written whole when
// they change.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weft/io/host_memory.h"

namespace weft {

/// The elements of a file from `offset` bytes on, mapped: what is not used is not read. `shape`
/// none: (n), all that are there. Views, bitcasts and offsets stay in the file; aligned to their
/// elements they are used without a copy. A file that another process cuts short afterwards is an
/// Error (file.shrunk) of what uses it. Errors: disk.size where the file has fewer bytes, and those
/// of MappedFile.
///
///     const Tensor weights = tensor_from_file("weights.bin", DType::F32);
///     const Tensor row = weights.reshape({1000, 64}).index({Index(3)});
Tensor tensor_from_file(const std::string& path, DType dtype = DType::U8, uint64_t offset = 0,
                        const std::optional<Dims>& shape = std::nullopt);

/// A tensor that is a file: made or grown where it is missing or smaller (new bytes are 0).
Tensor tensor_on_disk(const std::string& path, DType dtype, const Dims& shape);
/// x's elements written to the start of a file, and a tensor that is it.
Tensor stored_on_disk(const Tensor& x, const std::string& path);
/// After x, or a view of it, was written: brings the file that it is up to date. Of what did not
/// change nothing is written. No file: does nothing.
void write_to_disk(const Tensor& x);

/// The path in "DISK:path" or "disk:path"; none for other devices.
std::optional<std::string> disk_path(std::string_view device);
/// The file that x, or what it is a view of, is.
std::optional<std::string> disk_path(const Tensor& x);
// From now on it only began as a file: what is written to it stays in memory.
void leave_disk(const Tensor& x);

}  // namespace weft
