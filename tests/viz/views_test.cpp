// A training step, recorded and looked at from every side.
#include "tests/trust/planted_rules.h"
#include "tests/viz/recorded.h"
#include "weft/base/context.h"
#include "weft/base/format.h"
#include "weft/isa/x86_estimate.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/nn/state.h"
#include "weft/run/recording_scope.h"
#include "weft/target/core.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/training.h"
#include "weft/viz/perfetto.h"

#include <algorithm>

namespace weft::viz {
namespace {

/// One recording for all: making it takes longer than reading it.
class Views : public RecordedTest {
 protected:
  void SetUp() override {
    RecordedTest::SetUp();
    train_a_step(recording_to(file()));
  }
  void check_code(const std::string& kernel) const;
  /// The first pass of a kernel that changed its graph.
  int64_t changed_pass() const {
    std::string seen;
    const Json passes = ask("passes", {{"changed", "1"}});
    for (const Json& p : passes["passes"]) {
      (seen += p["name"].get<std::string>()) += ' ';
      if (p["kernel"].is_null() || p["size_before"] < 5) continue;
      if (ask("pass", {{"pass", p["pass"].dump()}})["form"] == "graph") return p["pass"];
    }
    ADD_FAILURE() << seen;
    return 0;
  }
};

/// Lines, blocks, loops and lives fit each other and the recorded bytes.
void Views::check_code(const std::string& kernel) const {
  const Json code = ask("code", {{"kernel", kernel}, {"count", "100000"}});
  EXPECT_EQ(ask("kernel", {{"kernel", kernel}})["has_code"], true);
  ASSERT_EQ(code["lines"].size(), code["total"]);
  const size_t registers = code["registers"].size(), lines = code["lines"].size();
  EXPECT_GT(registers, 3U);
  size_t offset = 0;
  for (const Json& line : code["lines"]) {
    EXPECT_EQ(line["offset"], offset);
    offset += line["bytes"].get<std::string>().size() / 2;
    EXPECT_EQ(line["registers"].get<std::string>().size(), registers);
  }
  EXPECT_GT(offset, 0U);
  size_t next = 0;
  for (const Json& block : code["blocks"]) {
    EXPECT_EQ(block["first"], next);
    next = block["last"].get<size_t>() + 1;
    for (const Json& to : block["next"]) EXPECT_LT(to, code["blocks"].size());
  }
  EXPECT_EQ(next, lines);
  size_t hot = 0;
  for (const Json& loop : code["loops"]) {
    hot += loop["hot"] == true;
    EXPECT_GT(loop["cycles"], 0);
    EXPECT_EQ(loop["ports"][0]["port"], loop["busiest"]);
  }
  EXPECT_EQ(hot, code["loops"].empty() ? 0U : 1U);
  for (const Json& life : code["lives"]) {
    EXPECT_LT(life[0], registers);
    EXPECT_LE(life[1], life[2]);
    for (size_t i = life[1]; i <= life[2]; ++i)
      EXPECT_NE(code["lines"][i]["registers"].get<std::string>()[life[0].get<size_t>()], ' ');
  }
  const Json graph = ask("graph", {{"kernel", kernel}});
  EXPECT_EQ(graph["form"], "control");
  EXPECT_EQ(graph["total"], code["blocks"].size());
  EXPECT_EQ(ask("code", {{"kernel", kernel}, {"first", "2"}, {"count", "3"}})["lines"][0]["line"],
            2);
  const std::string shown = text("code", {{"kernel", kernel}});
  EXPECT_NE(shown.find("an estimate, not a measurement"), std::string::npos);
  const Core core = core_named_in(ask("session")["processes"][0]["machine"].get<std::string>());
  EXPECT_EQ(code["estimate"], x86::estimate_source(core));
  EXPECT_EQ(core, this_core());
  EXPECT_NE(shown.find("hot loop"), std::string::npos);
  const Json roofline = ask("roofline", {{"kernel", kernel}});
  EXPECT_GT(roofline["measured_seconds"], 0);
  EXPECT_GT(roofline["limits"]["flops_per_second"], 1e9);
  EXPECT_EQ(roofline["limits"]["levels"].size(), 4U);
  EXPECT_GT(roofline["roof_seconds"], 0);
}

/// Nobody has to ask for it.
TEST_F(RecordedTest, a_rule_without_a_proof_is_named) {
  const test::PlantedRule wrong = test::planted_rules()[0];
  {
    const test::Planted planted(*wrong.rule);
    Context context(recording_to(file()));
    const ContextScope scope(context);
    const Tensor x = Tensor::arange(64).cast(DType::I32).contiguous().realize();
    (x * x + x * x).realize();
  }
  EXPECT_EQ(ask("session")["unproved"], Json::array({wrong.rule->name}));
  const std::string said = strformat("no known proof: the rule {} fired", wrong.rule->name);
  EXPECT_NE(text("session").find(said), std::string::npos) << text("session");
}

TEST_F(Views, of_a_training_step) {
  // ---- the session
  const Json session = ask("session");
  ASSERT_EQ(session["processes"].size(), 1u);
  EXPECT_EQ(session["processes"][0]["pid"], ::getpid());
  EXPECT_TRUE(session["processes"][0]["finished"]);
  EXPECT_TRUE(session["missing"].empty()) << session["missing"];
  EXPECT_GT(session["processes"][0]["kernels"], 5);
  EXPECT_TRUE(session["unproved"].empty()) << session["unproved"];

  // ---- realizations, and what they ran
  const Json runs = ask("realizations");
  ASSERT_GE(runs["total"], 1);
  Json step;
  for (const Json& run : runs["realizations"])
    if (step.is_null() || run["steps"] > step["steps"]) step = run;
  EXPECT_EQ(step["kind"], "realize");
  EXPECT_NE(step["line"].get<std::string>().find("recorded_support.cpp:"), std::string::npos);
  EXPECT_GT(step["compile_ns"], 0);
  EXPECT_FALSE(step["kernels"].empty());
  for (const Json& k : step["kernels"]) EXPECT_FALSE(k["kernel"].is_null()) << k;

  // ---- passes, a pass, a rule in it
  const std::string id = step["realization"].dump();
  const Json passes = ask("passes", {{"realization", id}});
  EXPECT_GT(passes["total"], 50);
  const std::string tile = std::to_string(changed_pass());
  const Json pass = ask("pass", {{"pass", tile}});
  EXPECT_EQ(pass["form"], "graph");
  EXPECT_NE(pass["before"], pass["after"]);
  EXPECT_FALSE(pass["diff"].empty());
  EXPECT_EQ(pass["changed"], true);
  const Json fired = ask("rules", {{"fired", "1"}});
  ASSERT_GT(fired["total"], 5);
  const Json rule = fired["rules"][0];
  EXPECT_GT(rule["fired"], 0);
  EXPECT_FALSE(rule["text"].get<std::string>().empty());
  EXPECT_FALSE(rule["proof"].get<std::string>().empty()) << rule;
  const std::string where = rule["passes"][0].dump();
  const Json firings = ask("firings", {{"pass", where}});
  EXPECT_EQ(firings["total"], ask("pass", {{"pass", where}})["firings"]);
  const Json firing = ask("firing", {{"pass", where}, {"step", "0"}});
  EXPECT_EQ(firing["before"], firings["firings"][0]["before"]);
  EXPECT_EQ(firing["after"], firings["firings"][0]["after"]);
  EXPECT_NE(firing["before_graph"].get<std::string>().find(" = "), std::string::npos);

  // ---- graphs
  const Json graph = ask("graph", {{"pass", tile}, {"side", "both"}});
  ASSERT_EQ(graph["nodes"].size(), graph["total"]);
  EXPECT_EQ(graph["edges"].size(), graph["edge_total"]);
  std::map<std::string, int> marks;
  for (const Json& n : graph["nodes"]) ++marks[n["mark"]];
  EXPECT_GT(marks["added"], 0);
  EXPECT_GT(marks["same"], 0);
  for (const Json& e : graph["edges"]) EXPECT_LT(e[0], e[1]);
  const Json flow = ask("graph", {{"realization", id}});
  EXPECT_EQ(flow["form"], "dataflow");
  int launched = 0;
  for (const Json& n : flow["nodes"]) launched += n["op"] == "kernel" || n["op"] == "copy";
  EXPECT_EQ(launched, step["steps"]);

  // ---- time
  const Json timeline = ask("timeline");
  size_t spans = 0;
  for (const Json& t : timeline["tracks"]) spans += t["spans"].size();
  EXPECT_EQ(spans, timeline["total"]);
  const Json coarse = ask("timeline", {{"resolution", "1000000000"}});
  size_t drawn = 0, merged = 0;
  for (const Json& t : coarse["tracks"])
    for (const Json& s : t["spans"]) ++drawn, merged += s["merged"].get<size_t>();
  EXPECT_LT(drawn, spans / 4);
  EXPECT_EQ(merged, spans);

  // ---- memory
  const Json memory = ask("memory", {{"realization", id}});
  EXPECT_EQ(memory["steps"], step["steps"]);
  EXPECT_EQ(memory["by_step"].size(), step["steps"]);
  EXPECT_GT(memory["peak"]["bytes"], 16 * 28 * 28 * 4);
  EXPECT_FALSE(memory["arenas"].empty());

  // ---- kernels
  const Json kernels = ask("kernels");
  // The longest that has a loop, where there is machine code: a kernel runs once here, and on a
  // busy machine one of ten instructions may have been interrupted for longer than others take.
  const auto loops = [&](const Json& k) {
    const std::string of = k["kernel"].dump();
    return ask("kernel", {{"kernel", of}})["target"] != "x86" ||
           !ask("code", {{"kernel", of}})["loops"].empty();
  };
  const auto found = std::find_if(kernels["kernels"].begin(), kernels["kernels"].end(), loops);
  ASSERT_NE(found, kernels["kernels"].end());
  const Json longest = *found;
  EXPECT_GT(longest["runs"], 0);
  const Json kernel = ask("kernel", {{"kernel", longest["kernel"].dump()}});
  std::map<std::string, std::string> texts;
  for (const Json& t : kernel["texts"]) texts[t["kind"]] = t["text"];
  EXPECT_EQ(texts.count("kernel"), 1u);
  EXPECT_EQ(texts.count("graph"), 1u);
  EXPECT_NE(texts["program"].find("program "), std::string::npos);
  EXPECT_FALSE(kernel["applied"].empty());
  EXPECT_FALSE(kernel["decisions"].empty());
  EXPECT_FALSE(kernel["passes"].empty());
  if (kernel["target"] == "x86") {
    EXPECT_NE(texts["listing"].find("ret"), std::string::npos) << texts["listing"];
    EXPECT_EQ(texts["bytes"].substr(0, 6), "000000");
  }

  // ---- its machine code
  if (kernel["target"] == "x86") check_code(longest["kernel"].dump());

  const Json again =
      ask("recompile", {{"kernel", longest["kernel"].dump()}, {"rules", "add.zero"}});
  EXPECT_FALSE(again["with"].get<std::string>().empty());

  // ---- the rest
  EXPECT_FALSE(ask("lines")["lines"].empty());
  const Json statistics = ask("statistics");
  EXPECT_FALSE(statistics["passes"].empty());
  EXPECT_GT(statistics["counters"]["kernels"], 0) << statistics["counters"];
  EXPECT_GT(ask("search", {{"text", "EXP2"}})["total"], 0);
  EXPECT_GT(ask("search", {{"text", "optimize.tile"}, {"kind", "pass"}})["total"], 0);
  EXPECT_EQ(ask("search", {{"text", "no such thing"}})["total"], 0);
  EXPECT_EQ(ask("views")["views"].size(), views().size());
  const Json trace = Json::parse(perfetto_json(*Session::open(file())));
  EXPECT_GT(trace["traceEvents"].size(), spans);

  // ---- every view as text
  const auto session_read = Session::open(file());
  for (const View& view : views())
    EXPECT_FALSE(view_text(*session_read, view.name, sample_of(view, *session_read), false).empty())
        << view.name;
  EXPECT_NE(text("pass", {{"pass", tile}}).find("\n+ "), std::string::npos);
}

struct TwoLayers {
  nn::Linear first{8, 8}, second{8, 4};
  void visit(StateVisitor& v) {
    v("block.first", first);
    v("second", second);
  }
};

TEST_F(RecordedTest, layers_are_those_of_the_parameters_that_are_read) {
  {
    Context context(recording_to(file()));
    const ContextScope scope(context);
    TwoLayers net;
    realize(parameters(net));
    const Tensor x = Tensor::full({16, 8}, 0.5).contiguous().realize();
    net.second(net.first(x).relu()).realize();
  }
  const Json runs = ask("realizations");
  const std::string last = runs["realizations"].back()["realization"].dump();
  std::map<std::string, int> layers;
  std::string names;
  const Json graph = ask("graph", {{"realization", last}});
  for (const Json& n : graph["nodes"]) {
    ++layers[n["layer"]];
    (names += n["label"]) += '\n';
  }
  EXPECT_GT(layers["block.first"], 0) << graph;
  EXPECT_GT(layers["second"], 0) << graph;
  EXPECT_NE(names.find("block.first.weight f32"), std::string::npos) << names;
  EXPECT_NE(text("graph", {{"realization", last}}).find("block.first"), std::string::npos);
  const Json memory = ask("memory", {{"realization", last}});
  std::string held;
  for (const Json& b : memory["buffers"]) held += b["name"];
  EXPECT_NE(held.find("second.bias"), std::string::npos) << held;
}

TEST_F(RecordedTest, each_line_of_a_training_step_has_its_kernels) {
  int first = 0;
  {
    Context context(recording_to(file()));
    const ContextScope scope(context);
    const TrainingScope training;
    nn::Linear layer(32, 8);
    nn::SGD optimizer({layer.weight, layer.bias});
    const Tensor x = Tensor::full({16, 32}, 0.5).contiguous().realize();
    first = __LINE__ + 1;
    const Tensor hidden = layer(x);
    const Tensor bent = hidden.relu();
    const Tensor loss = (bent * 3).exp2().mean();
    loss.backward();
    optimizer.step();
  }
  std::map<std::string, Json> lines;
  const Json all = ask("lines");
  for (const Json& row : all["lines"]) lines[row["line"]] = row;
  for (int i = 0; i < 5; ++i) {
    if (i == 3) continue;  // a gradient belongs to the line whose gradient it is
    const std::string line = strformat("views_test.cpp:{}", first + i);
    ASSERT_TRUE(lines.contains(line)) << line << " " << all;
    EXPECT_FALSE(lines[line]["kernels"].empty()) << line << " " << all;
    EXPECT_GT(lines[line]["runs"], 0) << line;
  }
  const std::string kernel = lines[strformat("views_test.cpp:{}", first + 1)]["kernels"][0].dump();
  const std::vector<std::string> own = ask("kernel", {{"kernel", kernel}})["lines"];
  EXPECT_EQ(std::ranges::count(own, strformat("views_test.cpp:{}", first + 1)), 1);
  const Parameters wanted{{"text", strformat("views_test.cpp:{}", first + 1)}, {"kind", "line"}};
  EXPECT_GT(ask("search", wanted)["total"], 0);
}

TEST_F(RecordedTest, code_is_there_where_weft_made_it) {
  compute_little(recording_to(file(), "CPU:C"));
  EXPECT_ERROR(ask("code", {{"kernel", "0"}}),
               "viz.parameter: of kernel 0 no machine code of ours is recorded: its target is 'c'");
  EXPECT_ERROR(ask("graph", {{"kernel", "0"}}), "no machine code of ours");
  EXPECT_EQ(ask("kernel", {{"kernel", "0"}})["has_code"], false);
  EXPECT_EQ(ask("roofline", {{"kernel", "0"}})["kernel"], 0);
}

TEST_F(RecordedTest, a_stretch_of_a_program) {
  const Options options = Options::from_environment();
  Context context(options);
  const ContextScope scope(context);
  const auto compute = [] { (Tensor::arange(64).cast(DType::F32) * 3 + 1).sum().realize(); };
  compute();
  {
    const RecordingScope recording(file());
    EXPECT_EQ(recording.path(), file());
    compute();
    EXPECT_ERROR(RecordingScope(at("other")),
                 strformat("what runs is recorded to {} already", file()));
  }
  const int64_t kernels = ask("kernels")["total"];
  EXPECT_GT(kernels, 0);
  EXPECT_TRUE(ask("session")["processes"][0]["finished"]);
  compute();
  {
    const RecordingScope recording(at("other"));
    compute();
  }
  EXPECT_EQ(ask("kernels")["total"], kernels);
  EXPECT_EQ(Json::parse(view_json(*Session::open(at("other")), "kernels", {}))["total"], kernels);
}

TEST_F(RecordedTest, parameters_that_are_wrong_are_said) {
  compute_little(recording_to(file()));
  EXPECT_ERROR(ask("nothing"), "viz.view: there is no view 'nothing'");
  EXPECT_ERROR(ask("passs"), "did you mean passes?");
  EXPECT_ERROR(ask("pass"), "viz.parameter: pass is not given; say which passes is meant");
  EXPECT_ERROR(ask("pass", {{"pass", "-1"}}),
               "pass is '-1'; it must be a whole number of at least 0");
  EXPECT_ERROR(ask("pass", {{"pass", "1e3"}}), "pass is '1e3'");
  EXPECT_ERROR(ask("pass", {{"pass", "999999"}}), "pass is 999999; the session has ");
  EXPECT_ERROR(ask("pass", {{"pas", "1"}}), "view pass has no parameter 'pas'; did you mean pass?");
  EXPECT_ERROR(ask("graph", {{"pass", "0"}, {"side", "left\x1b"}}),
               "side is 'left\\x1b'; it must be before, after or both");
  EXPECT_ERROR(ask("search"), "text is not given");
  EXPECT_ERROR(ask("search", {{"text", "a"}, {"kind", "b"}}), "kind is 'b'");
}

}  // namespace
}  // namespace weft::viz
