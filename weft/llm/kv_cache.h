// KvCache: keys and values of all layers, in f32, f16, or 8 bits with scales.
#pragma once

#include <vector>

#include "weft/llm/config.h"
#include "weft/tensor/tensor.h"

namespace weft::llm {

/// Positions of a slot, one behind the other.
struct Positions {
  Dim first, count;
};

/// Where a row of a batch lies in layers of one kind: its first position, and the positions that it
/// looks at, which cover the row's own.
struct RowPlace {
  Dim start;
  Positions seen;
};

/// The same in layers that see all, and in those that see a window, which count from the first
/// position that they keep.
struct Place {
  Dim slot;
  RowPlace all, near;
};

/// Numbers of one layer: (slots, heads, positions, size). A slot holds one text.
class KeptNumbers {
 public:
  KeptNumbers(const Dims& shape, DType dtype);
  /// x (1, heads, tokens, size), from a position on.
  void write(const Tensor& x, const Dim& slot, const Dim& start);
  /// (1, heads, 1, count, size) f32.
  Tensor read(const Dim& slot, const Positions& which) const;
  /// What a slot has from a position on, so many, becomes its beginning.
  void keep(const Dim& slot, const Positions& which);
  std::vector<Tensor> tensors() const;

 private:
  Tensor numbers_;  // f32, f16 or i8
  /// Of i8: (slots, heads, positions, groups) f16. As in ggml's Q8_0, 32 numbers have one scale; of
  /// heads that are no multiple of that, all numbers.
  Tensor scales_;
};

/// Error: "llm.memory", where so much does not fit the address space: sizes may come from damaged
/// files.
void check_cache_memory(const Config& config, int64_t slots, int64_t positions, DType dtype);

struct KvCache {
  /// `near_positions`: of layers that see a window. `dtype`: F32, F16, or I8.
  KvCache(const Config& config, int64_t slots, int64_t positions, int64_t near_positions,
          DType dtype);
  int64_t bytes() const { return bytes_; }
  /// A step that failed in the middle was writing to it: nothing of it can be read.
  bool lost() const;
  std::vector<KeptNumbers> keys, values;  // of layers
  int64_t slots, positions, near_positions;

 private:
  int64_t bytes_ = 0;
};

}  // namespace weft::llm
