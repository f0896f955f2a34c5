// The C interface: tensors, their values, gradients, contexts.
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/c/c_test.h"

namespace weft::c {
namespace {

using Floats = std::vector<float>;
using Sizes = std::vector<int64_t>;

TEST_F(CTest, ValuesGoInAndComeOut) {
  const Tensor x = context.of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(x.shape(), (Sizes{2, 3}));
  EXPECT_EQ(x.dtype(), WEFT_F32);
  EXPECT_EQ(floats(x), (Floats{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(x.text(), "f32 (2, 3) [[1, 2, 3], [4, 5, 6]]");
  EXPECT_EQ(context.of<int64_t>({7}, {}).item<int64_t>(), 7);
  int64_t strides[2] = {};
  size_t rank = 0;
  const Tensor t = apply("T", x);
  ASSERT_EQ(weft_tensor_strides(t.get(), strides, 2, &rank), WEFT_OK);
  EXPECT_EQ(strides[0], 2);
  EXPECT_EQ(strides[1], 1);
  EXPECT_EQ(floats(t), (Floats{1, 4, 2, 5, 3, 6}));
}

TEST_F(CTest, ItemsOfEveryKind) {
  weft_value v = {};
  const auto item = [&](const Tensor& x) {
    EXPECT_EQ(weft_tensor_item(x.get(), &v), WEFT_OK);
    return v.kind;
  };
  EXPECT_EQ(item(context.full({}, true)), static_cast<weft_kind>(WEFT_BOOLEAN));
  EXPECT_TRUE(v.as.boolean);
  EXPECT_EQ(item(context.full({}, 0.5)), static_cast<weft_kind>(WEFT_FLOAT));
  EXPECT_EQ(v.as.number, 0.5);
  EXPECT_EQ(item(context.full({}, -3)), static_cast<weft_kind>(WEFT_INT));
  EXPECT_EQ(v.as.integer, -3);
  EXPECT_EQ(item(context.of<uint64_t>({UINT64_MAX}, {})), static_cast<weft_kind>(WEFT_FLOAT));
  EXPECT_REFUSED(weft_tensor_item(context.ones({2}).get(), &v), WEFT_ERROR_VALUE, "2 elements");
}

TEST_F(CTest, OperatorsAndOperations) {
  const Tensor x = context.of<float>({1, 2, 4}, {3});
  EXPECT_EQ(floats(8 / x + 1 - x * 2), (Floats{7, 1, -5}));
  EXPECT_EQ(floats(1 - x), (Floats{0, -1, -3}));
  EXPECT_EQ(floats(apply("clamp", x, 1.5, 3)), (Floats{1.5, 2, 3}));
  EXPECT_EQ(floats(apply("where", x > 1.5, x, -1)), (Floats{-1, 2, 4}));
  EXPECT_EQ(floats(apply("sum", x, named("keepdim", true))), (Floats{7}));
}

TEST_F(CTest, SeveralResults) {
  const Tensor x = context.of<float>({3, 1, 2}, {3});
  const std::vector<Tensor> top = results(nullptr, "topk", {x, 2});
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(floats(top[0]), (Floats{3, 2}));
  EXPECT_EQ(top[1].to_vector<int32_t>(), (std::vector<int32_t>{0, 2}));
  EXPECT_EQ(results(nullptr, "split", {context.ones({9}), 1}).size(),
            9u);  // more than a first guess
  weft_tensor out = nullptr;
  size_t count = 0;
  const weft_value v[] = {weft_arg(x.get()), weft_int(2)};
  EXPECT_REFUSED(weft_apply(nullptr, "topk", v, 2, &out, 1, &count), WEFT_ERROR_SPACE,
                 "room for 1");
  EXPECT_EQ(count, 2u);
  EXPECT_EQ(out, nullptr);
}

TEST_F(CTest, IndicesAreText) {
  const Tensor x = apply("reshape", apply("cast", context.arange(12), "f32"), Sizes{3, 4});
  EXPECT_EQ(floats(apply("index", x, "1")), (Floats{4, 5, 6, 7}));
  EXPECT_EQ(floats(apply("index", x, "::2, -1")), (Floats{3, 11}));
  EXPECT_EQ(floats(apply("index", x, "..., 1:3 , new")), (Floats{1, 2, 5, 6, 9, 10}));
  EXPECT_EQ(floats(apply("index", x, ":: -2,0")), (Floats{8, 0}));
  const std::vector<Tensor> rows{context.of<int32_t>({2, 0}, {2})};
  EXPECT_EQ(floats(apply("index", x, "t, 1", rows)), (Floats{9, 1}));
  const Tensor y = context.ones({2, 2});
  apply("index_put", y, "0", 5);
  EXPECT_EQ(floats(y), (Floats{5, 5, 1, 1}));
  for (const char* bad : {"x", "1:2:3:4", "1,,2", "t", "9999999999999999999999", ","})
    EXPECT_THROW(apply("index", x, bad), Error) << bad;
  EXPECT_THROW(apply("index", x, "1", rows), Error);
}

TEST_F(CTest, WritesAreSeenByAllHandles) {
  Tensor x = context.of<float>({1, 2}, {2});
  const Tensor same = x, row = apply("index", x, "1:");
  x.assign(context.of<float>({5, 6}, {2}));
  EXPECT_EQ(floats(same), (Floats{5, 6}));
  EXPECT_EQ(floats(row), (Floats{6}));
  const float more[] = {7, 8};
  ASSERT_EQ(weft_tensor_copy_in(x.get(), more, sizeof(more)), WEFT_OK);
  EXPECT_EQ(floats(same), (Floats{7, 8}));
}

TEST_F(CTest, BorrowedMemoryIsGivenBack) {
  alignas(64) float data[4] = {1, 2, 3, 4};
  const int64_t shape[] = {4};
  int freed = 0;
  weft_array a = WEFT_STRUCT(weft_array);
  a.dtype = WEFT_F32;
  a.rank = 1;
  a.flags = WEFT_BORROW;
  a.shape = shape;
  a.data = data;
  a.bytes = sizeof(data) - 1;
  a.deleter = [](void* n) { ++*static_cast<int*>(n); };
  a.deleter_context = &freed;
  weft_tensor x = nullptr;
  EXPECT_REFUSED(weft_tensor_create(context.get(), &a, &x), WEFT_ERROR_VALUE, "15 bytes");
  EXPECT_EQ(freed, 0);
  a.bytes = sizeof(data);
  ASSERT_EQ(weft_tensor_create(context.get(), &a, &x), WEFT_OK);
  Tensor t(x);
  EXPECT_EQ(floats(t + 1), (Floats{2, 3, 4, 5}));
  t.assign(t * 2);
  t.realize();
  EXPECT_EQ(data[1], 2);  // never written
  EXPECT_EQ(floats(t), (Floats{2, 4, 6, 8}));
  t = Tensor();
  context = Context();  // the last reader may be a cache of the context
  EXPECT_EQ(freed, 1);
}

TEST_F(CTest, TensorsKeepTheirContext) {
  Tensor x;
  {
    const Context gone;
    x = gone.ones({3});
  }
  EXPECT_EQ(floats(x + x), (Floats{2, 2, 2}));
  const Tensor other = context.ones({3});
  EXPECT_THROW(x + other, Error);
  EXPECT_NE(std::string(last_error().text).find("another context"), std::string::npos);
}

TEST_F(CTest, Gradients) {
  Tensor w = context.of<float>({1, 2, 3}, {3});
  EXPECT_FALSE(w.grad());
  w.requires_grad();
  apply("sum", w * w * w).backward();
  EXPECT_EQ(floats(w.grad()), (Floats{3, 12, 27}));
  w.zero_grad();
  EXPECT_FALSE(w.grad());
  (w * w).backward(context.of<float>({1, 10, 100}, {3}));
  EXPECT_EQ(floats(w.grad()), (Floats{2, 40, 600}));

  weft_tensor first = nullptr, second = nullptr;
  const weft_tensor target = w.get();
  const Tensor y = apply("sum", w * w * w);
  ASSERT_EQ(weft_gradient(y.get(), nullptr, &target, 1, &first), WEFT_OK);
  const Tensor g(first), sum = apply("sum", g);
  ASSERT_EQ(weft_gradient(sum.get(), nullptr, &target, 1, &second), WEFT_OK);
  EXPECT_EQ(floats(Tensor(second)), (Floats{6, 12, 18}));
}

TEST_F(CTest, OptionsDevicesAndSeeds) {
  EXPECT_EQ(context.option("THREADS"), "2");
  context.set("WEFT_SEED", "5");
  EXPECT_EQ(context.option("WEFT_SEED"), "5");
  EXPECT_THROW(context.set("WEFT_THREEDS", "1"), Error);
  EXPECT_THROW(context.set("THREADS", "many"), Error);
  EXPECT_THROW(Context({"WEFT_THREADS"}), Error);
  char text[4];
  size_t length = 0;
  EXPECT_REFUSED(weft_context_get(context.get(), "DEV", text, 3, &length), WEFT_ERROR_SPACE, "4");
  EXPECT_EQ(length, 3u);
  EXPECT_EQ(weft_context_get(context.get(), "DEV", text, 4, nullptr), WEFT_OK);
  EXPECT_STREQ(text, "CPU");

  size_t devices = 0;
  ASSERT_EQ(weft_device_count(context.get(), &devices), WEFT_OK);
  bool interp = false;
  for (size_t i = 0; i < devices; ++i) {
    weft_device_info info = WEFT_STRUCT(weft_device_info);
    ASSERT_EQ(weft_describe_device(context.get(), i, &info), WEFT_OK);
    interp |= std::string(info.name) == "CPU:INTERP" && info.available;
  }
  EXPECT_TRUE(interp);
  weft_device_info none = WEFT_STRUCT(weft_device_info);
  EXPECT_REFUSED(weft_describe_device(context.get(), devices, &none), WEFT_ERROR_INDEX,
                 "no device");

  context.seed(1);
  const Floats a = floats(context.rand({5}));
  context.seed(1);
  EXPECT_EQ(floats(context.rand({5})), a);
  context.seed(2);
  EXPECT_NE(floats(context.rand({5})), a);
}

TEST_F(CTest, ContextsRecordStretches) {
  const std::string path = testing::TempDir() + "/c.weftviz";
  std::filesystem::remove(path);
  context.start_recording(path);
  EXPECT_REFUSED(weft_start_recording(context.get(), nullptr), WEFT_ERROR_VALUE,
                 "is recorded to " + path + " already");
  floats(context.rand({5}));
  context.stop_recording();
  const auto size = std::filesystem::file_size(path);
  EXPECT_GT(size, 1000u);
  floats(context.rand({7}));
  context.stop_recording();
  EXPECT_EQ(std::filesystem::file_size(path), size);
}

/// tests/io/event_file_test.cpp reads what is written; here it is the same file.
TEST_F(CTest, CurvesAreFilesOfEvents) {
  const std::string folder = testing::TempDir() + "/c_curves";
  std::filesystem::remove_all(folder);
  std::string path;
  {
    EventFile events(folder);
    path = events.path();
    EXPECT_EQ(path.rfind(folder + "/events.out.tfevents.", 0), 0u) << path;
    events.scalar("train/loss", 0.5, 7);
    events.flush();
    const auto flushed = std::filesystem::file_size(path);
    std::vector<std::thread> threads;
    for (int t = 0; t < 2; ++t)
      threads.emplace_back([&] {
        for (int64_t step = 0; step < 100; ++step) events.scalar("train/speed", 1e3, step);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_REFUSED(weft_event_file_scalar(events.get(), nullptr, 1, 1), WEFT_ERROR_ARGUMENT, "tag");
    EXPECT_GE(std::filesystem::file_size(path), flushed);
  }
  std::ifstream file(path, std::ios::binary);
  const std::string all(std::istreambuf_iterator<char>(file), {});
  // A record: u64 size of its data, u32 checksum, the data, u32 checksum.
  size_t records = 0;
  for (size_t at = 0; at + 16 <= all.size(); ++records) {
    uint64_t size = 0;
    std::memcpy(&size, &all[at], sizeof(size));
    at += 16 + size;
    ASSERT_LE(at, all.size());
  }
  EXPECT_EQ(records, 202u);  // the version, and the points
  EXPECT_NE(all.find("train/loss"), std::string::npos);
  EXPECT_NE(all.find("train/speed"), std::string::npos);
  weft_event_file none = nullptr;
  EXPECT_REFUSED(weft_event_file_create(path.c_str(), &none), WEFT_ERROR_RUNTIME, path);
  EXPECT_REFUSED(weft_event_file_flush(none), WEFT_ERROR_ARGUMENT, "event file");
}

TEST_F(CTest, TrainingIsOfTheThread) {
  const bool before = weft_is_training();
  weft_set_training(true);
  EXPECT_TRUE(weft_is_training());
  weft_set_training(false);
  const Tensor x = context.ones({100});
  EXPECT_EQ(apply("sum", apply("dropout", x)).item(), 100);
  weft_set_training(before);
}

}  // namespace
}  // namespace weft::c
