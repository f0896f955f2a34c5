// What the compiler did, and would do, as records: every step from tensors to code.
#include "weft/tensor/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "weft/graph/parse.h"
#include "weft/run/explain_passes.h"
#include "weft/run/passes.h"
#include "weft/run/run_state.h"
#include "weft/tensor/access.h"
#include "weft/tensor/tracing.h"
#include "weft/weft.h"

namespace weft {
namespace {

using Records = std::vector<PassRecord>;

std::string stage_of(const PassRecord& p) {
  return std::string(p.pass).substr(0, std::string(p.pass).find('.'));
}

std::vector<std::string> stages_of(const Records& records) {
  std::vector<std::string> stages;
  for (const PassRecord& p : records)
    if (stages.empty() || stages.back() != stage_of(p)) stages.push_back(stage_of(p));
  return stages;
}

const PassRecord* find(const Records& records, std::string_view pass) {
  const auto at = std::find_if(records.begin(), records.end(),
                               [&](const PassRecord& p) { return p.pass == pass; });
  return at == records.end() ? nullptr : &*at;
}

/// Everything but the times.
std::string said(const Records& records) {
  std::string all;
  for (const PassRecord& p : records)
    all += std::string(p.pass) + " " + p.subject + " " + std::to_string(p.firings) + "\n" +
           p.text_before + "->\n" + p.text_after;
  return all;
}

Options options_of(const char* device) {
  Options options = Options::from_environment();
  options.dev = device;
  return options;
}

/// What it left, without the name, which the graph of a kernel does not have.
std::string nameless(const PassRecord& p) {
  std::string text = p.text_after;
  for (const std::string name = p.subject == "kernel" ? "kernel" : "reduce_over_3";;) {
    const size_t at = text.find(name);
    if (at == std::string::npos) return text;
    text.erase(at, name.size());
  }
}

/// On a machine whose target has this device.
class Passes : public ::testing::Test {
 protected:
  explicit Passes(const char* device = "NULL:C") : context_(options_of(device)), scope_(context_) {}

  Records of_realize(const Tensor& x) {
    Records records;
    CompileObserver& observer = context_.get<RunState>().observer;
    observer.texts = true;
    observer.passed = [&](const PassRecord& p) { records.push_back(p); };
    x.realize();
    observer = {};
    return records;
  }

  Context context_;
  ContextScope scope_;
};

Tensor expression() {
  return (Tensor::arange(40).cast(DType::F32).reshape({5, 8}) + 1.0f).sum(1) * 2.0f;
}

TEST_F(Passes, AreAllInTheTables) {
  std::set<std::string> names;
  std::vector<std::string> stages;
  for (const PassRow& row : all_passes()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_NE(std::string(row.after), "") << row.name;
    const std::string stage = stage_of({row.name});
    if (stages.empty() || stages.back() != stage) stages.push_back(stage);
  }
  EXPECT_EQ(stages, (std::vector<std::string>{"normalise", "schedule", "optimize", "lower",
                                              "codegen", "render", "load", "plan", "bind"}));
}

TEST_F(Passes, OfARealizeGoFromTensorsToTheDevice) {
  const Records records = of_realize(Tensor::of({1.0f, 2.0f}) + 1.0f);
  EXPECT_EQ(stages_of(records),
            (std::vector<std::string>{"normalise", "schedule", "optimize", "lower", "render",
                                      "load", "plan", "bind"}));
  const PassRecord& number = records.front();
  EXPECT_TRUE(number.text_before.find("buffer f32") != std::string::npos) << number.text_before;
  EXPECT_TRUE(number.text_after.find("param f32") != std::string::npos) << number.text_after;
  EXPECT_TRUE(number.text_after.find("buffer f32") == std::string::npos) << number.text_after;
  const PassRecord& write = *find(records, "render.write");
  EXPECT_TRUE(write.text_after.find("void k_0_") != std::string::npos) << write.text_after;
  EXPECT_FALSE(find(records, "render.check_dtypes")->changed());
  const PassRecord& load = *find(records, "load.programs");
  EXPECT_TRUE(load.text_after.find(" bytes") != std::string::npos) << load.text_after;
  const PassRecord& bind = records.back();
  EXPECT_EQ(bind.text_before, "0 each_2: b0, b1\n");
  EXPECT_EQ(bind.text_after, "0 each_2: b0 at 0 of 8, b1 at 0 of 8\n");
}

/// What a pass leaves is what the stage's next one is given.
TEST_F(Passes, HandOnWhatTheyMade) {
  int joints = 0;
  std::map<std::string, const PassRecord*> last;  // of a stage and what it works on
  const Records records = of_realize(expression());
  for (const PassRecord& p : records) {
    const PassRecord*& before = last[stage_of(p) + " " + p.subject];
    if (before) {
      EXPECT_EQ(before->text_after, p.text_before) << before->pass << " " << p.pass;
      ++joints;
    }
    before = &p;
  }
  EXPECT_GT(joints, 20);
}

TEST_F(Passes, TakeTheCallsOutOfWhatIsNew) {
  const Tensor x = Tensor::of({1.0f, 2.0f});
  const auto one_more_than_twice = [&x] {
    const auto twice = [](const std::vector<Tensor>& in) { return std::vector{in[0] * 2.0f}; };
    return called("twice", {}, {x}, twice)[0] + 1.0f;
  };
  const Records records = of_realize(one_more_than_twice());
  const PassRecord* inlined = find(records, "normalise.inline_calls");
  ASSERT_TRUE(inlined);
  EXPECT_TRUE(inlined->text_before.find("call") != std::string::npos) << inlined->text_before;
  EXPECT_TRUE(inlined->text_after.find("call") == std::string::npos) << inlined->text_after;
  EXPECT_EQ(stages_of(of_realize(one_more_than_twice())),
            (std::vector<std::string>{"normalise", "bind"}))
      << "it was compiled before";
}

TEST_F(Passes, SayWhatNormalisingLeftBehind) {
  const auto number = normalise_passes()[0], inline_calls = normalise_passes()[1];
  Graph g;
  const auto values = parse_graph(g, "%0 = buffer f32 2 id=7 device=1\n%1 = add f32 %0 1:f32\n");
  NormalState state{g, NormalForm::Nodes(values)};
  EXPECT_STREQ(number.problem(state), "a buffer, a bound variable or a function");
  EXPECT_EQ(inline_calls.problem(state), nullptr);
  run_pass(number, state);
  EXPECT_EQ(number.problem(state), nullptr);
}

TEST_F(Passes, AreExplainedWithoutRunning) {
  const Tensor x = expression();
  const Records asked = explain_passes({x}, true);
  EXPECT_EQ(stages_of(asked),
            (std::vector<std::string>{"schedule", "optimize", "lower", "render", "plan"}));
  EXPECT_FALSE(TensorAccess::shared(x)->realized());
  EXPECT_EQ(said(explain_passes({x, x}, true)), said(asked)) << "nothing comes from a cache";
  // A realize takes the same steps; only it numbers what needs no numbers, loads and binds.
  Records done = of_realize(x);
  std::erase_if(done, [](const PassRecord& p) {
    return stage_of(p) == "normalise" || stage_of(p) == "load" || stage_of(p) == "bind";
  });
  EXPECT_EQ(said(done), said(asked));
  EXPECT_TRUE(explain_passes({x}).empty()) << "it is in memory";
  EXPECT_TRUE(explain_passes({}).empty());
  EXPECT_THROW(explain_passes({Tensor()}), Error);
}

TEST_F(Passes, HaveTextsWhereAskedFor) {
  for (const PassRecord& p : explain_passes({expression()})) {
    EXPECT_EQ(p.text_before + p.text_after, "") << p.pass;
    EXPECT_GT(p.after.size, 0) << p.pass;
  }
}

TEST_F(Passes, TakeUpWhatWasDumped) {
  Records records = explain_passes({Tensor::of({1.0f, 2.0f, 3.0f}).sum() + 1.0f}, true);
  EXPECT_STREQ(records.back().pass, "plan.arenas");
  records.pop_back();  // of a kernel alone there is none
  for (const char* pass : {"normalise.number", "optimize.join_words"}) {
    Graph g;
    const auto from = static_cast<size_t>(find(records, pass) - records.data());
    Records again = explain_passes(context_, parse_graph(g, records[from].text_before), true);
    std::erase_if(again, [](const PassRecord& p) { return stage_of(p) == "plan"; });
    ASSERT_EQ(again.size(), records.size() - from) << pass;
    for (size_t i = 0; i < again.size(); ++i) {
      const PassRecord& first = records[from + i];
      EXPECT_STREQ(again[i].pass, first.pass);
      EXPECT_EQ(nameless(again[i]), nameless(first)) << pass;
    }
  }
}

class PassesToMachineCode : public Passes {
 protected:
  PassesToMachineCode() : Passes("NULL:X86") {}
};

TEST_F(PassesToMachineCode, EndInBytes) {
  const Records records = explain_passes({expression()});
  EXPECT_EQ(stages_of(records),
            (std::vector<std::string>{"schedule", "optimize", "lower", "codegen", "plan"}));
  EXPECT_TRUE(find(records, "codegen.encode")->changed());
}

}  // namespace
}  // namespace weft
