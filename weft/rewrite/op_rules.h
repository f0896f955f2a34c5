// OpRules: what a step makes of the nodes of each op, as a table of named rules. For steps that
// build every node anew and of which the op alone says how: finding a rule costs what a switch
// does.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "weft/base/small_vector.h"
#include "weft/rewrite/rule_set.h"
#include "weft/rewrite/trace.h"

namespace weft {

/// `make` is a member of the step, which knows what became of a node's sources.
template <class Make>
struct OpRule {
  Rule rule;
  Make make;
};

/// on(Op::Load, "load.width", &Step::typed_load)
template <class Make>
consteval OpRule<Make> on(Op op, const char* name, Make make, const char* file = __builtin_FILE(),
                          int line = __builtin_LINE()) {
  detail::check_lhs(name, pat::op(op));
  return {{name, file, line, pat::kAny, true, pat::op(op), {}, {}}, make};
}
/// Of all ops that no other rule of the table is for.
template <class Make>
consteval OpRule<Make> otherwise(const char* name, Make make, const char* file = __builtin_FILE(),
                                 int line = __builtin_LINE()) {
  detail::check_lhs(name, pat::x);
  return {{name, file, line, pat::kAny, true, pat::x, {}, {}}, make};
}

template <class Make>
class OpRules {
 public:
  /// One rule for each op; the last one is for all others. Named and described for the catalogue.
  template <size_t N>
  consteval OpRules(const char* name, const char* note, const OpRule<Make> (&rules)[N])
      : rules_(rules), name_(name), note_(note) {
    for (uint8_t& i : by_op_) i = N - 1;
    for (size_t i = 0; i + 1 < N; ++i) {
      uint8_t& at = by_op_[rules[i].rule.lhs.node[0].op];
      if (at != N - 1) throw "rewrite rule: two rules of a table are for one op";
      at = static_cast<uint8_t>(i);
    }
  }

  const OpRule<Make>& operator[](Op op) const { return rules_[by_op_[static_cast<uint8_t>(op)]]; }

  RuleSetRow row() const {
    RuleSetRow row{name_, {}, note_};
    for (const OpRule<Make>& r : rules_) row.entries.push_back({&r.rule, nullptr, nullptr, true});
    return row;
  }

 private:
  std::span<const OpRule<Make>> rules_;
  const char *name_, *note_;
  uint8_t by_op_[256] = {};
};

/// Applies the table to nodes in order: `apply(make, n)` gives the image of `n`, null where it has
/// none of its own.
template <class Make, class Apply>
void translate(const OpRules<Make>& rules, std::span<const NodeRef> order, Apply&& apply) {
  RewriteTrace* trace = RewriteTrace::current();
  for (NodeRef n : order) {
    const OpRule<Make>& rule = rules[n->op];
    NodeRef made = apply(rule.make, n);
    if (trace && made != n) trace->steps.push_back({&rule.rule, n, made ? made : n});
  }
}

/// A step of one image for each node. Its rules are members of what derives from it.
class OpStep {
 public:
  /// The image of the last node.
  template <class Step>
  NodeRef run(const OpRules<NodeRef (Step::*)(NodeRef)>& rules) {
    translate(rules, order_.nodes(), [this](auto make, NodeRef n) {
      return images_[order_.index(n)] = (static_cast<Step*>(this)->*make)(n);
    });
    return images_.back();
  }

 protected:
  OpStep(Graph& g, const NumberedOrder& order) : g_(g), order_(order), images_(order.size()) {}

  NodeRef image(NodeRef n) const { return images_[order_.index(n)]; }
  SmallVector<NodeRef, 8> sources(NodeRef n) const {
    SmallVector<NodeRef, 8> src;
    for (NodeRef s : n->src()) src.push_back(image(s));
    return src;
  }

  /// The image of nodes that are none of a step's business.
  NodeRef kept(NodeRef n) { return g_.with_sources(n, sources(n)); }

  Graph& g_;

 private:
  const NumberedOrder& order_;
  std::vector<NodeRef> images_;
};

}  // namespace weft
