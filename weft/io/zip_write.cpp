#include <algorithm>

#include "weft/base/error.h"
#include "weft/io/gzip.h"
#include "weft/io/zip.h"
#include "weft/io/zip_format.h"

namespace weft {

namespace {

using namespace zip;  // NOLINT: names of the format

/// Little-endian fields, one after the other.
class Fields {
 public:
  Fields& u16(uint64_t v) { return number<uint16_t>(v); }
  Fields& u32(uint64_t v) { return number<uint32_t>(v); }
  Fields& u64(uint64_t v) { return number<uint64_t>(v); }
  std::string_view text() const { return text_; }

 private:
  template <class T>
  Fields& number(uint64_t v) {
    const auto narrow = static_cast<T>(v);
    text_.append(reinterpret_cast<const char*>(&narrow), sizeof(T));  // the host is little-endian
    return *this;
  }
  std::string text_;
};

uint64_t narrow32(uint64_t v) { return std::min(v, kMany32); }

/// Flags, method, day, checksum and sizes: the same before the data and in the directory.
void put_common(Fields& f, uint32_t crc, uint64_t bytes) {
  f.u16(kVersion64).u16(kUtf8).u16(kStored).u16(0).u16(kFirstDay).u32(crc);
  f.u32(narrow32(bytes)).u32(narrow32(bytes));
}

bool is_wide(uint64_t v) { return v >= kMany32; }

}  // namespace

void ZipWriter::add(std::string_view name, std::span<const std::byte> before,
                    std::span<const std::byte> content) {
  WEFT_CHECK(name.size() < kMany16 && !wrong_member_name(name), "a member named {}", name);
  const uint64_t at = out_.position();
  const uint64_t bytes = before.size() + content.size();
  const uint32_t crc = crc32_of(content, crc32_of(before));
  written_.push_back({std::string(name), bytes, at, crc});
  const uint64_t wide = is_wide(bytes) ? 4 + 16 : 0;
  const uint64_t begin = at + kLocalBytes + name.size() + wide + 4;
  const uint64_t padding = (alignment_ - begin % alignment_) % alignment_;
  Fields f;
  f.u32(kLocal);
  put_common(f, crc, bytes);
  f.u16(name.size()).u16(wide + 4 + padding);
  out_.write(f.text());
  out_.write(name);
  Fields extra;
  if (wide != 0) extra.u16(kWide).u16(16).u64(bytes).u64(bytes);
  extra.u16(kPadding).u16(padding);
  out_.write(extra.text());
  out_.write(std::string(padding, '\0'));
  out_.write(before);
  out_.write(content);
}

void ZipWriter::finish() {
  const uint64_t begin = out_.position();
  for (const Written& w : written_) {
    const uint64_t extra = (is_wide(w.bytes) ? 16 : 0) + (is_wide(w.at) ? 8 : 0);
    Fields f;
    f.u32(kCentral).u16(kVersion64);
    put_common(f, w.crc, w.bytes);
    f.u16(w.name.size()).u16(extra == 0 ? 0 : 4 + extra).u16(0).u16(0).u16(0).u32(0);
    f.u32(narrow32(w.at));
    out_.write(f.text());
    out_.write(w.name);
    if (extra == 0) continue;
    Fields wide;
    wide.u16(kWide).u16(extra);
    if (is_wide(w.bytes)) wide.u64(w.bytes).u64(w.bytes);
    if (is_wide(w.at)) wide.u64(w.at);
    out_.write(wide.text());
  }
  const uint64_t end = out_.position(), count = written_.size();
  Fields f;
  if (count >= kMany16 || is_wide(begin) || is_wide(end - begin)) {
    f.u32(kEnd64).u64(kEnd64Bytes - 12).u16(kVersion64).u16(kVersion64).u32(0).u32(0);
    f.u64(count).u64(count).u64(end - begin).u64(begin);
    f.u32(kLocator).u32(0).u64(end).u32(1);
  }
  const uint64_t narrow = std::min(count, kMany16);
  f.u32(kEnd).u16(0).u16(0).u16(narrow).u16(narrow);
  f.u32(narrow32(end - begin)).u32(narrow32(begin)).u16(0);
  out_.write(f.text());
}

}  // namespace weft
