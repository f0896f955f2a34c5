// Which weft this is.
#pragma once

#include <cstdint>

namespace weft {

constexpr const char* kVersion = "0.1.0";

// Differs between any two builds whose code differs: part of every on-disk cache key.
uint64_t build_id();
// Whether it does where only the code differs: the linker has left an id in what it made.
bool has_build_id();

}  // namespace weft
