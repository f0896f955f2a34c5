#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "tests/io/scratch_dir.h"
#include "weft/io/safetensors.h"

namespace weft {
namespace {

class SafetensorsSave : public ScratchDir {
 protected:
  static NamedArray array(std::string name, DType dtype, std::vector<int64_t> shape) {
    std::vector<std::byte> bytes(static_cast<size_t>(*checked_bytes(dtype, shape)));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 + 1);
    return {std::move(name), HostArray::owned(dtype, std::move(shape), std::move(bytes))};
  }
};

TEST_F(SafetensorsSave, RoundTripsEveryDtype) {
  std::vector<NamedArray> arrays;
  for (const DTypeRow& row : kDTypes) {
    if (!row.safetensors_name.empty())
      arrays.push_back(array(std::string(row.name), row.dtype, {3}));
  }
  arrays.push_back(array("scalar", DType::F64, {}));
  arrays.push_back(array("none", DType::F32, {2, 0, 3}));
  arrays.push_back(array("q\"\\/\xc3\xa9\n", DType::U8, {5}));
  save_safetensors(at("m"), arrays, {{"step", "12"}, {"note", "\xe2\x82\xac \"x\""}});

  const SafetensorsContent back = read_safetensors(at("m"));
  EXPECT_EQ(back.metadata.at("step"), "12");
  EXPECT_EQ(back.metadata.at("note"), "\xe2\x82\xac \"x\"");
  ASSERT_EQ(back.arrays.size(), arrays.size());
  for (const NamedArray& wanted : arrays) {
    const HostArray* found = back.find(wanted.name);
    ASSERT_NE(found, nullptr) << wanted.name;
    EXPECT_EQ(found->dtype, wanted.array.dtype);
    EXPECT_EQ(found->shape, wanted.array.shape);
    EXPECT_EQ(as_text(found->bytes), as_text(wanted.array.bytes));
    const auto address = reinterpret_cast<uintptr_t>(found->bytes.data());
    EXPECT_EQ(address % static_cast<size_t>(std::max(1, bits(found->dtype) / 8)), 0u);
  }
  EXPECT_EQ(back.find("absent"), nullptr);
}

TEST_F(SafetensorsSave, S11SameBytesInAnyOrderAndSortedNames) {
  std::vector<NamedArray> arrays = {array("b", DType::U8, {3}), array("a", DType::F32, {2}),
                                    array("c", DType::F64, {1})};
  save_safetensors(at("1"), arrays, {{"k", "v"}});
  std::swap(arrays[0], arrays[2]);
  save_safetensors(at("2"), arrays, {{"k", "v"}});
  EXPECT_EQ(content(at("1")), content(at("2")));
  const std::string text = content(at("1"));
  EXPECT_LT(text.find("\"c\""), text.find("\"a\""));
  EXPECT_LT(text.find("\"a\""), text.find("\"b\""));
  uint64_t header;
  std::memcpy(&header, text.data(), 8);
  EXPECT_EQ(header % 8, 0u);
}

TEST_F(SafetensorsSave, S11RefusesWhatNoReaderWouldLoad) {
  EXPECT_ERROR(save_safetensors(at("m"), {array("a", DType::U8, {1}), array("a", DType::U8, {1})}),
               "two tensors are named 'a'");
  EXPECT_ERROR(save_safetensors(at("m"), {array("__metadata__", DType::U8, {1})}), "rename");
  EXPECT_ERROR(save_safetensors(at("m"), {array("\xff", DType::U8, {1})}), "not UTF-8");
  EXPECT_ERROR(save_safetensors(at("m"), {}, {{"k", std::string(100'000'000, 'x')}}),
               "the format allows 100000000");
  EXPECT_FALSE(std::filesystem::exists(at("m")));
}

TEST_F(SafetensorsSave, AFailedSaveKeepsTheOldFile) {
  save_safetensors(at("m"), {array("a", DType::U8, {1})});
  const std::string before = content(at("m"));
  EXPECT_ERROR(save_safetensors(at("m"), {array("\xff", DType::U8, {1})}), "not UTF-8");
  EXPECT_EQ(content(at("m")), before);
  EXPECT_ERROR(save_safetensors(at("no/such/dir"), {array("a", DType::U8, {1})}),
               "there is no folder " + at("no/such/") + "; make it first");
}

TEST_F(SafetensorsSave, AFullDiskIsAnErrorThatKeepsTheOldFile) {
  EXPECT_ERROR(save_safetensors("/dev/full", {array("a", DType::U8, {1})}), "No space left");
  save_safetensors(at("m"), {array("a", DType::U8, {1})});
  const std::string before = content(at("m"));
  const pid_t child = ::fork();
  if (child == 0) {  // a limit on the size of files stands in for a full disk
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const std::string error =
        error_of([&] { save_safetensors(at("m"), {array("a", DType::U8, {5000})}); });
    ::_exit(error.find("file.write: cannot write") == 0 ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(content(at("m")), before);
}

TEST_F(SafetensorsSave, KilledWhileSavingLosesNothing) {
  constexpr int64_t kSize = 4 << 20;
  const std::vector<NamedArray> one = {array("one", DType::U8, {kSize})};
  const std::vector<NamedArray> two = {array("two", DType::U8, {kSize + 7})};
  save_safetensors(at("m"), one);
  for (int kill = 0; kill < 12; ++kill) {
    const pid_t child = ::fork();
    if (child == 0) {
      while (true) {
        save_safetensors(at("m"), two);
        save_safetensors(at("m"), one);
      }
    }
    ::usleep(static_cast<useconds_t>(2000 + kill * 1500));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const SafetensorsContent back = read_safetensors(at("m"));
    ASSERT_EQ(back.arrays.size(), 1u);
    const NamedArray& wanted = back.arrays[0].name == "one" ? one[0] : two[0];
    ASSERT_TRUE(std::ranges::equal(back.arrays[0].array.bytes, wanted.array.bytes));
  }
}

TEST_F(SafetensorsSave, EmptyModel) {
  save_safetensors(at("m"), {});
  EXPECT_TRUE(read_safetensors(at("m")).arrays.empty());
}

}  // namespace
}  // namespace weft
