// A model written and read again, for tests.
#pragma once

#include <memory>

#include "weft/onnx/write.h"

namespace weft::onnx {

inline Model written_and_read(const Model& m) {
  const auto bytes = std::make_shared<std::vector<std::byte>>(onnx_bytes(m));
  return parse_onnx(*bytes, "written", bytes);
}

}  // namespace weft::onnx
