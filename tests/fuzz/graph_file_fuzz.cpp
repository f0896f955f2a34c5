// libFuzzer entry for graph files.
#include <cstdint>

#include "tests/support/graph_forms.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::try_graph_file({reinterpret_cast<const std::byte*>(data), size});
  return 0;
}
