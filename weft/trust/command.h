// weft-trust: `weft repro`, `weft bisect` and `weft fuzz`, in a program of their own because the
// oracle is no part of what ships as a library.
#pragma once
#include <cstdio>
#include <span>

namespace weft::trust {

/// The program: prints to `out` and `err`, returns its exit code. 0 passed, 1 something fails, 2
/// wrong command line.
int run_trust(std::span<const char* const> arguments, std::FILE* out, std::FILE* err);

}  // namespace weft::trust
