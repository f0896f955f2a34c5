// gpt-oss's experts in MXFP4, as folders have them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "weft/base/error.h"
#include "weft/llm/weights.h"

namespace weft::llm {
namespace {

constexpr int64_t kExperts = 2, kRows = 4, kBlocks = 3, kHalf = 16;
constexpr const char* kAt = "model.layers.0.mlp.experts.";

NamedArray array(const std::string& name, std::vector<int64_t> shape, uint32_t salt, uint32_t low,
                 uint32_t count) {
  size_t size = 1;
  for (const int64_t d : shape) size *= static_cast<size_t>(d);
  auto bytes = std::make_shared<std::vector<std::byte>>(size);
  uint32_t state = salt;
  for (std::byte& b : *bytes) {
    state = state * 1664525 + 1013904223;
    b = std::byte(low + (state >> 16) % count);
  }
  return {kAt + name, {DType::U8, std::move(shape), *bytes, bytes}};
}

SafetensorsContent content(const std::string& matrix) {
  SafetensorsContent all;
  all.arrays.push_back(array(matrix + "_blocks", {kExperts, kRows, kBlocks, kHalf}, 1, 0, 256));
  all.arrays.push_back(array(matrix + "_scales", {kExperts, kRows, kBlocks}, 2, 110, 30));
  return all;
}

/// A code's number, e2m1 (OCP Microscaling Formats 1.0, 5.3.3).
double number(int code) {
  constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  return (code & 8) != 0 ? -kValues[code & 7] : kValues[code];
}

std::vector<float> decoded(const SafetensorsContent& from, int64_t first, int64_t step) {
  const auto byte = [&](size_t which, int64_t at) {
    return static_cast<int>(from.arrays[which].array.bytes[static_cast<size_t>(at)]);
  };
  std::vector<float> all;
  for (int64_t row = 0; row < kExperts * kRows; ++row) {
    if (row % kRows % step != first) continue;
    for (int64_t i = 0; i < kBlocks * 2 * kHalf; ++i) {
      const int64_t block = row * kBlocks + i / (2 * kHalf);
      const int both = byte(0, block * kHalf + i % (2 * kHalf) / 2);
      all.push_back(static_cast<float>(
          std::ldexp(number(i % 2 == 0 ? both & 15 : both >> 4), byte(1, block) - 127)));
    }
  }
  return all;
}

TEST(Mxfp4Folders, HaveTheirNumbers) {
  const SafetensorsContent from = content("down_proj");
  for (const bool lazily : {false, true}) {
    const Weights weights(from, 0, lazily);
    const Weight* down = weights.find("blk.0.ffn_down_exps.weight");
    ASSERT_NE(down, nullptr);
    EXPECT_EQ(down->codec, Codec::MXFP4);
    EXPECT_EQ(down->shape, (Dims{kExperts, kRows, 96}));
    EXPECT_EQ(down->bytes, kExperts * kRows * kBlocks * 17);
    EXPECT_EQ(down->value().to_vector<float>(), decoded(from, 0, 1));
  }
}

TEST(Mxfp4Folders, HaveGateAndUpInTurns) {
  const SafetensorsContent from = content("gate_up_proj");
  const Weights weights(from);
  const Weight *gate = weights.find("blk.0.ffn_gate_exps.weight"),
               *up = weights.find("blk.0.ffn_up_exps.weight");
  ASSERT_TRUE(gate != nullptr && up != nullptr);
  EXPECT_EQ(gate->value().to_vector<float>(), decoded(from, 0, 2));
  EXPECT_EQ(up->value().to_vector<float>(), decoded(from, 1, 2));
}

TEST(Mxfp4Folders, SayWhatDoesNotFit) {
  SafetensorsContent from = content("down_proj");
  from.arrays[1].array.shape = {kExperts, kRows * kBlocks};
  const auto refused = [&] {
    try {
      Weights{from};
      ADD_FAILURE() << "not refused";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "llm.weights");
      EXPECT_NE(e.message().find("down_proj_blocks' is no MXFP4"), std::string::npos)
          << e.message();
    }
  };
  refused();
  from.arrays.pop_back();
  refused();
}

}  // namespace
}  // namespace weft::llm
