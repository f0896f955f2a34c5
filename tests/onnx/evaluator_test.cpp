// Graphs inside graphs, functions, what is known without running anything, and errors that say
// where.
#include "weft/onnx/evaluator.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "tests/onnx/onnx_bytes.h"
#include "weft/base/context.h"
#include "weft/onnx/runner.h"
#include "weft/run/stats.h"
#include "weft/tensor/bound_sizes.h"
#include "weft/tensor/jit.h"

namespace weft::onnx {
namespace {

using namespace bytes;

Model parse(const std::string& file) {
  static std::vector<std::unique_ptr<std::string>> kept;  // what arrays are views of
  kept.push_back(std::make_unique<std::string>(file));
  return parse_onnx(as_bytes(*kept.back()), "m.onnx");
}

/// Of x (2, 3, ...) to y; i64 constants by name.
using Constants = std::vector<std::pair<std::string, std::vector<int64_t>>>;
Model model_of(const std::vector<std::string>& nodes, const Constants& constants = {},
               const std::string& more = "") {
  GraphParts parts{nodes, {declared("x", {-1, 3})}, {part(1, "y")}, {}};
  for (const auto& [name, values] : constants)
    parts.initialisers.push_back(
        tensor(name, {static_cast<int64_t>(values.size())}, 7, raw(values)));
  return parse(model(graph(parts), 18, more));
}
Value run(const Model& m, const Tensor& x) { return Evaluator(m).run(m.graph, {x})[0]; }
std::vector<float> numbers(const Value& v) { return v.tensor().to_vector<float>(); }

class OnnxEvaluator : public testing::Test {
 protected:
  Context context_{Options()};
  ContextScope scope_{context_};
};

// ---- what is known

TEST_F(OnnxEvaluator, ShapeArithmeticRunsNothing) {
  const Model m = model_of({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"rows"}),
                            node("Mul", {"rows", "two"}, {"more"}),
                            node("Concat", {"more", "rest"}, {"to"}, {int_attribute("axis", 0)}),
                            node("Reshape", {"x", "to"}, {"y"})},
                           {{"zero", {0}}, {"two", {2}}, {"rest", {-1}}});
  const Tensor x = Tensor::ones({2, 3, 4});
  const int64_t before = run_stats(context_).kernels;
  EXPECT_EQ(run(m, x).dims(), (Dims{4, 6}));
  EXPECT_EQ(run_stats(context_).kernels, before);
}

TEST_F(OnnxEvaluator, SymbolicSizesSurviveArithmetic) {
  const Model m = model_of({node("Shape", {"x"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                            node("Add", {"n", "two"}, {"y"})},
                           {{"zero", {0}}, {"two", {2}}});
  const Variable n("n", 1, 64);
  const auto known = run(m, Tensor::ones({64, 3}).shrink({{0, n.bind(5)}, {0, 3}})).integers();
  ASSERT_TRUE(known);
  EXPECT_FALSE((*known)[0].is_static());
  EXPECT_EQ((*known)[0].max(), 66);
}

TEST_F(OnnxEvaluator, SizesThroughFloatsAreKnown) {
  const float half = 0.5f;
  GraphParts parts{
      {node("Shape", {"x"}, {"s"}), node("Cast", {"s"}, {"f"}, {int_attribute("to", 1)}),
       node("Mul", {"f", "half"}, {"g"}), node("Floor", {"g"}, {"h"}),
       node("Cast", {"h"}, {"y"}, {int_attribute("to", 7)})},
      {declared("x", {-1, 3})},
      {part(1, "y")},
      {tensor("half", {}, 1, raw(std::vector{half}))}};
  const Value y = run(parse(model(graph(parts))), Tensor::ones({5, 3}));
  ASSERT_TRUE(y.constant());
  EXPECT_EQ((*y.integers())[0], Dim(2));
  EXPECT_EQ((*y.integers())[1], Dim(1));
}

TEST_F(OnnxEvaluator, FoldsAreWhatKernelsGive) {
  const Constants constants = {{"a", {-7, 7, 5, 0}}, {"b", {2, -2, 3, 4}}};
  struct Case {
    const char* op;
    std::vector<int64_t> wanted;
  };
  for (const Case& c : std::vector<Case>{{"Add", {-5, 5, 8, 4}},
                                         {"Div", {-3, -3, 1, 0}},
                                         {"Mod", {1, -1, 2, 0}},
                                         {"Max", {2, 7, 5, 4}},
                                         {"Min", {-7, -2, 3, 0}}}) {
    const Model m = model_of({node(c.op, {"a", "b"}, {"y"})}, constants);
    const Value known = run(m, Tensor::ones({1, 3}));
    ASSERT_TRUE(known.constant()) << c.op;
    EXPECT_EQ(known.tensor().to_vector<int64_t>(), c.wanted) << c.op;
    // The same of data.
    Model data = model_of({node(c.op, {"x", "b"}, {"y"})}, constants);
    data.graph.inputs[0].type.element = ElementType::Int64;
    EXPECT_EQ(
        run(data, Tensor::of(std::vector<int64_t>{-7, 7, 5, 0})).tensor().to_vector<int64_t>(),
        c.wanted)
        << c.op;
  }
}

// ---- graphs inside graphs, functions

TEST_F(OnnxEvaluator, BranchesSeeWhatIsAround) {
  const auto branch = [](const char* op) {
    return graph({{node(op, {"a"}, {"z"})}, {}, {part(1, "z")}, {}});
  };
  const Model m = model_of(
      {node("Neg", {"x"}, {"a"}), node("ReduceSum", {"x"}, {"sum"}, {int_attribute("keepdims", 0)}),
       node("Greater", {"sum", "zero"}, {"c"}), node("Sub", {"sum", "sum"}, {"zero"}),
       node("If", {"c"}, {"y"},
            {graph_attribute("then_branch", branch("Abs")),
             graph_attribute("else_branch", branch("Identity"))})});
  EXPECT_EQ(numbers(run(m, Tensor::of({{1.0, 2.0, 3.0}}))), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(numbers(run(m, Tensor::of({{-1.0, -2.0, -3.0}}))), (std::vector<float>{1, 2, 3}));
}

/// A function "f" of domain "me": LeakyRelu whose slope is the attribute "slope" of the call.
std::string leaky_function(const std::string& inside) {
  return part(25, part(1, "f") + part(4, "a") + part(5, "b") + part(6, "slope") + part(7, inside) +
                      part(9, number(2, 18)) + part(9, part(1, "me") + number(2, 1)) +
                      part(10, "me"));
}

TEST_F(OnnxEvaluator, FunctionsRunWithTheCallsAttributes) {
  const std::string slope =
      part(1, "slope") + varint(2 << 3 | 5) + std::string("\0\0\0\x3f", 4) + number(20, 1);  // 0.5
  const std::string inside = node("LeakyRelu", {"a"}, {"b"}, {reference("alpha", "slope", 1)});
  const Model m = model_of({node("f", {"x"}, {"y"}, {slope}, "me")}, {}, leaky_function(inside));
  EXPECT_EQ(numbers(run(m, Tensor::of({{-1.0, 2.0, -4.0}}))), (std::vector<float>{-0.5f, 2, -2}));
  // Not given: as if the attribute were not there, which is 0.01.
  const Model usual = model_of({node("f", {"x"}, {"y"}, {}, "me")}, {}, leaky_function(inside));
  EXPECT_EQ(numbers(run(usual, Tensor::of({{-1.0, 2.0, -4.0}}))),
            (std::vector<float>{-0.01f, 2, -0.04f}));
}

TEST_F(OnnxEvaluator, O10FunctionsThatCallThemselves) {
  const Model m = model_of({node("f", {"x"}, {"y"}, {}, "me")}, {},
                           leaky_function(node("f", {"a"}, {"b"}, {}, "me")));
  EXPECT_ERROR(Evaluator{m}, "onnx.depth: the function 'f' calls itself");
}

// ---- errors

TEST_F(OnnxEvaluator, WhatIsMissingIsListedAtOnce) {
  const Model m = model_of({node("Foo", {"x"}, {"a"}), node("Foo", {"a"}, {"b"}),
                            node("Bar", {"b"}, {"y"}, {}, "com.acme")});
  EXPECT_ERROR(Evaluator{m},
               "onnx.unsupported: the model needs 2 operators that weft lacks; docs/onnx.md lists "
               "what there is:\n  Bar (com.acme, opset 1): com.acme.Bar node that makes 'y'\n"
               "  Foo (ai.onnx, opset 18): Foo node that makes 'a', Foo node that makes 'b'");
}

TEST_F(OnnxEvaluator, ErrorsSayWhichNode) {
  const Tensor x = Tensor::ones({2, 3});
  const auto error = [&](const std::vector<std::string>& nodes, const Constants& constants) {
    const Model m = model_of(nodes, constants);
    return error_of([&] { run(m, x); });
  };
  EXPECT_EQ(error({node("Reshape", {"x", "to"}, {"y"})}, {{"to", {4}}}),
            "onnx.node: Reshape node that makes 'y': 6 elements of shape (2, 3) do not fit into "
            "shape (4,)");
  EXPECT_NE(error({node("Add", {"x", "c"}, {"y"})}, {{"c", {1, 2, 3, 4}}})
                .find("Add node that makes 'y': "),
            std::string::npos);
  EXPECT_EQ(error({node("Abs", {"x"}, {"y", "z"})}, {}),
            "onnx.node: Abs node that makes 'y': output 1 is not one that this operator gives in "
            "opset 18");
  EXPECT_EQ(error({node("Add", {"x"}, {"y"})}, {}),
            "onnx.node: Add node that makes 'y': input 1 is missing");
  EXPECT_EQ(
      error({node("Concat", {"x"}, {"y"}, {part(1, "axis") + part(4, "0") + number(20, 3)})}, {}),
      "onnx.node: Concat node that makes 'y': the attribute axis is a string where an int is "
      "expected");
  EXPECT_EQ(error({node("Concat", {"x", "x"}, {"y"}, {int_attribute("axis", 2)})}, {}),
            "onnx.node: Concat node that makes 'y': axis 2 is out of range for a tensor of 2 axes; "
            "use -2 to 1");
}

TEST_F(OnnxEvaluator, O11SizesThatAreTooLarge) {
  const auto error = [](const std::vector<std::string>& nodes, const Constants& constants) {
    const Model m = model_of(nodes, constants);
    return error_of([&] { run(m, Tensor::ones({1, 3})).tensor().contiguous().realize(); });
  };
  const int64_t large = int64_t{1} << 40;
  for (const std::string& text :
       {error({node("Expand", {"x", "to"}, {"y"})}, {{"to", {large, large, 3}}}),
        error({node("Expand", {"x", "to"}, {"y"})}, {{"to", {large, 3}}}),
        error({node("Tile", {"x", "to"}, {"y"})}, {{"to", {large, large}}}),
        error({node("ConstantOfShape", {"to"}, {"y"})}, {{"to", {large, large}}}),
        error({node("ConstantOfShape", {"to"}, {"y"})}, {{"to", {-5}}}),
        error({node("Reshape", {"x", "to"}, {"y"})}, {{"to", {large, large}}}),
        error({node("Pad", {"x", "to"}, {"y"})}, {{"to", {0, large, large, large}}})})
    EXPECT_NE(text, "no error");
}

// ---- the runner

TEST_F(OnnxEvaluator, TheSecondCallReplays) {
  OnnxRunner runner(model_of(
      {node("Abs", {"x"}, {"a"}), node("Exp", {"a"}, {"b"}), node("Sub", {"b", "a"}, {"y"})}));
  const auto call = [&](double v) {
    const Tensor x = Tensor::full({2, 3}, v).contiguous();
    return runner({{"x", x}}).at("y").tensor().to_vector<float>()[0];
  };
  EXPECT_NEAR(call(1), 1.7182818f, 1e-5);
  EXPECT_EQ(runner.kernels(), 1u);
  EXPECT_NEAR(call(0), 1, 1e-5);
  EXPECT_NEAR(call(-1), 1.7182818f, 1e-5);
  // Another shape is captured for itself.
  EXPECT_EQ(runner({{"x", Tensor::ones({5, 3})}}).at("y").dims(), (Dims{5, 3}));
}

TEST_F(OnnxEvaluator, WhatIsComputedFromConstantsIsCapturedAndComputedOnce) {
  const std::vector<float> rows = {1, 2, 3, 4, 5, 6};
  GraphParts parts{{node("Concat", {"w", "w"}, {"ww"}, {int_attribute("axis", 1)}),
                    node("Transpose", {"ww"}, {"t"}), node("MatMul", {"x", "t"}, {"y"})},
                   {declared("x", {-1, 6})},
                   {part(1, "y")},
                   {tensor("w", {2, 3}, 1, raw(rows))}};
  OnnxRunner runner(parse(model(graph(parts), 18)));
  for (const double v : {1.0, 2.0, 3.0}) {
    const Tensor x = Tensor::full({4, 6}, v).contiguous();
    const std::vector<float> y = runner({{"x", x}}).at("y").tensor().to_vector<float>();
    EXPECT_EQ(y[0], static_cast<float>(12 * v));
    EXPECT_EQ(y[7], static_cast<float>(30 * v));
    EXPECT_EQ(runner.kernels(), 1u);
  }
}

/// As exporters write the first state of an LSTM. Before they are copied they have an address of
/// their own in every evaluation.
TEST_F(OnnxEvaluator, WhatTheHostComputesIsCaptured) {
  GraphParts parts{{node("Shape", {"x"}, {"rows"}, {int_attribute("end", 1)}),
                    node("Concat", {"rows", "width"}, {"shape"}, {int_attribute("axis", 0)}),
                    node("Expand", {"w", "shape"}, {"wide"}), node("Add", {"x", "wide"}, {"y"})},
                   {declared("x", {4, 512})},
                   {part(1, "y")},
                   {tensor("width", {1}, 7, raw(std::vector<int64_t>{512})),
                    tensor("w", {1, 512}, 1, raw(std::vector<float>(512, 2)))}};
  OnnxRunner runner(parse(model(graph(parts), 18)));
  for (const double v : {1.0, 2.0, 3.0}) {
    const Tensor x = Tensor::full({4, 512}, v).contiguous();
    const auto y = runner({{"x", x}}).at("y").tensor().to_vector<float>();
    EXPECT_EQ(y, std::vector<float>(2048, static_cast<float>(v + 2)));
    EXPECT_EQ(runner.kernels(), 1u);
  }
}

TEST_F(OnnxEvaluator, ModelsThatLookAtDataRunNodeByNode) {
  OnnxRunner runner(model_of({node("NonZero", {"x"}, {"y"})}));
  for (const int64_t count : {1, 3, 2}) {
    std::vector<float> data(3, 0.0f);
    std::fill_n(data.begin(), count, 1.0f);
    const Tensor x = Tensor::from(data, {1, 3});
    EXPECT_EQ(runner({{"x", x}}).at("y").dims(), (Dims{2, count}));
    EXPECT_EQ(runner.kernels(), 0u);
  }
}

TEST_F(OnnxEvaluator, InputsAreChecked) {
  OnnxRunner runner(model_of({node("Abs", {"x"}, {"y"})}));
  EXPECT_ERROR(runner({}),
               "onnx.input: the input 'x' is missing; the model declares float32 (n, 3)");
  EXPECT_ERROR(runner({{"xx", Tensor::ones({2, 3})}}),
               "the model has no input 'xx'; did you mean x?; it has 'x'");
  EXPECT_ERROR(runner({{"x", Tensor::ones({2, 4})}}),
               "the input 'x' has shape (2, 4) and the model declares float32 (n, 3)");
  EXPECT_ERROR(runner({{"x", Tensor::ones({2, 3}, DType::F64)}}),
               "the input 'x' is float64 and the model declares float32 (n, 3); cast it");
  EXPECT_ERROR(runner({{"x", Value::sequence({})}}), "the input 'x' is no tensor");
  EXPECT_EQ(runner.empty_inputs({{"n", 7}}).at("x").dims(), (Dims{7, 3}));
}

TEST_F(OnnxEvaluator, AnInputTakesTheInitialisersPlace) {
  Model m = model_of({node("Mul", {"k", "k"}, {"y"})}, {{"k", {3}}});
  m.graph.inputs.push_back({"k", {DeclaredType::Kind::Tensor, ElementType::Int64, {}, {}}});
  OnnxRunner runner(std::move(m));
  const Tensor x = Tensor::ones({1, 3}), five = Tensor::of(std::vector<int64_t>{5});
  const auto call = [&](const NamedValues& inputs) {
    return runner(inputs).at("y").tensor().item<int64_t>();
  };
  EXPECT_EQ(runner.inputs().size(), 1u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(call({{"x", x}}), 9);
    EXPECT_EQ(call({{"x", x}, {"k", five}}), 25);
  }
}

TEST_F(OnnxEvaluator, SymbolicSizesReachTheKernels) {
  OnnxRunner runner(model_of({node("Abs", {"x"}, {"y"})}));
  const Variable n("rows", 1, 8);
  const Tensor all = Tensor::full({8, 3}, -2.0).contiguous();
  all.realize();
  for (const int64_t rows : {3, 5, 8}) {
    const Value y = runner({{"x", all.shrink({{0, n.bind(rows)}, {0, 3}})}}).at("y");
    EXPECT_FALSE(y.dims()[0].is_static());
    EXPECT_EQ(y.tensor().sum().item<float>(), static_cast<float>(6 * rows));
  }
}

// ---- named sizes as Variables

/// softmax(x) x' of rows of numbers, of which there are n.
Model scores_of(int type) {
  GraphParts parts{{node("Cast", {"x"}, {"f"}, {int_attribute("to", 1)}),
                    node("Transpose", {"f"}, {"t"}), node("MatMul", {"f", "t"}, {"s"}),
                    node("Softmax", {"s"}, {"y"}), node("Shape", {"y"}, {"z"})},
                   {declared("x", {-1, 3}, type)},
                   {part(1, "y"), part(1, "z")},
                   {}};
  return parse(model(graph(parts), 18));
}

void expect_scores(OnnxRunner& runner, int64_t rows, DType dtype) {
  const Tensor x = (Tensor::arange(3 * rows).reshape({rows, 3}) % 5).cast(dtype).contiguous();
  const Tensor f = x.cast(DType::F32);
  const NamedValues found = runner({{"x", Value(x)}});
  EXPECT_EQ(found.at("y").dims(), (Dims{rows, rows}));
  EXPECT_EQ(found.at("z").tensor().to_vector<int64_t>(), (std::vector<int64_t>{rows, rows}));
  const std::vector<float> y = numbers(found.at("y")),
                           wanted = f.matmul(f.T()).softmax(-1).to_vector<float>();
  ASSERT_EQ(y.size(), wanted.size());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], wanted[i], 1e-6) << rows << " " << i;
}

TEST_F(OnnxEvaluator, TextOfAnyLengthIsCompiledOnce) {
  OnnxRunner runner(scores_of(7));
  expect_scores(runner, 5, DType::I64);
  for (const int64_t rows : {1, 40, 17}) {
    const Tensor x = Tensor::ones({rows, 3}, DType::I64).contiguous();
    x.realize();
    EXPECT_EQ(kernels_compiled_by(context_, [&] { runner({{"x", Value(x)}}); }), 0) << rows;
    expect_scores(runner, rows, DType::I64);
  }
  expect_scores(runner, 600, DType::I64);  // further than the first capture reaches
  expect_scores(runner, 3, DType::I64);
}

TEST_F(OnnxEvaluator, OtherNumbersOfRowsAreCompiledOnceTheyCome) {
  OnnxRunner runner(scores_of(1));
  for (const int64_t rows : {5, 6}) expect_scores(runner, rows, DType::F32);
  const Tensor x = Tensor::ones({9, 3}).contiguous();
  x.realize();
  EXPECT_EQ(kernels_compiled_by(context_, [&] { runner({{"x", x}}); }), 0);
  for (int i = 0; i < 8; ++i) expect_scores(runner, 7, DType::F32);  // captured for 7 rows
  for (const int64_t rows : {5, 7, 2}) expect_scores(runner, rows, DType::F32);
}

TEST_F(OnnxEvaluator, TensorsWithOtherSizesShareMemory) {
  const Variable n("n", 1, 8);
  const Tensor x = Tensor::of(std::vector<int64_t>{1, 2, 3});
  const Tensor y = with_sizes(x, {n.bind(3)});
  EXPECT_EQ(y.dims().text(), "(n=3,)");
  EXPECT_EQ(bound_sizes(y.dims()), (Dims{3}));
  EXPECT_EQ(with_sizes(y * 2, {3}).to_vector<int64_t>(), (std::vector<int64_t>{2, 4, 6}));
  EXPECT_ERROR(with_sizes(x, {n.bind(4)}), "the tensor has the sizes (3,), not (n=4,)");
  auto f = jit([&](const Tensor& a) { return with_sizes(a, {n.bind(3)}) + 1; }, "f");
  f(x);
  EXPECT_ERROR(f(x), "a captured function would not see whose memory it is");
}

TEST_F(OnnxEvaluator, SizesThatAModelHasToKnowAreNumbers) {
  OnnxRunner runner(model_of({node("Concat", {"x", "x"}, {"w"}, {int_attribute("axis", 0)}),
                              node("Reshape", {"w", "to"}, {"y"})},
                             {{"to", {-1, 4}}}));
  for (const int64_t rows : {2, 4, 6, 2})
    EXPECT_EQ(runner({{"x", Tensor::ones({rows, 3})}}).at("y").dims(), (Dims{rows * 6 / 4, 4}));
}

TEST_F(OnnxEvaluator, AxesOfSizeOneGoWhereSizesVary) {
  GraphParts parts{
      {node("Squeeze", {"x"}, {"y"})}, {declared("x", {-1, 3}, 7)}, {part(1, "y")}, {}};
  OnnxRunner runner(parse(model(graph(parts), 13)));
  for (const int64_t rows : {1, 5, 1}) {
    const Dims wanted = rows == 1 ? Dims{3} : Dims{rows, 3};
    EXPECT_EQ(runner({{"x", Tensor::ones({rows, 3}, DType::I64)}}).at("y").dims(), wanted);
  }
}

}  // namespace
}  // namespace weft::onnx
