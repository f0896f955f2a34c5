// Random numbers of a key, without a state: the same key gives the same bits for ever. Keys are u32
// (2); everything here equals JAX's function of that purpose with its threefry2x32 generator and
// jax_threefry_partitionable (its default since 0.5): element i of a draw is threefry2x32(key, (i
// >> 32, i)). At most 2^31 - 1 elements a call.
#pragma once

#include "weft/tensor/tensor.h"

namespace weft {

/// u32 (2): the seed's high and low word (jax.random.PRNGKey).
Tensor random_key(uint64_t seed, CallSite = CallSite::here());
/// u32 (count, 2): keys that have nothing to do with each other or with this one (split).
Tensor split_key(const Tensor& key, int64_t count = 2, CallSite = CallSite::here());
/// u32 (2): the key of step number `data`, below 2^32 (fold_in).
Tensor fold_in(const Tensor& key, int64_t data, CallSite = CallSite::here());
/// Random bits: u8, u16, u32 or u64 (bits). The two words make 64 bits, high one first; 32 are
/// their exclusive or, fewer are the lowest of those.
Tensor keyed_bits(const Tensor& key, const Dims& shape, DType dtype = DType::U32,
                  CallSite = CallSite::here());
/// [0, 1) from the upper 23 of 32 bits in f32, the upper 52 of 64 in f64 (uniform). rand() has one
/// bit more.
Tensor keyed_uniform(const Tensor& key, const Dims& shape, DType dtype = kDefaultFloat,
                     CallSite = CallSite::here());

}  // namespace weft
