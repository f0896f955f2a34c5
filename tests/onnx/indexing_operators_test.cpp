#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"
#include "weft/base/error.h"

namespace weft::onnx {
namespace {

Value texts_of(std::vector<std::string> all) {
  const auto count = static_cast<int64_t>(all.size());
  return Value::strings(std::move(all), {count});
}

TEST(IndexingOperators, OldOpsets) {
  const std::vector<NodeCase> cases = {
      {"TopK",
       1,
       {attr("k", 2), attr("axis", 0)},
       {known({4}, {3, 9, 1, 7})},
       {{{2}, {9, 7}}, {{2}, {1, 3}}}},
      {"TopK",
       10,
       {},
       {known({1, 4}, {3, 9, 1, 7}), known(ints{1})},
       {{{1, 1}, {9}}, {{1, 1}, {1}}}},
      {"TopK",
       11,
       {attr("largest", 0)},
       {known({4}, {3, 9, 1, 7}), known(ints{3})},
       {{{3}, {1, 3, 7}}, {{3}, {2, 0, 3}}}},
      {"Scatter",
       9,
       {attr("axis", 1)},
       {known({1, 3}, {1, 2, 3}), known({1, 1}, {1}, DType::I64), known({1, 1}, {9})},
       {{{1, 3}, {1, 9, 3}}}},
      {"Gather", 1, {attr("axis", 1)}, {ramp({2, 3}), scalar(-1)}, {{{2}, {0.625, 0.125}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

TEST(IndexingOperators, GatherNdInBatches) {
  const Value x = known({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  expect_node({"GatherND",
               12,
               {attr("batch_dims", 1)},
               {x, known({2, 1}, {1, 0}, DType::I64)},
               {{{2, 2}, {2, 3, 4, 5}}}});
  expect_node({"GatherND",
               11,
               {},
               {x, known({2, 1, 2}, {0, 1, -1, 0}, DType::I64)},
               {{{2, 1, 2}, {2, 3, 4, 5}}}});
}

TEST(IndexingOperators, ScatterNdReduces) {
  const Value x = known({4}, {1, 2, 3, 4}), at = known({3, 1}, {1, -3, 0}, DType::I64),
              y = known({3}, {5, -6, 7});
  const std::vector<std::pair<std::string, std::vector<double>>> wanted = {{"add", {8, 1, 3, 4}},
                                                                           {"mul", {7, -60, 3, 4}},
                                                                           {"min", {1, -6, 3, 4}},
                                                                           {"max", {7, 5, 3, 4}}};
  for (const auto& [reduction, elements] : wanted)
    expect_node({"ScatterND", 18, {attr("reduction", reduction)}, {x, at, y}, {{{4}, elements}}});
}

TEST(IndexingOperators, Strings) {
  const Value x = texts_of({"b", "a", "b", "c"});
  EXPECT_EQ(run_node("Gather", 13, {}, {x, known(ints{3, 0})})[0].texts(), (texts{"c", "b"}));
  EXPECT_EQ(run_node("Compress", 11, {}, {x, known({3}, {0, 1, 1}, DType::Bool)})[0].texts(),
            (texts{"a", "b"}));
  const Values all = run_node("Unique", 11, {}, {x}, 4);
  EXPECT_EQ(all[0].texts(), (texts{"a", "b", "c"}));
  EXPECT_EQ(all[2].tensor().to_vector<int64_t>(), (ints{1, 0, 1, 2}));
  EXPECT_EQ(run_node("Unique", 11, {attr("sorted", 0)}, {x})[0].texts(), (texts{"b", "a", "c"}));
}

TEST(IndexingOperators, UniqueOfSpecialNumbers) {
  const Value x = known({6}, {NAN, 0.0, -0.0, -1, NAN, 2});
  const std::vector<float> values = run_node("Unique", 11, {}, {x})[0].tensor().to_vector<float>();
  ASSERT_EQ(values.size(), 4u);
  EXPECT_EQ(values[0], -1);
  EXPECT_TRUE(std::isnan(values[3]));
}

TEST(IndexingOperators, ConstantsAreSearchedAtOnce) {
  const Values at = run_node("NonZero", 13, {}, {known({2, 2}, {0, 1, 0, 2})});
  EXPECT_TRUE(at[0].constant());
  EXPECT_EQ(at[0].tensor().to_vector<int64_t>(), (ints{0, 1, 1, 1}));
}

// What a file says is never believed.
TEST(IndexingOperators, Refusals) {
  const Value x = ramp({2, 3});
  const auto i64 = [](const Dims& shape, const std::vector<double>& at) {
    return known(shape, at, DType::I64);
  };
  EXPECT_EQ(refusal("TopK", 11, {}, {x, known(ints{7})}),
            "TopK node that makes 'y0': k 7 of an axis of 3: 0 to its size");
  EXPECT_EQ(refusal("TopK", 11, {}, {x, known(ints{INT64_MIN})}),
            "TopK node that makes 'y0': k -9223372036854775808 of an axis of 3: 0 to its size");
  EXPECT_EQ(
      refusal("GatherElements", 13, {}, {x, known(ints{0})}),
      "GatherElements node that makes 'y0': data (2, 3) and indices (1,) have as many axes as "
      "each other");
  EXPECT_EQ(refusal("GatherND", 13, {}, {x, i64({1, 3}, {0, 0, 0})}),
            "GatherND node that makes 'y0': indices (1, 3) for data (2, 3): the last axis holds 1 "
            "to 2 positions");
  EXPECT_EQ(refusal("GatherND", 13, {attr("batch_dims", 5)}, {x, i64({1, 1}, {0})}),
            "GatherND node that makes 'y0': batch_dims 5: 0 to below the ranks of data (2, 3) and "
            "indices (1, 1)");
  EXPECT_EQ(refusal("ScatterElements", 18, {attr("reduction", "mean")},
                    {x, i64({1, 1}, {0}), ramp({1, 1})}),
            "ScatterElements node that makes 'y0': reduction 'mean': none, add, mul, min or max");
  EXPECT_EQ(refusal("ScatterElements", 18, {}, {x, i64({1, 1}, {0}), ramp({2, 1})}),
            "ScatterElements node that makes 'y0': indices (1, 1) and updates (2, 1) have the same "
            "shape");
  EXPECT_EQ(refusal("ScatterND", 18, {}, {x, i64({2, 1}, {0, 1}), ramp({2, 2})}),
            "ScatterND node that makes 'y0': updates (2, 2) for data (2, 3) and indices (2, 1): "
            "they have shape (2, 3)");
  EXPECT_EQ(refusal("Compress", 11, {attr("axis", 1)}, {x, known({4}, {1, 1, 1, 1}, DType::Bool)}),
            "Compress node that makes 'y0': condition (4,) for an axis of 3: 1-D and not longer");
  EXPECT_EQ(refusal("OneHot", 11, {}, {known(ints{0}), scalar(0), ramp({2})}),
            "OneHot node that makes 'y0': depth 0: at least 1");
  EXPECT_EQ(refusal("OneHot", 11, {}, {known(ints{0}), scalar(3), ramp({3})}),
            "OneHot node that makes 'y0': values (3,): two, for off and on");
}

TEST(IndexingOperators, HugeSizes) {
  for (const int64_t depth : {int64_t{1} << 40, int64_t{1} << 60, INT64_MAX})
    EXPECT_NE(refusal("OneHot", 11, {}, {known(ints{0, 1}), scalar(depth), ramp({2})}), "no error");
}

// Positions outside: an Error where they are known, a defined value where they are computed.
TEST(IndexingOperators, HostilePositions) {
  const Value x = ramp({2, 3});
  for (const double at : {5.0, -4.0, 9e18, -9e18}) {
    EXPECT_NE(refusal("Gather", 13, {}, {x, known({1}, {at}, DType::I64)}), "no error") << at;
    EXPECT_NE(refusal("GatherElements", 13, {}, {x, known({1, 1}, {at}, DType::I64)}), "no error");
    EXPECT_NE(refusal("GatherND", 13, {}, {x, known({1, 1}, {at}, DType::I64)}), "no error");
    EXPECT_NE(
        refusal("ScatterElements", 18, {}, {x, known({1, 1}, {at}, DType::I64), ramp({1, 1})}),
        "no error");
    EXPECT_NE(refusal("ScatterND", 18, {}, {x, known({1, 1}, {at}, DType::I64), ramp({1, 3})}),
              "no error");
  }
  // What a kernel computes is not known here.
  const Tensor computed = Tensor::arange(1, DType::I64).realize() + 50;
  EXPECT_EQ(run_node("Gather", 13, {}, {x, Value(computed)})[0].tensor().to_vector<float>(),
            (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(run_node("ScatterND", 18, {}, {x, Value(computed.reshape({1, 1})), ramp({1, 3})})[0]
                .tensor()
                .to_vector<float>(),
            x.tensor().to_vector<float>());
}

}  // namespace
}  // namespace weft::onnx
