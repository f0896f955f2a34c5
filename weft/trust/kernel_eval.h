// Two slow ways to run a kernel: from its graph, by the definition of each op, and as a linear
// program.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "weft/graph/program.h"

namespace weft::trust {

using Buffers = std::vector<std::vector<Value>>;  // by param slot
using Variables = std::map<std::string, int64_t>;

/// What a kernel's graph means (docs/design/ir.md section 2): every store for every value of its
/// open ranges, loads see the buffers as they were.
Buffers run_kernel(NodeRef sink, const Buffers& buffers, const Variables& variables = {});

/// An index expression over variables as a number.
int64_t index_value(NodeRef n, const Variables& variables);

/// How many nodes run_kernel evaluates for one value of n: it keeps none, so what is shared counts
/// every time and nested reductions multiply.
double evaluation_steps(NodeRef n);

/// Executes a linear program's instructions one by one; throws on an access out of bounds and on
/// ops that lowering must have removed. The core range runs over [begin, end); end < 0 is all of
/// it. Of a program of groups, all items run from barrier to barrier: it throws where two touch the
/// same local memory in between and one of them writes, where some is read that nobody has
/// written, and where items wait at different barriers.
Buffers run_program(const LinearProgram& program, const Buffers& buffers,
                    const Variables& variables = {}, int64_t begin = 0, int64_t end = -1);

}  // namespace weft::trust
