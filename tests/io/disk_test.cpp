// Tensors in mapped files: lazy, offset views, bitcasts, written back; row G19 of the attack
// catalogue: files that shrink while they are mapped.
#include "weft/io/disk.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <numeric>

#include "tests/io/scratch_dir.h"
#include "weft/base/context.h"
#include "weft/base/file.h"
#include "weft/device/device.h"
#include "weft/io/host_memory.h"
#include "weft/io/npy.h"
#include "weft/io/pt.h"
#include "weft/io/tensors.h"
#include "weft/tensor/jit.h"

namespace weft {
namespace {

constexpr int64_t kPage = 4096;

class DiskTest : public ScratchDir {
 protected:
  // 0, 1, 2, ... as floats.
  std::string numbers(const std::string& name, int64_t count) const {
    std::vector<float> values(static_cast<size_t>(count));
    std::iota(values.begin(), values.end(), 0.0f);
    return write(name, as_text(std::as_bytes(std::span(values))));
  }
  /// A device with memory of its own has the elements there as soon as there is a tensor.
  static bool maps_files() {
    return !Context::current().get<DeviceTable>().default_device().name().starts_with("SIM");
  }
};

TEST_F(DiskTest, OffsetsViewsAndBitcasts) {
  const std::string path = numbers("a", 12);
  const Tensor all = tensor_from_file(path, DType::F32);
  EXPECT_EQ(all.sum().item<float>(), 66);
  const Tensor part = tensor_from_file(path, DType::F32, 16, Dims{2, 4});
  EXPECT_EQ(part.sum(1).to_vector<float>(), (std::vector<float>{22, 38}));
  const Tensor bytes = tensor_from_file(path);
  EXPECT_EQ(bytes.shape(), (std::vector<int64_t>{48}));
  EXPECT_EQ(bytes.shrink({{8, 16}}).bitcast(DType::F32).to_vector<float>(),
            (std::vector<float>{2, 3}));
  EXPECT_ERROR(tensor_from_file(path, DType::F32, 16, Dims{9}), "are not (9,) of f32");
  EXPECT_ERROR(tensor_from_file(path, DType::F32, 99), "disk.size");
  EXPECT_ERROR(tensor_from_file(path, DType::F32, 2), "whole elements");
  EXPECT_ERROR(tensor_from_file(at("none")), "file.missing");
  // Not aligned: a copy, or read as it lies; who looks at its memory gets it aligned.
  const Tensor odd = tensor_from_file(path, DType::F32, 1, Dims{5});
  const Tensor shifted = bytes.shrink({{1, 21}}).contiguous().bitcast(DType::I32);
  EXPECT_EQ(odd.bitcast(DType::I32).to_vector<int32_t>(), shifted.to_vector<int32_t>());
  EXPECT_EQ(std::bit_cast<uintptr_t>(host_view(odd)->data) % sizeof(float), 0u);
}

TEST_F(DiskTest, WritesComeBack) {
  Tensor x = stored_on_disk(Tensor::of({1.0f, 2.0f, 3.0f}), at("a"));
  EXPECT_EQ(disk_path(x), at("a"));
  EXPECT_EQ(content(at("a")).size(), 12u);
  x.index_put({Index(1)}, Tensor::full({}, 7.0f));
  write_to_disk(x);
  EXPECT_EQ(tensor_from_file(at("a"), DType::F32).to_vector<float>(),
            (std::vector<float>{1, 7, 3}));
  const Tensor grown = tensor_on_disk(at("a"), DType::F32, Dims{2, 2});
  EXPECT_EQ(grown.to_vector<float>(), (std::vector<float>{1, 7, 3, 0}));
  EXPECT_EQ(disk_path(Tensor::full({}, 1.0f)), std::nullopt);
  Tensor last = tensor_from_file(at("a"), DType::F32, 8);  // writes go to where it lies
  last.index_put({Index(1)}, Tensor::full({}, 9.0f));
  write_to_disk(last);
  EXPECT_EQ(tensor_from_file(at("a"), DType::F32).to_vector<float>(),
            (std::vector<float>{1, 7, 3, 9}));
}

// Nothing of a large file is read before it is used.
TEST_F(DiskTest, IsLazy) {
  if (!maps_files()) GTEST_SKIP() << "the device maps no files";
  const std::string path = write("a", "");
  std::filesystem::resize_file(path, uint64_t{1} << 36);  // sparse
  const Tensor x = tensor_from_file(path, DType::F32);
  EXPECT_EQ(x.shrink({{int64_t{1} << 33, (int64_t{1} << 33) + 4}}).sum().item<float>(), 0);
}

/// As long as it lives, devices give this much memory.
struct SmallMemory {
  static Options options(int64_t cap, std::string device) {
    Options options;
    options.memory_cap = cap;
    options.dev = std::move(device);
    return options;
  }
  SmallMemory(int64_t cap, std::string device = "CPU")
      : context(options(cap, std::move(device))), scope(context) {}
  Context context;
  ContextScope scope;
};

TEST_F(DiskTest, FilesMayBeLargerThanMemory) {
  constexpr int64_t kCount = int64_t{6} << 20, kCap = int64_t{1} << 20;
  const std::string path = numbers("a", kCount);
  const SmallMemory small(kCap);
  const Tensor x = tensor_from_file(path, DType::F32);
  EXPECT_EQ(x.max().item<float>(), static_cast<float>(kCount - 1));  // the kernel reads the file
  EXPECT_EQ(x.shrink({{kCount - 2, kCount}}).mul(2.0f).to_vector<float>(),
            (std::vector<float>{2 * (kCount - 2), 2 * (kCount - 1)}));
  EXPECT_ERROR(x.mul(2.0f).realize(), "would pass the cap of 1.0 MiB");
  const Tensor copy = stored_on_disk(x, at("b"));  // through a piece of 16 MiB
  EXPECT_EQ(content(at("b")), content(path));
  EXPECT_EQ(copy.min().item<float>(), 0);
}

TEST_F(DiskTest, ADevicesMemoryIsAskedForFirst) {
  const std::string path = numbers("a", int64_t{5} << 20);
  {
    const SmallMemory small(int64_t{1} << 20, "SIM");
    EXPECT_ERROR(tensor_from_file(path, DType::F32), "memory: 20971520 more bytes (20.0 MiB) for");
  }
  const SmallMemory enough(int64_t{64} << 20, "SIM");
  const Tensor x = tensor_from_file(path, DType::F32);
  EXPECT_EQ(x.max().item<float>(), (5 << 20) - 1);
  EXPECT_EQ(x.index({Index(4 << 20)}).item<float>(), 4 << 20);  // in the second piece
}

TEST_F(DiskTest, AFileIsMovedInItself) {
  const std::string path = numbers("a", int64_t{5} << 20);
  const Tensor x = stored_on_disk(tensor_from_file(path, DType::F32, 4), path);
  EXPECT_EQ(x.index({Index(0)}).item<float>(), 1);
  EXPECT_EQ(x.index({Index((5 << 20) - 2)}).item<float>(), (5 << 20) - 1);
}

TEST_F(DiskTest, G19AFileThatShrinksIsAnError) {
  if (!maps_files()) GTEST_SKIP() << "the device maps no files";
  const std::string path = numbers("a", 3 * kPage);
  const Tensor x = tensor_from_file(path, DType::F32);
  const Tensor kept = x.add(1.0f);  // before and after
  EXPECT_EQ(x.sum().item<float>(), 75491328.0f);
  std::filesystem::resize_file(path, static_cast<uint64_t>(kPage));
  EXPECT_ERROR(x.to_vector<float>(),
               "file.shrunk: " + path + " had 49152 bytes when it was loaded");
  EXPECT_ERROR(x.sum().item<float>(), "and has 4096 now");
  EXPECT_ERROR(kept.to_vector<float>(), "file.shrunk");
  EXPECT_ERROR(x.mul(2.0f).to("CPU:INTERP").to_vector<float>(), "file.shrunk");
  EXPECT_ERROR(host_view(x), "file.shrunk");
  EXPECT_ERROR(x.neg().realize(), "file.shrunk");
  // And is none when it is back.
  std::filesystem::resize_file(path, 3 * kPage * sizeof(float));
  EXPECT_EQ(x.shrink({{0, 4}}).to_vector<float>(), (std::vector<float>{0, 1, 2, 3}));
}

TEST_F(DiskTest, G19ModelsOfEveryFormat) {
  if (!maps_files()) GTEST_SKIP() << "the device maps no files";
  std::vector<std::byte> bytes(16 * kPage, std::byte{1});
  const HostArray array = HostArray::owned(DType::F32, {4 * kPage}, bytes);
  save_safetensors(at("safetensors"), {{"x", array}});
  save_pt(at("pt"), {{"x", array}});
  save_npz(at("npz"), {{"x", array}});
  save_npy(at("npy"), array);
  for (const char* format : {"safetensors", "pt", "npz", "npy"}) {
    const LoadedTensors loaded = load_tensors(at(format));
    ASSERT_EQ(loaded.tensors.size(), 1u) << format;
    const Tensor x = loaded.tensors[0].tensor;
    EXPECT_EQ(loaded.tensors[0].name, std::string(format) == "npy" ? "" : "x");
    EXPECT_GT(x.sum().item<float>(), 0);
    std::filesystem::resize_file(at(format), kPage);
    EXPECT_ERROR(x.sum().item<float>(), "file.shrunk") << format;
    EXPECT_ERROR(x.to_vector<float>(), "file.shrunk") << format;
  }
}

// What a captured function keeps of a weight is that of the file's present contents.
TEST_F(DiskTest, ConstantsOfFilesAreKeptUntilTheyChange) {
  if (!maps_files()) GTEST_SKIP() << "the device maps no files";
  const std::string path = numbers("a", 256);
  const Tensor w = tensor_from_file(path, DType::F32, 0, Dims{16, 16});
  auto f = jit([&](const Tensor& x) { return x.matmul(w.mul(2.0f)); });
  const Tensor x = Tensor::ones({1, 16});
  float last = 0;
  for (int i = 0; i < 4; ++i) last = f(x).sum().item<float>();
  EXPECT_EQ(last, 2 * 32640.0f);
  std::vector<float> ones(256, 1.0f);
  overwrite_file(path, 0, std::as_bytes(std::span(ones)));
  EXPECT_EQ(f(x).sum().item<float>(), 512.0f);
}

}  // namespace
}  // namespace weft
