// Models of more bytes than a protocol buffer may have.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>

#include "tests/io/scratch_dir.h"
#include "weft/base/error.h"
#include "weft/onnx/runner.h"
#include "weft/onnx/write.h"

namespace weft::onnx {
namespace {

constexpr int64_t kRows = int64_t{200} << 10, kColumns = 1024;  // 800 MiB of f32

/// Zeros that take no memory as long as nobody writes to them.
std::shared_ptr<const void> zeros(size_t bytes) {
  void* at = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return nullptr;
  return {at, [bytes](const void* p) { ::munmap(const_cast<void*>(p), bytes); }};
}

/// y: rows x of the last of three tables of 800 MiB.
Model large_model() {
  const size_t bytes = static_cast<size_t>(kRows * kColumns) * 4;
  const auto memory = zeros(bytes);
  Model m;
  m.ir_version = 9;
  m.opsets[""] = 18;
  m.graph.name = "large";
  for (const char* name : {"a", "b", "c"}) {
    const HostArray array{DType::F32,
                          {kRows, kColumns},
                          {static_cast<const std::byte*>(memory.get()), bytes},
                          memory};
    m.graph.initialisers.push_back({name, ElementType::Float, array.shape, array, {}});
  }
  Node gather;
  gather.op = "Gather";
  gather.inputs = {"c", "x"};
  gather.outputs = {"y"};
  m.graph.nodes.push_back(gather);
  DeclaredValue x, y;
  x.name = "x";
  x.type = {DeclaredType::Kind::Tensor, ElementType::Int64, std::vector<DeclaredDim>(1), nullptr};
  x.type.shape->front().size = 1;
  y.name = "y";
  y.type = x.type;
  y.type.element = ElementType::Float;
  y.type.shape.reset();
  m.graph.inputs = {x};
  m.graph.outputs = {y};
  return m;
}

TEST(WrittenModels, AboveTwoGibibytesAreNoBytes) {
  try {
    onnx_bytes(large_model());
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "onnx.size");
    const std::string text = e.message();
    EXPECT_NE(text.find("the model has 25165"), std::string::npos) << text;
    EXPECT_NE(text.find("bytes and a protocol buffer at most 2147483647: save it to a file"),
              std::string::npos)
        << text;
  }
}

class LargeFiles : public ScratchDir {};

TEST_F(LargeFiles, HaveTheirTensorsBesideThemSlow) {
  save_onnx(at("m.onnx"), large_model());
  EXPECT_LT(std::filesystem::file_size(at("m.onnx")), 2000u);
  EXPECT_GT(std::filesystem::file_size(at("m.onnx.data")), uint64_t{1} << 31);
  OnnxRunner runner(at("m.onnx"));
  const Tensor last = Tensor::full({1}, kRows - 1, DType::I64);
  const std::vector<float> y = runner({{"x", Value(last)}}).at("y").tensor().to_vector<float>();
  EXPECT_EQ(y, std::vector<float>(kColumns, 0));
}

}  // namespace
}  // namespace weft::onnx
