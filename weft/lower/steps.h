// The steps of lowering, in the order lower.cpp runs them; each takes a kernel's sink, with what is
// known of it, and returns the next one.
#pragma once
#include <string>

#include "weft/graph/program.h"
#include "weft/lower/analysis.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

struct Target;

namespace lower {

/// 8-bit floats are gone: bytes in memory, f32 in between.
NodeRef small_floats(Graph& g, Analysis& of, const Target& target);
/// Ranges of grid and group are gone, stages and reductions across a group go through local memory.
/// Targets without groups run such ranges as loops.
NodeRef stage_local(Graph& g, Analysis& of, const Target& target);
/// Every access is in range wherever its mask holds: what is not proved is tested. Adds to
/// `counted`.
NodeRef guard_accesses(Graph& g, Analysis& of, AccessBounds& counted);
/// Loops that only fold a mask's zeros run no iterations.
NodeRef skip_masked(Graph& g, Analysis& of);
/// Unroll ranges are gone: whatever depends on them is there once per combination of their values.
NodeRef unroll(Graph& g, Analysis& of, const Target& target);
/// Vector ranges are gone: whatever depends on one has lanes, accesses of stride 1 are vector
/// accesses.
NodeRef vectorise(Graph& g, Analysis& of, const Target& target);
/// A part of it: of the vectors gathered lane by lane, those of what lies down the columns of some
/// rows become these rows, transposed.
NodeRef transpose_loads(Graph& g, NodeRef sink, std::span<const NodeRef> gathered,
                        const Target& target);
/// The other way round, of stores to param memory: vectors whose lanes go to one row each, where
/// others go beside them, become pieces of these rows.
NodeRef transpose_stores(Graph& g, NodeRef sink, const Target& target);
/// Short vectors that are loaded side by side, and whose lanes are spread over longer ones, are
/// loaded as one.
NodeRef join_loads(Graph& g, Analysis& of, const Target& target);
/// Tile ranges are gone: sums over them are a matrix unit's, or loops.
NodeRef tile_products(Graph& g, Analysis& of, const Target& target);
/// Of reductions in two loops, the second goes on with the accumulators of the first.
NodeRef continue_folds(Graph& g, Analysis& of, const Target& target);
/// A store that does not depend on the Core range happens in that range's first iteration only.
NodeRef guard_core(Graph& g, Analysis& of);
/// dtype index is gone: i32 where the bounds of the value and of all it is computed from prove it,
/// else i64. Sums are ordered from outer to inner loops, so that their beginnings can leave the
/// inner ones.
NodeRef choose_widths(Graph& g, Analysis& of);
/// Only ops and dtypes the target has are left.
NodeRef decompose(Graph& g, Analysis& of, const Target& target);
/// Every range runs in exactly one place of the program: loops that cannot be shared get ranges of
/// their own.
NodeRef separate_loops(Graph& g, Analysis& of);
/// The instructions in order, in a graph of their own.
LinearProgram linearise(Analysis& of, const Target& target);
/// Fills in flops and bytes; the nodes of the kernel say how large its params are.
void estimate_work(LinearProgram& program, std::span<const NodeRef> kernel);

/// What the steps do by op, for the catalogue.
RuleSetRow group_rules();
RuleSetRow float8_rules();
RuleSetRow guard_rules();
RuleSetRow skip_rules();
RuleSetRow unroll_rules();
RuleSetRow vector_rules();
RuleSetRow tile_rules();
RuleSetRow continue_rules();
RuleSetRow width_rules();
RuleSetRow place_rules();

}  // namespace lower
}  // namespace weft
