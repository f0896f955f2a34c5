// `weft viz`, as far as it goes without a server.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/app/command.h"
#include "weft/base/context.h"
#include "weft/tensor/tensor.h"

namespace weft {
namespace {

class VizCommand : public CommandGroupTest {
 protected:
  VizCommand() : CommandGroupTest("viz") {}
};

TEST_F(VizCommand, RecordsAProgramAndPrintsViews) {
  const std::string file = at("a.weftviz");
  Options options;
  options.viz = 1;
  options.viz_file = file;
  {
    Context context(options);
    const ContextScope scope(context);
    (Tensor::arange(16) * 3).sum().realize();
  }
  const Outcome text = weft({file, "--text"});
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_NE(text.out.find("realization"), std::string::npos);
  const Outcome json = weft({file, "--text", "passes", "--param", "count=1", "--json"});
  EXPECT_EQ(nlohmann::json::parse(json.out)["passes"].size(), 1u);
  EXPECT_EQ(weft({file, "--perfetto", at("a.json")}).code, 0);
  EXPECT_TRUE(nlohmann::json::parse(content(at("a.json"))).contains("traceEvents"));
}

TEST_F(VizCommand, Errors) {
  EXPECT_NE(
      weft({}).err.find("weft: [viz] no recording is named; give a file, or a program behind --"),
      std::string::npos);
  EXPECT_NE(weft({write("b", "no recording"), "--text"}).err.find("weft: [viz] "),
            std::string::npos);
  EXPECT_NE(weft({at("c.weftviz"), "--", "/nowhere/at.all"})
                .err.find("cannot run \"/nowhere/at.all\": No such file or directory"),
            std::string::npos);
  EXPECT_NE(weft({at("c.weftviz"), "--", "true"})
                .err.find("true has written no recording to " + at("c.weftviz")),
            std::string::npos);
}

}  // namespace
}  // namespace weft
