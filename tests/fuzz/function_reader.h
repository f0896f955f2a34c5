// Captured functions as one more reader of untrusted bytes: apart, as it needs all of the compiler.
#pragma once

#include "tests/fuzz/file_readers.h"
#include "weft/io/functions.h"

namespace weft {

inline constexpr FileReader kFunctionReader = {
    "function", [](std::span<const std::byte> data) {
      const CapturedFunction f = parse_function(data, "fuzz");
      uint64_t hash = f.results.size();
      for (const auto& place : f.places)
        if (place.state.defined()) hash = hash_combine(hash, hash_text(place.state.dims().text()));
      return hash_combine(hash, function_bytes(f).size());
    }};

}  // namespace weft
