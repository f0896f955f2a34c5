// Prove or mask: an access whose index is not proved to lie inside its param gets a mask.
#include "weft/lower/steps.h"
#include "weft/rewrite/op_rules.h"
#include "weft/simplify/inequality.h"

namespace weft::lower {
namespace {

/// Of the param, or of what a group shares.
NodeRef size_of(NodeRef memory) {
  while (memory->op == Op::Barrier) memory = memory->src(0);
  return memory->src(0);
}

class AccessGuard : public OpStep {
 public:
  AccessGuard(Graph& g, const NumberedOrder& order, AccessBounds& counted)
      : OpStep(g, order), counted_(counted) {}

  using Make = NodeRef (AccessGuard::*)(NodeRef);
  NodeRef guard_load(NodeRef n) { return guarded(kept(n), 2); }
  NodeRef guard_store(NodeRef n) { return guarded(kept(n), 3); }
  NodeRef make_other(NodeRef n) { return kept(n); }

 private:
  NodeRef guarded(NodeRef access, size_t mask_at) {
    NodeRef index = access->src(1), size = size_of(access->src(0));
    // Of a word of several elements the last one counts.
    if (access->op == Op::Load)
      size = g_.add(size, g_.index(1 - bits(access->dtype) / bits(access->src(0)->dtype)));
    NodeRef mask = access->nsrc > mask_at ? access->src(mask_at) : nullptr;
    const bool proved = is_proved(index, size, mask ? mask : g_.boolean(true));
    ++(proved ? counted_.proved : counted_.tested);
    if (proved) return access;
    SmallVector<NodeRef, 8> src(access->src());
    if (src.size() <= mask_at) src.resize(mask_at + 1);
    NodeRef inside = g_.logical_and(g_.lt(g_.index(-1), index), g_.lt(index, size));
    src[mask_at] = mask ? g_.logical_and(mask, inside) : inside;
    return g_.with_sources(access, src);
  }
  bool is_proved(NodeRef index, NodeRef size, NodeRef mask) {
    if (index->vmin >= 0 && index->vmax < size->vmin) return true;
    return is_int_const(mask, 0) || Inequality(g_, mask).inside(index, size);
  }

  AccessBounds& counted_;
};

constexpr OpRule<AccessGuard::Make> kRules[] = {
    on(Op::Load, "load.guarded", &AccessGuard::guard_load),
    on(Op::Store, "store.guarded", &AccessGuard::guard_store),
    otherwise("any.guarded", &AccessGuard::make_other),
};
constexpr OpRules kGuardRules("guard accesses",
                              "Lowering: an access that is not proved to be in range gets a mask.",
                              kRules);

}  // namespace

NodeRef guard_accesses(Graph& g, Analysis& of, AccessBounds& counted) {
  return AccessGuard(g, of.order(), counted).run(kGuardRules);
}

RuleSetRow guard_rules() { return kGuardRules.row(); }

}  // namespace weft::lower
