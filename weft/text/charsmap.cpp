// SentencePiece's precompiled_charsmap.
#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/base/utf8.h"
#include "weft/text/normalizers.h"

namespace weft::text {
namespace {

constexpr size_t kLongestCluster = 6;  // longer clusters are only looked up by character

class Charsmap final : public Normalizer {
 public:
  explicit Charsmap(std::string_view table) {
    ByteReader in(std::as_bytes(std::span(table.data(), table.size())), "the precompiled charsmap");
    const uint32_t bytes = in.u32();
    if (bytes % 4 != 0 || bytes == 0 || bytes > in.remaining())
      fail_runtime("tokenizer.charsmap",
                   "the table of normalisation says that {} bytes of {} are its double array; the "
                   "file is damaged",
                   bytes, in.remaining());
    for (uint32_t i = 0; i < bytes / 4; ++i) units_.push_back(in.u32());
    texts_ = in.text(in.remaining());
    if (!is_utf8(texts_))
      fail_runtime("tokenizer.charsmap",
                   "the table of normalisation has texts that are not UTF-8; "
                   "the file is damaged");
  }

  std::string apply(std::string_view text) const override {
    std::string out;
    for_each_grapheme(text, [&](std::string_view cluster) {
      if (cluster.size() < kLongestCluster && add(out, cluster)) return;
      for (size_t at = 0; at < cluster.size();) {
        const size_t begin = at;
        next_code_point(cluster, at);
        const std::string_view character = cluster.substr(begin, at - begin);
        if (!add(out, character)) out += character;
      }
    });
    return out;
  }

 private:
  // Bits of a unit of Darts-clone's double array.
  static bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
  static uint32_t value(uint32_t unit) { return unit & 0x7fffffff; }
  static uint32_t label(uint32_t unit) { return unit & 0x800000ff; }
  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

  /// What the shortest prefix in the table becomes; false: there is none.
  bool add(std::string& out, std::string_view text) const {
    uint64_t node = offset(units_[0]);
    for (const char byte : text) {
      if (byte == 0) return false;
      node ^= static_cast<uint8_t>(byte);
      if (node >= units_.size() || label(units_[node]) != static_cast<uint8_t>(byte)) return false;
      const uint32_t unit = units_[node];
      node ^= offset(unit);
      if (!has_leaf(unit)) continue;
      if (node >= units_.size()) return false;
      return add_text(out, value(units_[node]));
    }
    return false;
  }

  bool add_text(std::string& out, uint32_t begin) const {
    if (begin > texts_.size()) return false;
    const std::string_view rest = std::string_view(texts_).substr(begin);
    if (!rest.empty() && (static_cast<uint8_t>(rest[0]) & 0xc0) == 0x80) return false;
    out += rest.substr(0, rest.find('\0'));
    return true;
  }

  std::vector<uint32_t> units_;
  std::string texts_;
};

}  // namespace

NormalizerPtr charsmap_normalizer(std::string_view table) {
  return std::make_unique<Charsmap>(table);
}

}  // namespace weft::text
