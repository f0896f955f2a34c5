#include "weft/tensor/packed.h"

#include "weft/base/error.h"
#include "weft/tensor/access.h"
#include "weft/tensor/packed_block.h"

namespace weft {

namespace packed {

namespace {

/// Of each block, also of pairs.
Coded of_blocks(const Tensor& blocks, Codec codec, CodesAs as, const Tensor& given) {
  const Block b(blocks, codec, CodesAs::Numbers, as == CodesAs::AllWords, given),
      q(blocks, codec, as, false, given);
  switch (codec) {
#define WEFT_PLAIN(id, Name, dtype) \
  case Codec::Name: break;
#define WEFT_CODEC(id, Name, elements, bytes, ...) \
  case Codec::Name: return __VA_ARGS__;
#include "weft/dtype/codecs.def"
#undef WEFT_PLAIN
#undef WEFT_CODEC
  }
  internal_error("decode", "codec {} is not packed", static_cast<int>(codec));
}

}  // namespace

Coded coded(const Tensor& blocks, Codec codec, CodesAs as, const Tensor& given) {
  Coded c = of_blocks(blocks, codec, as, given);
  if (blocks.size(1) == row(codec).bytes) return c;
  for (Tensor* t : {&c.scale, &c.codes, &c.min})
    if (t->defined()) *t = t->reshape({blocks.size(0), -1});
  return c;
}

Tensor PackedWeight::blocks() const {
  return bytes.detach().reshape({bytes.numel() / block_bytes(), block_bytes()});
}

Tensor PackedWeight::decoded(const Dims& shape) const {
  Coded c = coded(blocks(), codec, interleaved ? CodesAs::AllWords : CodesAs::Numbers);
  if (interleaved) c.codes = bytes_of(c.codes);
  return numbers_of(c).reshape(shape);
}

}  // namespace packed

namespace {

void check(const Tensor& packed, Codec codec, const Dims& shape, DType dtype) {
  if (packed.dtype() != DType::U8) {
    fail_type("decode", "packed blocks are u8, not {}; bitcast them", name(packed.dtype()));
  }
  if (!is_float(dtype) && dtype != row(codec).dtype) {
    fail_type("decode", "{} decodes to a float, not {}; cast the result", name(codec), name(dtype));
  }
  std::vector<int64_t> sizes;
  for (const Dim& d : shape) sizes.push_back(d.value());
  const std::optional<int64_t> bytes = packed_bytes(codec, sizes);
  if (!bytes) {
    fail("decode", "{} has blocks of {} elements along the last axis, which do not make up {}",
         name(codec), row(codec).elements, shape.text());
  }
  if (packed.numel() != *bytes) {
    fail("decode", "{} {} takes {} bytes, and there are {}", name(codec), shape.text(), *bytes,
         packed.numel());
  }
}

constexpr int64_t kWord = 4;  // bytes

bool lies_in_pairs(Codec codec) { return packed::scale_at(codec) >= 0; }

}  // namespace

Tensor decode(const Tensor& packed, Codec codec, const Dims& shape, DType dtype, CallSite at) {
  const CallSiteScope scope(at);
  check(packed, codec, shape, dtype);
  const packed::PackedWeight weight{packed, codec};
  if (is_plain(codec)) return weight.blocks().bitcast(row(codec).dtype).reshape(shape).cast(dtype);
  return weight.decoded(shape).cast(dtype);
}

bool may_be_interleaved(Codec codec, const Dims& shape, int64_t rows) {
  if (is_plain(codec) || shape.size() != 2 || rows < 1) return false;
  const int64_t block = row(codec).bytes * (lies_in_pairs(codec) ? 2 : 1);
  const auto row_bytes = packed_bytes(codec, {{shape[1].value()}}).value_or(0);
  return block % kWord == 0 && shape[0].value() > 0 && shape[0].value() % rows == 0 &&
         row_bytes > 0 && row_bytes % block == 0;
}

Tensor interleave_rows(const Tensor& packed, Codec codec, const Dims& shape, int64_t rows,
                       CallSite at) {
  const CallSiteScope scope(at);
  check(packed, codec, shape, DType::F32);
  if (!may_be_interleaved(codec, shape, rows)) {
    fail("interleave_rows",
         "{} rows of {} {} cannot lie side by side, word by word: of matrices whose rows are whole "
         "groups and, where a block is no whole words, an even number of blocks",
         rows, name(codec), shape.text());
  }
  const auto lanes = [&](const Tensor& words) {  // (groups, pairs or blocks, words, rows)
    return words.reshape({shape[0].value() / rows, rows, -1, words.size(1)}).permute({0, 2, 3, 1});
  };
  const Tensor blocks = packed.reshape({-1, row(codec).bytes});
  if (!lies_in_pairs(codec))
    return lanes(packed::words_of(blocks.unflatten(1, {-1, kWord}))).flatten(1, 2);
  const auto [scales, rest] = packed::pairs(blocks, codec);
  return Tensor::cat({lanes(scales), lanes(rest)}, 2).flatten(1, 2);
}

Tensor decode_interleaved(const Tensor& interleaved, Codec codec, const Dims& shape, CallSite at) {
  const CallSiteScope scope(at);
  const bool words = interleaved.ndim() == 4 && interleaved.size(3) == kWord;
  if (!words || !may_be_interleaved(codec, shape, interleaved.size(2))) {
    fail(
        "decode_interleaved",
        "{} of {} is no {} {}: give the bytes of what interleave_rows() gives for that, (groups of "
        "rows, words of a row, rows, 4)",
        interleaved.dims().text(), name(interleaved.dtype()), name(codec), shape.text());
  }
  const Tensor bytes = interleaved.permute({0, 2, 1, 3}).reshape({interleaved.numel()});
  check(bytes, codec, shape, DType::F32);
  return packed::PackedWeight{bytes, codec, true}.decoded(shape);
}

}  // namespace weft
