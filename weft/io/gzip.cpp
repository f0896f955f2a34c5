#include "weft/io/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <climits>
#include <new>

#include "weft/base/error.h"
#include "weft/base/reader.h"

namespace weft {

namespace {

constexpr int kGzipWindow = 15 + 16;  // the largest window; 16 asks for a gzip header
constexpr int kZlibWindow = 15;
constexpr int kRawWindow = -15;           // negative: neither header nor checksum
constexpr uint64_t kDeflateRatio = 1032;  // 258 bytes from 2 bits, the best deflate can do
constexpr size_t kLeastGzip = 18;         // a 10-byte header and an 8-byte trailer

// zlib counts in unsigned int: longer input and output is handed over in slices.
uInt slice(size_t left) { return left > UINT_MAX ? UINT_MAX : static_cast<uInt>(left); }

class Inflater {
 public:
  Inflater(std::span<const std::byte> data, std::string_view what, int window = kGzipWindow)
      : data_(data), what_(what) {
    if (inflateInit2(&stream_, window) != Z_OK) {
      fail_memory("gzip.memory", "{}: zlib could not get memory to decompress", what_);
    }
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Fills `out` or stops at the end of the member; returns the bytes written.
  size_t fill(std::span<std::byte> out) {
    size_t written = 0;
    while (written < out.size() && !ended_) {
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data_.data())) + taken_;
      stream_.avail_in = slice(data_.size() - taken_);
      stream_.next_out = reinterpret_cast<Bytef*>(out.data()) + written;
      stream_.avail_out = slice(out.size() - written);
      const uInt in_before = stream_.avail_in, out_before = stream_.avail_out;
      check(inflate(&stream_, Z_NO_FLUSH), out_before);
      taken_ += in_before - stream_.avail_in;
      written += out_before - stream_.avail_out;
    }
    return written;
  }
  bool ended() const { return ended_; }
  size_t taken() const { return taken_; }
  size_t size() const { return data_.size(); }

 private:
  void check(int result, uInt out_before) {
    ended_ = result == Z_STREAM_END;
    const bool progress = result == Z_OK || (result == Z_BUF_ERROR && stream_.avail_in > 0 &&
                                             stream_.avail_out < out_before);
    if (ended_ || progress) return;
    if (result == Z_BUF_ERROR) {
      fail_runtime("gzip.damaged",
                   "{}: the compressed data ends at byte {} in the middle of its content; was the "
                   "download or copy interrupted?",
                   what_, data_.size());
    }
    fail_runtime("gzip.damaged",
                 "{}: the compressed data is damaged near byte {} ({}); fetch it again", what_,
                 taken_, stream_.msg != nullptr ? stream_.msg : "zlib gave no reason");
  }

  std::span<const std::byte> data_;
  std::string_view what_;
  z_stream stream_{};
  size_t taken_ = 0;
  bool ended_ = false;
};

std::vector<std::byte> bytes_or_fail(uint64_t size, std::string_view what) {
  try {
    return std::vector<std::byte>(static_cast<size_t>(size));
  } catch (const std::bad_alloc&) {
    fail_memory("gzip.memory", "{}: no memory for its {} bytes of content", what, size);
  }
}

std::vector<std::byte> inflate_all(std::span<const std::byte> data, uint64_t size,
                                   std::string_view what, int window) {
  if (size / kDeflateRatio > data.size()) {
    fail_runtime("gzip.size",
                 "{}: the content should be {} bytes, which {} compressed bytes cannot hold; the "
                 "file is cut short or its header is wrong",
                 what, size, data.size());
  }
  std::vector<std::byte> out = bytes_or_fail(size + 1, what);  // one more, to see it overflow
  Inflater inflater(data, what, window);
  const size_t got = inflater.fill(out);
  if (got != size || !inflater.ended()) {
    fail_runtime("gzip.size", "{}: the content should be {} bytes but is {}{}; the file is damaged",
                 what, size, got > size ? "more than " : "", got > size ? size : got);
  }
  if (inflater.taken() != data.size()) {
    fail_runtime("gzip.damaged", "{}: {} bytes follow the end of the compressed data at byte {}",
                 what, data.size() - inflater.taken(), inflater.taken());
  }
  out.resize(got);
  return out;
}

}  // namespace

bool is_gzip(std::span<const std::byte> data) {
  return data.size() >= 2 && data[0] == std::byte{0x1f} && data[1] == std::byte{0x8b};
}

std::vector<std::byte> gunzip_prefix(std::span<const std::byte> data, size_t most,
                                     std::string_view what) {
  std::vector<std::byte> out(most);
  Inflater inflater(data, what);
  out.resize(inflater.fill(out));
  return out;
}

std::vector<std::byte> gunzip(std::span<const std::byte> data, uint64_t size,
                              std::string_view what) {
  return inflate_all(data, size, what, kGzipWindow);
}

std::vector<std::byte> inflate_zlib(std::span<const std::byte> data, uint64_t size,
                                    std::string_view what) {
  return inflate_all(data, size, what, kZlibWindow);
}

std::vector<std::byte> inflate_raw(std::span<const std::byte> data, uint64_t size,
                                   std::string_view what) {
  return inflate_all(data, size, what, kRawWindow);
}

namespace {

// What Inflater gives is added to `out` until the member ends.
void append_member(Inflater& inflater, std::vector<std::byte>& out, uint64_t most,
                   std::string_view what) {
  constexpr uint64_t kFirst = uint64_t{64} << 10;
  while (!inflater.ended()) {
    const size_t before = out.size();
    const uint64_t more = std::min(std::max<uint64_t>(before, kFirst), most + 1 - before);
    try {
      out.resize(before + static_cast<size_t>(more));
    } catch (const std::bad_alloc&) {
      fail_memory("gzip.memory", "{}: no memory for more than {} bytes of content", what, before);
    }
    out.resize(before + inflater.fill(std::span(out).subspan(before)));
    if (out.size() > most)
      fail_runtime("gzip.size",
                   "{}: {} compressed bytes unpack to more than {}; allow more (most_bytes, in "
                   "Python max_bytes) if they are to be trusted",
                   what, inflater.size(), most);
  }
}

}  // namespace

std::vector<std::byte> gunzip_members(std::span<const std::byte> data, uint64_t most,
                                      std::string_view what) {
  std::vector<std::byte> out;
  most = std::min<uint64_t>(most, INT64_MAX - 1);
  const auto is_zero = [](std::byte b) { return b == std::byte{0}; };
  do {
    Inflater inflater(data, what);
    append_member(inflater, out, most, what);
    data = data.subspan(inflater.taken());
  } while (!std::ranges::all_of(data, is_zero));
  return out;
}

uint32_t crc32_of(std::span<const std::byte> data, uint32_t before) {
  if (data.data() == nullptr) return before;  // which zlib would take for a question
  return static_cast<uint32_t>(
      ::crc32_z(before, reinterpret_cast<const Bytef*>(data.data()), data.size()));
}

GzipTrailer gzip_trailer(std::span<const std::byte> data, std::string_view what) {
  if (data.size() < kLeastGzip) {
    fail_runtime("gzip.damaged", "{}: {} bytes, but gzip data has at least {}; it is cut short",
                 what, data.size(), kLeastGzip);
  }
  ByteReader reader(data.last(8), what);
  GzipTrailer trailer;
  trailer.crc32 = reader.u32();
  trailer.size_mod_2_32 = reader.u32();
  return trailer;
}

std::vector<std::byte> gzip(std::span<const std::byte> data) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    fail_memory("gzip.memory", "zlib could not get memory to compress");
  }
  std::vector<std::byte> out(deflateBound(&stream, data.size()));
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(data.data()));
  stream.avail_in = slice(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = slice(out.size());
  const int result = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  WEFT_CHECK(result == Z_STREAM_END, "deflate stopped with {}", result);
  return out;
}

}  // namespace weft
