// Any bytes for any reader: an Error or a result that lies inside the input.
#include <cstdint>

#include "tests/fuzz/file_readers.h"
#include "weft/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  try {
    weft::kFileReaders[data[0] % std::size(weft::kFileReaders)].read(bytes);
  } catch (const weft::InternalError&) {
    throw;
  } catch (const weft::Error&) {
    return 0;
  }
  return 0;
}
