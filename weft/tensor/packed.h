// Packed weights: arrays of ggml's block formats as lazy tensors of numbers.
#pragma once

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

}  // namespace weft
