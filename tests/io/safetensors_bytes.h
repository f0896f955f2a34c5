// Safetensors files made by hand, right or wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

inline std::string u64_bytes(uint64_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}

inline std::string safetensors_bytes(std::string_view header, size_t data_bytes) {
  return u64_bytes(header.size()) + std::string(header) + std::string(data_bytes, '\x11');
}

}  // namespace weft
