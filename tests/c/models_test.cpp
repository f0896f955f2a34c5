// The C interface: ONNX models out and in, tokenizers.
#include <filesystem>
#include <fstream>

#include "tests/c/c_test.h"

namespace weft::c {
namespace {

class CModelTest : public CTest {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/weft_c_models_XXXXXX";
    ASSERT_NE(::mkdtemp(pattern), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(dir_); }
  std::string at(const std::string& name) const { return dir_ + "/" + name; }

  std::string dir_;
};

TEST_F(CModelTest, AFunctionIsExportedAndRun) {
  const Tensor weight = context.of<float>({1, 2, 3, 4, 5, 6}, {3, 2});
  export_onnx(at("model.onnx"),
              [&](const std::vector<Tensor>& in) {
                std::vector<Tensor> out;
                out.push_back(apply("matmul", in[0], weight));
                out.push_back(apply("sum", in[0]));
                return out;
              },
              {context.ones({2, 3})});
  Model model(context, at("model.onnx"));
  EXPECT_EQ(model.inputs(), std::vector<std::string>{"input_0"});
  EXPECT_EQ(model.outputs(), (std::vector<std::string>{"output_0", "output_1"}));
  for (int i = 1; i < 4; ++i) {
    std::map<std::string, Tensor> given;
    given.emplace("input_0", context.full({2, 3}, 1.0 * i));
    const auto out = model(given);
    const auto x = static_cast<float>(i);
    EXPECT_EQ(floats(out.at("output_0")), (std::vector<float>{9 * x, 12 * x, 9 * x, 12 * x}));
    EXPECT_EQ(out.at("output_1").item(), 6.0 * i);
  }
  EXPECT_GT(model.kernels(), 0U);
}

TEST_F(CModelTest, WhatAModelDoesNotTakeIsRefused) {
  export_onnx(at("model.onnx"),
              [](const std::vector<Tensor>& in) {
                std::vector<Tensor> out;
                out.push_back(in[0] + in[0]);
                return out;
              },
              {context.ones({2})});
  EXPECT_THROW(Model(context, at("none.onnx")), Error);
  Model model(context, at("model.onnx"));
  std::map<std::string, Tensor> wrong;
  wrong.emplace("x", context.ones({2}));
  EXPECT_THROW(model(wrong), Error);
  weft_model handle = nullptr;
  ASSERT_EQ(weft_model_open(context.get(), at("model.onnx").c_str(), &handle), WEFT_OK);
  size_t length = 0;
  EXPECT_REFUSED(weft_model_input(handle, 1, nullptr, 0, &length), WEFT_ERROR_ARGUMENT,
                 "the model has 1 of these");
  const char* names[] = {"input_0"};
  const Tensor x = context.ones({2});
  const weft_tensor inputs[] = {x.get()};
  EXPECT_REFUSED(weft_model_call(handle, names, inputs, 1, nullptr, 0, &length), WEFT_ERROR_SPACE,
                 "1");
  weft_model_release(handle);
  EXPECT_REFUSED(weft_model_kernels(handle, &length), WEFT_ERROR_ARGUMENT, "model");
}

TEST_F(CModelTest, TokenizersEncodeAndDecode) {
  std::ofstream(at("tokenizer.json"))
      << R"({"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}})";
  const Tokenizer t(dir_);
  EXPECT_EQ(t.encode("abb"), (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(t.encode(""), std::vector<int32_t>{});
  EXPECT_EQ(t.decode({2, 1}), "ab b");
  EXPECT_THROW(Tokenizer(at("none.json")), Error);
  EXPECT_REFUSED(weft_tokenizer_encode(nullptr, "a", true, nullptr, 0, nullptr),
                 WEFT_ERROR_ARGUMENT, "tokenizer");
}

TEST_F(CModelTest, TokenizersAreTrained) {
  const char* texts[] = {"low low lot", "lower"};
  const char* special[] = {"<|end|>", nullptr};
  ASSERT_EQ(weft_tokenizer_train(at("tokenizer.json").c_str(), texts, 2, 259, special), WEFT_OK);
  const Tokenizer t(dir_);
  EXPECT_EQ(t.encode("low").size(), 1u);
  EXPECT_EQ(t.encode("<|end|>"), std::vector<int32_t>{0});
  EXPECT_REFUSED(weft_tokenizer_train(at("t.json").c_str(), texts, 2, 100, nullptr),
                 WEFT_ERROR_VALUE, "a vocabulary of 100 tokens");
}

}  // namespace
}  // namespace weft::c
