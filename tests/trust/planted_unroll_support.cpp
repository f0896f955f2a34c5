#include "tests/trust/planted_rules.h"

// As planted_support.cpp does with the rules: a step of lowering that nothing goes without.
#define unroll compilers_unroll
#include "weft/lower/unroll.cpp"
#undef unroll

namespace weft {

namespace lower {
NodeRef unroll(Graph& g, Analysis& of, const Target& target) {
  return test::doubled(g, compilers_unroll(g, of, target), test::PlantedPass::Unroll);
}
}  // namespace lower

}  // namespace weft
