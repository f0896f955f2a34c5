// A program with its inputs: what a repro file holds, and what is reduced.
#pragma once

#include "weft/run/repro_file.h"
#include "weft/trust/outcome.h"

namespace weft::trust {

/// The graph of `repro`, in `graph`, and inputs: those of the file, small integers made from its
/// seed where it has none. An Error where data do not fit their param.
RandomGraph program_of(Graph& graph, const Repro& repro);

/// A file of `program`, whose first binding it takes, with all data: nothing of them is a user's.
Repro repro_of(const RandomGraph& program, const Options& options, const Outcome& outcome);

/// The same with params numbered from 0 in order of use, and no inputs that nothing reads.
RandomGraph compacted(Graph& graph, const RandomGraph& program);

/// How many lines print_graph() takes for it.
size_t lines_of(const RandomGraph& program);

}  // namespace weft::trust
