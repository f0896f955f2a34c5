// Passes as data: tests/passes/*.wt hold a pass, a kernel before it and the kernel after it.
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "tests/source_dir.h"
#include "weft/base/error.h"
#include "weft/codegen/codegen.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/lower/lower.h"
#include "weft/optimize/passes.h"
#include "weft/schedule/passes.h"

namespace weft {
namespace {

struct PassCase {
  std::string name, pass, graph, after;
  int line = 0;
};

std::vector<PassCase> read_pass_cases(const std::string& path) {
  std::ifstream file(path);
  std::vector<PassCase> cases;
  std::string* section = nullptr;
  std::string text;
  for (int line = 1; std::getline(file, text); ++line) {
    if (text.starts_with("#") || text.empty()) continue;
    if (text.starts_with("== ")) {
      cases.push_back({text.substr(3), "", "", "", line});
      section = nullptr;
    } else if (text.starts_with("pass ")) {
      cases.back().pass = text.substr(5);
    } else if (text == "graph") {
      section = &cases.back().graph;
    } else if (text == "after") {
      section = &cases.back().after;
    } else if (section) {
      (*section += text.substr(text.find_first_not_of(' '))) += '\n';
    } else {
      ADD_FAILURE() << path << ":" << line << ": " << text << " belongs to no section";
    }
  }
  return cases;
}

template <class Passes>
auto* find_pass(const Passes& passes, const std::string& name) {
  const auto found =
      std::find_if(passes.begin(), passes.end(), [&](const auto& p) { return p.name == name; });
  return found == passes.end() ? nullptr : &*found;
}

/// The kernel after the pass, and that what the pass promises holds.
std::string run_one(const std::string& name, const Kernel& kernel) {
  const Target target = make_target("interp", CpuFeatures(), 2);
  const OptimizeOptions options;
  PassTrace checked(true);
  if (const auto* pass = find_pass(optimize_passes(), name)) {
    optimize::State state{kernel, target, options, optimize::KernelInfo(kernel.sink)};
    run_pass(*pass, state);
    return state.text();
  }
  const auto* pass = find_pass(lower_passes(), name);
  if (!pass) return "there is no pass " + name;
  lower::State state{kernel, target};
  run_pass(*pass, state);
  return state.text();
}

/// The text in its normal form: what it says, numbered and commented as print_graph() does.
std::string normal(const std::string& text) {
  Graph g;
  return print_graph(parse_graph(g, text));
}

TEST(Passes, MakeOfKernelsWhatTheirCasesSay) {
  const std::string path = std::string(source_dir()) + "/tests/passes/cases.wt";
  const std::vector<PassCase> cases = read_pass_cases(path);
  EXPECT_GE(cases.size(), 10u);
  for (const PassCase& c : cases) {
    SCOPED_TRACE(path + ":" + std::to_string(c.line) + ": " + c.name);
    Kernel kernel{std::make_shared<Graph>(), nullptr, "case"};
    kernel.sink = parse_graph(*kernel.graph, c.graph, c.name).front();
    const std::string got = run_one(c.pass, kernel);
    if (c.after.empty()) {
      ADD_FAILURE() << "no graph after it; there is\n" << got;
      continue;
    }
    const std::string& expected = c.after == "the same\n" ? c.graph : c.after;
    EXPECT_EQ(got, normal(expected));
  }
}

template <class Passes>
void expect_named(const Passes& passes, const std::string& stage, std::set<std::string>& names) {
  EXPECT_FALSE(passes.empty());
  for (const auto& p : passes) {
    EXPECT_TRUE(std::string(p.name).starts_with(stage + ".")) << p.name;
    EXPECT_TRUE(names.insert(p.name).second) << p.name;
    EXPECT_FALSE(std::string(p.after).empty()) << p.name;
  }
}

TEST(Passes, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  expect_named(schedule_passes(), "schedule", names);
  expect_named(optimize_passes(), "optimize", names);
  expect_named(lower_passes(), "lower", names);
  expect_named(codegen_passes(), "codegen", names);
}

/// What a pass left behind is found by what it promises.
TEST(Passes, SayWhatDoesNotHold) {
  const auto graph = std::make_shared<Graph>();
  const Kernel kernel{graph,
                      parse_graph(*graph, R"(
%0 = param f32 2 slot=0
%1 = range index 2 id=0 binding=unroll
%2 = store void %0 %1 1:f32 combine=set unique=1
%3 = sink void %2)")
                          .front(),
                      "left"};
  const Target target = make_target("interp", CpuFeatures(), 2);
  lower::State state{kernel, target};
  const auto* unroll = find_pass(lower_passes(), "lower.unroll");
  ASSERT_TRUE(unroll && unroll->problem);
  EXPECT_STREQ(unroll->problem(state), "a range to unroll");
  Pass<lower::State> idle = *unroll;
  idle.run = [](lower::State&) {};
  const PassTrace trace(false);
  EXPECT_THROW(run_pass(idle, state), InternalError);
  EXPECT_NO_THROW(run_pass(*unroll, state));
  ASSERT_EQ(trace.records.size(), 2u);
  EXPECT_FALSE(trace.records[0].changed());
  EXPECT_TRUE(trace.records[1].changed());
  EXPECT_EQ(trace.records[1].text_after, "");
}

}  // namespace
}  // namespace weft
