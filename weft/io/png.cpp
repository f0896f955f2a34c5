#include "weft/io/png.h"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <optional>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/int128.h"
#include "weft/base/reader.h"
#include "weft/io/gzip.h"

namespace weft {

namespace {

using Bytes = std::vector<std::byte>;
using View = std::span<const std::byte>;

constexpr std::string_view kSignature("\x89PNG\r\n\x1a\n", 8);

// Samples per pixel in the file and the depths that it may have, by colour type.
struct ColourType {
  uint8_t code;
  int samples;
  std::initializer_list<int> depths;
};
constexpr uint8_t kPalette = 3;
const ColourType kColourTypes[] = {
    {0, 1, {1, 2, 4, 8, 16}}, {2, 3, {8, 16}}, {kPalette, 1, {1, 2, 4, 8}},
    {4, 2, {8, 16}},          {6, 4, {8, 16}},
};

struct Header {
  int64_t width, height;
  int depth, samples;
  bool has_palette, is_interlaced;

  size_t row_bytes(int64_t pixels) const {
    return static_cast<size_t>((pixels * samples * depth + 7) / 8);
  }
};

// A picture is one pass, or seven that each hold every dx-th pixel of every dy-th row.
struct Pass {
  int64_t x, y, dx, dy;

  int64_t columns(const Header& h) const {
    return std::max<int64_t>(0, (h.width - x + dx - 1) / dx);
  }
  int64_t rows(const Header& h) const { return std::max<int64_t>(0, (h.height - y + dy - 1) / dy); }
};
constexpr Pass kWhole[] = {{0, 0, 1, 1}};
constexpr Pass kAdam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                           {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

std::span<const Pass> passes_of(const Header& h) {
  if (h.is_interlaced) return kAdam7;
  return kWhole;
}

struct Content {
  std::optional<Header> header;
  Bytes palette, alpha;  // red, green, blue and opacity of colours
  Bytes compressed;
};

uint32_t big_endian_u32(ByteReader& reader) { return __builtin_bswap32(reader.u32()); }

Header read_header(ByteReader reader) {
  Header h{};
  h.width = big_endian_u32(reader);
  h.height = big_endian_u32(reader);
  h.depth = reader.u8();
  const uint8_t colour = reader.u8();
  const int compression = reader.u8(), filter = reader.u8(), interlace = reader.u8();
  const auto* type = std::ranges::find(kColourTypes, colour, &ColourType::code);
  if (type == std::end(kColourTypes) ||
      std::ranges::find(type->depths, h.depth) == type->depths.end()) {
    fail_runtime("png.format", "{}: colour type {} of {} bits is not in the standard",
                 reader.what(), colour, h.depth);
  }
  if (h.width == 0 || h.height == 0 || compression != 0 || filter != 0 || interlace > 1) {
    fail_runtime("png.format", "{}: its header says {} by {} pixels and methods {}, {}, {}",
                 reader.what(), h.width, h.height, compression, filter, interlace);
  }
  h.samples = type->samples;
  h.has_palette = colour == kPalette;
  h.is_interlaced = interlace == 1;
  return h;
}

void keep_chunk(Content& content, std::string_view type, View data, std::string_view what) {
  if (type == "IHDR") content.header = read_header(ByteReader(data, what));
  if (type == "PLTE") content.palette.assign(data.begin(), data.end());
  if (type == "tRNS") content.alpha.assign(data.begin(), data.end());
  if (type == "IDAT") content.compressed.insert(content.compressed.end(), data.begin(), data.end());
  const bool is_known = type == "IHDR" || type == "PLTE" || type == "IDAT" || type == "IEND";
  const bool is_critical = (type[0] & 0x20) == 0;
  if (is_critical && !is_known) {
    fail_runtime("png.format", "{}: has a chunk {} that is not in the standard", what,
                 quoted_name(type));
  }
}

Content read_chunks(View data, std::string_view what) {
  ByteReader reader(data, what);
  if (reader.remaining() < kSignature.size() || reader.text(kSignature.size()) != kSignature) {
    fail_runtime("png.format", "{}: does not begin as a PNG file does; is it another format?",
                 what);
  }
  Content content;
  for (std::string_view type; type != "IEND";) {
    const uint32_t length = big_endian_u32(reader);
    const View checked = data.subspan(reader.offset());
    type = reader.text(4);
    const View body = reader.bytes(length);
    const auto crc = crc32_z(0, reinterpret_cast<const Bytef*>(checked.data()), length + size_t{4});
    if (crc != big_endian_u32(reader)) {
      fail_runtime("png.format", "{}: the checksum of chunk {} is wrong; the file is damaged", what,
                   quoted_name(type));
    }
    keep_chunk(content, type, body, what);
  }
  if (!content.header) fail_runtime("png.format", "{}: has no header", what);
  return content;
}

// The neighbour that left + up - corner is nearest to.
int paeth(int left, int up, int corner) {
  const int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
  const int to_corner = std::abs(left + up - 2 * corner);
  if (to_left <= to_up && to_left <= to_corner) return left;
  return to_up <= to_corner ? up : corner;
}

// What a filter takes a byte to be like.
int guess(int filter, int left, int up, int corner) {
  switch (filter) {
    case 0: return 0;
    case 1: return left;
    case 2: return up;
    case 3: return (left + up) / 2;
    default: return paeth(left, up, corner);
  }
}

// Undoes a row's filter in place. `before` is the row above, or zeros; `step` the bytes of a pixel.
void unfilter(std::span<std::byte> row, View before, size_t step, int filter,
              std::string_view what) {
  if (filter > 4)
    fail_runtime("png.format", "{}: a row has filter {}; there are 0 to 4", what, filter);
  for (size_t i = 0; i < row.size(); ++i) {
    const int left = i < step ? 0 : std::to_integer<int>(row[i - step]);
    const int corner = i < step ? 0 : std::to_integer<int>(before[i - step]);
    const int up = std::to_integer<int>(before[i]);
    row[i] = static_cast<std::byte>(std::to_integer<int>(row[i]) + guess(filter, left, up, corner));
  }
}

// Where pixels go.
struct Picture {
  Header header;
  Bytes palette, alpha;
  int channels;  // of the result
  Bytes pixels;

  size_t sample_bytes() const { return header.depth == 16 ? 2 : 1; }
  std::byte* at(int64_t x, int64_t y) {
    const auto pixel = static_cast<size_t>(y * header.width + x);
    return &pixels[pixel * static_cast<size_t>(channels) * sample_bytes()];
  }
};

int sample(View row, int64_t i, int depth) {
  const auto bit = static_cast<size_t>(i * depth);
  const int byte = std::to_integer<int>(row[bit / 8]);
  return byte >> (8 - depth - static_cast<int>(bit % 8)) & ((1 << depth) - 1);
}

void put_colour(std::byte* to, const Picture& picture, int index, std::string_view what) {
  const auto at = static_cast<size_t>(index);
  if (at * 3 + 3 > picture.palette.size()) {
    fail_runtime("png.format", "{}: a pixel is colour {} of a palette of {}", what, index,
                 picture.palette.size() / 3);
  }
  std::copy_n(&picture.palette[at * 3], 3, to);
  if (picture.channels == 4) to[3] = at < picture.alpha.size() ? picture.alpha[at] : std::byte{255};
}

void put_row(Picture& picture, View row, const Pass& pass, int64_t y, std::string_view what) {
  const Header& h = picture.header;
  for (int64_t x = 0; x < pass.columns(h); ++x) {
    std::byte* to = picture.at(pass.x + x * pass.dx, y);
    for (int i = 0; i < h.samples; ++i) {
      const int64_t place = x * h.samples + i;
      if (h.has_palette) {
        put_colour(to, picture, sample(row, place, h.depth), what);
      } else if (h.depth == 16) {  // big-endian
        const auto byte = static_cast<size_t>(place) * 2;
        to[2 * i] = row[byte + 1];
        to[2 * i + 1] = row[byte];
      } else {
        to[i] = static_cast<std::byte>(sample(row, place, h.depth) * 255 / ((1 << h.depth) - 1));
      }
    }
  }
}

void put_pass(Picture& picture, const Pass& pass, ByteReader& filtered) {
  const Header& h = picture.header;
  const size_t length = h.row_bytes(pass.columns(h));
  const auto step = static_cast<size_t>(std::max(1, h.samples * h.depth / 8));
  Bytes row(length), before(length);
  for (int64_t y = 0; length > 0 && y < pass.rows(h); ++y) {
    const int filter = filtered.u8();
    std::ranges::copy(filtered.bytes(length), row.begin());
    unfilter(row, before, step, filter, filtered.what());
    put_row(picture, row, pass, pass.y + y * pass.dy, filtered.what());
    std::swap(row, before);
  }
}

// Of all rows with a byte for the filter of each, before compression.
uint64_t filtered_bytes(const Header& h) {
  Int128 sum = 0;
  for (const Pass& pass : passes_of(h)) {
    const auto length = static_cast<int64_t>(h.row_bytes(pass.columns(h)));
    if (length > 0) sum += static_cast<Int128>(pass.rows(h)) * (1 + length);
  }
  return static_cast<uint64_t>(std::min<Int128>(sum, UINT64_MAX));  // too many for any file
}

}  // namespace

HostArray parse_png(View data, std::string_view what) {
  Content content = read_chunks(data, what);
  const Header h = *content.header;
  const Bytes rows = inflate_zlib(content.compressed, filtered_bytes(h), what);
  Picture picture{h, std::move(content.palette), std::move(content.alpha), h.samples, {}};
  if (h.has_palette) picture.channels = picture.alpha.empty() ? 3 : 4;
  const DType dtype = h.depth == 16 ? DType::U16 : DType::U8;
  std::vector<int64_t> shape = {h.height, h.width, picture.channels};
  const std::optional<int64_t> bytes = checked_bytes(dtype, shape);
  WEFT_CHECK(bytes, "{} by {} pixels were inflated", h.height, h.width);
  picture.pixels.resize(static_cast<size_t>(*bytes));
  ByteReader reader(rows, what);
  for (const Pass& pass : passes_of(h)) put_pass(picture, pass, reader);
  return HostArray::owned(dtype, std::move(shape), std::move(picture.pixels));
}

HostArray read_png(const std::string& path) { return parse_png(MappedFile(path).bytes(), path); }

}  // namespace weft
