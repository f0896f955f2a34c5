// Generator: the random state of a Context, as tensors, so that capture and replay see it.
#pragma once

#include <mutex>

#include "weft/tensor/tensor.h"

namespace weft {

/// A slot of the Context. Draw number d of element e of seed (k0, k1) is threefry2x32((k0, k1), (e,
/// d)). Any thread may draw, under the lock that it realizes under: a
/// realize writes the counter.
class Generator {
 public:
  explicit Generator(Context& context) : context_(context) {}
  /// The context's; get<Generator>() would not keep the order of destruction.
  static Generator& of(Context& context);

  void seed(uint64_t value);

  struct Draw {
    Tensor key0, key1, number;
  };
  Draw next();

  /// What a realize must also run, so that the counter is a buffer again; it holds nothing before
  /// the first draw or seed.
  Tensor draws() const;

 private:
  void set_seed(uint64_t value);

  Context& context_;
  mutable std::mutex mutex_;
  Tensor key_;    // u32 (2): data, so that a new seed needs no new kernels
  Tensor draws_;  // u32 scalar
};

}  // namespace weft
