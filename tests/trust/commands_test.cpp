// weft-trust as users meet it: exit codes, what is printed, what errors say.
#include <gtest/gtest.h>

#include <unistd.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/io/scratch_dir.h"
#include "tests/support/array_printer.h"
#include "tests/trust/planted_rules.h"
#include "weft/base/context.h"
#include "weft/run/passes.h"
#include "weft/run/realize.h"
#include "weft/trust/command.h"
#include "weft/trust/fuzz.h"
#include "weft/trust/program.h"
#include "weft/trust/random_storages.h"

namespace weft::trust {
namespace {

struct Ran {
  int code;
  std::string out, err;
  bool has(std::string_view part) const { return (out + err).find(part) != std::string::npos; }
};

std::string taken(std::FILE* file) {
  std::string text(static_cast<size_t>(std::ftell(file)), '\0');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

Ran weft(const std::vector<std::string>& words) {
  std::vector<const char*> arguments = {"weft"};
  for (const std::string& word : words) arguments.push_back(word.c_str());
  std::FILE *out = std::tmpfile(), *err = std::tmpfile();
  const int code = run_trust(arguments, out, err);
  return {code, taken(out), taken(err)};
}

/// Every line is a JSON value; those of one kind.
std::vector<nlohmann::json> of_kind(const std::string& lines, const std::string& kind) {
  std::vector<nlohmann::json> out;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    nlohmann::json value = nlohmann::json::parse(line);
    if (value["kind"] == kind) out.push_back(std::move(value));
  }
  return out;
}

class TrustCommand : public ScratchDir {
 protected:
  /// x + x, twice the first of two params.
  std::string program() const {
    return write(
        "sum.repro",
        "weft-repro 1\noption WEFT_DEV=CPU:INTERP\nseed 1\ngraph\n%0 = param i32 3 slot=0\n"
        "%1 = param i32 3 slot=1\n%2 = mul i32 %0 %1\n%3 = add i32 %2 %2\n"
        "%4 = reduce.add i32 %3 axes=0\n");
  }
  static const Rule& wrong_sum() { return *test::planted_rules()[0].rule; }
};

TEST_F(TrustCommand, HelpIsOfTheCommand) {
  EXPECT_TRUE(weft({"--help"}).has("bisect"));
  for (const char* name : {"repro", "bisect", "fuzz"}) {
    const Ran help = weft({name, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(help.has("--json")) << help.out;
    EXPECT_TRUE(help.has("Exit codes: 0")) << help.out;
    EXPECT_EQ(help.err, "");
  }
}

TEST_F(TrustCommand, WrongUsageIsTwo) {
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{}, {"repro"}, {"fuzz", "--seconds", "x"}, {"fizz"}}) {
    const Ran ran = weft(bad);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(ran.has("--help` shows what is possible")) << ran.err;
  }
}

TEST_F(TrustCommand, ErrorsSayWhatToDo) {
  write("bad.repro", "hello\n");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"repro", at("bad.repro")}, "bad.repro:1: the first line is not 'weft-repro 1'"},
      {{"repro", at("none.repro")}, "none.repro"},
      {{"repro", program(), "--set", "THREADS=1"}, "'THREADS=1' is no option; --set takes WEFT_"},
      {{"repro", write("large.repro", "weft-repro 1\ngraph\n%0 = param i32 5000 slot=0\n"),
        "--show", "python"},
       "a param has 5000 elements, too many for a text; --reduce comes first"},
      {{"bisect"}, "[bisect] give a repro file, or -- and a command"},
      {{"bisect", program()}, "sum.repro passes here; there is nothing to find"},
      {{"bisect", "--", "true"}, "the command exits with 0; there is nothing to find"},
      {{"bisect", "--", "/no/such/program"}, "exits with 127: it could not be started"},
      {{"bisect", "--", "sh", "-c", "exit 125"}, "exits with 125: it cannot tell"},
  };
  for (const auto& [words, text] : cases) {
    const Ran ran = weft(words);
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(ran.has(text)) << ran.err;
  }
}

TEST_F(TrustCommand, ReproPassesOrShowsTheDifference) {
  const std::string file = program();
  EXPECT_EQ(weft({"repro", file}).code, 0);
  EXPECT_TRUE(weft({"repro", file}).has("passes: passed"));
  EXPECT_TRUE(weft({"repro", file, "--show", "graph"}).has("reduce.add i32 %3 axes=0"));
  const test::Planted planted(wrong_sum());
  const Ran wrong = weft({"repro", file, "--json"});
  EXPECT_EQ(wrong.code, 1);
  const auto lines = of_kind(wrong.out, "repro");
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["passed"], false);
  EXPECT_TRUE(wrong.has("wrong: value 0, element 0: got i32 ()")) << wrong.out;
  EXPECT_EQ(weft({"repro", file, "--set", "WEFT_RULES=-planted.*"}).code, 0);
}

TEST_F(TrustCommand, BisectNamesTheRuleAndReduces) {
  const std::string file = program();
  const test::Planted planted(wrong_sum());
  const Ran found = weft({"bisect", file});
  EXPECT_EQ(found.code, 0);
  EXPECT_TRUE(found.has("passes without the rule planted.wrong_constant\n")) << found.out;
  EXPECT_TRUE(found.has("planted.wrong_constant: x + x -> x * 3")) << found.out;
  EXPECT_TRUE(found.has("tests/trust/planted_support.cpp:")) << found.out;
  EXPECT_TRUE(found.has("reduced to 2 lines")) << found.out;
  const Ran small = weft({"repro", at("sum.small.repro")});
  EXPECT_EQ(small.code, 1) << small.out;
  const Ran json = weft({"bisect", file, "--json"});
  const auto culprits = of_kind(json.out, "culprit");
  ASSERT_EQ(culprits.size(), 1u);
  EXPECT_EQ(culprits[0]["name"], wrong_sum().name);
  EXPECT_EQ(of_kind(json.out, "reduced")[0]["lines"], 2);
  EXPECT_EQ(of_kind(json.out, "bisect")[0]["found"], true);
}

/// One that may be left out is; one that may not is found by what it does.
TEST_F(TrustCommand, BisectNamesPasses) {
  const std::string file = program();
  {
    const test::Planted planted(test::PlantedPass::SkipMasked);
    const Ran found = weft({"bisect", file});
    EXPECT_TRUE(found.has("passes without the pass lower.skip_masked\n")) << found.out;
  }
  const test::Planted planted(test::PlantedPass::Unroll);
  const Ran found = weft({"bisect", file});
  EXPECT_EQ(found.code, 0);
  EXPECT_TRUE(found.has("it is the pass lower.unroll\n  unroll ranges are gone")) << found.out;
  EXPECT_TRUE(found.has("computes is something else after it")) << found.out;
}

/// A command shows that something is wrong by its exit status alone.
TEST_F(TrustCommand, BisectsCommandsByTheirStatus) {
  const Ran rule = weft(
      {"bisect", "--", "sh", "-c", "case \",$WEFT_RULES,\" in *,-where.min,*) ;; *) exit 3; esac"});
  EXPECT_EQ(rule.code, 0);
  EXPECT_TRUE(rule.has("passes without the rule where.min\n")) << rule.out << rule.err;
  const Ran pass =
      weft({"bisect", "--", "sh", "-c",
            "case \",$WEFT_PASSES,\" in *,-optimize.merge_ranges,*) ;; *) exit 3; esac"});
  EXPECT_TRUE(pass.has("passes without the pass optimize.merge_ranges\n")) << pass.out << pass.err;
  const Ran option = weft({"bisect", "--", "sh", "-c", "test \"$WEFT_THREADS\" = 1"});
  EXPECT_TRUE(option.has("passes with WEFT_THREADS=1\n")) << option.out << option.err;
}

/// What BisectReducesWhatACommandCompiles starts: a program of a user's that tests its result.
TEST_F(TrustCommand, DISABLED_Child) {
  const test::Planted planted(wrong_sum());
  Graph g;
  const RandomGraph twice = program_of(g, read_repro(program()));
  Context context(Options::from_environment());
  const ContextScope scope(context);
  const auto storages = storages_of(context, twice, twice.bindings[0]);
  realize(context, storages);
  EXPECT_EQ(array_of(*storages[0]), twice.evaluate()[0]);
}

TEST_F(TrustCommand, BisectReducesWhatACommandCompiles) {
  const test::Planted planted(wrong_sum());
  const Ran found = weft({"bisect", "--json", "-o", at("small.repro"), "--", "/proc/self/exe",
                          "--gtest_also_run_disabled_tests", "--gtest_filter=*DISABLED_Child"});
  EXPECT_EQ(found.code, 0) << found.err;
  const auto culprits = of_kind(found.out, "culprit"), reduced = of_kind(found.out, "reduced");
  ASSERT_EQ(culprits.size(), 1u) << found.out;
  EXPECT_EQ(culprits[0]["name"], wrong_sum().name);
  ASSERT_EQ(reduced.size(), 1u) << found.out;
  EXPECT_EQ(reduced[0]["lines"], 2);
  EXPECT_EQ(weft({"repro", at("small.repro")}).code, 1);
}

TEST_F(TrustCommand, SlowBisectSaysWhereNothingHelps) {
  const Ran nothing = weft({"bisect", "--", "false"});
  EXPECT_EQ(nothing.code, 1);
  EXPECT_TRUE(nothing.has("nothing that can be switched off is behind it")) << nothing.out;
}

TEST_F(TrustCommand, FuzzKeepsWhatFails) {
  const Ran fine = weft({"fuzz", "--count", "20", "--json", "-o", at("none")});
  EXPECT_EQ(fine.code, 0) << fine.out;
  EXPECT_EQ(of_kind(fine.out, "fuzz")[0]["programs"], 20);
  const test::Planted planted(wrong_sum());
  const Ran found = weft({"fuzz", "--count", "2000", "--failures", "1", "--device", "CPU:INTERP",
                          "--json", "-o", at("found")});
  EXPECT_EQ(found.code, 1);
  const auto reduced = of_kind(found.out, "reduced");
  ASSERT_EQ(reduced.size(), 1u) << found.out;
  EXPECT_LE(reduced[0]["lines"], 10);
  EXPECT_EQ(weft({"repro", reduced[0]["file"].get<std::string>()}).code, 1);
}

/// What WEFT_PASSES may switch off changes no value.
void expect_same_values(uint64_t count) {
  int64_t optional = 0;
  for (const PassRow& pass : all_passes()) {
    if (!pass.optional) continue;
    ++optional;
    for (uint64_t seed = 0; seed < count; ++seed) {
      Graph g;
      const RandomGraph program = fuzz_program(g, seed);
      if (!is_exact(program)) continue;
      Options options = fuzz_options({}, seed);
      options.dev = seed % 2 == 0 ? "CPU:X86" : "CPU:INTERP";
      options.passes = pass.name;
      const Outcome outcome = run_here(program, options);
      EXPECT_TRUE(outcome.passed()) << pass.name << " seed " << seed << ": " << outcome.text();
    }
  }
  EXPECT_GE(optional, 10);
}
TEST(OptionalPasses, LeaveValuesAsTheyAre) { expect_same_values(8); }
TEST(OptionalPasses, SlowLeaveManyValuesAsTheyAre) { expect_same_values(1000); }

TEST(OptionalPasses, OthersCannotBeSwitchedOff) {
  Graph g;
  const RandomGraph program = random_graph(g, 1);
  Options options;
  options.passes = "lower.linearise";
  const Outcome outcome = run_here(program, options);
  EXPECT_EQ(outcome.code, "passes.unknown");
  EXPECT_NE(outcome.what.find("WEFT_PASSES names no optional pass: 'lower.linearise'"),
            std::string::npos)
      << outcome.what;
}

TEST(RunApart, CrashesAndHangsAreOutcomes) {
  const Outcome crash = run_apart([]() -> Outcome {
    ::raise(SIGSEGV);
    return {};
  });
  EXPECT_EQ(crash.text(), "crash: signal 11");
  const Outcome hang = run_apart(
      []() -> Outcome {
        for (;;) ::pause();
      },
      {std::chrono::milliseconds(50)});
  EXPECT_EQ(hang.kind, Outcome::Kind::Hang);
  const Outcome silent = run_apart([]() -> Outcome { ::_exit(0); });
  EXPECT_EQ(silent.kind, Outcome::Kind::Crash);
}

}  // namespace
}  // namespace weft::trust
