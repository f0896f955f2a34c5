// What a buffer holds, wherever its memory is.
#pragma once
#include <vector>

#include "weft/device/device.h"

namespace weft::testing {

inline std::vector<std::byte> bytes_of(const std::shared_ptr<Buffer>& buffer) {
  std::vector<std::byte> bytes(static_cast<size_t>(buffer->bytes()));
  buffer->device().copy_out(bytes, {buffer.get()});
  return bytes;
}

}  // namespace weft::testing
