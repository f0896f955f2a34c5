// Lets GoogleTest print the oracle's arrays.
#pragma once
#include <ostream>

#include "weft/eval/array.h"

namespace weft::eval {
inline void PrintTo(const Array& a, std::ostream* out) { *out << a.text(); }
}  // namespace weft::eval
