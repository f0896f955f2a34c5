#include "weft/io/png.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tests/io/scratch_dir.h"
#include "tests/source_dir.h"

namespace weft {
namespace {

std::string corpus(const std::string& name) {
  return std::string(source_dir()) + "/tests/fuzz/corpus/png/" + name;
}

// What png_corpus.py writes.
int sample(int64_t x, int64_t y, int64_t c, int depth) {
  return static_cast<int>((x * 37 + y * 91 + c * 53 + x * y) % (1 << depth));
}

class PngTest : public ScratchDir {};

struct Kind {
  const char* name;
  int64_t width, height, channels;
  int depth;
};
constexpr Kind kKinds[] = {
    {"grey1", 9, 6, 1, 1},
    {"grey2", 5, 6, 1, 2},
    {"grey4", 5, 6, 1, 4},
    {"grey8", 7, 6, 1, 8},
    {"grey16", 3, 6, 1, 16},
    {"rgb8", 5, 7, 3, 8},
    {"rgb16", 2, 6, 3, 16},
    {"grey_alpha8", 4, 6, 2, 8},
    {"rgb_alpha8", 3, 6, 4, 8},
    {"interlaced_rgb8", 9, 10, 3, 8},
    {"interlaced_grey1", 9, 3, 1, 1},
    {"interlaced_tiny", 1, 1, 1, 8},
};

// Element i of u8 or u16.
int element(const HostArray& array, size_t i) {
  if (array.dtype == DType::U8) return std::to_integer<int>(array.bytes[i]);
  uint16_t value;
  std::memcpy(&value, &array.bytes[i * 2], 2);
  return value;
}

TEST_F(PngTest, ReadsEveryKind) {
  for (const Kind& kind : kKinds) {
    SCOPED_TRACE(kind.name);
    const HostArray image = read_png(corpus(kind.name));
    EXPECT_EQ(image.dtype, kind.depth == 16 ? DType::U16 : DType::U8);
    ASSERT_EQ(image.shape, (std::vector<int64_t>{kind.height, kind.width, kind.channels}));
    const int scale = kind.depth < 8 ? 255 / ((1 << kind.depth) - 1) : 1;
    size_t i = 0;
    for (int64_t y = 0; y < kind.height; ++y) {
      for (int64_t x = 0; x < kind.width; ++x) {
        for (int64_t c = 0; c < kind.channels; ++c) {
          ASSERT_EQ(element(image, i++), sample(x, y, c, kind.depth) * scale)
              << x << ", " << y << ", " << c;
        }
      }
    }
  }
}

TEST_F(PngTest, LooksPalettesUp) {
  const HostArray plain = read_png(corpus("palette4"));
  const HostArray alpha = read_png(corpus("palette_alpha4"));
  ASSERT_EQ(plain.shape, (std::vector<int64_t>{6, 5, 3}));
  ASSERT_EQ(alpha.shape, (std::vector<int64_t>{6, 5, 4}));
  for (int64_t i = 0; i < 30; ++i) {
    const int colour = sample(i % 5, i / 5, 0, 4);
    const int wanted[] = {colour * 16, 255 - colour, colour * colour % 256,
                          colour < 8 ? colour * 10 : 255};
    for (size_t c = 0; c < 4; ++c) {
      const auto at = static_cast<size_t>(i);
      EXPECT_EQ(element(alpha, at * 4 + c), wanted[c]);
      if (c == 3) continue;
      EXPECT_EQ(element(plain, at * 3 + c), wanted[c]);
    }
  }
}

TEST_F(PngTest, RefusesWhatIsDamaged) {
  const std::string whole = content(corpus("rgb8"));
  const auto parse = [](const std::string& file) { parse_png(as_bytes(file), "f.png"); };
  const auto with = [&](size_t at, char byte) {
    std::string changed = whole;
    changed[at] = byte;
    return changed;
  };
  EXPECT_ERROR(parse("GIF89a"), "f.png: does not begin as a PNG file does");
  EXPECT_ERROR(parse(whole.substr(0, 40)), "f.png: ");
  EXPECT_ERROR(parse(with(20, 1)), "the checksum of chunk 'IHDR' is wrong");
  EXPECT_ERROR(parse(with(whole.size() - 20, 1)), "checksum");
  EXPECT_ERROR(parse(whole.substr(0, 8) + whole.substr(8 + 25)), "has no header");
}

// Headers that are whole but lie; a chunk ends with its checksum.
TEST_F(PngTest, RefusesHeadersThatLie) {
  // width, height, depth, colour type, compression, filter, interlace: made by Python's zlib.crc32.
  constexpr struct {
    std::string_view header, crc, message;
  } kHeaders[] = {
      {{"\0\0\0\5\0\0\0\7\3\2\0\0\0", 13}, {"\070\025\041\250", 4}, "colour type 2 of 3 bits"},
      {{"\0\0\0\0\0\0\0\7\x08\2\0\0\0", 13}, {"\251\354\333\375", 4}, "says 0 by 7 pixels"},
      {{"\0\0\0\5\0\0\0\7\x08\2\0\0\2", 13}, {"\241\313\161\225", 4}, "methods 0, 0, 2"},
      {{"\xff\xff\xff\xff\xff\xff\xff\xff\x10\6\0\0\0", 13},
       {"\202\146\362\175", 4},
       "cannot hold"},
      {{"\0\0\0\5\0\0\0\x08\x08\2\0\0\0", 13},
       {"\276\223\242\154", 4},
       "should be 128 bytes but is 112"},
      {{"\0\0\0\5\0\0\0\7\x08\3\0\0\0", 13},
       {"\367\171\167\334", 4},
       "should be 42 bytes but is more than 42"},
  };
  const std::string whole = content(corpus("rgb8"));
  for (const auto& [header, crc, message] : kHeaders) {
    const std::string file =
        whole.substr(0, 16) + std::string(header) + std::string(crc) + whole.substr(33);
    EXPECT_ERROR(parse_png(as_bytes(file), "f.png"), message);
  }
}

}  // namespace
}  // namespace weft
