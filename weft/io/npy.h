// NPY: NumPy's array files, as a strict subset: plain numbers, C order, no Python inside.
#pragma once

#include <string>
#include <string_view>

#include "weft/io/host_array.h"

namespace weft {

// The result is a view of the mapped file.
HostArray read_npy(const std::string& path);
// The same from bytes; `what` names them in errors. The array is a view of `data`.
HostArray parse_npy(std::span<const std::byte> data, std::string_view what,
                    std::shared_ptr<const void> owner = nullptr);

// Format version 1.0, atomically; numpy.load() reads it. bf16 has no NumPy type and is refused.
void save_npy(const std::string& path, const HostArray& array);

}  // namespace weft
