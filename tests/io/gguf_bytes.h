// GGUF files made by hand, right or wrong.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tests/io/safetensors_bytes.h"

namespace weft {

inline std::string u32_bytes(uint32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof(value)};
}
inline std::string text_bytes(std::string_view text) {
  return u64_bytes(text.size()) + std::string(text);
}

struct GgufFile {
  explicit GgufFile(uint32_t v) : version(v) {}

  uint32_t version;
  uint64_t tensors = 0, pairs = 0;
  std::string header;  // behind the counts
  std::string data;    // behind the padding

  std::string bytes() const {
    std::string all = "GGUF" + u32_bytes(version) + u64_bytes(tensors) + u64_bytes(pairs) + header;
    if (!data.empty()) all.resize((all.size() + 31) / 32 * 32);
    return all + data;
  }
};

inline std::string one_pair(std::string_view key, uint32_t type, const std::string& value) {
  GgufFile file(3);
  file.pairs = 1;
  file.header = text_bytes(key) + u32_bytes(type) + value;
  return file.bytes();
}

/// Sizes in the file's order, the last axis first.
inline std::string tensor_bytes(std::string_view name, const std::vector<uint64_t>& sizes,
                                uint32_t type, uint64_t offset) {
  std::string out = text_bytes(name) + u32_bytes(static_cast<uint32_t>(sizes.size()));
  for (const uint64_t size : sizes) out += u64_bytes(size);
  return out + u32_bytes(type) + u64_bytes(offset);
}

inline std::string one_tensor(const std::vector<uint64_t>& sizes, uint32_t type, uint64_t offset,
                              size_t data_bytes) {
  GgufFile file(3);
  file.tensors = 1;
  file.header = tensor_bytes("t", sizes, type, offset);
  file.data = std::string(data_bytes, 'd');
  return file.bytes();
}

}  // namespace weft
