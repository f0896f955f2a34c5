// Hashes of bytes, along the last axis of u8 tensors: (..., n) to (..., bytes). One loop of the IR
// over the rounds of all blocks, so that the kernel is small and independent of n.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// FIPS 202's sponge: `rate` bytes of every block are input, `suffix` is what is appended, with the
/// first padding bit. rate is a multiple of 8 below 200.
Tensor keccak(const Tensor& x, int64_t rate, int64_t suffix, int64_t bytes,
              CallSite = CallSite::here());
/// By name: sha3_224, sha3_256, sha3_384, sha3_512, and shake_128 and shake_256, which give 16 and
/// 32 bytes or as many as asked for.
Tensor keccak(const Tensor& x, std::string_view name = "sha3_256", int64_t bytes = 0,
              CallSite = CallSite::here());
/// FIPS 180-4: 32 bytes.
Tensor sha256(const Tensor& x, CallSite = CallSite::here());
/// 16 bytes for the contents of a tensor of any dtype: a tree of shake_128 over chunks of 4 KiB in
/// chunks of 1 MiB, padded with zeros (tinygrad's content ids).
Tensor content_hash(const Tensor& x, CallSite = CallSite::here());

}  // namespace weft
