#include "weft/dtype/codec.h"

#include <algorithm>

#include "weft/base/checked.h"
#include "weft/base/error.h"

namespace weft {

namespace {

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; }

template <class Matches>
const CodecRow* find_row(Matches matches) {
  const auto* at = std::ranges::find_if(kCodecs, matches);
  return at == std::end(kCodecs) ? nullptr : at;
}
std::optional<Codec> codec_in(const CodecRow* found) {
  return found == nullptr ? std::nullopt : std::optional(found->codec);
}

}  // namespace

const CodecRow& row(Codec codec) {
  const CodecRow* found = find_row([&](const CodecRow& r) { return r.codec == codec; });
  WEFT_CHECK(found != nullptr, "codec {}", static_cast<int>(codec));
  return *found;
}

std::optional<Codec> codec_from_id(uint32_t ggml_type) {
  return codec_in(
      find_row([&](const CodecRow& r) { return static_cast<uint32_t>(r.codec) == ggml_type; }));
}

std::optional<Codec> codec_from_name(std::string_view text) {
  return codec_in(find_row(
      [&](const CodecRow& r) { return std::ranges::equal(r.name, text, {}, lower, lower); }));
}

std::optional<Codec> codec_of(DType dtype) {
  return codec_in(
      find_row([&](const CodecRow& r) { return r.dtype == dtype && dtype != DType::Void; }));
}

std::optional<int64_t> packed_bytes(Codec codec, std::span<const int64_t> shape) {
  const CodecRow& format = row(codec);
  const int64_t last = shape.empty() ? 1 : shape.back();
  if (last % format.elements != 0) return std::nullopt;
  bool empty = false;
  std::optional<int64_t> bytes = format.bytes;
  for (size_t i = 0; i < shape.size() && bytes; ++i) {
    const int64_t size = i + 1 == shape.size() ? shape[i] / format.elements : shape[i];
    if (size < 0) return std::nullopt;
    empty = empty || size == 0;
    bytes = checked_mul(*bytes, std::max<int64_t>(size, 1));
  }
  return bytes && empty ? 0 : bytes;
}

}  // namespace weft
