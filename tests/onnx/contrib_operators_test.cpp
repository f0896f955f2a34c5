#include <gtest/gtest.h>

#include <cmath>

#include "tests/onnx/one_node.h"
#include "weft/base/error.h"

// Numbers: tools/onnx_runtime_cases compares with ONNX Runtime, where that runs them. Here: those
// that it does not run on CPUs, by their formulas, and what is refused.

namespace weft::onnx {
namespace {

constexpr const char* kDomain = "com.microsoft";

Values run(const std::string& op, std::vector<Attribute> attributes, const Values& inputs,
           size_t outputs = 1) {
  return run_node(op, 1, std::move(attributes), inputs, outputs, kDomain);
}

std::string refused(const std::string& op, std::vector<Attribute> attributes, const Values& inputs,
                    size_t outputs = 1) {
  try {
    realize({run(op, std::move(attributes), inputs, outputs)[0].tensor()});
  } catch (const Error& e) {
    return e.message();
  }
  return "no error";
}

TEST(ContribOperators, AveragesOfBytesAreRoundedWithTheirZeroPoint) {
  // (4 + 5) / 2 is 4.5, and with a zero point of 1 5.5, which is rounded to 6: not 4 and 1.
  const Value one = known({}, {1}), zero = known({}, {1}, DType::U8);
  const Value x = known({1, 1, 1, 2}, {5, 6}, DType::U8);
  const auto y =
      run("QLinearAveragePool", {attr("kernel_shape", ints{1, 2})}, {x, one, zero, one, zero});
  EXPECT_EQ(y[0].tensor().to_vector<uint8_t>(), std::vector<uint8_t>{6});
}

TEST(ContribOperators, ByTheirFormulas) {
  const auto near = [](const Value& x, const std::vector<float>& wanted) {
    const auto found = x.tensor().to_vector<float>();
    ASSERT_EQ(found.size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-4);
  };
  near(run("BiasSplitGelu", {}, {known({1, 1, 4}, {1, 2, 3, 4}), known({4}, {0, 0, -3, -4})})[0],
       {0, 0});
  near(run("Rfft", {attr("signal_ndim", 1)}, {known({4}, {1, 0, 0, 0})})[0], {1, 0, 1, 0, 1, 0});
  near(run("Irfft", {attr("signal_ndim", 1)}, {known({3, 2}, {1, 0, 1, 0, 1, 0})})[0],
       {1, 0, 0, 0});
  near(run("ComplexMul", {}, {known({1, 2}, {1, 2}), known({1, 2}, {3, 4})})[0], {-5, 10});
  near(run("ComplexMulConj", {}, {known({1, 2}, {1, 2}), known({1, 2}, {3, 4})})[0], {11, 2});
  near(run("UnfoldTensor", {attr("size", 2), attr("step", 1)}, {known({3}, {1, 2, 3})})[0],
       {1, 2, 2, 3});
  near(run("BiasAdd", {}, {known({2}, {1, 2}), known({2}, {3, 4}), known({2}, {5, 6})})[0],
       {9, 12});
}

TEST(ContribOperators, NormsOfGroups) {
  const Values found = run("GroupNorm", {attr("groups", 1), attr("activation", 0)},
                           {known({1, 1, 1, 2}, {1, 3}), known({2}, {1, 2}), known({2}, {0, 1})});
  const auto y = found[0].tensor().to_vector<float>();
  EXPECT_NEAR(y[0], -1, 1e-4);
  EXPECT_NEAR(y[1], 3, 1e-4);
  EXPECT_EQ(refused("GroupNorm", {attr("groups", 3), attr("activation", 0)},
                    {ramp({1, 1, 1, 2}), ramp({2}), ramp({2})}),
            "com.microsoft.GroupNorm node that makes 'y0': 3 groups of 2 channels: a divisor");
}

TEST(ContribOperators, PackedNumbers) {
  // 1 * (1 - 8), ..., of which the low four bits of a byte come first: 16 numbers are two words.
  const std::vector<double> bytes = {0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed, 0x0f};
  const auto product = [&](int64_t at) {
    std::vector<double> one(16, 0);
    one[static_cast<size_t>(at)] = 1;
    const Values y =
        run("MatMulNBits", {attr("N", 1), attr("K", 16), attr("bits", 4), attr("block_size", 16)},
            {known({1, 16}, one), known({1, 1, 8}, bytes, DType::U8), known({1, 1}, {2})});
    return y[0].tensor().to_vector<float>()[0];
  };
  EXPECT_EQ(product(0), -14);
  EXPECT_EQ(product(7), 0);
  EXPECT_EQ(product(13), 12);
  EXPECT_EQ(product(14), 14);
  EXPECT_EQ(product(15), -16);
}

TEST(ContribOperators, ExpertsOfFewTokensAsOfMany) {
  const Values weights = {ramp({4, 6, 8}, DType::F32, 1), ramp({4, 6}),
                          ramp({4, 8, 6}, DType::F32, 2), ramp({4, 8}, DType::F32, 3)};
  const Tensor x = ramp({3, 8}).tensor(), scores = ramp({3, 4}, DType::F32, 5).tensor();
  const auto mixed = [&](const Tensor& tokens, const Tensor& of_tokens) {
    Values inputs = {Value(tokens), Value(of_tokens)};
    inputs.insert(inputs.end(), weights.begin(), weights.end());
    return run("MoE", {attr("k", 2), attr("normalize_routing_weights", 1)}, inputs)[0].tensor();
  };
  const auto all = mixed(x, scores).to_vector<float>();
  for (int64_t i = 0; i < 3; ++i) {
    const auto one = mixed(x.index({Slice(i, i + 1)}), scores.index({Slice(i, i + 1)}));
    const auto found = one.to_vector<float>();
    for (size_t k = 0; k < 8; ++k)
      EXPECT_NEAR(found[k], all[static_cast<size_t>(i) * 8 + k], 1e-4) << i << " " << k;
  }
}

TEST(ContribOperators, Sequences) {
  const Values hashed =
      run("MurmurHash3", {}, {Value::strings({"", "hello", "hello, world"}, {3})});
  EXPECT_EQ(hashed[0].tensor().to_vector<uint32_t>(),
            (std::vector<uint32_t>{0, 0x248bfa47, 0x149bbb7f}));
  const Values path = run("DynamicTimeWarping", {}, {known({2, 3}, {1, 1, 9, 9, 9, 1})});
  EXPECT_EQ(path[0].tensor().to_vector<int32_t>(), (std::vector<int32_t>{0, 0, 1, 0, 1, 2}));
  const Value ids = known({1, 4}, {1, 2, 0, 1}, DType::I64);
  const Values scores =
      run("NGramRepeatBlock", {attr("ngram_size", 2)}, {ids, known({1, 3}, {5, 6, 7})});
  EXPECT_EQ(scores[0].tensor().to_vector<float>(), (std::vector<float>{5, 6, -INFINITY}));
  const Values found =
      run("BifurcationDetector", {},
          {known(ints{4, 5, 6}), known(ints{9}), scalar(0), known(ints{4, 7, 0, 0})}, 2);
  EXPECT_EQ(found[0].tensor().to_vector<int64_t>(), (ints{9, 4, 7}));
  EXPECT_EQ(found[1].tensor().to_vector<int64_t>(), ints{-1});
}

TEST(ContribOperators, CropsOutsideOfThePicture) {
  const Values y = run("CropAndResize", {attr("extrapolation_value", 9.0)},
                       {known({1, 1, 2, 2}, {1, 2, 3, 4}), known({1, 4}, {0, 0, 2, 1}),
                        known({1}, {0}, DType::I32), known({2}, {3, 3}, DType::I32)});
  EXPECT_EQ(y[0].tensor().to_vector<float>(), (std::vector<float>{1, 1.5, 2, 3, 3.5, 4, 9, 9, 9}));
}

/// What is refused, less the node.
std::string problem(const std::string& op, std::vector<Attribute> attributes, const Values& inputs,
                    size_t outputs = 1) {
  const std::string all = refused(op, std::move(attributes), inputs, outputs);
  return all.substr(all.find("': ") + 3);
}

TEST(ContribOperators, RefusalsOfSequencesAndPictures) {
  EXPECT_EQ(
      problem("NGramRepeatBlock", {attr("ngram_size", 0)},
              {ramp({2, 3}, DType::I64), ramp({2, 9})}),
      "input_ids (2, 3), scores (2, 9) and ngram_size 0: (batch, length), (batch, words), 1 or "
      "more");
  EXPECT_EQ(problem("BifurcationDetector", {}, {known(ints{1, 2}), known(ints{1}), scalar(3)}, 2),
            "prev_suffix_match_idx 3 of 2 source tokens");
  EXPECT_EQ(problem("BifurcationDetector", {},
                    {known(ints{1, 2}), known(ints{1}), scalar(0), known(ints{1})}, 2),
            "1 predicted tokens for 2 source tokens from 0 on: one more");
  EXPECT_EQ(problem("DynamicTimeWarping", {}, {ramp({2, 3, 4})}),
            "input (2, 3, 4): (rows, columns) or (1, rows, columns)");
  EXPECT_EQ(problem("MurmurHash3", {}, {ramp({2}, DType::U8)}),
            "elements of dtype u8: of 4 or 8 bytes");
  EXPECT_EQ(
      problem("CropAndResize", {},
              {ramp({1, 1, 2, 2}), ramp({1, 3}), ramp({1}, DType::I32), known(ints{3, 3})}),
      "input (1, 1, 2, 2), regions (1, 3), 2 sizes, mode 'bilinear': (n, c, h, w), (regions, 4), "
      "2, and bilinear or nearest");
  EXPECT_EQ(problem("CropAndResize", {},
                    {ramp({1, 1, 2, 2}), ramp({1, 4}), ramp({1}, DType::I32), known(ints{0, 3})}),
            "crops of 0 x 3 pixels: 1 to 2^20");
  EXPECT_EQ(problem("ConvTransposeWithDynamicPads", {},
                    {ramp({1, 1, 2, 2}), ramp({1, 1, 2, 2}), known(ints{0, 0, 9, 0})}),
            "4 pads of (1, 1, 3, 3): two for each spatial axis, of at least 0, inside of it");
  EXPECT_EQ(problem("QMoE", {attr("quant_type", "fp4")}, {ramp({2, 4}), ramp({2, 2})}),
            "quant_type 'fp4': only int is supported");
  EXPECT_EQ(
      problem("QMoE", {},
              {ramp({2, 4}), ramp({2, 2}), ramp({2, 6, 2}, DType::U8), ramp({2, 6, 3}), Value(),
               ramp({2, 4, 3}, DType::U8), ramp({2, 4})}),
      "weights (2, 6, 2) and scales (2, 6, 3): (experts, out, in), of which in has equal blocks");
  EXPECT_EQ(problem("DecoderMaskedMultiHeadAttention", {attr("num_heads", 2)},
                    {ramp({1, 2, 8}), ramp({1, 2, 8}), ramp({1, 2, 8})}),
            "query (1, 2, 8): one position at a time");
  const Value step = ramp({1, 1, 8}), past = ramp({1, 2, 4, 4});
  EXPECT_EQ(problem("DecoderMaskedMultiHeadAttention",
                    {attr("num_heads", 2), attr("past_present_share_buffer", 1)},
                    {step, step, step, Value(), Value(), past, past, known(ints{1}), Value(),
                     ramp({1, 4}, DType::I32)}),
            "past (1, 2, 4, 4) and (1, 2, 4, 4), cache_indirection (1, 4): (batch, heads, "
            "positions, size) and "
            "(batch, beams, positions)");
}

TEST(ContribOperators, RefusalsOfGates) {
  const Value x = ramp({2, 6});
  EXPECT_EQ(problem("GatedRMSNorm", {}, {x, ramp({4}), x}), "input (2, 6): groups of 4");
  EXPECT_EQ(problem("GatedRMSNorm", {}, {x, ramp({1, 2}), x}), "scale (1, 2): one axis");
  EXPECT_EQ(problem("GatedRMSNorm", {attr("activation", "relu")}, {x, ramp({3}), x}),
            "activation 'relu': silu, swish or sigmoid");
  EXPECT_EQ(problem("BranchwiseRMSNorm", {attr("num_branches", 7)}, {x}),
            "input (2, 6): groups of 0");
  EXPECT_EQ(problem("GatedAdd", {}, {x, x, ramp({2, 3}), ramp({3, 1})}),
            "gate_weight is not supported: ONNX Runtime has it on GPUs alone");
  const Value q = ramp({4, 1, 2}), v = ramp({4, 1, 3}), state = ramp({1, 1, 3, 2}),
              gate = ramp({4, 1});
  const auto net = [&](std::vector<Attribute> attributes, const Values& inputs) {
    return problem("GatedDeltaNet", std::move(attributes), inputs, 2);
  };
  EXPECT_EQ(net({}, {q, q, v, known(ints{0, 4}), gate, gate, state}),
            "cu_seqlens and state_update_capacity are not supported");
  EXPECT_EQ(net({}, {q, q, v, Value(), gate, gate, gate}),
            "initial_state (4, 1): (batch, heads, value size, key size)");
  EXPECT_EQ(net({}, {q, q, v, Value(), gate, Value(), state}),
            "update_rule 'gated_delta' needs a beta");
  EXPECT_EQ(net({attr("gate_activation", "tanh")}, {q, q, v, Value(), gate, gate, state}),
            "gate_activation 'tanh': none, softplus or sigmoid");
  EXPECT_EQ(net({}, {ramp({4, 0, 2}), ramp({4, 0, 2}), v, Value(), gate, gate, state}),
            "0, 0 and 1 heads of queries, keys and values: as many keys as queries, and a multiple "
            "of values");
  EXPECT_EQ(net({}, {ramp({4, 6}), Value(), Value(), Value(), gate, gate, state}),
            "packed query (4, 6) for a state (1, 1, 3, 2)");
}

TEST(ContribOperators, Refusals) {
  const Value x = ramp({1, 2, 6});
  const std::string mha = "com.microsoft.MultiHeadAttention node that makes 'y0': ";
  EXPECT_EQ(refused("MultiHeadAttention", {attr("num_heads", 4)}, {x, x, x}),
            mha + "4 heads of (1, 2, 6): (batch, positions, heads times size)");
  EXPECT_EQ(refused("MultiHeadAttention", {attr("num_heads", 2)}, {x, x, x, ramp({5})}),
            mha + "bias (5,) for queries of 6 and values of 6: twice the one and the other");
  EXPECT_EQ(refused("Attention", {attr("num_heads", 2), attr("qkv_hidden_sizes", ints{6, 6, 7})},
                    {x, ramp({6, 18}), ramp({18})}),
            "com.microsoft.Attention node that makes 'y0': weights (6, 18) for queries, keys and "
            "values: three sizes that add up to 18");
  EXPECT_EQ(refused("GroupQueryAttention", {attr("num_heads", 3), attr("kv_num_heads", 2)},
                    {x, x, x, Value(), Value(), known(ints{1}), known(ints{2})}),
            "com.microsoft.GroupQueryAttention node that makes 'y0': num_heads 3 and kv_num_heads "
            "2: the one is a multiple of the other");
  const Value bytes = ramp({2, 1, 8}, DType::U8), scales = ramp({2, 1});
  const auto n_bits = [&](int64_t bits, int64_t block, int64_t k) {
    return refused("MatMulNBits",
                   {attr("N", 2), attr("K", k), attr("bits", bits), attr("block_size", block)},
                   {ramp({1, 16}), bytes, scales});
  };
  const std::string product = "com.microsoft.MatMulNBits node that makes 'y0': ";
  EXPECT_EQ(n_bits(4, 16, 16), "no error");
  EXPECT_EQ(n_bits(3, 16, 16), product + "bits 3: 2, 4 or 8");
  EXPECT_EQ(n_bits(4, 15, 16), product + "block_size 15: a power of two, at least 16");
  EXPECT_EQ(n_bits(4, 32, 32), product +
                                   "weights (2, 1, 8) for N 2, 1 blocks of 32 numbers of 4 "
                                   "bits");
  EXPECT_EQ(n_bits(4, 16, -1), product + "N 2 and K -1: 1 to 2^31");
  EXPECT_EQ(
      refused("FusedGemm", {attr("activation", "Swish")}, {ramp({2, 2}), ramp({2, 2})}),
      "com.microsoft.FusedGemm node that makes 'y0': activation 'Swish': Relu, Tanh, Sigmoid, "
      "LeakyRelu, Elu, Clip, HardSigmoid, HardSwish, Softplus, Gelu or FastGelu");
  EXPECT_EQ(refused("MoE", {attr("k", 3)},
                    {ramp({2, 4}), ramp({2, 2}), ramp({2, 4, 4}), Value(), ramp({2, 4, 4})}),
            "com.microsoft.MoE node that makes 'y0': router_probs (2, 2) and k 3: (tokens, "
            "experts), and 1 to their number");
}

}  // namespace
}  // namespace weft::onnx
