#include "weft/llm/quantise_model.h"

#include <gtest/gtest.h>

#include "tests/io/scratch_dir.h"
#include "weft/llm/random_model.h"

namespace weft::llm {
namespace {

constexpr RandomShape kShape{"eight", "llama", 8, 256, 4, 1, 512, 320, 64};

GgufContent mixed(const RandomShape& shape, const std::string& mix, bool requantise = false,
                  Codec from = Codec::F16) {
  const GgufModel model = gguf_model(random_model(shape, from));
  size_t told = 0;
  GgufContent made =
      quantised_model(model, {mix, requantise}, [&](size_t, size_t, std::string_view) { ++told; });
  EXPECT_EQ(told, model.tensors.size());
  return made;
}

Codec codec_of(const GgufContent& content, const std::string& name) {
  const GgufTensor* tensor = content.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  return tensor ? tensor->codec : Codec::F64;
}

TEST(QuantiseModel, SomeMatricesGetMoreBits) {
  const GgufContent made = mixed(kShape, "Q4_K");
  EXPECT_EQ(made.value("general.file_type")->integer(), 15);
  for (int64_t layer = 0; layer < 8; ++layer) {
    const bool more = layer == 0 || layer == 3 || layer == 6 || layer == 7;
    const std::string at = "blk." + std::to_string(layer) + ".";
    EXPECT_EQ(codec_of(made, at + "attn_v.weight"), more ? Codec::Q6_K : Codec::Q4_K) << layer;
    EXPECT_EQ(codec_of(made, at + "ffn_down.weight"), more ? Codec::Q6_K : Codec::Q4_K) << layer;
    EXPECT_EQ(codec_of(made, at + "attn_q.weight"), Codec::Q4_K);
    EXPECT_EQ(codec_of(made, at + "attn_norm.weight"), Codec::F32);
  }
  EXPECT_EQ(codec_of(made, "output.weight"), Codec::Q6_K);
  EXPECT_EQ(codec_of(made, "token_embd.weight"), Codec::Q4_K);
  EXPECT_EQ(codec_of(mixed(kShape, "Q2_K"), "blk.1.attn_v.weight"), Codec::Q4_K);  // 4 heads a key
  EXPECT_EQ(codec_of(mixed(kShape, "Q8_0"), "output.weight"), Codec::Q8_0);
}

TEST(QuantiseModel, ValuesStayNear) {
  const GgufModel before = gguf_model(random_model(kShape, Codec::F16));
  const GgufModel after = gguf_model(mixed(kShape, "Q5_K_M"));
  const std::vector<float> a = before.find("blk.2.ffn_up.weight")->value().to_vector<float>();
  const std::vector<float> b = after.find("blk.2.ffn_up.weight")->value().to_vector<float>();
  double error = 0, size = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    error += (a[i] - b[i]) * (a[i] - b[i]);
    size += a[i] * a[i];
  }
  EXPECT_GT(error, 0);
  EXPECT_LT(error, 0.002 * size);  // of normal numbers in 32 steps
}

TEST(QuantiseModel, RowsThatBlocksDoNotDivideGetSmallerOnes) {
  constexpr RandomShape kNarrow{"narrow", "llama", 1, 96, 4, 4, 160, 320, 64};
  EXPECT_EQ(codec_of(mixed(kNarrow, "Q4_K_M"), "blk.0.attn_q.weight"), Codec::Q5_0);
  EXPECT_EQ(codec_of(mixed(kNarrow, "Q2_K"), "blk.0.attn_q.weight"), Codec::IQ4_NL);
  EXPECT_EQ(codec_of(mixed(kNarrow, "Q6_K"), "output.weight"), Codec::Q8_0);
}

TEST(QuantiseModel, SaysWhatIsWrong) {
  EXPECT_ERROR(mixed(kShape, "Q9"), "there is no mix of formats 'Q9': F32, F16");
  EXPECT_ERROR(mixed(kShape, "Q4_0", false, Codec::Q8_0), "is packed already, as Q8_0");
  EXPECT_EQ(codec_of(mixed(kShape, "Q4_0", true, Codec::Q8_0), "blk.0.attn_q.weight"), Codec::Q4_0);
  // What has the format already loses nothing.
  EXPECT_EQ(codec_of(mixed(kShape, "Q8_0", false, Codec::Q8_0), "output.weight"), Codec::Q8_0);
}

}  // namespace
}  // namespace weft::llm
