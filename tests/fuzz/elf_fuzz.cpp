// Object files: whatever the bytes, the loader throws an Error or loads something it can free.
#include <cstddef>
#include <cstdint>
#include <span>

#include "weft/base/error.h"
#include "weft/device/elf.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    weft::CodeObject::load(std::as_bytes(std::span(data, size)));
  } catch (const weft::InternalError&) {
    throw;
  } catch (const weft::Error&) {
    return 0;
  }
  return 0;
}
