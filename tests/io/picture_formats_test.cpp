// Pictures of BMP, PNM, WebP, TIFF and JPEG 2000; Pillow's files and files by hand.
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <sstream>

#include "tests/io/scratch_dir.h"
#include "tests/source_dir.h"
#include "weft/io/bmp.h"
#include "weft/io/jpeg2000.h"
#include "weft/io/pictures.h"
#include "weft/io/pnm.h"
#include "weft/io/tiff.h"
#include "weft/io/webp.h"

namespace weft {
namespace {

constexpr int64_t kWidth = 13, kHeight = 6;

/// What picture_corpus.py paints.
int painted(const std::string& name, int64_t x, int64_t y, int64_t channel) {
  const int red = static_cast<int>(x * 19);
  if (name == "grey") return red;
  if (name == "bits") return red > 100 ? 255 : 0;
  return std::array{red, static_cast<int>(y * 40), static_cast<int>(200 - x * 7 - y * 5),
                    static_cast<int>(255 - x * 10)}[static_cast<size_t>(channel)];
}

std::string corpus(const std::string& name) {
  return std::string(source_dir()) + "/tests/fuzz/corpus/" + name;
}

std::string file_content(const std::string& name) {
  std::ifstream in(corpus(name), std::ios::binary);
  std::stringstream all;
  all << in.rdbuf();
  return all.str();
}

void expect_painted(const std::string& folder, const std::string& name, int64_t channels) {
  const HostArray p = read_picture(corpus(folder + "/" + name));
  ASSERT_EQ(p.shape, (std::vector<int64_t>{kHeight, kWidth, channels})) << folder << name;
  size_t i = 0;
  for (int64_t y = 0; y < kHeight; ++y)
    for (int64_t x = 0; x < kWidth; ++x)
      for (int64_t c = 0; c < channels; ++c)
        ASSERT_EQ(std::to_integer<int>(p.bytes[i++]), painted(name, x, y, c))
            << folder << "/" << name << ": " << x << ", " << y << ", " << c;
}

std::vector<int> values(const HostArray& p) {
  std::vector<int> all;
  for (const std::byte b : p.bytes) all.push_back(std::to_integer<int>(b));
  return all;
}

template <class... Numbers>
std::string bytes_of(Numbers... numbers) {
  std::string text;
  (text.append(reinterpret_cast<const char*>(&numbers), sizeof(numbers)), ...);
  return text;
}

// ---- BMP

std::string bmp(int32_t width, int32_t height, uint16_t bits, uint32_t compression,
                const std::string& rest, uint32_t header = 40) {
  const auto begin = static_cast<uint32_t>(14 + 40 + (compression == 3 ? 12 : 0));
  return "BM" +
         bytes_of(uint32_t{0}, uint32_t{0}, begin, header, width, height, uint16_t{1}, bits,
                  compression, uint32_t{0}, uint32_t{0}, uint32_t{0}, uint32_t{0}, uint32_t{0}) +
         rest;
}

HostArray parsed_bmp(const std::string& file) { return parse_bmp(as_bytes(file), "f.bmp"); }

TEST(Bmp, ReadsPillowsFiles) {
  expect_painted("bmp", "rgb", 3);
  for (const char* name : {"grey", "bits"}) {  // with a palette, which may be of any colours
    const HostArray p = read_picture(corpus(std::string("bmp/") + name));
    ASSERT_EQ(p.shape, (std::vector<int64_t>{kHeight, kWidth, 3}));
    for (size_t i = 0; i < p.bytes.size(); ++i)
      ASSERT_EQ(std::to_integer<int>(p.bytes[i]),
                painted(name, static_cast<int64_t>(i) / 3 % kWidth, 0, 0));
  }
}

TEST(Bmp, FieldsAndOrders) {
  using V = std::vector<int>;
  const std::string two =
      bytes_of(uint16_t{0x7c1f}, uint16_t{0x03e0}, uint16_t{0x0001}, uint16_t{0});
  EXPECT_EQ(values(parsed_bmp(bmp(2, 2, 16, 0, two))),
            (V{0, 0, 8, 0, 0, 0, 255, 0, 255, 0, 255, 0}));  // from below; 255 / 31 = 8
  EXPECT_EQ(values(parsed_bmp(bmp(2, -2, 16, 0, two))),
            (V{255, 0, 255, 0, 255, 0, 0, 0, 8, 0, 0, 0}));
  const std::string masks = bytes_of(uint32_t{0xf800}, uint32_t{0x7e0}, uint32_t{0x1f});
  EXPECT_EQ(values(parsed_bmp(bmp(1, 1, 16, 3, masks + bytes_of(uint16_t{0xffe0}, uint16_t{0})))),
            (V{255, 255, 0}));
  const std::string core =
      "BM" + bytes_of(uint32_t{0}, uint32_t{0}, uint32_t{26}, uint32_t{12}, uint16_t{1},
                      uint16_t{1}, uint16_t{1}, uint16_t{24}, uint32_t{0x00030201});
  EXPECT_EQ(values(parsed_bmp(core)), (V{3, 2, 1}));
  const std::string alpha =
      "BM" + bytes_of(uint32_t{0}, uint32_t{0}, uint32_t{70}, uint32_t{56}, int32_t{1}, int32_t{1},
                      uint16_t{1}, uint16_t{32}, uint32_t{3}, uint32_t{0}, uint32_t{0}, uint32_t{0},
                      uint32_t{0}, uint32_t{0}, uint32_t{0xff}, uint32_t{0xff00},
                      uint32_t{0xff0000}, uint32_t{0xff000000}, uint32_t{0x04030201});
  EXPECT_EQ(values(parsed_bmp(alpha)), (V{1, 2, 3, 4}));
}

TEST(Bmp, RefusesWhatIsDamaged) {
  const auto refused = [](const std::string& file) { parsed_bmp(file); };
  EXPECT_ERROR(refused("BM"), "f.bmp");
  EXPECT_ERROR(refused(bmp(0, 1, 24, 0, "abcd")), "bmp.format: f.bmp: has no pixels (0 by 1)");
  EXPECT_ERROR(refused(bmp(-5, 1, 24, 0, "abcd")), "has no pixels (0 by 1)");
  EXPECT_ERROR(refused(bmp(1, INT32_MIN, 24, 0, "abcd")), "cannot hold 1 by 2147483648 pixels");
  EXPECT_ERROR(refused(bmp(INT32_MAX, INT32_MAX, 32, 0, "abcd")), "cannot hold 2147483647 by");
  EXPECT_ERROR(refused(bmp(1, 1, 7, 0, "abcd")), "has 7 bits per pixel");
  EXPECT_ERROR(refused(bmp(1, 1, 8, 1, "abcd")), "save it without compression");
  EXPECT_ERROR(refused(bmp(1, 1, 24, 0, "abcd", 13)), "has a header of 13 bytes");
  EXPECT_ERROR(refused(bmp(1, 1, 24, 0, "abcd", 0xffffffffU)), "f.bmp");
  EXPECT_ERROR(refused(bmp(1, 1, 16, 3, bytes_of(uint32_t{5}, uint32_t{1}, uint32_t{2}, 0))),
               "says that a colour has the bits 0x5");
  EXPECT_ERROR(refused(bmp(1, 1, 16, 3, bytes_of(uint32_t{0}, uint32_t{1}, uint32_t{2}, 0))),
               "0x0");
}

// ---- PNM

HostArray parsed_pnm(const std::string& file) { return parse_pnm(as_bytes(file), "f.pnm"); }

TEST(Pnm, ReadsPillowsFiles) {
  expect_painted("pnm", "rgb", 3);
  expect_painted("pnm", "grey", 1);
  expect_painted("pnm", "bits", 1);
}

TEST(Pnm, TextAndLargeNumbers) {
  using V = std::vector<int>;
  EXPECT_EQ(values(parsed_pnm("P1 # a comment\n3 2\n1 0 1\n010")), (V{0, 255, 0, 255, 0, 255}));
  EXPECT_EQ(values(parsed_pnm("P2\n2 1 100\n100 50")), (V{255, 128}));
  EXPECT_EQ(values(parsed_pnm("P3\n1 1\n#c\n255 1 2 3\n")), (V{1, 2, 3}));
  EXPECT_EQ(values(parsed_pnm(std::string("P4 9 1 \x80\x80", 9))),
            (V{0, 255, 255, 255, 255, 255, 255, 255, 0}));
  const HostArray wide = parsed_pnm(std::string("P5 1 1 65535\n\x12\x34", 15));
  EXPECT_EQ(wide.dtype, DType::U16);
  EXPECT_EQ(values(wide), (V{0x34, 0x12}));
}

TEST(Pnm, RefusesWhatIsDamaged) {
  const auto refused = [](const std::string& file) { parsed_pnm(file); };
  EXPECT_ERROR(refused("P7\n"), "pnm.format: f.pnm: does not begin with P1 to P6");
  EXPECT_ERROR(refused("P5\n"), "f.pnm: has no number at offset 3");
  EXPECT_ERROR(refused("P5\n99999999999 1 255\n"), "has no number");
  EXPECT_ERROR(refused("P5 0 1 255\n"), "has no pixels");
  EXPECT_ERROR(refused("P5 1 1 0\n."), "largest number that is not 1 to 65535");
  EXPECT_ERROR(refused("P5 4294967295 4294967295 65535\n."), "cannot hold 4294967295 by");
  EXPECT_ERROR(refused("P6 2 1 255\n12345"), "5 bytes from offset 11 cannot hold 2 by 1 pixels");
  EXPECT_ERROR(refused("P5 1 1 255"), "cannot hold 1 by 1");
  EXPECT_ERROR(refused("P1 2 1 12"), "neither 0 nor 1");
  EXPECT_ERROR(refused("P2 1 1 9 10"), "a number above its largest");
  EXPECT_ERROR(refused("P5 1 1 9\n\x0a"), "a number above its largest");
}

// ---- by libraries

TEST(WebP, ReadsPillowsFiles) {
  if (!has_webp_library()) GTEST_SKIP() << "no libwebp.so.7 here (Debian: libwebp7)";
  expect_painted("webp", "rgb", 3);
  expect_painted("webp", "rgba", 4);
  const std::string whole = file_content("webp/rgb");
  const auto parse = [](const std::string& file) {
    parse_webp(as_bytes(file), "f.webp", {100, 1});
  };
  EXPECT_ERROR(parse(whole), "webp.size");
  EXPECT_ERROR(parse_webp(as_bytes(whole.substr(0, 40)), "f.webp"), "webp.format: f.webp: its");
  EXPECT_ERROR(parse(whole.substr(0, 14)), "its header is damaged");
}

TEST(Tiff, ReadsPillowsFiles) {
  if (!has_tiff_library()) GTEST_SKIP() << "no libtiff.so.6 here (Debian: libtiff6)";
  expect_painted("tiff", "rgb", 3);
  expect_painted("tiff", "grey", 1);
  expect_painted("tiff", "bits", 1);
  const std::string whole = file_content("tiff/rgb");
  EXPECT_ERROR(parse_tiff(as_bytes(whole), "f.tif", {100, 1}), "beyond the 100 byte limit");
  std::string wide = whole;  // its entry of the directory: tag 256, type 3: 16 bits, one number
  const size_t at = wide.find(std::string("\0\x01\x03\0\x01\0\0\0", 8));
  ASSERT_NE(at, std::string::npos);
  wide[at + 2] = 4;  // 32 bits
  wide.replace(at + 8, 4, "\xff\xff\xff\x7f");
  EXPECT_ERROR(parse_tiff(as_bytes(wide), "f.tif"), "tiff.size");
  EXPECT_ERROR(parse_tiff(as_bytes(whole.substr(0, 60)), "f.tif"), "tiff.format: f.tif: ");
  EXPECT_ERROR(parse_tiff(as_bytes("II*"), "f.tif"), "tiff.format: f.tif: ");
}

TEST(Jpeg2000, ReadsPillowsFiles) {
  if (!has_jpeg2000_library()) GTEST_SKIP() << "no libopenjp2.so.7 here (Debian: libopenjp2-7)";
  expect_painted("jpeg2000", "rgb", 3);
  expect_painted("jpeg2000", "grey", 1);
  expect_painted("jpeg2000", "rgba", 4);
  const std::string whole = file_content("jpeg2000/rgb");
  const auto parse = [](const std::string& file) { parse_jpeg2000(as_bytes(file), "f.jp2"); };
  EXPECT_ERROR(parse_jpeg2000(as_bytes(whole), "f.jp2", {100, 1}), "jpeg2000.size");
  EXPECT_ERROR(parse(whole.substr(0, 60)), "its header is damaged");
  EXPECT_ERROR(parse(whole.substr(0, whole.size() - 20)), "jpeg2000.format: f.jp2: ");
}

}  // namespace
}  // namespace weft
