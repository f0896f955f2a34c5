// Files of events, taken apart by other code: checksums bit by bit, messages by the reader of ONNX.
#include "weft/io/event_file.h"

#include <bit>
#include <cstring>

#include "tests/io/scratch_dir.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/onnx/wire.h"

namespace weft {
namespace {

/// CRC-32C by polynomial division, then masked as TFRecord files have it.
uint32_t masked_crc(std::span<const std::byte> data) {
  uint32_t crc = ~0U;
  for (const std::byte b : data)
    for (int bit = 0; bit < 8; ++bit) {
      const bool odd = ((crc ^ static_cast<uint32_t>(b) >> bit) & 1) != 0;
      crc = crc >> 1 ^ (odd ? 0x82f63b78U : 0);
    }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xa282ead8U;
}

struct Point {
  std::string tag, version;
  double time = 0;
  float value = 0;
  int64_t step = 0;
};

Point point_of(std::span<const std::byte> event) {
  Point out;
  onnx::WireReader reader(event, "an event");
  while (reader.next()) {
    if (reader.field() == 1)
      reader.each_fixed64([&](uint64_t bits) { out.time = std::bit_cast<double>(bits); });
    if (reader.field() == 2) out.step = reader.integer();
    if (reader.field() == 3) out.version = reader.text();
    if (reader.field() != 5) continue;
    onnx::WireReader summary = reader.message();
    EXPECT_TRUE(summary.next());
    EXPECT_EQ(summary.field(), 1U);
    for (onnx::WireReader value = summary.message(); value.next();) {
      if (value.field() == 1) out.tag = value.text();
      if (value.field() == 2) out.value = value.number();
    }
  }
  return out;
}

std::vector<Point> points_of(const std::string& path) {
  const MappedFile file(path);
  std::vector<Point> out;
  std::span<const std::byte> left = file.bytes();
  const auto number = [&]<class T>(T& to, size_t at) { std::memcpy(&to, &left[at], sizeof(T)); };
  while (left.size() >= 16) {
    uint64_t length = 0;
    uint32_t of_length = 0, of_data = 0;
    number(length, 0), number(of_length, 8);
    EXPECT_EQ(of_length, masked_crc(left.first(8)));
    if (length > left.size() - 16) break;
    number(of_data, 12 + length);
    EXPECT_EQ(of_data, masked_crc(left.subspan(12, length)));
    out.push_back(point_of(left.subspan(12, length)));
    left = left.subspan(16 + length);
  }
  EXPECT_TRUE(left.empty());
  return out;
}

using EventFiles = ScratchDir;

TEST_F(EventFiles, HaveWhatWasTold) {
  std::string path;
  {
    EventFile events(at("runs/1"));
    path = events.path();
    EXPECT_NE(path.find("/events.out.tfevents."), std::string::npos);
    for (int64_t step = 0; step < 1000; ++step)
      events.scalar("train/loss", 1.0 / static_cast<double>(step + 1), step);
    events.scalar("\xc3\xa4", -1e300, int64_t{1} << 40);
  }
  const std::vector<Point> points = points_of(path);
  ASSERT_EQ(points.size(), 1002U);
  EXPECT_EQ(points[0].version, "brain.Event:2");
  EXPECT_GT(points[0].time, 1.7e9);
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(points[i + 1].step, static_cast<int64_t>(i));
    EXPECT_EQ(points[i + 1].value, static_cast<float>(1.0 / static_cast<double>(i + 1)));
    EXPECT_EQ(points[i + 1].tag, "train/loss");
  }
  EXPECT_EQ(points[1001].tag, "\xc3\xa4");
  EXPECT_EQ(points[1001].step, int64_t{1} << 40);
}

TEST_F(EventFiles, NeedAPlace) {
  write("file", "content");
  EXPECT_ERROR(EventFile(at("file/runs")), "file");
}

}  // namespace
}  // namespace weft
