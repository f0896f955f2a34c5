#include <gtest/gtest.h>

#include "tests/onnx/one_node.h"
#include "weft/base/error.h"

// Numbers: tools/onnx_runtime_cases compares with ONNX Runtime. Here: what is refused, and maps.

namespace weft::onnx {
namespace {

constexpr const char* kDomain = "ai.onnx.ml";

std::string refused(const std::string& op, std::vector<Attribute> attributes, const Values& inputs,
                    size_t outputs = 1, int64_t opset = 3) {
  try {
    run_node(op, opset, std::move(attributes), inputs, outputs, kDomain);
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

struct Tree {
  ints node = {0, 1, 2}, yes = {1, 0, 0}, no = {2, 0, 0}, feature = {0, 0, 0};
  texts modes = {"BRANCH_LEQ", "LEAF", "LEAF"};
  ints targets = {0, 0};

  std::vector<Attribute> attributes() const {
    return {attr("nodes_treeids", ints{0, 0, 0}), attr("nodes_nodeids", node),
            attr("nodes_featureids", feature),    attr("nodes_values", doubles{0.5, 0, 0}),
            attr("nodes_modes", modes),           attr("nodes_truenodeids", yes),
            attr("nodes_falsenodeids", no),       attr("target_treeids", ints{0, 0}),
            attr("target_nodeids", ints{1, 2}),   attr("target_ids", targets),
            attr("target_weights", doubles{1, 2})};
  }
  std::string refused() const {
    return onnx::refused("TreeEnsembleRegressor", attributes(), {ramp({2, 1})});
  }
};

TEST(MlOperators, TreesThatAreNone) {
  const std::string who = "ai.onnx.ml.TreeEnsembleRegressor node that makes 'y0': ";
  EXPECT_EQ(Tree().refused(), "no error");
  Tree tree;
  tree.yes = {7, 0, 0};
  EXPECT_EQ(tree.refused(), who + "tree 0 has no node 7");
  tree = {};
  tree.node = {0, 1, 1};
  EXPECT_EQ(tree.refused(), who + "node 1 of tree 0 is there twice");
  tree = {};
  tree.feature = {INT64_MAX, 0, 0};
  EXPECT_EQ(tree.refused(), who + "the trees are none: a node asks for a feature that is none");
  tree.feature = {1, 0, 0};
  EXPECT_EQ(tree.refused(), who + "the trees ask for 2 features and rows have 1");
  tree = {};
  tree.targets = {0, -1};
  EXPECT_EQ(tree.refused(), who +
                                "the trees are none: a leaf votes for a "
                                "target that is none");
  tree = {};
  tree.modes = {"BRANCH_LEQ", "BRANCH_LEQ", "LEAF"};
  tree.no = {2, 1, 0};
  EXPECT_EQ(tree.refused(), who +
                                "the trees are none: every node is the branch "
                                "of another, none a root");
  tree.yes = {1, 1, 0};
  tree.no = {2, 2, 0};
  EXPECT_EQ(tree.refused(), who +
                                "the trees are none: a branch leads back to "
                                "where it comes from");
  tree = {};
  tree.modes = {"BRANCH_LEQ", "LEAF"};
  EXPECT_EQ(tree.refused(), who +
                                "nodes_modes has 2 elements where there are 3 nodes; they are "
                                "equally many");
  tree = {};
  tree.modes[0] = "BRANCH_X";
  EXPECT_EQ(tree.refused(), who +
                                "nodes_modes holds 'BRANCH_X': BRANCH_LEQ, BRANCH_LT, BRANCH_GTE, "
                                "BRANCH_GT, BRANCH_EQ, BRANCH_NEQ or LEAF");
}

TEST(MlOperators, ModelsThatDoNotFit) {
  const Value x = ramp({2, 3});
  EXPECT_EQ(refused("LinearRegressor", {attr("coefficients", doubles{1, 2})}, {x}),
            "ai.onnx.ml.LinearRegressor node that makes 'y0': 2 coefficients for 1 targets and "
            "input (2, 3): targets times features");
  EXPECT_EQ(refused("SVMRegressor",
                    {attr("n_supports", 2), attr("support_vectors", doubles{1, 2, 3}),
                     attr("coefficients", doubles{1, 2}), attr("rho", doubles{0})},
                    {x}),
            "ai.onnx.ml.SVMRegressor node that makes 'y0': support_vectors has 3 elements for 2 "
            "vectors of the input's 3 features");
  EXPECT_EQ(refused("Normalizer", {attr("norm", "L3")}, {x}),
            "ai.onnx.ml.Normalizer node that makes 'y0': norm 'L3': MAX, L1 or L2");
  EXPECT_EQ(refused("Scaler", {attr("offset", doubles{1}), attr("scale", doubles{1, 2, 3})}, {x}),
            "ai.onnx.ml.Scaler node that makes 'y0': 1 offsets and 3 scales; there are equally "
            "many, and at least one");
  EXPECT_EQ(refused("OneHotEncoder", {attr("cats_int64s", ints{1, 2}), attr("zeros", 0)},
                    {known(ints{1, 5})}),
            "ai.onnx.ml.OneHotEncoder node that makes 'y0': element 1 is of no category; zeros=1 "
            "makes such ones all 0");
  EXPECT_EQ(
      refused("LabelEncoder", {attr("keys_int64s", ints{1, 2}), attr("values_int64s", ints{1})},
              {known(ints{1})}),
      "ai.onnx.ml.LabelEncoder node that makes 'y0': 2 keys and 1 values; there are equally "
      "many");
  EXPECT_NE(refused("ArrayFeatureExtractor", {}, {x, known(ints{INT64_MAX})}), "no error");
}

TEST(MlOperators, MapsThereAndBack) {
  const Value maps = run_node("ZipMap", 1, {attr("classlabels_strings", texts{"b", "a"})},
                              {known({2, 2}, {1, 2, 3, 4})}, 1, kDomain)[0];
  ASSERT_EQ(maps.elements().size(), 2u);
  const Value row = run_node("DictVectorizer", 1, {attr("string_vocabulary", texts{"a", "x", "b"})},
                             {maps.elements()[1]}, 1, kDomain)[0];
  EXPECT_EQ(row.tensor().to_vector<float>(), (std::vector<float>{4, 0, 3}));
  const Value numbers = run_node("ZipMap", 1, {attr("classlabels_int64s", ints{7, 2})},
                                 {known({1, 2}, {1.5, 2.5})}, 1, kDomain)[0];
  EXPECT_EQ(run_node("CastMap", 1, {}, {numbers.elements()[0]}, 1, kDomain)[0]
                .tensor()
                .to_vector<float>(),
            (std::vector<float>{2.5, 1.5}));
  const Values sparse = run_node(
      "CastMap", 1, {attr("map_form", "SPARSE"), attr("max_map", 8), attr("cast_to", "TO_INT64")},
      {numbers.elements()[0]}, 1, kDomain);
  EXPECT_EQ(sparse[0].tensor().to_vector<int64_t>(), (ints{0, 0, 2, 0, 0, 0, 0, 1}));
  EXPECT_EQ(
      refused("CastMap", {attr("map_form", "SPARSE"), attr("max_map", 3)}, {numbers.elements()[0]}),
      "ai.onnx.ml.CastMap node that makes 'y0': key 7 of a map of up to 3");
  EXPECT_EQ(refused("ZipMap", {attr("classlabels_int64s", ints{1})}, {ramp({2, 2})}),
            "ai.onnx.ml.ZipMap node that makes 'y0': input (2, 2) for 1 keys: a column each");
}

}  // namespace
}  // namespace weft::onnx
