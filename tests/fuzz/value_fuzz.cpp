// Any text for any dtype: parse() refuses it or what it gives prints and parses back to itself.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "weft/dtype/value.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const auto dtype = static_cast<weft::DType>(data[0] % weft::kDTypeCount);
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto value = weft::Value::parse(dtype, text);
  if (value && weft::Value::parse(dtype, value->text()) != value) std::abort();
  return 0;
}
