// Graphs of passes as arrays, straight from a recording's bytes.
#include "weft/viz/graph_data.h"

#include <set>
#include <thread>

#include "tests/viz/recorded.h"
#include "weft/viz/drawing.h"
#include "weft/viz/session_data.h"
#include "weft/viz/stored_order.h"

namespace weft::viz {
namespace {

class GraphOfPass : public RecordedTest {};

TEST_F(GraphOfPass, HasTheOrderOfItsTexts) {
  train_a_step(recording_to(file()));
  const auto session = Session::open(file());
  const Session::Data& data = session->data();
  size_t compared = 0;
  for (const PassRow& pass : data.passes) {
    NodeSource nodes(data, pass);
    const StateView state = state_of(data, pass.after, nodes);
    if (state.nodes.empty()) continue;
    const StoredOrder order(nodes, state.numbers);
    const Toposort sorted(state.nodes);
    ASSERT_EQ(order.size(), sorted.size());
    for (size_t i = 0; i < order.size(); ++i) {
      NodeRef n = sorted.nodes()[i];
      ASSERT_EQ(nodes.get(order.numbers[i]), n);
      ASSERT_EQ(order.ops[i], n->op);
      ASSERT_EQ(order.dtypes[i], n->dtype);
      ASSERT_EQ(order.begins[i + 1] - order.begins[i], n->nsrc);
      for (uint32_t s = 0; s < n->nsrc; ++s)
        ASSERT_EQ(sorted.nodes()[order.sources[order.begins[i] + s]], n->src(s));
    }
    ++compared;
  }
  EXPECT_GT(compared, 100u);
}

TEST_F(GraphOfPass, MarksWhatAPassMade) {
  train_a_step(recording_to(file()));
  const auto session = Session::open(file());
  const std::string pass(sample_of(find_view("graph"), *session).text("pass"));
  const auto both = graph_data(*session, {{"pass", pass}, {"side", "both"}});
  std::multiset<std::string> before, after, shown_before, shown_after;
  for (const char* side : {"before", "after"}) {
    const auto graph = graph_data(*session, {{"pass", pass}, {"side", side}});
    for (size_t i = 0; i < graph->size(); ++i)
      (side[0] == 'b' ? before : after).insert(graph->label(i));
  }
  for (size_t i = 0; i < both->size(); ++i) {
    if (both->marks[i] != Mark::Added) shown_before.insert(both->label(i));
    if (both->marks[i] != Mark::Removed) shown_after.insert(both->label(i));
  }
  EXPECT_EQ(shown_before, before);
  EXPECT_EQ(shown_after, after);
}

TEST_F(GraphOfPass, HasItsTextsWhileItIsPrepared) {
  record_a_large_pass(recording_to(file(), "NULL"), 50'000);
  const auto session = Session::open(file());
  const auto graph = graph_data(*session, {{"pass", "0"}});
  std::thread preparing([&] { graph->prepare(); });
  for (size_t i = graph->size(); i > 1000; i -= 1000)
    EXPECT_EQ(graph->label(i - 1), graph->kind_names[graph->kinds[i - 1]] + " f32 (8, 64)");
  preparing.join();
}

/// Nobody who looks around meets a refusal.
TEST_F(GraphOfPass, HasNoNodesWhereThereIsNoGraph) {
  record_a_large_pass(recording_to(file(), "NULL"), 1000);  // it is never scheduled
  const auto nothing = [this](const Parameters& of, const std::string& form, const char* why) {
    const auto session = Session::open(file());
    const Json graph = Json::parse(view_json(*session, "graph", of));
    EXPECT_EQ(graph["total"], 0);
    EXPECT_EQ(graph["form"], form);
    EXPECT_NE(graph["title"].get<std::string>().find(why), std::string::npos) << graph["title"];
    const Json drawing = Json::parse(Drawing(graph_data(*session, of), {}).json());
    EXPECT_EQ(drawing["boxes"], 0);
    EXPECT_EQ(drawing["title"], graph["title"]);
  };
  nothing({{"realization", "0"}}, "dataflow", "it is not recorded what it runs");
  std::filesystem::remove(file());
  compute_little(recording_to(file()));
  const Json passes = ask("passes", {{"kernel", "0"}})["passes"];
  const std::string last = passes.back()["pass"].dump();
  for (const char* side : {"after", "both"})
    nothing({{"pass", last}, {"side", side}}, "machine", "not a graph; the view pass shows it");
}

TEST_F(GraphOfPass, SlowAMillionNodesAreDrawn) {
  constexpr size_t kNodes = 1'000'000;
  record_a_large_pass(recording_to(file(), "NULL"), kNodes);
  const auto session = Session::open(file());
  Drawing drawing(graph_data(*session, {{"pass", "0"}}), {});
  const Json coarse = Json::parse(drawing.json());
  EXPECT_EQ(coarse["fine"], false);
  EXPECT_GT(coarse["nodes"], kNodes - 10'000) << "but for equal ones";
  const Json tile = Json::parse(drawing.tile_json({int{coarse["level"]}, 0, 0}));
  EXPECT_GT(tile["cells"].size(), 0u);
  EXPECT_GT(tile["lines"].size(), 0u);
  const uint32_t last = drawing.box_of(coarse["nodes"].get<uint64_t>() - 1);
  EXPECT_EQ(Json::parse(drawing.box_json(last))["shape"], "(8, 64)");
}

}  // namespace
}  // namespace weft::viz
