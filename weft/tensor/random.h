// Generator: the random state of a Context, as tensors, so that capture and replay see it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

/// A slot of the Context. Draw number d of element e of seed (k0, k1) is threefry2x32((k0, k1), (e,
/// d)). Any thread may draw and realize: the counter changes under the generator's own lock.
class Generator {
 public:
  explicit Generator(Context& context) : context_(context) {}
  /// The context's; get<Generator>() would not keep the order of destruction.
  static Generator& of(Context& context);

  void seed(uint64_t value);

  struct Draw {
    Tensor key, number;
  };
  Draw next();
  /// As many draws as `count` calls of next(); gives the number of the first.
  Draw reserve(uint32_t count);
  /// The number of the next draw: another node after every one.
  Tensor number();

  /// Before a realize: makes the counter a buffer again. Returns what the realize must run for
  /// that, the counter itself while a function is captured; it holds nothing where there is no
  /// need.
  Tensor settle();
  /// The same for the context's generator, where it has one: what must run is added to `storages`.
  static void settle(Context& context, std::vector<std::shared_ptr<Storage>>& storages);

 private:
  void set_seed(uint64_t value);

  Context& context_;
  std::mutex mutex_;
  Tensor key_;                        // u32 (2): data, so that a new seed needs no new kernels
  Tensor draws_;                      // u32 scalar
  std::atomic<bool> settled_{false};  // draws_ was a buffer when somebody looked, under the lock
};

/// While it lives, this thread's draws have the numbers first, first + 1, ...: those of a repeated
/// body, which has others in every round. Scopes nest.
class DrawScope {
 public:
  /// Of the sequence of the scope around it; without one, of the context's.
  explicit DrawScope(Tensor first);
  /// A sequence of its own, from its beginning: that of this seed.
  explicit DrawScope(uint64_t seed);
  /// That of a key, u32 (2), from a number, u32 (), on: what captured functions are given.
  DrawScope(Tensor key, Tensor first);
  ~DrawScope();
  DrawScope(const DrawScope&) = delete;
  DrawScope& operator=(const DrawScope&) = delete;

  uint32_t count() const { return count_; }  ///< of draws so far
  /// The number of the first of the next `count`, which are taken; undefined where no scope lives.
  static Tensor next(uint32_t count);
  /// Of the innermost scope; undefined where that is the context's.
  static Tensor key();

 private:
  DrawScope* outer_;
  Tensor first_, key_;
  uint32_t count_ = 0;
};

}  // namespace weft
