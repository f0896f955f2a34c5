// Rewrite rules that are wrong on purpose, for what has to find them. At most one is planted at a
// time, in front of the compiler's own.
#pragma once
#include <span>

#include "weft/rewrite/rule.h"

namespace weft::test {

/// Each wrong in its own way.
std::span<const Rule> planted_rules();

/// Contexts made while it lives have the rule.
class Planted {
 public:
  explicit Planted(const Rule& rule);
  ~Planted();
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

}  // namespace weft::test
