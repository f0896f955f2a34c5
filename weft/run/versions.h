// Versions: a program for any length, scheduled apart for short lengths and for long ones.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/run/compiled_schedule.h"
#include "weft/run/normalise.h"

namespace weft {

/// A program where its length lies in a part of its range.
struct Version {
  NormalForm form;  ///< without calls
  Origins origins;  ///< of its nodes: those of the program for all lengths
  std::string variable;
  int64_t least, most;
};

/// All lengths in parts: what is shorter than a vector, than a few, and all others, which want
/// other loops, vectors and copies. None for programs of several lengths, for large ones, for
/// machines without vectors, and where all machines are to give the same bits. With `constants`
/// two parts, below a vector and above: products by what is packed once have tiles of few rows.
std::vector<Version> versions_of(Graph& graph, const NormalForm& form, const Target& target,
                                 bool constants = false);

/// One schedule of all: of each version its steps, where the length is one of it. `form`: the
/// program for all lengths, of which `compiled` has the versions in order. `constants`: by input
/// slot, as the schedules know them; what steps make of these alone is there once, for all lengths.
/// Nothing where there is no version, or where one makes of constants what the last one, for the
/// longest, does not: that would be held beside it.
std::optional<CompiledSchedule> joined(Graph& graph, const NormalForm& form,
                                       std::span<const Version> versions,
                                       std::span<const CompiledSchedule> compiled,
                                       const std::vector<bool>& constants = {});

}  // namespace weft
