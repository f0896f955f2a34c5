// Packed weights: arrays of ggml's block formats as lazy tensors of numbers.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/dtype/codec.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// The numbers in packed blocks, as an expression over their bytes: a product that uses it reads
/// the bytes and decodes as it goes, so that weights stay packed in memory. On every device; no
/// gradient flows to the bytes. Bit-equal to the PyPI package gguf's dequantize().
///   packed  u8, of as many bytes as `shape` takes, in any shape; blocks lie along the last axis
///   shape   of the result; its last axis is a whole number of blocks
///   dtype   a float (computed in f32, rounded once), or a plain codec's own
/// Errors: other bytes than the shape takes, a last axis that blocks do not divide.
///   Tensor y = x.matmul(decode(bytes, Codec::Q4_K, {4096, 4096}).T());
Tensor decode(const Tensor& packed, Codec codec, const Dims& shape, DType dtype = DType::F32,
              CallSite = CallSite::here());

/// What the numbers of a product are rounded to before they are multiplied. Sums are f32.
enum class Factors : uint8_t {
  F32,  ///< not at all
  /// bf16, both: each result is off by at most (2^-7 + 2^-16) (|x| @ |weight|^T), 2^-9 of it where
  /// signs are random. A permission, like those that models' users give who quantise activations;
  /// many rows take a fraction of the time where the machine multiplies bf16 (tdpbf16ps,
  /// vdpbf16ps). Up to six rows are not rounded: that would only take time.
  BF16,
  /// x to 8 bits: to multiples of a 127th of the largest of each 32 of them, by which the codes of
  /// packed weights are multiplied, and summed in i32, exactly, before their scales: each result is
  /// off by at most (1 / 254 + 2^-20) of sum_blocks max |x| sum |weight|, over blocks of 32 along
  /// the sum. Of weights that decode() gives; others are not rounded. More than 32 rows are
  /// multiplied as by BF16 where the machine multiplies bf16. Rows have the same bits alone and
  /// among others, up to 32; of Q6_K and Q8_K up to 6. Gradients are those of F32.
  Q8,
};

/// Of "f32", "bf16" and "q8"; none of "auto". Other names are an error that lists these.
std::optional<Factors> factors_named(std::string_view text);
/// Q8 where the default device multiplies bytes (vpdpbusd, vpmaddubsw), else F32.
Factors fastest_factors();
/// How many rows of a matrix in this format should lie side by side, word by word, for products by
/// bytes with up to `rows` rows on the default device; 0 where they should not.
int64_t interleaved_rows(Codec codec, int64_t rows);
/// Whether products by bytes on the default device have the same bits where rows lie side by side
/// and where they do not, and take at most half as long again there: a copy can wait.
bool interleaving_may_wait(Codec codec);
/// Whether `rows` divide the rows of the matrix (n, k), and words the blocks of each row: two by
/// two, with both scales in front, where a block is no whole words.
bool may_be_interleaved(Codec codec, const Dims& shape, int64_t rows);
/// The bytes of a packed matrix (n, k) with words of `rows` rows side by side: u32, (n / rows,
/// words of a row, rows). Errors: those of decode(), and where it may not be.
Tensor interleave_rows(const Tensor& packed, Codec codec, const Dims& shape, int64_t rows,
                       CallSite = CallSite::here());
/// decode() of the bytes of that, (n / rows, words of a row, rows, 4) u8. Errors: those of
/// decode(), another rank, and matrices that may not be interleaved.
Tensor decode_interleaved(const Tensor& interleaved, Codec codec, const Dims& shape,
                          CallSite = CallSite::here());

/// x @ weight^T, as f32.
///   x       (.., rows, k), floats
///   weight  (n, k), floats, such as decode() gives; or (b, n, k), of x (b, rows, k), whose rows
///   are
///           rounded to 8 bits where there is one for each matrix
/// Errors: those of matmul().
///   Tensor y = product_with(x, decode(bytes, Codec::Q4_K, {4096, 4096}), Factors::BF16);
Tensor product_with(const Tensor& x, const Tensor& weight, Factors factors = Factors::F32,
                    CallSite = CallSite::here());
/// What `combine` makes, element by element and in any shape, of the products of x with each of
/// several weights (n, k): where many rows are multiplied by bytes, one block of columns after the
/// other, none of them is whole in memory.
///   products_with(x, {gate, up}, [](const auto& y) { return y[0].silu() * y[1]; }, Factors::Q8)
Tensor products_with(const Tensor& x, const std::vector<Tensor>& weights,
                     FunctionRef<Tensor(const std::vector<Tensor>& products)> combine,
                     Factors factors = Factors::F32, CallSite = CallSite::here());

}  // namespace weft
