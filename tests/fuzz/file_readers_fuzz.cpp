// Any bytes for every reader: an Error or a result that lies inside the input.
#include <cstdint>

#include "tests/fuzz/file_readers.h"
#include "weft/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const weft::FileReader& reader : weft::kFileReaders) {
    try {
      reader.read(std::as_bytes(std::span(data, size)));
    } catch (const weft::InternalError&) {
      throw;
    } catch (const weft::Error&) {
      continue;
    }
  }
  return 0;
}
