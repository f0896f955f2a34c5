// com.microsoft: products with weights of few bits, several to a byte. They are decoded by the
// kernel that uses them.
#include "weft/onnx/contrib.h"
#include "weft/onnx/host.h"

namespace weft::onnx {
namespace {

// Bytes (..., n), or as many as words, to numbers (..., n * 8 / bits) in i32, low bits first. Of
// whole words where there are some, by shifts alone: what multiplies by them decodes as it goes.
Tensor unpacked(const NodeCall& call, const Tensor& bytes, int64_t bits, bool high_first = false) {
  if (bits != 2 && bits != 4 && bits != 8) call.refuse("bits {}: 2, 4 or 8", bits);
  const bool words_already = bytes.dtype() == DType::U32;
  if (bytes.dtype() != DType::U8 && !words_already && bits != 8)
    call.refuse("packed numbers are of dtype {}: uint8", name(bytes.dtype()));
  if (bits == 8 && !words_already) return bytes.cast(DType::I32);
  const int64_t in_byte = 8 / bits;
  const bool whole = words_already || bytes.dim(-1) % Dim(4) == Dim(0);
  std::vector<uint32_t> places;
  for (int64_t i = 0; i < in_byte * (whole ? 4 : 1); ++i) {
    const int64_t at = i % in_byte;
    const int64_t in_order = high_first ? in_byte - 1 - at : at;
    places.push_back(static_cast<uint32_t>(i / in_byte * 8 + in_order * bits));
  }
  const Tensor words = words_already ? bytes
                       : whole       ? bytes.bitcast(DType::U32)
                                     : bytes.cast(DType::U32);
  const Tensor parts = words.unsqueeze(-1) >> Tensor::of(places);
  return (parts & ((1 << bits) - 1)).flatten(-2).cast(DType::I32);
}

void require_block(const NodeCall& call, int64_t block) {
  if (block < 16 || (block & (block - 1)) != 0 || block > (int64_t{1} << 30))
    call.refuse("block_size {}: a power of two, at least 16", block);
}

// Zeros of every block (n, blocks), whatever form they come in.
Tensor zeros_of_blocks(const NodeCall& call, int64_t n, int64_t blocks, int64_t bits) {
  if (!call.has(3)) return Tensor::full({1, 1}, 1 << (bits - 1), DType::F32);
  const Tensor& zeros = call.tensor(3);
  if (is_float(zeros.dtype())) return zeros.reshape({n, blocks}).cast(DType::F32);
  const int64_t row = (blocks * bits + 7) / 8;
  return unpacked(call, zeros.reshape({n, row}), bits)
      .index({Slice(), Slice(Dim(blocks))})
      .cast(DType::F32);
}

// (n, k): weights of blocks along k.
Tensor decoded(const NodeCall& call) {
  const int64_t n = call.integer("N"), k = call.integer("K"), bits = call.integer("bits", 4);
  const int64_t block = call.integer("block_size");
  require_block(call, block);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (n < 1 || k < 1 || n > kMost || k > kMost) call.refuse("N {} and K {}: 1 to 2^31", n, k);
  const int64_t blocks = (k + block - 1) / block;
  const Tensor q = unpacked(call, call.tensor(1).reshape({n, blocks, -1}), bits);
  if (!(q.dim(2) == Dim(block)))
    call.refuse("weights {} for N {}, {} blocks of {} numbers of {} bits",
                call.tensor(1).dims().text(), n, blocks, block, bits);
  const Tensor scales = call.tensor(2).reshape({n, blocks}).cast(DType::F32);
  const Tensor zeros = zeros_of_blocks(call, n, blocks, bits);
  if (!call.has(4))
    return ((q.cast(DType::F32) - zeros.unsqueeze(2)) * scales.unsqueeze(2))
        .reshape({n, blocks * block})
        .index({Slice(), Slice(Dim(k))});
  // Every column says whose scale and zero are its.
  const Tensor group = call.tensor(4).reshape({-1}).index({Slice(Dim(k))});
  const Tensor flat = q.reshape({n, blocks * block}).index({Slice(), Slice(Dim(k))});
  const Tensor zero = zeros.expand({n, blocks}).index_select(1, group);
  return (flat.cast(DType::F32) - zero) * scales.index_select(1, group);
}

}  // namespace

Values matmul_n_bits(const NodeCall& call) {
  if (call.integer("weight_prepacked", 0) != 0)
    call.refuse("weights packed for one device; export the model with weight_prepacked 0");
  const Tensor& x = call.tensor(0);
  Tensor y = x.matmul(decoded(call).cast(x.dtype()).T());
  if (call.has(5)) y = y + call.tensor(5);
  return {y};
}

Tensor decoded_experts(const NodeCall& call, const Tensor& packed, const Tensor& scales,
                       const Tensor& zeros, int64_t bits) {
  const Tensor q = unpacked(call, packed, bits).cast(DType::F32);
  const bool rows = scales.ndim() == 2;
  const int64_t blocks = rows || scales.ndim() != 3 ? 1 : scales.size(2);
  if (q.ndim() != 3 || (!rows && scales.ndim() != 3) || blocks < 1 || q.size(2) % blocks != 0)
    call.refuse("weights {} and scales {}: (experts, out, in), of which in has equal blocks",
                packed.dims().text(), scales.dims().text());
  Tensor zero = Tensor::full({}, 1 << (bits - 1), DType::F32);
  if (zeros.defined()) {
    std::vector<DimPair> kept;
    for (const Dim& d : scales.dims()) kept.emplace_back(0, d);
    zero = unpacked(call, zeros, bits).shrink(kept).cast(DType::F32);
    zero = zero.reshape({q.dim(0), q.dim(1), Dim(blocks), Dim(1)});
  }
  const Tensor scale = scales.cast(DType::F32).reshape({q.dim(0), q.dim(1), Dim(blocks), Dim(1)});
  return ((q.unflatten(2, {Dim(blocks), Dim(-1)}) - zero) * scale).flatten(2);
}

namespace {

// The 16 numbers of NF4 (Dettmers et al. 2023, appendix E) and of bitsandbytes' FP4.
constexpr float kNormalFloat[16] = {-1.0f,        -0.69619280f, -0.52507305f, -0.39491749f,
                                    -0.28444138f, -0.18477343f, -0.09105004f, 0.0f,
                                    0.07958030f,  0.16093020f,  0.24611230f,  0.33791524f,
                                    0.44070983f,  0.56261700f,  0.72295684f,  1.0f};
constexpr float kFloat4[16] = {
    0.0f,  5.2083333e-3f,  0.6666667f,  1.0f,  0.3333333f,  0.5f,  0.1666667f,  0.25f,
    -0.0f, -5.2083333e-3f, -0.6666667f, -1.0f, -0.3333333f, -0.5f, -0.1666667f, -0.25f};

}  // namespace

Values matmul_bnb4(const NodeCall& call) {
  const int64_t n = call.integer("N"), k = call.integer("K"), block = call.integer("block_size");
  const int64_t type = call.integer("quant_type");
  require_block(call, block);
  if (n < 1 || k < 1 || type < 0 || type > 1 || n > (int64_t{1} << 31) / k)
    call.refuse("N {}, K {} and quant_type {}: at least 1, and 0 (FP4) or 1 (NF4)", n, k, type);
  const int64_t count = n * k, blocks = (count + block - 1) / block;
  const Tensor codes = unpacked(call, call.tensor(1).reshape({-1}), 4, true);
  if (!(codes.dim(0).min() >= count) || !(call.tensor(2).dims().product() == Dim(blocks)))
    call.refuse("weights {} and scales {} for {} numbers in blocks of {}",
                call.tensor(1).dims().text(), call.tensor(2).dims().text(), count, block);
  const float* table = type == 0 ? kFloat4 : kNormalFloat;
  const Tensor numbers =
      Tensor::of(std::vector<float>(table, table + 16)).index({codes.index({Slice(Dim(count))})});
  const Tensor scales = call.tensor(2).reshape({-1}).cast(DType::F32).repeat_interleave(block, 0);
  const Tensor weight = (numbers * scales.index({Slice(Dim(count))})).reshape({n, k});
  const Tensor& x = call.tensor(0);
  const Tensor w = weight.cast(x.dtype());
  return {x.matmul(call.integer("transB", 1) != 0 ? w.T() : w)};
}

Values gather_block_quantized(const NodeCall& call) {
  const Value& data = call.input(0);
  const bool bytes = data.type() == ElementType::Uint8;
  const int64_t bits = call.integer("bits", 4);
  const Tensor q = bytes ? unpacked(call, data.tensor(), bits) : data.tensor().cast(DType::I32);
  const Tensor& scales = call.tensor(2);
  const int64_t axis = call.axis(call.integer("quantize_axis", 1), q.ndim());
  const int64_t block = call.integer("block_size", 128);
  require_block(call, block);
  if (scales.ndim() != q.ndim())
    call.refuse("scales {} for data {}: as many axes", scales.dims().text(), q.dims().text());
  const auto spread = [&](const Tensor& x) {
    const Tensor wide = x.cast(DType::F32).repeat_interleave(block, axis);
    std::vector<DimPair> kept;
    for (size_t d = 0; d < wide.ndim(); ++d) kept.emplace_back(0, min(wide.dims()[d], q.dims()[d]));
    return wide.shrink(kept);
  };
  Tensor centred = q.cast(DType::F32);
  if (call.has(3)) {
    const Tensor& zeros = call.tensor(3);
    centred = centred - spread(bytes ? unpacked(call, zeros, bits).shrink([&] {
                std::vector<DimPair> kept;
                for (const Dim& d : scales.dims()) kept.emplace_back(0, d);
                return kept;
              }())
                                     : zeros);
  } else if (bytes) {
    centred = centred - static_cast<double>(1 << (bits - 1));
  }
  const Tensor numbers = (centred * spread(scales)).cast(scales.dtype());
  const int64_t along = call.axis(call.integer("gather_axis", 0), numbers.ndim());
  std::vector<Index> at(static_cast<size_t>(along), Index(Slice()));
  at.emplace_back(call.tensor(1));
  return {numbers.index(at)};
}

}  // namespace weft::onnx
