// Rules as theorems: each domain of a rule goes down a ladder until something is decided.
#pragma once
#include <map>
#include <span>
#include <string>

#include "weft/base/function_ref.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

/// True when libz3 was there at build time.
bool has_prover();

/// What is known of a rule: "index:int bits:bv8 float:random" or "refuted (index: c0 = 0 ...)".
///   int   proved for all integers        grid   proved for all integers, constants on a grid
///   bool  proved for both values         bv8    proved for all 8-bit values, signed and unsigned
///   bv8_grid  the same, constants on a grid
///   fp8   proved for all 8-bit floats (4 exponent bits)
///   random  only tested                  code   the right side is code: only tested
std::string prove(const RuleEntry& entry);

/// tests/rules/proofs.lock: a line per rule, "name hash verdict".
struct LockRow {
  std::string hash, verdict;
};
std::map<std::string, LockRow> read_lock(const std::string& text);
std::string lock_text(const std::map<std::string, LockRow>& rows);
/// Of its text: changes whenever what is proved does.
std::string hash_of(const Rule& rule);

/// docs/rules.md. `verdict` says what is known of a rule.
std::string rules_markdown(std::span<const RuleSetRow> sets,
                           FunctionRef<std::string(const Rule&)> verdict);

}  // namespace weft
