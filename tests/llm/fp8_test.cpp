// Matrices of 8-bit floats with scales, as folders have them.
#include <gtest/gtest.h>

#include <cstring>

#include "weft/base/error.h"
#include "weft/llm/config.h"
#include "weft/llm/weights.h"

namespace weft::llm {
namespace {

constexpr int64_t kRows = 5, kColumns = 7;
const std::string kMatrix = "model.layers.0.self_attn.q_proj.weight";

NamedArray array(const std::string& name, DType dtype, std::vector<int64_t> shape,
                 std::vector<std::byte> bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return {name, {dtype, std::move(shape), *owner, owner}};
}

/// Codes of 1, 1.125, .. 1.875, 2, 2.25, ..: the bits of e4m3 with an exponent of 7 for 1.
std::vector<std::byte> codes(int salt) {
  std::vector<std::byte> all;
  for (int i = 0; i < kRows * kColumns; ++i)
    all.push_back(static_cast<std::byte>(0x38 + (i + salt) % 16));
  return all;
}
float number(std::byte code) {
  const int bits = static_cast<int>(code) - 0x38;
  return (1 + static_cast<float>(bits % 8) / 8) * (bits >= 8 ? 2.0F : 1.0F);
}

NamedArray scales(const std::string& name, std::vector<int64_t> shape) {
  std::vector<float> all;
  int64_t count = 1;
  for (const int64_t d : shape) count *= d;
  for (int64_t i = 0; i < count; ++i) all.push_back(static_cast<float>(i + 1) * 0.5F);
  std::vector<std::byte> bytes(all.size() * sizeof(float));
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return array(name, DType::F32, std::move(shape), std::move(bytes));
}

SafetensorsContent content(const std::string& end, const std::vector<int64_t>& grid) {
  return {{array(kMatrix, DType::F8E4M3, {kRows, kColumns}, codes(0)), scales(kMatrix + end, grid)},
          {}};
}

/// Scale i is (i + 1) / 2, of blocks of `rows` by `columns`.
std::vector<float> decoded(int salt, int64_t rows, int64_t columns, int64_t wide) {
  std::vector<float> all;
  const auto packed = codes(salt);
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      const auto scale = static_cast<float>(i / rows * wide + j / columns + 1) * 0.5F;
      all.push_back(number(packed[static_cast<size_t>(i * kColumns + j)]) * scale);
    }
  return all;
}

TEST(Fp8Folders, HaveTheirNumbers) {
  const auto numbers = [](const SafetensorsContent& from, ScaleBlock block) {
    const Weights weights(from, 0, false, block);
    const Weight* q = weights.find("blk.0.attn_q.weight");
    EXPECT_EQ(q->shape, (Dims{kRows, kColumns}));
    EXPECT_EQ(q->stored.dtype(), DType::F8E4M3);  // not decoded where they lie
    return q->value().to_vector<float>();
  };
  EXPECT_EQ(numbers(content("_scale_inv", {3, 2}), {2, 4}), decoded(0, 2, 4, 2));
  EXPECT_EQ(numbers(content("_scale", {5, 1}), {}), decoded(0, 1, kColumns, 1));
  EXPECT_EQ(numbers(content("_scale", {5}), {}), decoded(0, 1, kColumns, 1));
  EXPECT_EQ(numbers(content("_scale_inv", {1}), {128, 128}), decoded(0, kRows, kColumns, 1));
  EXPECT_EQ(numbers(content("_scale", {}), {}), decoded(0, kRows, kColumns, 1));
}

TEST(Fp8Folders, HaveExpertsWithScalesOfTheirOwn) {
  SafetensorsContent from;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "model.layers.0.mlp.experts." + std::to_string(i) + ".up_proj.weight";
    from.arrays.push_back(array(name, DType::F8E4M3, {kRows, kColumns}, codes(i)));
    from.arrays.push_back(scales(name + "_scale_inv", {3, 2}));
  }
  const Weights weights(from, 0, false, {2, 4});
  const Weight* up = weights.find("blk.0.ffn_up_exps.weight");
  ASSERT_NE(up, nullptr);
  const Tensor all = up->value(), each = up->each(Tensor::from(std::vector<int32_t>{2, 0}));
  for (int i = 0; i < 3; ++i) {
    const std::vector<float> wanted = decoded(i, 2, 4, 2);
    EXPECT_EQ(all.index({i}).to_vector<float>(), wanted);
    EXPECT_EQ(up->chosen(Tensor::from(std::vector<int32_t>{i})).to_vector<float>(), wanted);
    if (i != 1) {
      EXPECT_EQ(each.index({i == 0 ? 1 : 0}).to_vector<float>(), wanted);
    }
  }
}

TEST(Fp8Folders, SayWhatDoesNotFit) {
  const auto refused = [](const SafetensorsContent& from, const char* text) {
    try {
      Weights(from, 0, false, {2, 4});
      ADD_FAILURE() << "not refused: " << text;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "llm.weights");
      EXPECT_NE(e.message().find(text), std::string::npos) << e.message();
    }
  };
  refused(content("_scale_inv", {3, 3}), "there is one for all, for each row, or for each block");
  refused(content("_scale_inv", {3, 2, 1}), "there is one for all");
  SafetensorsContent other = content("_scale", {1});
  other.arrays[0].array.dtype = DType::I8;
  refused(other, "scales a packed matrix, and weft reads none but floats of 8 bits and mxfp4");
  other.arrays.erase(other.arrays.begin());
  refused(other, "scales a packed matrix");
}

std::string described(const std::string& packing) {
  return R"({"model_type": "llama", "num_hidden_layers": 1, "hidden_size": 8, "vocab_size": 8,
             "num_attention_heads": 1, "intermediate_size": 8, "max_position_embeddings": 8,
             "quantization_config": )" +
         packing + "}";
}

TEST(Fp8Folders, AreKnownByTheirDescription) {
  using Block = std::array<int64_t, 2>;
  const auto block = [](const char* packing) {
    return read_config(described(packing)).scale_block;
  };
  EXPECT_EQ(block(R"({"quant_method": "fp8", "weight_block_size": [128, 64]})"), (Block{128, 64}));
  EXPECT_EQ(block(R"({"quant_method": "fp8", "weight_block_size": null})"), Block{});
  EXPECT_EQ(block(R"({"quant_method": "compressed-tensors", "format": "float-quantized"})"),
            Block{});
  const auto refused = [](const char* packing, const char* text) {
    try {
      read_config(described(packing));
      ADD_FAILURE() << "not refused: " << packing;
    } catch (const Error& e) {
      EXPECT_NE(e.message().find(text), std::string::npos) << e.message();
    }
  };
  refused(R"({"quant_method": "fp8", "weight_block_size": [128]})", "is not two sizes");
  refused(R"({"quant_method": "compressed-tensors", "format": "pack-quantized"})",
          "packed by 'compressed-tensors' ('pack-quantized'), of which weft reads none but fp8");
  refused(R"({"quant_method": "gptq"})", "packed by 'gptq', of which weft reads none but fp8");
}

}  // namespace
}  // namespace weft::llm
