// Finds which rewrite rule, optional pass or option is behind a failure, by leaving them out.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/trust/outcome.h"

namespace weft {

struct Options;

namespace trust {

/// What became of a run: it failed as at first, it did not fail, or it failed otherwise.
enum class Verdict : uint8_t { Passes, Fails, Unclear };
using Trial = FunctionRef<Verdict(const Settings&)>;

/// Without this, it passes.
struct Culprit {
  enum class Kind : uint8_t { Rule, Pass, Option };
  Kind kind;
  std::string name;         ///< "where.min", "optimize.tile", "WEFT_ISA"
  std::string value;        ///< of an option, with which it passes
  std::string text;         ///< the rule, what holds after the pass, or what the option is
  std::string source = {};  ///< of a rule: file and line; of a pass that cannot be left out: why
};

struct Bisection {
  /// The fewest rules (or else passes, or else options one by one) without which it passes; empty:
  /// nothing that can be switched off is behind it.
  std::vector<Culprit> culprits;
  Settings without;  ///< that leave the culprits out
  int64_t runs = 0;
};

/// Asks `trial` with ever other things switched off, rules by halves. `options`: as it fails.
Bisection bisect(const Options& options, Trial trial);

std::string_view kind_name(Culprit::Kind kind);  ///< "rule", "pass", "option"

}  // namespace trust
}  // namespace weft
