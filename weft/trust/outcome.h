// What becomes of a program: run as users run it, in a process of its own, beside the oracle.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/target/target.h"
#include "weft/trust/random_graph.h"

namespace weft {

class Context;
struct Options;

namespace trust {

struct Outcome {
  enum class Kind : uint8_t { Passed, Wrong, Error, Crash, Hang };
  Kind kind = Kind::Passed;
  std::string code = {};  ///< of an Error; the signal's number of a Crash
  std::string what = {};  ///< the difference, the message

  bool passed() const { return kind == Kind::Passed; }
  /// Whether it fails as `other` does: wrong values are wrong values, errors have one code.
  bool like(const Outcome& other) const { return kind == other.kind && code == other.code; }
  std::string text() const;  ///< "wrong: value 0, element 3: got 5, expected 4 (2 of 6 differ)"
};

/// Whether every machine has to give the same bits: sums of floats are of integers that the dtype
/// holds exactly in any order, and no function is approximate.
bool is_exact(const RandomGraph& program);

/// The target that CHECK:CUDA names, an Error where there is none of that name; nothing for another
/// device.
std::optional<Target> target_without_machine(Context& context, std::string_view device);

/// Executes the kernels by instruction (checked_run.h), realizes the roots in a context of
/// `options`, for each binding, and compares both with the oracle: bit
/// for bit, but where kernels may round otherwise (sums of floats that are not exact, approximate
/// functions) within half of the dtype's digits. The device CHECK:CUDA (OPENCL, HIP, METAL, PTX,
/// WGSL) is a machine that need not be here: its kernels are executed by instruction alone.
/// Elsewhere, with WEFT_JIT, the program is captured and replayed as well (captured_run.h).
Outcome run_here(const RandomGraph& program, const Options& options);

struct Isolation {
  std::chrono::milliseconds limit{20'000};
};
/// `run` in a forked process: it may crash and hang. The calling process must have started no
/// thread.
Outcome run_apart(FunctionRef<Outcome()> run, const Isolation& isolation = {});
/// Values of options, by WEFT_ name, over those that were there.
using Settings = std::vector<std::pair<std::string, std::string>>;
constexpr int kCannotStart = 127;
/// A command with these in its environment: Passed where it exits with 0, an Error whose code is
/// its status elsewhere (kCannotStart: there is no such program). `quiet`: what it prints goes
/// nowhere.
Outcome run_words(std::span<const std::string> words, const Settings& settings, bool quiet,
                  const Isolation& isolation);
/// run_here() in a process of its own.
Outcome run_program(const RandomGraph& program, const Options& options,
                    const Isolation& isolation = {});

}  // namespace trust
}  // namespace weft
