// Failing programs made small and kept as repro files.
#pragma once
#include "weft/base/options.h"
#include "weft/trust/bisect.h"
#include "weft/trust/commands.h"
#include "weft/trust/program.h"

namespace weft::trust {

/// A program, how it is run and what becomes of it.
struct Case {
  RandomGraph program;
  Options options;
  Outcome outcome;
};

Options with_settings(Options options, const Settings& settings);

/// The smallest program that fails like `failing`; where `without` is given, only what passes with
/// those settings counts.
Case reduced(Graph& graph, const Case& failing, const Isolation& isolation,
             const Settings* without = nullptr);

/// Writes it to `path` and prints it: the outcome, then the graph.
void keep(const Printer& printer, const Case& small, const std::string& path);

/// "a/b.small.repro" of "a/b.repro".
std::string small_path(const std::string& path);

inline Isolation isolation_of(double seconds) {
  return {std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000))};
}

}  // namespace weft::trust
