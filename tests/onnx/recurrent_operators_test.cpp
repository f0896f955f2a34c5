#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"

namespace weft::onnx {
namespace {

// Wanted numbers: ONNX Runtime 1.31.

TEST(RecurrentOperators, AllKinds) {
  const std::vector<NodeCase> cases = {
      {"RNN",
       7,
       {attr("hidden_size", 2), attr("direction", "reverse")},
       {ramp({3, 2, 2}), ramp({1, 2, 2}, DType::F32, 3), ramp({1, 2, 2}, DType::F32, 5),
        ramp({1, 4}, DType::F32, 7), known({2}, {3, 2}, DType::I32)},
       {{{3, 1, 2, 2},
         {-0.02095068, -0.2931399, -0.07465446, -0.3778173, -0.4684792, 0.1438086, -0.8931934,
          -0.7481545, -0.9317992, -0.3985088, 0, 0}},
        {{1, 2, 2}, {-0.02095068, -0.2931399, -0.07465446, -0.3778173}}}},
      {"RNN",
       14,
       {attr("hidden_size", 2), attr("direction", "bidirectional"),
        attr("activations", texts{"Affine", "Relu"}), attr("activation_alpha", doubles{0.5}),
        attr("activation_beta", doubles{0.25})},
       {ramp({3, 2, 2}), ramp({2, 2, 2}, DType::F32, 3), ramp({2, 2, 2}, DType::F32, 5)},
       {{{3, 2, 2, 2},
         {0.671875,   0.3203125, 0.5546875,  0.59375,    0.46875, 0.625,   0,     0.4570312,
          0.5673828,  1.307129,  -0.1938477, 0.08691406, 0,       1.375,   1.625, 1.46875,
          -0.4854126, 0.4128723, 0.5426941,  0.3139648,  1.15625, 1.78125, 0,     0}},
        {{2, 2, 2}, {-0.4854126, 0.4128723, 0.5426941, 0.3139648, 0.46875, 0.625, 0, 0.4570312}}}},
      {"GRU",
       7,
       {attr("hidden_size", 2), attr("linear_before_reset", 1)},
       {ramp({3, 2, 2}),
        ramp({1, 6, 2}, DType::F32, 3),
        ramp({1, 6, 2}, DType::F32, 5),
        ramp({1, 12}, DType::F32, 7),
        {},
        ramp({1, 2, 2}, DType::F32, 8)},
       {{{3, 1, 2, 2},
         {0.958718, 0.4358776, -0.737594, 0.7548307, 0.6598351, 0.5786328, -0.8372544, -0.6041299,
          -0.2677427, 0.4675121, -0.544592, 0.7658736}},
        {{1, 2, 2}, {-0.2677427, 0.4675121, -0.544592, 0.7658736}}}},
      {"GRU",
       14,
       {attr("hidden_size", 2), attr("clip", 0.5)},
       {ramp({3, 2, 2}), ramp({1, 6, 2}, DType::F32, 3), ramp({1, 6, 2}, DType::F32, 5),
        ramp({1, 12}, DType::F32, 7), known({2}, {2, 3}, DType::I32)},
       {{{3, 1, 2, 2},
         {0.174468, 0.2876491, 0.174468, 0.2876491, 0.1669553, 0.3753884, -0.179055, 0.1398589, 0,
          0, 0.06301361, 0.3404515}},
        {{1, 2, 2}, {0.1669553, 0.3753884, 0.06301361, 0.3404515}}}},
      {"LSTM",
       7,
       {attr("hidden_size", 2)},
       {ramp({3, 2, 2}),
        ramp({1, 8, 2}, DType::F32, 3),
        ramp({1, 8, 2}, DType::F32, 5),
        ramp({1, 16}, DType::F32, 7),
        {},
        ramp({1, 2, 2}, DType::F32, 8),
        ramp({1, 2, 2}, DType::F32, 9),
        ramp({1, 6}, DType::F32, 4)},
       {{{3, 1, 2, 2},
         {-0.0381933, -0.1008301, 0.1430111, 0.3210474, 0.08275353, -0.3184559, -0.3626874,
          0.422814, -0.2392976, -0.2659073, -0.002958081, 0.1879019}},
        {{1, 2, 2}, {-0.2392976, -0.2659073, -0.002958081, 0.1879019}},
        {{1, 2, 2}, {-0.52195, -0.326201, -0.007065192, 0.4060245}}}},
      {"LSTM",
       14,
       {attr("hidden_size", 2), attr("direction", "bidirectional"), attr("input_forget", 1)},
       {ramp({3, 2, 2}), ramp({2, 8, 2}, DType::F32, 3), ramp({2, 8, 2}, DType::F32, 5),
        ramp({2, 16}, DType::F32, 7), known({2}, {1, 3}, DType::I32)},
       {{{3, 2, 2, 2},
         {-0.1609084, -0.06383573, 0.01782056, -0.1193496, -0.1123246,   0.03047006,  -0.557307,
          0.03654582, 0,           0,          -0.3983877, -0.1602533,   0,           0,
          -0.3201014, 0.1060533,   0,          0,          -0.003997745, -0.09122574, 0,
          0,          -0.1425849,  0.02300827}},
        {{2, 2, 2},
         {-0.1609084, -0.06383573, -0.003997745, -0.09122574, -0.1123246, 0.03047006, -0.557307,
          0.03654582}},
        {{2, 2, 2},
         {-0.5811781, -0.2230059, -0.01222627, -0.3115166, -0.1407735, 0.1753565, -0.8475298,
          0.251048}}}},
      {"LSTM",
       22,
       {attr("hidden_size", 2),
        attr("activations", texts{"HardSigmoid", "LeakyRelu", "ScaledTanh"}),
        attr("activation_alpha", doubles{0.3, 0.1, 0.9}),
        attr("activation_beta", doubles{0.4, 0.7})},
       {ramp({3, 2, 2}), ramp({1, 8, 2}, DType::F32, 3), ramp({1, 8, 2}, DType::F32, 5),
        ramp({1, 16}, DType::F32, 7)},
       {{{3, 1, 2, 2},
         {-0.007529413, -0.001268517, 0.0009172216, -0.004905537, 0, -0.01479849, -0.04845157,
          -0.01211129, -0.01808621, -0.02826367, -0.003418416, -0.004324874}},
        {{1, 2, 2}, {-0.01808621, -0.02826367, -0.003418416, -0.004324874}},
        {{1, 2, 2}, {-0.04295434, -0.04487769, -0.0485477, -0.04021072}}}},
  };
  for (const NodeCase& c : cases) expect_node(c);
}

/// Values of ONNX Runtime 1.32 with one thread; with several it quantises parts of the batch alone.
TEST(RecurrentOperators, WeightsInBytes) {
  const auto bytes = [](const Dims& shape, int64_t step, int64_t first, int64_t period) {
    std::vector<double> all;
    for (int64_t i = 0; i < shape.product().value(); ++i)
      all.push_back(static_cast<double>((i * step + first) % period - period / 2));
    return known(shape, all, DType::I8);
  };
  const Value zeros = known({1}, {0}, DType::I8);
  const Values found = run_node("DynamicQuantizeLSTM", 1, {attr("hidden_size", 2)},
                                {ramp({3, 2, 3}),
                                 bytes({1, 3, 8}, 37, 5, 251),
                                 bytes({1, 2, 8}, 53, 7, 241),
                                 ramp({1, 16}, DType::F32, 7),
                                 {},
                                 {},
                                 {},
                                 {},
                                 known({1}, {0.004}),
                                 zeros,
                                 known({1}, {0.006}),
                                 zeros},
                                3, "com.microsoft");
  const std::vector<float> last = {0.02977204f, 0.03647299f, -0.1205953f, -0.07832029f},
                           cells = {0.08852172f, 0.08245903f, -0.260967f, -0.1225855f};
  for (size_t i = 0; i < last.size(); ++i) {
    EXPECT_NEAR(found[1].tensor().to_vector<float>()[i], last[i], 1e-6);
    EXPECT_NEAR(found[2].tensor().to_vector<float>()[i], cells[i], 1e-6);
  }
}

TEST(RecurrentOperators, LayoutsGiveTheSame) {
  const Value x = ramp({3, 2, 2}), w = ramp({1, 6, 2}), r = ramp({1, 6, 2}, DType::F32, 5);
  const Value turned = Value(Tensor(x.tensor().transpose(0, 1)));
  const Values a = run_node("GRU", 14, {attr("hidden_size", 2)}, {x, w, r}, 2);
  const Values b =
      run_node("GRU", 14, {attr("hidden_size", 2), attr("layout", 1)}, {turned, w, r}, 2);
  EXPECT_EQ(b[0].dims().text(), "(2, 3, 1, 2)");
  EXPECT_EQ(a[0].tensor().permute({2, 0, 1, 3}).to_vector<float>(),
            b[0].tensor().to_vector<float>());
  EXPECT_EQ(a[1].tensor().transpose(0, 1).to_vector<float>(), b[1].tensor().to_vector<float>());
}

TEST(RecurrentOperators, Errors) {
  const Value x = ramp({3, 2, 2}), w = ramp({1, 8, 2}), r = ramp({1, 8, 2});
  EXPECT_NE(refusal("LSTM", 14, {}, {x, known({1, 8}, std::vector<double>(8)), r})
                .find("W (1, 8) and R (1, 8, 2): give three axes each"),
            std::string::npos);
  EXPECT_NE(refusal("LSTM", 14, {attr("direction", "both")}, {x, w, r})
                .find("direction is 'both': give forward, reverse or bidirectional"),
            std::string::npos);
  EXPECT_NE(refusal("GRU", 14, {}, {x, w, r}).find("W (1, 8, 2) and R (1, 8, 2)"),
            std::string::npos);
  EXPECT_NE(refusal("LSTM", 14, {attr("activations", texts{"Tanh"})}, {x, w, r})
                .find("1 activations are listed: give 3"),
            std::string::npos);
  EXPECT_NE(refusal("LSTM", 14, {attr("activations", texts{"Tanh", "Sinh", "Tanh"})}, {x, w, r})
                .find("activation 'Sinh' is not known"),
            std::string::npos);
}

}  // namespace
}  // namespace weft::onnx
