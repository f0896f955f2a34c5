// The `weft` command as a function, so that tests can call it: arguments in, exit code out.
#pragma once

#include <cstdio>
#include <span>

namespace weft {

constexpr int kExitOk = 0;
constexpr int kExitFailure = 1;        // the work failed; the reason is on `err`
constexpr int kExitUsage = 2;          // the command line is wrong
constexpr int kExitInterrupted = 130;  // Ctrl-C, after saving

// `arguments` as main() gets them, the program's name first. Errors are printed once, to `err`.
int run_app(std::span<const char* const> arguments, std::FILE* out, std::FILE* err);

/// Where input, output or errors were closed, the next file that is opened would have their number,
/// and get what is printed: they become /dev/null.
void open_standard_files();

}  // namespace weft
