// Patterns to register programs, with commuted forms written out.
#pragma once
#include <vector>

#include "weft/rewrite/rule_set.h"

namespace weft {

struct MatchStep {
  enum Code : uint8_t {
    Load,     ///< reg[to] = reg[from]->src(index)
    IsOp,     ///< reg[from] has op `index`
    Sources,  ///< reg[from] has exactly `index` sources
    Same,     ///< reg[from] is reg[to]
    HasDType,
    Literal,  ///< reg[from] is the literal of left-side node `index`
  };
  Code code;
  uint8_t from, to, index;
};

/// One form of one rule.
struct RuleProgram {
  static constexpr uint8_t kUnbound = 0xff;

  const RuleEntry* entry = nullptr;
  uint32_t first_step = 0;  ///< in the table's common list
  uint16_t steps = 0, rule_index = 0;
  uint8_t root_op = 0;               ///< 0: any
  uint8_t source_op[3] = {0, 0, 0};  ///< what the bitsets test; 0: any
  Domain domain = pat::kAny;
  bool of_operands = false;   ///< the domain can be told from the dtype of the root's operands
  bool same_sources = false;  ///< the root's first two sources are one variable
  uint8_t reg_of[kPatSlots];  ///< where each variable is found
};

/// Appends the forms of a rule (at most 8) and their steps; true when there would be more.
bool compile_pattern(const RuleEntry& entry, std::vector<RuleProgram>& programs,
                     std::vector<MatchStep>& steps);

}  // namespace weft
