#include "weft/viz/blocks.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/reader.h"
#include "weft/run/recording.h"

namespace weft::viz {
namespace {

using recording::kHeaderBytes;

enum class Found : uint8_t { Whole, Torn, Damaged };

class Blocks {
 public:
  Blocks(Bytes data, std::string_view what) : data_(data), what_(what) {}

  void run(FunctionRef<void(const Block&)> block,
           FunctionRef<void(uint64_t, const char*, const std::string&)> missing) {
    check_begin();
    while (at_ < data_.size()) {
      Block found;
      const Found how = read(found);
      if (how == Found::Whole) {
        block(found);
        continue;
      }
      const size_t from = at_;
      at_ = next_magic(from + 1);
      const bool last = at_ == data_.size();
      const size_t bytes = at_ - from;
      if (last)
        missing(from, "torn",
                strformat("{} bytes at the end are no whole block: the program was killed, or is "
                          "writing them now",
                          bytes));
      else
        missing(from, "damaged", strformat("{} bytes are damaged and left out", bytes));
    }
  }

 private:
  void check_begin() const {
    if (data_.size() < kHeaderBytes || !magic_at(0))
      fail("viz.file", "{}: it does not begin as a recording does; WEFT_VIZ=1 makes one", what_);
    ByteReader in(data_.subspan(recording::kMagic.size()), what_);
    if (const uint32_t version = in.u32(); version != recording::kVersion)
      fail("viz.file", "{}: version {} of the format; this program reads version {}", what_,
           version, recording::kVersion);
  }

  bool magic_at(size_t at) const {
    return data_.size() - at >= recording::kMagic.size() &&
           std::ranges::equal(std::as_bytes(std::span(recording::kMagic)),
                              data_.subspan(at, recording::kMagic.size()));
  }
  size_t next_magic(size_t from) const {
    const auto magic = std::as_bytes(std::span(recording::kMagic));
    const auto rest = data_.subspan(from);
    const auto at = std::search(rest.begin(), rest.end(), magic.begin(), magic.end());
    return from + static_cast<size_t>(at - rest.begin());
  }

  Found read(Block& out) {
    if (data_.size() - at_ < kHeaderBytes || !magic_at(at_)) return Found::Torn;
    ByteReader in(data_.subspan(at_ + recording::kMagic.size()), what_);
    const uint32_t version = in.u32(), size = in.u32();
    const uint64_t checksum = in.u64();
    out.stream = in.u64();
    out.number = in.u32();
    out.strings = in.u64();
    out.at = at_;
    if (version != recording::kVersion) return Found::Damaged;
    if (size > in.remaining()) return Found::Torn;
    out.records = in.bytes(size);
    if (checksum_of(kHeaderBytes + size) != checksum) return Found::Damaged;
    at_ += kHeaderBytes + size;
    return Found::Whole;
  }

  /// Of a block with 0 in the checksum's place.
  uint64_t checksum_of(size_t size) {
    // Blocks may claim to overlap; those of a file that is not made for it do not.
    if ((hashed_ += size) > 4 * data_.size() + (size_t{1} << 20))
      fail("viz.damaged", "{}: too much of it is damaged to look for what is not", what_);
    scratch_.assign(data_.begin() + static_cast<ptrdiff_t>(at_),
                    data_.begin() + static_cast<ptrdiff_t>(at_ + size));
    std::fill_n(scratch_.begin() + recording::kChecksumAt, sizeof(uint64_t), std::byte{0});
    return hash_bytes(scratch_.data(), scratch_.size());
  }

  Bytes data_;
  std::string_view what_;
  size_t at_ = 0, hashed_ = 0;
  std::vector<std::byte> scratch_;
};

}  // namespace

void each_block(Bytes data, std::string_view what, FunctionRef<void(const Block&)> block,
                FunctionRef<void(uint64_t, const char*, const std::string&)> missing) {
  Blocks(data, what).run(block, missing);
}

}  // namespace weft::viz
