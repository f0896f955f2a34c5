#include "weft/io/zstd.h"

#include <algorithm>
#include <new>

#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/base/shared_library.h"

namespace weft {

namespace {

// What is used of zstd.h, the same since 1.0
// (https://github.com/facebook/zstd/blob/v1.5.4/lib/zstd.h).
struct In {
  const void* data;
  size_t size, at;
};
struct Out {
  void* data;
  size_t size, at;
};
struct Stream;
using Create = Stream*();
using Free = size_t(Stream*);
using Decompress = size_t(Stream*, Out*, In*);  // 0: a frame has ended
using IsError = unsigned(size_t);
using ErrorName = const char*(size_t);

struct Zstd {
  SharedLibrary library{"libzstd.so.1", "libzstd.so"};
  Create* create = library.function<Create>("ZSTD_createDStream");
  Free* free = library.function<Free>("ZSTD_freeDStream");
  Decompress* decompress = library.function<Decompress>("ZSTD_decompressStream");
  IsError* is_error = library.function<IsError>("ZSTD_isError");
  ErrorName* error = library.function<ErrorName>("ZSTD_getErrorName");

  bool is_whole() const { return create && free && decompress && is_error && error; }
};

const Zstd& zstd() {
  static const Zstd library;
  return library;
}

/// One pass over the frames. Windows above 128 MiB are the library's own error.
class Decompressor {
 public:
  Decompressor(std::span<const std::byte> data, std::string_view what)
      : what_(what), in_{data.data(), data.size(), 0} {
    if (!zstd().is_whole())
      fail_runtime("zstd.library", "{}: reading zstd needs libzstd 1; install libzstd1 ({})", what,
                   zstd().library.loaded() ? "it is older" : zstd().library.missing());
    stream_ = zstd().create();
    if (stream_ == nullptr) fail_memory("memory", "{}: no memory for a zstd decoder", what);
  }
  ~Decompressor() {
    if (stream_ != nullptr) zstd().free(stream_);
  }
  Decompressor(const Decompressor&) = delete;
  Decompressor& operator=(const Decompressor&) = delete;

  /// Fills `out`, or stops at the end.
  size_t fill(std::span<std::byte> out) {
    Out to{out.data(), out.size(), 0};
    while (to.at < to.size && !ended()) {
      const size_t taken = in_.at, given = to.at;
      between_frames_ = step(to) == 0;
      if (in_.at == taken && to.at == given)
        fail_runtime("zstd.damaged", "{}: ends at byte {} in the middle of its content", what_,
                     in_.size);
    }
    return to.at;
  }
  bool ended() const { return between_frames_ && in_.at == in_.size; }

 private:
  size_t step(Out& to) {
    const size_t result = zstd().decompress(stream_, &to, &in_);
    if (zstd().is_error(result) != 0)
      fail_runtime("zstd.damaged", "{}: the compressed data is damaged near byte {} ({})", what_,
                   in_.at, zstd().error(result));
    return result;
  }

  std::string_view what_;
  In in_;
  Stream* stream_ = nullptr;
  bool between_frames_ = false;
};

}  // namespace

bool is_zstd(std::span<const std::byte> data) {
  return data.size() >= 4 && ByteReader(data, "").u32() == 0xfd2fb528;
}

bool has_zstd_library() { return zstd().is_whole(); }

std::vector<std::byte> unzstd(std::span<const std::byte> data, uint64_t most,
                              std::string_view what) {
  constexpr uint64_t kFirst = uint64_t{64} << 10;
  Decompressor stream(data, what);
  std::vector<std::byte> out;
  most = std::min<uint64_t>(most, INT64_MAX - 1);
  while (!stream.ended()) {
    const size_t before = out.size();
    const uint64_t more = std::min(std::max<uint64_t>(before, kFirst), most + 1 - before);
    try {
      out.resize(before + static_cast<size_t>(more));
    } catch (const std::bad_alloc&) {
      fail_memory("memory", "{}: no memory for more than {} bytes of content", what, before);
    }
    out.resize(before + stream.fill(std::span(out).subspan(before)));
    if (out.size() > most)
      fail_runtime("zstd.size",
                   "{}: {} compressed bytes unpack to more than {}; allow more (most_bytes, in "
                   "Python max_bytes) if they are to be trusted",
                   what, data.size(), most);
  }
  return out;
}

}  // namespace weft
