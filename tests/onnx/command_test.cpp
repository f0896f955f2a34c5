// `weft onnx` as users meet it.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/app/command.h"
#include "tests/onnx/onnx_bytes.h"
#include "weft/io/functions.h"
#include "weft/io/npy.h"

namespace weft {
namespace {

using namespace onnx::bytes;

class OnnxCommand : public CommandGroupTest {
 protected:
  OnnxCommand() : CommandGroupTest("onnx") {}
  std::string model_at(const std::string& name, const std::string& op) {
    const std::vector<float> w = {1, 2, 3, 4, 5, 6};
    return write(name, model(graph({{node("MatMul", {"x", "w"}, {"a"}), node(op, {"a"}, {"y"})},
                                    {declared("x", {-1, 3})},
                                    {declared("y", {-1, 2})},
                                    {tensor("w", {3, 2}, 1, raw(w))}})));
  }
};

TEST_F(OnnxCommand, Inspects) {
  const Outcome shown = weft({"inspect", model_at("m.onnx", "Neg"), "--size", "n=5", "--json"});
  EXPECT_EQ(shown.code, kExitOk);
  EXPECT_TRUE(has(shown, R"("opsets":{"ai.onnx":18},"parameters":6,"bytes":24,"flops":60)"))
      << shown.text();
  EXPECT_TRUE(has(shown, R"j("inputs":[{"name":"x","type":"float32 (n, 3)"}])j")) << shown.text();
  EXPECT_TRUE(has(shown, R"("operators":{"MatMul":1,"Neg":1},"unsupported":[])")) << shown.text();
  EXPECT_TRUE(has(weft({"inspect", at("m.onnx")}), "parameters 6 in 24 B"));
}

TEST_F(OnnxCommand, InspectListsWhatIsMissing) {
  const Outcome shown = weft({"inspect", model_at("m.onnx", "Nope")});
  EXPECT_EQ(shown.code, kExitFailure);
  EXPECT_TRUE(has(shown, "Nope (ai.onnx, opset 18): Nope node that makes 'y'")) << shown.text();
}

TEST_F(OnnxCommand, RunsWithGivenInputs) {
  const std::vector<float> x = {1, 0, 0, 0, 1, 0};
  std::vector<std::byte> bytes(24);
  std::memcpy(bytes.data(), x.data(), 24);
  save_npy(at("x.npy"), HostArray::owned(DType::F32, {2, 3}, std::move(bytes)));
  const Outcome ran = weft(
      {"run", model_at("m.onnx", "Neg"), "--input", "x=" + at("x.npy"), "--output", at("out")});
  EXPECT_EQ(ran.code, kExitOk) << ran.text();
  const HostArray y = read_npy(at("out/y.npy"));
  EXPECT_EQ(y.shape, (std::vector<int64_t>{2, 2}));
  float first = 0;
  std::memcpy(&first, y.bytes.data() + 8, 4);
  EXPECT_EQ(first, -3);
  EXPECT_TRUE(
      has(weft({"run", at("m.onnx"), "--input", "x"}), "--input x has to be NAME=FILE.npy"));
  EXPECT_TRUE(has(weft({"run", at("m.onnx"), "--size", "n=many"}), "'many' is no size"));
  EXPECT_TRUE(has(weft({"run", at("m.onnx"), "--size", "n=4"}), "float32 (4, 2)"));
}

TEST_F(OnnxCommand, BenchGivesTimes) {
  const Outcome timed = weft({"bench", model_at("m.onnx", "Neg"), "--repeats", "2", "--json"});
  EXPECT_EQ(timed.code, kExitOk);
  EXPECT_TRUE(has(timed, R"({"who":"weft","load_s":)")) << timed.text();
}

TEST_F(OnnxCommand, ChecksCases) {
  const auto stored = [](const std::vector<float>& x, const std::vector<int64_t>& shape) {
    return tensor("", shape, 1, raw(x));
  };
  for (const char* name : {"right", "wrong", "unsupported"}) {
    std::filesystem::create_directories(at(std::string("cases/node/") + name + "/test_data_set_0"));
    const std::string folder = std::string("cases/node/") + name + "/";
    model_at(folder + "model.onnx", name == std::string("unsupported") ? "Nope" : "Neg");
    write(folder + "test_data_set_0/input_0.pb", stored({1, 0, 0}, {1, 3}));
    write(folder + "test_data_set_0/output_0.pb",
          stored({-1, name == std::string("wrong") ? -2.5f : -2.0f}, {1, 2}));
  }
  const Outcome all = weft({"check", at("cases")});
  EXPECT_EQ(all.code, kExitFailure);
  EXPECT_TRUE(has(all, "wrong       wrong: output 0: element 1 is -2 and should be -2.5; 1 of 2"))
      << all.text();
  EXPECT_TRUE(has(all, "unsupported unsupported: [onnx.unsupported]")) << all.text();
  EXPECT_EQ(weft({"check", at("cases"), "--case", "right"}).code, kExitOk);
  EXPECT_TRUE(has(weft({"check", at("none")}), "is no directory"));
  EXPECT_TRUE(has(weft({"check", at("cases"), "--case", "zzz"}), "no case with 'zzz' in its name"));
}

TEST_F(OnnxCommand, HelpNamesTheWholeCommand) {
  EXPECT_TRUE(has(weft({"run", "--help"}), "Usage: weft onnx run"));
  EXPECT_TRUE(has(weft({"run"}), "`weft onnx run --help` shows what is possible"));
}

TEST_F(OnnxCommand, OptimizesAndSaysWhatItDid) {
  const std::string given = model_at("m.onnx", "Identity");
  const Outcome done = weft({"optimize", given, "-o", at("small.onnx"), "--json"});
  EXPECT_EQ(done.code, kExitOk);
  EXPECT_TRUE(has(done, R"("nodes that change nothing removed":1)")) << done.text();
  EXPECT_TRUE(has(done, R"("nodes_before":2,"nodes":1)")) << done.text();
  EXPECT_TRUE(has(weft({"inspect", at("small.onnx"), "--json"}), R"("operators":{"MatMul":1})"));
  EXPECT_TRUE(
      has(weft({"optimize", given, "-o", at("small.onnx")}), "nodes that change nothing removed"));
}

TEST_F(OnnxCommand, ExportsCapturedFunctions) {
  auto step = jit([](const Tensor& x) { return x.relu() + 1; });
  const Tensor x = Tensor::zeros({2, 3}).contiguous().realize();
  step(x), step(x);
  save_function(at("f.safetensors"), step.captured());
  const Outcome done = weft({"export", at("f.safetensors"), "-o", at("f.onnx"), "--json"});
  EXPECT_EQ(done.code, kExitOk) << done.text();
  EXPECT_TRUE(has(weft({"inspect", at("f.onnx"), "--json"}), R"("operators":{"Add":1,"Relu":1})"));
  const Outcome bad = weft({"export", at("f.safetensors"), "-o", at("f.onnx"), "--opset", "3"});
  EXPECT_TRUE(has(bad, "opset 3 cannot be written")) << bad.text();
}

}  // namespace
}  // namespace weft
