// Patterns to register programs, with commuted forms written out.
#pragma once
#include <utility>
#include <vector>

#include "weft/rewrite/rule_set.h"

namespace weft {

struct MatchStep {
  enum Code : uint8_t {
    Load,     ///< reg[to] = reg[from]->src(index)
    IsOp,     ///< reg[from] has op `index`
    Sources,  ///< reg[from] has exactly `index` sources
    SourcesAtLeast,
    Same,  ///< reg[from] is reg[to]
    HasDType,
    FirstInt,
    Literal,  ///< reg[from] is the literal of left-side node `index`
  };
  Code code;
  uint8_t from, to, index;
};

/// One form of one rule.
struct RuleProgram {
  const RuleEntry* entry = nullptr;
  uint16_t rule_index = 0;
  uint8_t root_op = 0;               ///< 0: any
  uint8_t source_op[3] = {0, 0, 0};  ///< what the bitsets test; 0: any
  Domain domain = pat::kAny;
  std::vector<MatchStep> steps;
  std::vector<std::pair<uint8_t, uint8_t>> bound;  ///< (slot, register)
  std::vector<uint8_t> domain_slots;               ///< x y z w c0..c3 that are bound
};

/// At most 8 forms per rule; `capped` tells when there would be more.
std::vector<RuleProgram> compile_pattern(const RuleEntry& entry, bool& capped);

}  // namespace weft
