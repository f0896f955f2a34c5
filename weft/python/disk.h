// "DISK:path": tensors that are files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "weft/tensor/tensor.h"

namespace weft::python {

/// The path in "DISK:path" or "disk:path"; none for other devices.
std::optional<std::string> disk_path(std::string_view device);
/// The path of the file that x is or is a view of.
std::optional<std::string> disk_path(const Tensor& x);

/// The first bytes of a file as a tensor; a file that is shorter grows.
Tensor tensor_on_disk(const std::string& path, DType dtype, const Dims& shape);
/// From here on x, whose elements are all of a file's, says so.
void note_file(const Tensor& x, const std::string& path);
/// x written to a file, as the tensor that is this file.
Tensor stored_on_disk(const Tensor& x, const std::string& path);
/// After a write to x: to its file, too, if it is one.
void write_to_disk(const Tensor& x);

}  // namespace weft::python
