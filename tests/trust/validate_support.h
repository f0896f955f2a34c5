// Translation validation: whether what a step of the compiler leaves computes what it was given to.
#pragma once
#include <map>
#include <span>
#include <string>
#include <vector>

#include "weft/graph/node.h"
#include "weft/trust/kernel_eval.h"

namespace weft {
struct Target;
}

namespace weft::test {

struct Validated {
  enum class Verdict : uint8_t {
    Proved,   ///< for all that inputs may hold
    Refuted,  ///< `why` has inputs, which were run, for which it computes something else
    Unknown   ///< beyond the theory: samples agree where it can be run at all
  };
  std::string step, subject;  ///< "lower.unroll", of the kernel "add_8"
  Verdict verdict;
  std::string why;
  std::string text() const;
};

/// What a step may take before it is called unknown; both are counts, the same on every machine.
struct ValidateLimits {
  unsigned resources = 3'000'000;  ///< Z3's own count, of a question
  int64_t steps = 200'000;         ///< of following what a state computes
};

/// False where this build has no Z3.
bool can_validate();

/// Compiles the roots for `target` and compares what every step leaves with what it was given, by
/// Z3: values before scheduling, the kernels that scheduling makes together, each kernel from step
/// to step up to its list of instructions. Integers are bit-vectors; of float arithmetic is known
/// that equal operands give equal results, and where that is not enough inputs decide. Sizes must
/// be small: loops are followed iteration by iteration. What comes after the list of instructions
/// (machine code, text) is not looked at. In the current Context.
std::vector<Validated> validate(std::span<const NodeRef> roots, const trust::Variables& variables,
                                const Target& target, const ValidateLimits& limits = {});

}  // namespace weft::test
