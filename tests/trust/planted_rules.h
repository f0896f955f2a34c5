// Rewrite rules that are wrong on purpose, for what has to find them. At most one is planted at a
// time, in front of the compiler's own.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weft/rewrite/rule.h"

namespace weft::test {

struct PlantedRule {
  const Rule* rule;
  std::string repro;  ///< a repro file of a dozen operations that fails with it
};
/// Each wrong in its own way.
std::vector<PlantedRule> planted_rules();

/// Steps of lowering that double what kernels store: one that may be left out, and one that may
/// not. One that reads far behind every buffer, and one that forgets barriers.
enum class PlantedPass : uint8_t { SkipMasked, Unroll, Wild, NoBarriers };
bool is_planted(PlantedPass pass);
/// The kernel, or where that pass is planted one that stores twice of everything.
NodeRef doubled(Graph& g, NodeRef sink, PlantedPass by);
/// The kernel, or with PlantedPass::Wild one that ends its process.
NodeRef wild(Graph& g, NodeRef sink);

/// Contexts made while it lives have the rule or the pass.
class Planted {
 public:
  explicit Planted(const Rule& rule);
  explicit Planted(PlantedPass pass);
  ~Planted();
  Planted(const Planted&) = delete;
  Planted& operator=(const Planted&) = delete;
};

}  // namespace weft::test
