#include "weft/simplify/simplify.h"

#include "weft/base/context.h"
#include "weft/rewrite/driver.h"
#include "weft/simplify/rule_tables.h"

namespace weft {
namespace {

RuleList<> data_rules() {
  return arithmetic_rules() + bool_rules() + select_rules() + cast_rules();
}
RuleList<> all_rules() { return data_rules() + index_rules() + gated_rules(); }

/// The sets of one Context, without the rules it switches off.
struct SimplifySets {
  RuleSet<> all, data, ungated;

  explicit SimplifySets(const Context& context)
      : all("simplify", all_rules(),
            {.normal = NormalBit::Simplify, .switched_off = context.options().rules}),
        data("simplify.data", data_rules(),
             {.normal = NormalBit::SimplifyData, .switched_off = context.options().rules}),
        ungated("simplify.ungated", data_rules() + index_rules(),
                {.normal = NormalBit::SimplifyUngated, .switched_off = context.options().rules}) {}
};

}  // namespace

NodeRef simplify(Graph& g, NodeRef root) {
  return rewrite_fixpoint(g, root, Context::current().get<SimplifySets>().all);
}
NodeRef simplify_data(Graph& g, NodeRef root) {
  return rewrite_fixpoint(g, root, Context::current().get<SimplifySets>().data);
}
NodeRef simplify_ungated(Graph& g, NodeRef root) {
  return rewrite_fixpoint(g, root, Context::current().get<SimplifySets>().ungated);
}

std::vector<RuleSetRow> simplify_rule_sets() {
  return {
      catalogue_row("arithmetic", arithmetic_rules(), "Data numbers."),
      catalogue_row("bool", bool_rules(), "Bits, bools and comparisons."),
      catalogue_row("select", select_rules(), "where(condition, a, b)."),
      catalogue_row("cast", cast_rules(), "Conversions."),
      catalogue_row("index", index_rules(),
                    "Index arithmetic beyond the normal form that constructors give."),
      catalogue_row("gated", gated_rules(), "Masked loads and stores."),
  };
}

}  // namespace weft
