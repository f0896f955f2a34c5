#include "tests/trust/planted_rules.h"

// As planted_support.cpp does with the rules: the step that gives kernels an order.
#define linearise compilers_linearise
#include "weft/lower/linearise.cpp"
#undef linearise

namespace weft::lower {

LinearProgram linearise(Analysis& of, const Target& target) {
  LinearProgram program = compilers_linearise(of, target);
  if (test::is_planted(test::PlantedPass::NoBarriers))
    std::erase_if(program.code, [](NodeRef n) { return n->op == Op::Barrier; });
  return program;
}

}  // namespace weft::lower
