#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(AttentionOperators, AllKinds) {
  const std::vector<NodeCase> cases = {
      {"Attention",
       23,
       {},
       {ramp({1, 2, 2, 2}), ramp({1, 1, 3, 2}, DType::F32, 3), ramp({1, 1, 3, 2}, DType::F32, 5)},
       {{{1, 2, 2, 2},
         {0.5132673, -0.07405845, 0.6887622, -0.05603139, 0.855845, -0.02298513, -0.5460563,
          0.5243003}}}},
      {"Attention",
       23,
       {attr("is_causal", 1), attr("softcap", 0.5)},
       {ramp({1, 2, 2, 2}), ramp({1, 1, 3, 2}, DType::F32, 3), ramp({1, 1, 3, 2}, DType::F32, 5)},
       {{{1, 2, 2, 2}, {0.625, -0.5, 0.9416032, -0.1833968, 0.625, -0.5, 0.9339822, -0.1910178}}}},
      {"Attention",
       23,
       {},
       {ramp({1, 2, 2, 2}), ramp({1, 1, 3, 2}, DType::F32, 3), ramp({1, 1, 3, 2}, DType::F32, 5),
        known({2, 3}, {1, 0, 1, 0, 0, 0}, DType::Bool)},
       {{{1, 2, 2, 2}, {0.1861687, -0.1624375, 0, 0, 0.2839925, -0.2376865, 0, 0}}}},
      {"Attention",
       23,
       {attr("scale", 0.25)},
       {ramp({1, 2, 2, 2}), ramp({1, 1, 3, 2}, DType::F32, 3), ramp({1, 1, 3, 2}, DType::F32, 5),
        ramp({2, 3}, DType::F32, 6)},
       {{{1, 2, 2, 2},
         {-0.1349456, 0.2009809, -0.0781292, 0.1832687, -0.01595977, 0.1661028, -0.5208496,
          0.4524956}}}},
      {"Attention",
       23,
       {attr("is_causal", 1), attr("q_num_heads", 2), attr("kv_num_heads", 1)},
       {ramp({1, 2, 4}),
        ramp({1, 2, 2}, DType::F32, 3),
        ramp({1, 2, 2}, DType::F32, 5),
        {},
        ramp({1, 1, 2, 2}, DType::F32, 8),
        ramp({1, 1, 2, 2}, DType::F32, 9)},
       {{{1, 2, 4},
         {0.4514561, -0.1358696, 0.6164992, -0.1282944, 0.949207, -0.02116125, -0.4640483,
          0.3857689}},
        {{1, 1, 4, 2}, {1, -0.125, -1.25, 0.5, 0.375, -0.75, 1, -0.125}},
        {{1, 1, 4, 2}, {1.125, 0, -1.125, 0.625, 0.625, -0.5, 1.25, 0.125}}}},
      {"Attention",
       24,
       {},
       {ramp({1, 2, 2, 2}),
        ramp({1, 1, 3, 2}, DType::F32, 3),
        ramp({1, 1, 3, 2}, DType::F32, 5),
        {},
        {},
        {},
        known({1}, {2}, DType::I64)},
       {{{1, 2, 2, 2},
         {0.8613766, -0.2636234, 0.9461295, -0.1788705, 1.029631, -0.09536932, 0.9202542,
          -0.2047458}}}},
      {"RotaryEmbedding",
       23,
       {attr("num_heads", 1), attr("rotary_embedding_dim", 2), attr("interleaved", 1)},
       {ramp({1, 2, 4}), ramp({4, 1}, DType::F32, 2), ramp({4, 1}, DType::F32, 4),
        known({1, 2}, {3, 1}, DType::I64)},
       {{{1, 2, 4}, {0, 0.28125, 0.625, -0.5, -1.015625, -0.890625, -1, 0.75}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

// By the specification's formulas: S = exp(g) S; S += k (beta (v - S k)); o = scale q S.
TEST(AttentionOperators, LinearAttention) {
  const std::vector<Attribute> heads = {attr("q_num_heads", 1), attr("kv_num_heads", 1),
                                        attr("scale", 1.0)};
  const Value q = known({1, 2, 1}, {1, 2}), k = known({1, 2, 1}, {2, 1}),
              v = known({1, 2, 1}, {3, 5});
  std::vector<Attribute> linear = heads, delta = heads;
  linear.push_back(attr("update_rule", "linear"));
  delta.push_back(attr("update_rule", "delta"));
  // States 6, then 6 + 5.
  expect_node(
      {"LinearAttention", 27, linear, {q, k, v}, {{{1, 2, 1}, {6, 22}}, {{1, 1, 1, 1}, {11}}}});
  // With beta 1/2: states 2 * 3 / 2 = 3, then 3 + (5 - 3) / 2.
  expect_node({"LinearAttention",
               27,
               delta,
               {q, k, v, {}, {}, known({1, 2, 1}, {0.5, 0.5})},
               {{{1, 2, 1}, {3, 8}}, {{1, 1, 1, 1}, {4}}}});
}

TEST(AttentionOperators, UpdatesOfACache) {
  expect_node({"TensorScatter",
               24,
               {attr("mode", "circular"), attr("axis", 1)},
               {known({1, 3, 1}, {1, 2, 3}), known({1, 2, 1}, {7, 8}), known(ints{2})},
               {{{1, 3, 1}, {8, 2, 7}}}});
}

TEST(AttentionOperators, Errors) {
  const Value x = ramp({1, 2, 4});
  EXPECT_NE(refusal("Attention", 23, {attr("q_num_heads", 3), attr("kv_num_heads", 2)}, {x, x, x})
                .find("input 0 of shape (1, 2, 4) with q_num_heads 3"),
            std::string::npos);
  EXPECT_NE(refusal("Attention", 23, {attr("q_num_heads", 2), attr("kv_num_heads", 2)},
                    {x, x, x, {}, ramp({1, 2, 1, 2})})
                .find("past_key and past_value belong together"),
            std::string::npos);
  EXPECT_NE(refusal("TensorScatter", 24, {attr("axis", 0)}, {x, x}).find("axis 0 is the batch's"),
            std::string::npos);
  EXPECT_NE(
      refusal("RotaryEmbedding", 23, {attr("num_heads", 1)}, {x, ramp({1, 2, 1}), ramp({1, 2, 1})})
          .find("4 of 4 numbers are turned by 1 and 1 angles: give half as many"),
      std::string::npos);
  EXPECT_NE(refusal("LinearAttention", 27,
                    {attr("q_num_heads", 1), attr("kv_num_heads", 1), attr("update_rule", "gated")},
                    {x, x, x})
                .find("update_rule 'gated' needs a decay"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
