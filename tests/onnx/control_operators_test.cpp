#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"
#include "weft/base/error.h"
#include "weft/onnx/loops.h"

namespace weft::onnx {
namespace {

DeclaredValue declared(const std::string& name) {
  DeclaredValue v;
  v.name = name;
  return v;
}

Node node_of(const std::string& op, std::vector<std::string> inputs,
             std::vector<std::string> outputs) {
  Node n;
  n.op = op;
  n.inputs = std::move(inputs);
  n.outputs = std::move(outputs);
  return n;
}

Graph graph_of(const std::vector<std::string>& inputs, std::vector<Node> nodes,
               const std::vector<std::string>& outputs) {
  Graph g;
  g.nodes = std::move(nodes);
  for (const std::string& name : inputs) g.inputs.push_back(declared(name));
  for (const std::string& name : outputs) g.outputs.push_back(declared(name));
  return g;
}

Attribute graph_attr(const std::string& name, Graph graph) {
  Attribute a;
  a.name = name;
  a.type = Attribute::Type::Graph;
  a.graphs.push_back(std::make_shared<const Graph>(std::move(graph)));
  return a;
}

std::string refused(const std::string& op, std::vector<Attribute> attributes, const Values& inputs,
                    size_t outputs = 1) {
  try {
    run_node(op, 18, std::move(attributes), inputs, outputs);
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

// x + 1, and what x was.
Graph counting() {
  return graph_of({"i", "go", "x"},
                  {node_of("Identity", {"go"}, {"still"}), node_of("Add", {"x", "x"}, {"next"}),
                   node_of("Identity", {"x"}, {"was"})},
                  {"still", "next", "was"});
}

TEST(ControlOperators, LoopCarriesAndStacks) {
  for (const int64_t trips : {1, 5, 200}) {
    const Values found = run_node("Loop", 16, {graph_attr("body", counting())},
                                  {scalar(trips), Value(), known({}, {0}, DType::I64)}, 2);
    EXPECT_EQ(found[0].tensor().item<int64_t>(), 0);
    EXPECT_EQ(found[1].dims().text(), Dims({Dim(trips)}).text());
  }
  const Values doubled = run_node("Loop", 16, {graph_attr("body", counting())},
                                  {scalar(100), Value(), known({}, {1.0 / 1024})}, 2);
  EXPECT_EQ(doubled[0].tensor().item<float>(), 0x1p90f);
  EXPECT_EQ(doubled[1].tensor().to_vector<float>()[99], 0x1p89f);
}

TEST(ControlOperators, LoopOfNothing) {
  Graph body = counting();
  body.outputs[2].type.element = ElementType::Double;
  body.outputs[2].type.shape = {DeclaredDim{2, ""}, DeclaredDim{{}, "n"}};
  const Values found =
      run_node("Loop", 16, {graph_attr("body", body)}, {scalar(0), Value(), known({2}, {3, 4})}, 2);
  EXPECT_EQ(found[0].tensor().to_vector<float>(), (std::vector<float>{3, 4}));
  EXPECT_EQ(found[1].dims().text(), "(0, 2, 0)");
  EXPECT_EQ(found[1].dtype(), DType::F64);
  EXPECT_EQ(
      refused("Loop", {graph_attr("body", counting())}, {scalar(0), Value(), known({}, {1})}, 2),
      "Loop node that makes 'y0': no trip is made, and the body does not say of what type its "
      "output 'was' is");
}

TEST(ControlOperators, EndlessLoopsEnd) {
  const Graph body = graph_of({"i", "go"}, {node_of("Identity", {"go"}, {"still"})}, {"still"});
  const std::string text = refused("Loop", {graph_attr("body", body)}, {scalar(INT64_MAX)}, 0);
  EXPECT_EQ(text, strformat("Loop node: ran its body {} times and would go on; this many trips are "
                            "the limit",
                            kMostTrips));
}

TEST(ControlOperators, BodiesThatDoNotFit) {
  const Graph body = graph_of({"i"}, {node_of("Identity", {"i"}, {"still"})}, {"still"});
  EXPECT_EQ(refused("Loop", {graph_attr("body", body)}, {scalar(1)}),
            "Loop node that makes 'y0': the body has 1 inputs and 1 outputs; 2 inputs and at least "
            "1 outputs belong to this node");
  EXPECT_EQ(refused("Scan", {graph_attr("body", body), attr("num_scan_inputs", 3)}, {ramp({2})}),
            "Scan node that makes 'y0': num_scan_inputs 3 of 1 inputs: 1 to as many as there are");
}

// A sum so far, and its stack.
Graph summing() {
  return graph_of({"sum", "x"},
                  {node_of("Add", {"sum", "x"}, {"next"}), node_of("Identity", {"next"}, {"y"})},
                  {"next", "y"});
}

TEST(ControlOperators, LongScansAreStepsToo) {
  for (const int64_t length : {3, 40, 130}) {  // laid out, compiled
    std::vector<double> all;
    for (int64_t i = 0; i < length; ++i) all.push_back(static_cast<double>(i));
    const Values found =
        run_node("Scan", 11,
                 {graph_attr("body", summing()), attr("num_scan_inputs", 1),
                  attr("scan_input_directions", ints{1}), attr("scan_output_directions", ints{1})},
                 {known({}, {0}), known({length}, all)}, 2);
    EXPECT_EQ(found[0].tensor().item<float>(), static_cast<float>(length * (length - 1) / 2));
    const auto sums = found[1].tensor().to_vector<float>();
    EXPECT_EQ(sums.back(), static_cast<float>(length - 1));
    EXPECT_EQ(sums.front(), static_cast<float>(length * (length - 1) / 2));
  }
}

TEST(ControlOperators, ScanOfBatches) {
  const Values found =
      run_node("Scan", 8, {graph_attr("body", summing()), attr("num_scan_inputs", 1)},
               {known(ints{3, 2}), known({2}, {10, 20}), known({2, 3}, {1, 2, 3, 4, 5, 6})}, 2);
  EXPECT_EQ(found[0].tensor().to_vector<float>(), (std::vector<float>{16, 29}));
  EXPECT_EQ(found[1].tensor().to_vector<float>(), (std::vector<float>{11, 13, 16, 24, 29, 0}));
}

Value sequence_of(size_t count) {
  std::vector<Value> all;
  for (size_t i = 0; i < count; ++i) all.push_back(ramp({2}, DType::F32, static_cast<int64_t>(i)));
  return Value::sequence(std::move(all));
}

TEST(ControlOperators, SequencesRefuse) {
  EXPECT_EQ(refused("SequenceAt", {}, {sequence_of(2), scalar(2)}),
            "SequenceAt node that makes 'y0': position 2 in a sequence of 2: -2 to 1");
  EXPECT_EQ(
      refused("SequenceInsert", {}, {sequence_of(2), ramp({2}), scalar(INT64_MIN)}),
      "SequenceInsert node that makes 'y0': position -9223372036854775808 in a sequence of 2: "
      "-2 to 2");
  EXPECT_EQ(
      refused("SequenceErase", {}, {sequence_of(0)}),
      "SequenceErase node that makes 'y0': the sequence is empty: it has nothing to be erased");
  EXPECT_EQ(
      refused("ConcatFromSequence", {attr("axis", 0)}, {sequence_of(0)}),
      "ConcatFromSequence node that makes 'y0': the sequence is empty: there is nothing to be "
      "joined");
  EXPECT_EQ(refused("SplitToSequence", {}, {ramp({4}), scalar(0)}),
            "SplitToSequence node that makes 'y0': split 0: pieces have at least one element");
  EXPECT_EQ(refused("SplitToSequence", {}, {ramp({4}), known(ints{1, 2})}),
            "SplitToSequence node that makes 'y0': splits add up to 3, and the axis has 4: make "
            "them equal");
  EXPECT_EQ(refused("SplitToSequence", {}, {ramp({4}), scalar(INT64_MAX)}),
            "SplitToSequence node that makes 'y0': split 9223372036854775807 of an axis of 4: 0 to "
            "its size");
  EXPECT_EQ(
      refused("OptionalGetElement", {}, {Value::optional(Value())}),
      "OptionalGetElement node that makes 'y0': the optional is empty; ask OptionalHasElement "
      "before");
}

TEST(ControlOperators, StringsInSequences) {
  const Value x = Value::strings({"a", "b", "c"}, {3});
  const Values parts = run_node("SplitToSequence", 11, {}, {x, scalar(2)});
  ASSERT_EQ(parts[0].elements().size(), 2u);
  EXPECT_EQ(parts[0].elements()[1].texts(), (texts{"c"}));
}

}  // namespace
}  // namespace weft::onnx
