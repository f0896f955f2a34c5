#include "weft/tensor/packed.h"

#include "weft/base/error.h"
#include "weft/tensor/access.h"
#include "weft/tensor/packed_block.h"

namespace weft {

namespace packed {

Coded coded(const Tensor& blocks, Codec codec, CodesAs as, const Tensor& given) {
  const Block b(blocks, CodesAs::Numbers, as == CodesAs::AllWords, given),
      q(blocks, as, false, given);
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

}  // namespace

Tensor decode(const Tensor& packed, Codec codec, const Dims& shape, DType dtype, CallSite at) {
  const CallSiteScope scope(at);
  check(packed, codec, shape, dtype);
  const CodecRow& format = row(codec);
  const Tensor blocks = packed.detach().reshape({packed.numel() / format.bytes, format.bytes});
  if (is_plain(codec)) return blocks.bitcast(format.dtype).reshape(shape).cast(dtype);
  return packed::numbers_of(packed::coded(blocks, codec)).reshape(shape).cast(dtype);
}

}  // namespace weft
