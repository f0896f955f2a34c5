// Runs tests/cases/*.wt: the oracle gives what is expected, simplified or not, and the rules named
// are those that fire.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/source_dir.h"
#include "tests/support/array_printer.h"
#include "tests/support/case_file.h"
#include "weft/base/error.h"
#include "weft/graph/binary.h"
#include "weft/graph/parse.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"
#include "weft/rewrite/trace.h"
#include "weft/simplify/simplify.h"

namespace weft {
namespace {

std::vector<TextCase> all_cases() {
  std::vector<std::string> files;
  const auto folder = std::filesystem::path(source_dir()) / "tests/cases";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".wt") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<TextCase> cases;
  for (const std::string& file : files)
    for (TextCase& c : read_cases(file)) cases.push_back(std::move(c));
  return cases;
}

void run_simplified(Graph& g, const TextCase& c, const std::vector<NodeRef>& roots) {
  std::vector<NodeRef> simpler;
  std::set<std::string> fired;
  {
    const RewriteTrace trace;
    for (NodeRef n : roots) simpler.push_back(simplify_data(g, n));
    for (const RewriteStep& step : trace.steps) fired.emplace(step.rule->name);
  }
  verify_tensor_graph(simpler, "simplify");
  EXPECT_EQ(eval::evaluate(simpler, c.inputs), c.expected) << print_graph(simpler);
  const std::set<std::string> named(c.rules.begin(), c.rules.end());
  EXPECT_TRUE(!c.has_rules || fired == named) << testing::PrintToString(fired);
}

void run(const TextCase& c) {
  Graph g;
  const std::vector<NodeRef> roots = parse_graph(g, c.graph, c.name);
  check_tensor_graph(roots, c.name);
  EXPECT_EQ(parse_graph(g, print_graph(roots)), roots);
  EXPECT_EQ(read_graph(g, write_graph(roots)), roots);
  const auto values = eval::evaluate(roots, c.inputs);
  EXPECT_EQ(values, c.expected);
  if (c.error.empty()) run_simplified(g, c, roots);
}

TEST(Cases, GiveWhatTheyExpect) {
  const auto cases = all_cases();
  EXPECT_GE(cases.size(), 20u);
  for (const TextCase& c : cases) {
    SCOPED_TRACE(c.file + ":" + std::to_string(c.line) + ": " + c.name);
    std::string error;
    try {
      run(c);
    } catch (const Error& e) {
      error = e.what();
    }
    if (c.error.empty() ? !error.empty() : error.find(c.error) == std::string::npos)
      ADD_FAILURE() << "error \"" << error << "\", expected \"" << c.error << "\"";
  }
}

}  // namespace
}  // namespace weft
