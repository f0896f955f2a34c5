// Simplification shared by all stages: identities that hold bit for bit, and masks that become
// proofs.
#pragma once
#include <span>
#include <vector>

#include "weft/rewrite/rule_set.h"

namespace weft {

/// The simplest equal term: data, bool, index and masks. For kernels and index expressions (nodes
/// of rank 0); on tensor graphs use simplify_data, which never changes the terms that shapes are
/// made of. Rules named by WEFT_RULES in the current Context are left out.
NodeRef simplify(Graph& g, NodeRef root);
NodeRef simplify_data(Graph& g, NodeRef root);

/// An index that matters only where `valid` (bool) holds.
struct GatedIndex {
  NodeRef index, valid;
};
/// The same access, simpler: the index may change where valid is false; conditions that follow from
/// the others or from the bounds are gone (valid is then the constant true when nothing is left).
GatedIndex simplify_with_valid(Graph& g, GatedIndex gated);
/// The members of a conjunction, left to right, each once; and back (true of none).
std::vector<NodeRef> conjuncts(NodeRef valid);
NodeRef conjunction(Graph& g, std::span<const NodeRef> parts);

/// Arithmetic and comparisons of bools as logic: one of the sets, for machines without the ops.
RuleList<> bool_arithmetic_rules();

/// The catalogue of this room's rules.
std::vector<RuleSetRow> simplify_rule_sets();

}  // namespace weft
