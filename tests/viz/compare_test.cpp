// Two steps next to each other.
#include "tests/viz/recorded.h"
#include "weft/base/context.h"
#include "weft/tensor/tensor.h"

namespace weft::viz {
namespace {

class Compare : public RecordedTest {
 protected:
  /// Realizations 0 and 1 are equal, 2 is of another size.
  void SetUp() override {
    RecordedTest::SetUp();
    Context context(recording_to(file()));
    const ContextScope scope(context);
    for (const int64_t size : {64, 64, 4096})
      (Tensor::arange(size).cast(DType::F32) * 2 + 1).exp2().sum().realize();
  }
  Json of(const std::string& one, const std::string& other) const {
    return ask("compare", {{"realization", one}, {"other", other}});
  }
};

TEST_F(Compare, EqualStepsHaveTheSameKernels) {
  const Json all = of("0", "1");
  EXPECT_EQ(all["one"]["realization"], 0);
  EXPECT_EQ(all["other"]["realization"], 1);
  ASSERT_GT(all["total"], 0);
  int64_t one = 0, other = 0;
  for (const Json& k : all["kernels"]) {
    EXPECT_EQ(k["what"], "same");
    EXPECT_EQ(k["kernel"], k["other_kernel"]);
    EXPECT_EQ(k["runs"], k["other_runs"]);
    EXPECT_EQ(k["difference"], int64_t{k["other_ns"]} - int64_t{k["ns"]});
    one += int64_t{k["ns"]}, other += int64_t{k["other_ns"]};
  }
  EXPECT_EQ(all["one"]["kernel_ns"], one);
  EXPECT_EQ(all["other"]["kernel_ns"], other);
  EXPECT_GT(all["one"]["compile_ns"], 0);
  EXPECT_EQ(all["other"]["compile_ns"], 0);
  EXPECT_EQ(all["one"]["peak"], all["other"]["peak"]);
  std::map<std::string, std::string> spans;
  for (const Json& s : all["spans"]) spans[s["name"]] = s["what"];
  EXPECT_EQ(spans["lower.linearise"], "gone") << "the second compiles nothing";
  EXPECT_EQ(spans["kernel"], "same");
}

TEST_F(Compare, KernelsThatOneAloneHasAreMarked) {
  const Json all = of("1", "2");
  std::map<std::string, int> what;
  for (const Json& k : all["kernels"]) {
    ++what[k["what"]];
    EXPECT_EQ(k["kernel"].is_null(), k["what"] == "added");
    EXPECT_EQ(k["other_kernel"].is_null(), k["what"] == "gone");
  }
  EXPECT_GT(what["added"], 0) << all["kernels"];
  EXPECT_EQ(what["added"], what["gone"]);
  const std::string text = this->text("compare", {{"realization", "1"}, {"other", "2"}});
  EXPECT_NE(text.find("  + "), std::string::npos) << text;
  EXPECT_NE(text.find("  - "), std::string::npos) << text;
  EXPECT_EQ(text.find("realization 1 compare_test.cpp"), 0u) << text;
  std::map<std::string, int> turned;
  const Json back = of("2", "1");
  for (const Json& k : back["kernels"]) ++turned[k["what"]];
  EXPECT_EQ(turned["gone"], what["added"]);
}

TEST_F(Compare, StretchesOfTimeAreWhatLiesInThem) {
  const Json runs = of("0", "2");
  const Json times = ask("compare", {{"begin", runs["one"]["begin"].dump()},
                                     {"end", runs["one"]["end"].dump()},
                                     {"other_begin", runs["other"]["begin"].dump()},
                                     {"other_end", runs["other"]["end"].dump()}});
  EXPECT_EQ(times["kernels"], runs["kernels"]);
  EXPECT_TRUE(times["one"]["realization"].is_null());
  EXPECT_EQ(times["one"]["launches"], runs["one"]["launches"]);
  EXPECT_EQ(times["other"]["peak"], runs["other"]["peak"]);
}

TEST_F(Compare, SaysWhatIsMissing) {
  EXPECT_ERROR(ask("compare"),
               "viz.parameter: begin is not given; say which two realizations are meant "
               "(realization, other), or which two stretches of time (begin, end, other_begin, "
               "other_end)");
  EXPECT_ERROR(ask("compare", {{"realization", "0"}}),
               "viz.parameter: other is not given; say which realizations is meant");
  EXPECT_ERROR(of("0", "3"), "viz.parameter: other is 3; the session has 3 of realizations");
  EXPECT_ERROR(
      ask("compare", {{"begin", "2"}, {"end", "1"}, {"other_begin", "0"}, {"other_end", "1"}}),
      "viz.parameter: begin is 2 and end is 1; the end must not lie before the beginning");
}

}  // namespace
}  // namespace weft::viz
