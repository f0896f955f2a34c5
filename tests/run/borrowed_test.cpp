// Memory that is somebody else's: read where it lies, never written, given back.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/run/fixture.h"
#include "weft/base/file.h"
#include "weft/base/format.h"
#include "weft/run/replay.h"

namespace weft {
namespace {

class Borrowed : public RunTest {
 protected:
  void SetUp() override {
    if (testing::simulated()) GTEST_SKIP() << "devices borrow no memory of the host's";
  }

  using Owner = std::shared_ptr<std::array<float, 3>>;

  StorageRef borrow(const Owner& owner) {
    Graph::Building building(g);
    Device& device = context.get<DeviceTable>().default_device();
    auto buffer = Buffer::borrow(device, owner->data(), sizeof(*owner), owner);
    const NodeRef dims[] = {g.index(3)};
    return std::make_shared<Storage>(
        context, context.get<BufferTable>().add(buffer, DType::F32, dims, device.id()));
  }
  void add(const StorageRef& s, const StorageRef& x) {
    assign(s, [&] { return g.add(s->value(), x->value()); });
  }
};

TEST_F(Borrowed, IsReadWhereItLies) {
  const Owner owner(new std::array<float, 3>{1, 2, 3});
  const int64_t before = memory().stats().live_bytes;
  const StorageRef s = borrow(owner);
  EXPECT_EQ(memory().stats().live_bytes, before);
  (*owner)[0] = 7;
  EXPECT_EQ(read(s), (Floats{7, 2, 3}));
}

/// Whether the page is one of the process's: bit 63 of proc(5)'s pagemap.
bool in_memory(const void* address) {
  const auto page = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  const auto at = static_cast<off_t>(std::bit_cast<uintptr_t>(address) / page * sizeof(uint64_t));
  uint64_t entry = 0;
  const int map = ::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(::pread(map, &entry, sizeof(entry), at), static_cast<ssize_t>(sizeof(entry)));
  ::close(map);
  return (entry >> 63) != 0;
}

TEST_F(Borrowed, PagesOfAFileAreLetGoOfAndFoundAgain) {
  const std::string path = strformat("{}borrowed_{}", ::testing::TempDir(), ::getpid());
  const Floats written(size_t{1} << 16, 2.5f);
  const auto bytes = static_cast<int64_t>(written.size() * sizeof(float));
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(written.data()), bytes);
  const std::shared_ptr<const MappedFile> file = MappedFile::open(path);
  std::remove(path.c_str());
  const std::byte* data = file->bytes().data();
  const auto buffer =
      Buffer::borrow(context.get<DeviceTable>().default_device(), data, bytes, file);
  for (int i = 0; i < 2; ++i) {
    float first = 0;
    std::memcpy(&first, data, sizeof(first));
    EXPECT_EQ(first, 2.5f);
    EXPECT_TRUE(in_memory(data));
    buffer->let_go();
    EXPECT_FALSE(in_memory(data));
  }
  const Owner owner(new std::array<float, 3>{1, 2, 3});
  const StorageRef s = borrow(owner);
  s->buffer()->let_go();
  EXPECT_EQ(read(s), (Floats{1, 2, 3})) << "memory of others stays";
}

TEST_F(Borrowed, IsNeverWrittenInPlace) {
  const Owner owner(new std::array<float, 3>{1, 2, 3});
  const StorageRef s = borrow(owner), x = from({10, 10, 10});
  for (int i = 0; i < 3; ++i) {
    add(s, x);
    run({s});
  }
  EXPECT_EQ(read(s), (Floats{31, 32, 33}));
  EXPECT_EQ(*owner, (std::array<float, 3>{1, 2, 3}));
}

TEST_F(Borrowed, IsNotWrittenByAReplay) {
  const Owner owner(new std::array<float, 3>{1, 2, 3});
  const StorageRef own = from({0, 0, 0}), x = from({10, 10, 10});
  std::unique_ptr<Replay> replay;
  {
    const ReplayArgument arguments[] = {{"s", own}, {"x", x}};
    CaptureScope capture(context, arguments);
    add(own, x);
    run({own});
    replay = capture.finish({});
  }
  const StorageRef s = borrow(owner);
  const ReplayArgument arguments[] = {{"s", s}, {"x", x}};
  for (int i = 0; i < 3; ++i) replay->run(arguments);
  EXPECT_EQ(read(s), (Floats{31, 32, 33}));
  EXPECT_EQ(*owner, (std::array<float, 3>{1, 2, 3}));
}

TEST_F(Borrowed, IsGivenBackWithItsLastReader) {
  Owner owner(new std::array<float, 3>{1, 2, 3});
  const std::weak_ptr<std::array<float, 3>> watch = owner;
  StorageRef s = borrow(owner);
  owner.reset();
  StorageRef reader = lazy([&] { return g.add(s->value(), num(1)); });
  s.reset();
  collect_garbage(context);
  EXPECT_EQ(read(reader), (Floats{2, 3, 4}));
  collect_garbage(context);
  EXPECT_TRUE(watch.expired());
}

}  // namespace
}  // namespace weft
