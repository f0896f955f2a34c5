// Proofs of the rules; verdicts are kept in proofs.lock and renewed only where a rule's text
// changed.
#include <gtest/gtest.h>

#include "tests/rules/instance_support.h"
#include "tests/rules/proof_support.h"
#include "tests/support/generated_file.h"
#include "weft/rewrite/print.h"

namespace weft {
namespace {
using namespace weft::pat;

#define SKIP_WITHOUT_PROVER() \
  if (!has_prover()) GTEST_SKIP() << "libz3 (Debian: libz3-dev) was not found when this was built"

constexpr char kLock[] = "tests/rules/proofs.lock";

TEST(EveryProof, IsCurrent) {
  const std::map<std::string, LockRow> lock = read_lock(repository_file(kLock));
  std::map<std::string, LockRow> now;
  std::string changed;
  const std::vector<RuleSetRow> sets = all_rule_sets();
  for (const RuleSetRow& set : sets) {
    for (const RuleEntry& e : set.entries) {
      const std::string hash = hash_of(*e.rule);
      const auto old = lock.find(e.rule->name);
      const bool same = old != lock.end() && old->second.hash == hash;
      if (!same) changed += std::string(" ") + e.rule->name;
      now[e.rule->name] = {hash, same ? old->second.verdict : prove(e)};
      EXPECT_NE(now[e.rule->name].verdict.substr(0, 7), "refuted") << to_text(*e.rule) << "\n"
                                                                   << now[e.rule->name].verdict;
    }
  }
  ASSERT_TRUE(changed.empty() || has_prover()) << "libz3-dev is needed to prove" << changed;
  expect_generated(kLock, lock_text(now),
                   changed.empty() ? "" : " (new or changed:" + changed + ")");
  auto verdict = [&now](const Rule& r) { return now.at(r.name).verdict; };
  expect_generated("docs/rules.md", rules_markdown(sets, verdict));
}

TEST(EveryProof, SlowAllAgain) {
  SKIP_WITHOUT_PROVER();
  const std::map<std::string, LockRow> lock = read_lock(repository_file(kLock));
  for (const RuleSetRow& set : all_rule_sets())
    for (const RuleEntry& e : set.entries)
      EXPECT_EQ(prove(e), lock.at(e.rule->name).verdict) << to_text(*e.rule);
}

// clang-format off
constexpr Rule kWrong[] = {
    rule("div.of_div", x / c0 / c1, x / (c0 * c1), c0 > 0, kIndex),
    rule("mod.small", x % c0, x, vmax(x) < c0, kIndex),
    rule("add.absorb", (x | y) + y, x | y, kBits),
    rule("div.minus_one", x / -1, -x, kBits),
    rule("and.or", p&(q | p), q),
    rule("add.zero", x + 0, x, kFloat),
    rule("max.comm", where(x < y, y, x), max(x, y), kFloat),
};
// clang-format on

TEST(Prover, RefutesWrongRules) {
  SKIP_WITHOUT_PROVER();
  for (const Rule& r : kWrong) {
    const std::string verdict = prove({&r});
    EXPECT_EQ(verdict.substr(0, 7), "refuted") << to_text(r) << " " << verdict;
  }
}

// clang-format off
constexpr Rule kRight[] = {
    rule("div.of_div", x / c0 / c1, x / (c0 * c1), c0 > 0 && c1 > 0, kIndex),
    rule("mod.small", x % c0, x, vmin(x) >= 0 && vmax(x) < c0, kIndex),
    rule("mul.pow2", x * c0, x << ilog2(c0), is_pow2(c0), kBits),
    rule("neg.neg", -(-x), x, kBits | kFloat),
};
// clang-format on

TEST(Prover, ProvesRightOnesByTheStrongestMeansThatWork) {
  SKIP_WITHOUT_PROVER();
  EXPECT_NE(prove({&kRight[0]}), "index:random");
  EXPECT_EQ(prove({&kRight[1]}), "index:int");
  EXPECT_EQ(prove({&kRight[2]}), "bits:bv8");
  EXPECT_EQ(prove({&kRight[3]}), "bits:bv8 float:fp8");
}

TEST(Prover, HashesFollowTheTextOfARule) {
  static constexpr Rule kTwo[] = {rule("add.zero", x + 0, x, kBits),
                                  rule("add.zero", x + 0, x, kIndex)};
  EXPECT_NE(hash_of(kTwo[0]), hash_of(kTwo[1]));
  EXPECT_EQ(hash_of(kTwo[0]), hash_of(Rule(kTwo[0])));
}

}  // namespace
}  // namespace weft
