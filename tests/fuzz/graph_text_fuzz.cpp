// libFuzzer entry for the text form of graphs.
#include <cstdint>

#include "tests/support/graph_forms.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::try_graph_text({reinterpret_cast<const char*>(data), size});
  return 0;
}
