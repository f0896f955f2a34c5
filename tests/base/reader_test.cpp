#include "weft/base/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "weft/base/error.h"

namespace weft {
namespace {

std::vector<std::byte> bytes_of(std::initializer_list<int> list) {
  std::vector<std::byte> out;
  for (int b : list) out.push_back(static_cast<std::byte>(b));
  return out;
}

TEST(ByteReader, ReadsLittleEndian) {
  const auto data = bytes_of({1, 2, 3, 0xff, 0xff, 0xff, 0xff, 'h', 'i'});
  ByteReader reader(data, "test");
  EXPECT_EQ(reader.u8(), 1);
  EXPECT_EQ(reader.u16(), 0x0302);
  EXPECT_EQ(reader.i32(), -1);
  EXPECT_EQ(reader.text(2), "hi");
  EXPECT_TRUE(reader.done());
}

TEST(ByteReader, OverrunNamesFileOffsetAndSizes) {
  const auto data = bytes_of({1, 2, 3});
  ByteReader reader(data, "model.bin");
  reader.u8();
  try {
    reader.u32();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(),
              "model.bin: 4 bytes wanted at offset 1, but only 2 of 3 are left; the file is cut "
              "short or not of this format");
    EXPECT_EQ(error.code(), "read.truncated");
  }
  EXPECT_EQ(reader.offset(), 1u) << "a failed read takes nothing";
  EXPECT_THROW(reader.bytes(UINT64_MAX), Error);
  EXPECT_THROW(reader.seek(4), Error);
  EXPECT_NO_THROW(reader.seek(3));
}

TEST(ByteReader, EveryPrefixFailsCleanly) {
  const auto data = bytes_of({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  for (size_t n = 0; n < data.size(); ++n) {
    ByteReader reader(std::span<const std::byte>(data).first(n), "cut");
    EXPECT_THROW((reader.u64(), reader.u32()), Error) << n;
  }
}

TEST(ByteReader, VarintLimits) {
  const auto most = bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01});
  EXPECT_EQ(ByteReader(most, "v").varint(), UINT64_MAX);
  const auto over = bytes_of({0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02});
  EXPECT_THROW(ByteReader(over, "v").varint(), Error);
  const auto cut = bytes_of({0x80});
  EXPECT_THROW(ByteReader(cut, "v").varint(), Error);
  const auto small = bytes_of({0xac, 0x02});
  EXPECT_EQ(ByteReader(small, "v").varint(), 300u);
}

TEST(ByteReader, HostileCountsAreRefused) {
  const auto data = bytes_of({0, 0, 0, 0, 0, 0, 0, 0});
  ByteReader reader(data, "h");
  EXPECT_EQ(reader.count(2, 4), 2u);
  EXPECT_THROW(reader.count(3, 4), Error);
  EXPECT_THROW(reader.count(UINT64_MAX, 4), Error);
}

}  // namespace
}  // namespace weft
