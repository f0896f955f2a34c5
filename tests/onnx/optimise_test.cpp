// What `weft onnx optimize` does to models, and that they give what they gave.
#include "weft/onnx/optimise.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/onnx/one_node.h"
#include "tests/onnx/onnx_bytes.h"
#include "tests/onnx/written.h"
#include "weft/onnx/runner.h"
#include "weft/onnx/write.h"

namespace weft::onnx {

namespace {

using bytes::declared;
using bytes::raw;
using bytes::tensor;

std::string floats(size_t count, float first = 0.5f) {
  std::vector<float> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = first + 0.25f * static_cast<float>(i % 7);
  return raw(all);
}

Model model_of(const bytes::GraphParts& parts) {
  const auto data = std::make_shared<std::string>(bytes::model(bytes::graph(parts)));
  return parse_onnx(std::as_bytes(std::span(*data)), "m", data);
}

std::string operators_of(const Model& m) {
  std::string all;
  for (const Node& n : m.graph.nodes) all += (all.empty() ? "" : " ") + n.op;
  return all;
}

/// The model after it was optimised, which gives the same for x.
Model checked(const Model& before, const Tensor& x) {
  const Model after = written_and_read(optimised(before));
  const NamedValues wanted = OnnxRunner(before)({{"x", Value(x)}}),
                    found = OnnxRunner(after)({{"x", Value(x)}});
  EXPECT_EQ(wanted.size(), found.size());
  for (const auto& [name, value] : wanted) {
    const auto a = value.tensor().to_vector<float>(),
               b = found.at(name).tensor().to_vector<float>();
    EXPECT_EQ(a.size(), b.size());
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-5 * (1 + std::abs(a[i])));
  }
  return after;
}

TEST(OnnxOptimise, IdentitiesAndDropoutsGo) {
  const Model m =
      model_of({{bytes::node("Identity", {"x"}, {"a"}), bytes::node("Neg", {"a"}, {"b"}),
                 bytes::node("Dropout", {"b"}, {"c"}), bytes::node("Identity", {"c"}, {"y"}),
                 bytes::node("Exp", {"x"}, {"unread"})},
                {declared("x", {2, 3})},
                {declared("y", {2, 3})},
                {}});
  EXPECT_EQ(operators_of(checked(m, ramp({2, 3}).tensor())), "Neg");
}

TEST(OnnxOptimise, AnIdentityOfAnInputStays) {
  const Model m = model_of(
      {{bytes::node("Identity", {"x"}, {"y"})}, {declared("x", {2})}, {declared("y", {2})}, {}});
  EXPECT_EQ(operators_of(checked(m, ramp({2}).tensor())), "Identity");
}

TEST(OnnxOptimise, ConstantsAreComputed) {
  const Model m =
      model_of({{bytes::node("Transpose", {"w"}, {"t"}), bytes::node("Exp", {"t"}, {"e"}),
                 bytes::node("MatMul", {"x", "e"}, {"y"})},
                {declared("x", {2, 3})},
                {declared("y", {2, 4})},
                {tensor("w", {4, 3}, 1, floats(12))}});
  const Model after = checked(m, ramp({2, 3}).tensor());
  EXPECT_EQ(operators_of(after), "MatMul");
  EXPECT_EQ(after.graph.initialisers.size(), 1u);
}

TEST(OnnxOptimise, BatchNormsGoIntoConvolutions) {
  const Model m =
      model_of({{bytes::node("Conv", {"x", "w"}, {"a"}),
                 bytes::node("BatchNormalization", {"a", "s", "b", "m", "v"}, {"n"}),
                 bytes::node("Relu", {"n"}, {"y"})},
                {declared("x", {1, 2, 5, 5})},
                {declared("y", {1, 4, 3, 3})},
                {tensor("w", {4, 2, 3, 3}, 1, floats(72)), tensor("s", {4}, 1, floats(4, 1)),
                 tensor("b", {4}, 1, floats(4, 2)), tensor("m", {4}, 1, floats(4, -1)),
                 tensor("v", {4}, 1, floats(4, 3))}});
  EXPECT_EQ(operators_of(checked(m, ramp({1, 2, 5, 5}).tensor())), "Conv Relu");
}

TEST(OnnxOptimise, TransposesThatUndoEachOtherGo) {
  const auto turn = [](const char* from, const char* to, const std::vector<int64_t>& order) {
    return bytes::node("Transpose", {from}, {to}, {bytes::ints_attribute("perm", order)});
  };
  const Model m = model_of(
      {{turn("x", "a", {1, 2, 0}), turn("a", "b", {2, 0, 1}), bytes::node("Neg", {"b"}, {"c"}),
        turn("c", "d", {1, 0, 2}), turn("d", "y", {0, 2, 1})},
       {declared("x", {2, 3, 4})},
       {declared("y", {3, 4, 2})},
       {}});
  EXPECT_EQ(operators_of(checked(m, ramp({2, 3, 4}).tensor())), "Neg Transpose");
}

TEST(OnnxOptimise, EqualInitialisersAreOne) {
  const Model m =
      model_of({{bytes::node("Add", {"x", "v"}, {"a"}), bytes::node("Mul", {"a", "w"}, {"y"})},
                {declared("x", {2, 3})},
                {declared("y", {2, 3})},
                {tensor("v", {3}, 1, floats(3)), tensor("w", {3}, 1, floats(3))}});
  EXPECT_EQ(checked(m, ramp({2, 3}).tensor()).graph.initialisers.size(), 1u);
}

TEST(OnnxOptimise, SaysWhatItDid) {
  Optimisations done;
  optimised(model_of({{bytes::node("Identity", {"x"}, {"a"}), bytes::node("Neg", {"a"}, {"y"})},
                      {declared("x", {2})},
                      {declared("y", {2})},
                      {}}),
            &done);
  const std::map<std::string, int64_t> counts(done.begin(), done.end());
  EXPECT_EQ(counts.at("nodes that change nothing removed"), 1);
  EXPECT_EQ(counts.at("batch norms merged into convolutions"), 0);
}

}  // namespace

}  // namespace weft::onnx
