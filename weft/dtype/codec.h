// Codec: the packed block formats of ggml's files as data; sizes of arrays of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "weft/dtype/dtype.h"

namespace weft {

// By ggml_type number.
enum class Codec : uint8_t {
#define WEFT_PLAIN(id, Name, dtype) Name = id,
#define WEFT_CODEC(id, Name, elements, bytes, ...) Name = id,
#include "weft/dtype/codecs.def"
#undef WEFT_PLAIN
#undef WEFT_CODEC
};

struct CodecRow {
  Codec codec;
  std::string_view name;
  int64_t elements, bytes;  // of a block
  DType dtype;              // of a plain array; Void: packed
};

inline constexpr CodecRow kCodecs[] = {
#define WEFT_PLAIN(id, Name, dtype) {Codec::Name, #Name, 1, bits(DType::dtype) / 8, DType::dtype},
#define WEFT_CODEC(id, Name, elements, bytes, ...) \
  {Codec::Name, #Name, elements, bytes, DType::Void},
#include "weft/dtype/codecs.def"
#undef WEFT_PLAIN
#undef WEFT_CODEC
};

const CodecRow& row(Codec codec);
inline std::string_view name(Codec codec) { return row(codec).name; }
inline bool is_plain(Codec codec) { return row(codec).dtype != DType::Void; }

// None for numbers that ggml does not use or no longer reads.
std::optional<Codec> codec_from_id(uint32_t ggml_type);
std::optional<Codec> codec_from_name(std::string_view text);  // "Q4_K", in any case
// The plain codec of a dtype, where there is one.
std::optional<Codec> codec_of(DType dtype);

// Bytes of a packed array, whose last axis is whole blocks; nothing where it is not, a size is
// negative, or the bytes do not fit in 64 bits.
std::optional<int64_t> packed_bytes(Codec codec, std::span<const int64_t> shape);

}  // namespace weft
