#include <gtest/gtest.h>
#include <pthread.h>

#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/rewrite/driver.h"
#include "weft/rewrite/print.h"
#include "weft/rewrite/switches.h"
#include "weft/rewrite/trace.h"

namespace weft {
namespace {
using namespace weft::pat;

NodeRef data(Graph& g, int slot, DType d = DType::I32) { return g.param(slot, d, {}); }
NodeRef lit(Graph& g, int v, DType d = DType::I32) { return g.constant(Value::of(d, v)); }

// clang-format off
constexpr Rule kAdd[] = {
    rule("add.zero", x + 0, x, kIntegers),
    rule("add.negated", x + -x, 0, kIntegers),
    rule("mul.pow2", x * c0, x << ilog2(c0), is_pow2(c0) && c0 > 1, kBits),
    rule("add.both", (x & y) + (x | y), x + y, kBits),
};
// clang-format on

TEST(RuleTable, EveryRowKnowsItsOwnLineAndText) {
  EXPECT_EQ(kAdd[1].line, kAdd[0].line + 1);
  EXPECT_EQ(to_text(kAdd[0]), "add.zero: x + 0 -> x [index|bits]");
  EXPECT_EQ(to_text(kAdd[2]), "mul.pow2: x * c0 -> x << ilog2(c0) if is_pow2(c0) && 1 < c0 [bits]");
  EXPECT_EQ(to_text((x * (y + 1)) / -c0), "x * (y + 1) / -c0");
  EXPECT_TRUE(source_of(kAdd[0]).starts_with("tests/rewrite/engine_test.cpp:"))
      << source_of(kAdd[0]);
}

TEST(RuleSet, RewritesToAFixpoint) {
  Graph g;
  const RuleSet<> set("test", rules(kAdd));
  NodeRef a = data(g, 0), b = data(g, 1);
  NodeRef start = g.add(g.mul(g.add(a, lit(g, 0)), lit(g, 8)), g.add(b, g.alu(Op::Neg, {b})));
  NodeRef end = rewrite_fixpoint(g, start, set);
  EXPECT_EQ(end, g.alu(Op::Shl, {a, lit(g, 3)})) << expression(end);
}

TEST(RuleSet, MatchesCommutedForms) {
  Graph g;
  const RuleSet<> set("test", rules(kAdd));
  EXPECT_EQ(set.matcher().program_count(), 1u + 2 + 1 + 8);
  for (int i = 0; i < 8; ++i) {
    NodeRef a = data(g, 10 + i), b = data(g, 20 - i);
    NodeRef both[] = {g.alu(Op::And, {a, b}), g.alu(Op::Or, {b, a})};
    NodeRef n = g.intern({Op::Add, DType::I32, both});
    std::swap(both[0], both[1]);
    NodeRef m = g.intern({Op::Add, DType::I32, both});
    EXPECT_EQ(set.apply(g, n), g.add(a, b));
    EXPECT_EQ(set.apply(g, m), g.add(a, b));
  }
}

TEST(RuleSet, KeepsToItsDomain) {
  Graph g;
  const RuleSet<> set("test", rules(kAdd));
  EXPECT_EQ(set.apply(g, g.add(data(g, 0, DType::F32), lit(g, 0, DType::F32))), nullptr);
  EXPECT_NE(set.apply(g, g.add(data(g, 0, DType::U8), lit(g, 0, DType::U8))), nullptr);
  constexpr Rule kRealRule[] = {rule("add.real", x + 0, x, kReal)};
  static constexpr Rule kReals[] = {kRealRule[0]};
  const RuleSet<> exact("exact", rules(kReals)), fast("fast", rules(kReals), {.real = true});
  NodeRef n = g.add(data(g, 0, DType::F32), lit(g, 0, DType::F32));
  EXPECT_EQ(exact.apply(g, n), nullptr);
  EXPECT_EQ(fast.apply(g, n), data(g, 0, DType::F32));
}

TEST(RuleSet, SpreadsConstantsOverTheShapeReplaced) {
  Graph g;
  static constexpr Rule kRules[] = {rule("xor.same", x ^ x, 0, kBits)};
  const RuleSet<> set("test", rules(kRules));
  const NodeRef dims[] = {g.index(2), g.index(3)};
  NodeRef a = g.param(0, DType::I32, dims);
  NodeRef out = set.apply(g, g.alu(Op::Xor, {a, a}));
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->op, Op::Expand);
  EXPECT_EQ(out->shape, a->shape);
}

TEST(RuleSet, LiteralsOfFloatsAreBits) {
  Graph g;
  static constexpr Rule kRules[] = {rule("add.minus_zero", x + -0.0, x, kFloat)};
  const RuleSet<> set("test", rules(kRules));
  NodeRef a = data(g, 0, DType::F32);
  EXPECT_EQ(set.apply(g, g.add(a, g.constant(Value::of(DType::F32, -0.0)))), a);
  EXPECT_EQ(set.apply(g, g.add(a, g.constant(Value::of(DType::F32, 0.0)))), nullptr);
}

struct Machine {
  bool has_shl;
  bool native(Op op, DType) const { return op == Op::Shl && has_shl; }
  int made = 0;
};
NodeRef count_neg(const Match& m, Machine& machine) {
  ++machine.made;
  return m[x];
}
// clang-format off
constexpr Rule kMachine[] = {
    rule("mul.shift", x * c0, x << ilog2(c0), is_pow2(c0) && native_op(Op::Shl, x), kBits)};
// clang-format on
constexpr NativeRule<Machine> kMachineCode[] = {native("neg.neg", -(-x), count_neg)};

TEST(RuleSet, AsksItsContext) {
  Graph g;
  const RuleSet<Machine> set("machine", rules<Machine>(kMachine, kMachineCode));
  NodeRef n = g.mul(data(g, 0), lit(g, 4));
  Machine with{true}, without{false};
  EXPECT_NE(set.apply(g, n, with), nullptr);
  EXPECT_EQ(set.apply(g, n, without), nullptr);
  NodeRef minus = g.alu(Op::Neg, {g.alu(Op::Neg, {data(g, 0)})});
  EXPECT_EQ(rewrite_fixpoint(g, minus, set, with), data(g, 0));
  EXPECT_EQ(with.made, 1);
}

/// Notes what rules build through it.
struct Maker {
  Graph& g;
  std::vector<Op> made = {};
  NodeRef make(Op op, DType dtype, std::span<const NodeRef> src) {
    made.push_back(op);
    return g.make({op, dtype, src, {}, {}, src[0]->lanes});
  }
};
constexpr Rule kMade[] = {
    rule("max.made", max(x, y), where(x < y, y, x), kBits).as_move(),
    rule("sin.made", sin(x), cast_like(bitcast(x, DType::I32), x), kFloat).as_move(),
};

TEST(RuleSet, BuildsAsItsContextDoes) {
  Graph g;
  const RuleSet<Maker> set("made", rules<Maker>(kMade));
  Maker maker{g};
  NodeRef a = data(g, 0), b = data(g, 1);
  NodeRef out = set.apply(g, g.alu(Op::Max, {a, b}), maker);
  ASSERT_TRUE(out && out->op == Op::Where);
  EXPECT_EQ(maker.made, (std::vector<Op>{Op::Lt, Op::Where}));
  maker.made.clear();
  NodeRef f = g.param(2, DType::F32, {});
  out = set.apply(g, g.alu(Op::Sin, {f}), maker);
  ASSERT_TRUE(out && out->op == Op::Cast && out->dtype == DType::F32);
  EXPECT_EQ(out->src(0)->dtype, DType::I32);
  EXPECT_EQ(maker.made, (std::vector<Op>{Op::Bitcast, Op::Cast}));
}

TEST(RuleSet, RulesAreSwitchedOffByName) {
  Graph g;
  NodeRef n = g.add(data(g, 0), lit(g, 0));
  const RuleSet<> one("test", rules(kAdd), {.switched_off = "mul.pow2, -add.zero"});
  EXPECT_EQ(one.apply(g, n), nullptr);
  const RuleSet<> many("test", rules(kAdd), {.switched_off = "-add.*"});
  EXPECT_EQ(many.apply(g, n), nullptr);
  const RuleSetRow row = catalogue_row("test", rules(kAdd), "");
  EXPECT_NO_THROW(check_switches("-add.*,mul.pow2", {&row, 1}));
  try {
    check_switches("add.zer", {&row, 1});
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(
        e.what(),
        "[rules] WEFT_RULES names no rule: 'add.zer'; did you mean add.zero?; `weft rules` "
        "lists all 4");
  }
  for (const char* entry : {"-add.zero", "add.*"}) try {
      check_switches(entry, {}, {&row, 1});
      FAIL();
    } catch (const Error& e) {
      EXPECT_STREQ(e.code().c_str(), "rules.fixed");
      EXPECT_NE(std::string(e.what()).find("[rules] WEFT_RULES cannot switch off 'add."),
                std::string::npos)
          << e.what();
    }
}

// clang-format off
constexpr Rule kPingPong[] = {
    rule("and.to_or", ~(x & y), ~x | ~y, kBits).as_move(),
    rule("or.to_and", ~x | ~y, ~(x & y), kBits).as_move(),
};
// clang-format on
// clang-format off
constexpr Rule kGrowing[] = {rule("neg.grow", -x, -(x + 1), kBits).as_move()};
// clang-format on

template <size_t N>
std::string error_of(Graph& g, const Rule (&table)[N], NodeRef n) {
  const RuleSet<> set("loops", rules(table));
  try {
    rewrite_fixpoint(g, n, set);
  } catch (const InternalError& e) {
    EXPECT_EQ(e.code(), "rewrite.cycle");
    return e.what();
  }
  return "no error";
}

TEST(Fixpoint, ReportsRulesThatGoRound) {
  Graph g;
  NodeRef a = data(g, 0), b = data(g, 1);
  const std::string round = error_of(g, kPingPong, g.alu(Op::Not, {g.alu(Op::And, {a, b})}));
  EXPECT_NE(round.find("and.to_or, or.to_and"), std::string::npos) << round;
  const std::string growth = error_of(g, kGrowing, g.alu(Op::Neg, {a}));
  EXPECT_NE(growth.find("neg.grow"), std::string::npos) << growth;
}

TEST(Fixpoint, RemembersNormalForms) {
  Graph g;
  const RuleSet<> set("test", rules(kAdd), {.normal = NormalBit::TestA});
  NodeRef n = g.mul(g.add(data(g, 0), lit(g, 0)), data(g, 1));
  NodeRef end = rewrite_fixpoint(g, n, set);
  const uint64_t bit = uint64_t{1} << static_cast<int>(NormalBit::TestA);
  EXPECT_TRUE(end->normal.load() & bit);
  EXPECT_FALSE(n->normal.load() & bit);
  EXPECT_EQ(rewrite_fixpoint(g, end, set), end);
}

/// Runs `body` on a thread whose stack is 256 KiB.
void on_small_stack(void* (*body)(void*), void* arg) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  ASSERT_EQ(pthread_create(&thread, &attributes, body, arg), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(Fixpoint, MillionDeepGraphOnASmallStack) {
  struct Work {
    Graph g;
    NodeRef end = nullptr, walked = nullptr;
    size_t steps = 0;
  } work;
  on_small_stack(
      [](void* arg) -> void* {
        Work& w = *static_cast<Work*>(arg);
        const RuleSet<> set("test", rules(kAdd));
        NodeRef n = data(w.g, 0);
        for (int i = 0; i < 500000; ++i)
          n = w.g.alu(Op::Xor, {w.g.add(n, lit(w.g, 0)), data(w.g, i % 3)});
        w.end = rewrite_fixpoint(w.g, n, set);
        w.walked = walk(w.g, n, set);
        w.steps = Toposort(w.end).size();
        return nullptr;
      },
      &work);
  EXPECT_EQ(work.steps, 500000u + 3);
  EXPECT_EQ(work.walked, work.end);
}

TEST(Walk, LooksOnceAtEveryNode) {
  Graph g;
  static constexpr Rule kOnce[] = {rule("neg.once", -x, -(x ^ 1), kBits).as_move()};
  const RuleSet<> set("once", rules(kOnce));
  NodeRef a = data(g, 0);
  NodeRef inner = g.alu(Op::Neg, {g.alu(Op::Xor, {a, lit(g, 1)})});
  EXPECT_EQ(walk(g, g.alu(Op::Neg, {a}), set), inner);
}

TEST(Trace, RecordsStepsAndCounts) {
  Context context;
  const ContextScope scope(context);
  context.get<RewriteCounts>().enable();
  Graph g;
  const RuleSet<> set("test", rules(kAdd));
  NodeRef n = g.add(data(g, 0), lit(g, 0));
  RewriteTrace trace;
  rewrite_fixpoint(g, n, set);
  ASSERT_EQ(trace.steps.size(), 1u);
  EXPECT_STREQ(trace.steps[0].rule->name, "add.zero");
  EXPECT_EQ(trace.steps[0].before, n);
  EXPECT_EQ(trace.steps[0].after, data(g, 0));
  EXPECT_EQ(context.get<RewriteCounts>().of("add.zero").fired, 1u);
}

TEST(Substitute, ReplacesNodesEverywhere) {
  Graph g;
  NodeRef r = g.range(10, 0), v = g.variable("n", 1, 10);
  NodeRef n = g.add(g.mul(r, g.index(3)), g.mod(r, g.index(4)));
  NodeMap<NodeRef> map;
  map[r] = g.index(6);
  EXPECT_EQ(substitute(g, n, map), g.index(20));
  map[r] = v;
  EXPECT_EQ(substitute(g, n, map), g.add(g.mul(v, g.index(3)), g.mod(v, g.index(4))));
}

}  // namespace
}  // namespace weft
