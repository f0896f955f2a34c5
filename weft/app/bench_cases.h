// What weft is held against its peers by: operands, what weft computes of them, and the same as
// Python for a peer.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "weft/tensor/tensor.h"

namespace weft {

struct BenchOperand {
  enum class Fill : uint8_t {
    Normal,    ///< of floats
    Positive,  ///< of floats: uniform in [0.1, 1.1)
    Below,     ///< of integers: uniform in [0, below)
    Definite,  ///< symmetric matrices, positive definite
  };
  std::vector<int64_t> dims;
  DType dtype = DType::F32;
  Fill fill = Fill::Normal;
  int64_t below = 0;

  Tensor make() const;
  int64_t elements() const;
};

using BenchOperands = std::vector<BenchOperand>;
using BenchValues = std::vector<Tensor>;

/// One row; `{}` in its name is the size.
struct BenchCase {
  std::string group, name;
  std::vector<int64_t> sizes;
  std::function<BenchOperands(int64_t size)> operands;
  std::function<BenchValues(const BenchValues& operands)> compute;
  /// Python expressions of the operands a, b, c, ... with `torch`, `F` (torch.nn.functional) and
  /// `f` (a function by its name) or `np`; "" where the library has no such thing.
  std::string torch, numpy = {};
  /// Operations that cannot be avoided; without it memory is the only limit.
  std::function<double(int64_t size)> flops = {};
  /// The same for ONNX Runtime: `op(type, operands..., attributes)`, or a network of the driver's.
  std::string onnx = {};
  /// The same for oneDNN, through PyTorch: `linear(x, w)`, and `packed(w)`, which lays weights out
  /// once.
  std::string onednn = {};
  /// In the place of `compute`, where there is state: makes it, and what computes with it.
  std::function<std::function<BenchValues(const BenchValues&)>()> network = {};
  /// Results are few beside operands: how fast memory is read is the limit, not how fast copied.
  bool reads = false;
};

/// All of them, group by group.
std::vector<BenchCase> bench_cases();

struct SizedCase {
  BenchCase which;
  int64_t size;
  std::string name() const;
  BenchValues operands() const;  ///< in memory
  std::function<BenchValues(const BenchValues&)> computation() const;
};
/// Whose group or name has `text` in it, at `size` or, if that is 0, at sizes of their own. An
/// Error where there is none.
std::vector<SizedCase> chosen_cases(std::string_view text, int64_t size);

// What bench_cases() is made of.
void add_products(std::vector<BenchCase>& cases);  // bench_products.cpp
void add_constant_weights(std::vector<BenchCase>& cases);
void add_packed_weights(std::vector<BenchCase>& cases);
void add_attention(std::vector<BenchCase>& cases);
void add_convolutions(std::vector<BenchCase>& cases);  // bench_convolutions.cpp
void add_networks(std::vector<BenchCase>& cases);      // bench_networks.cpp
void add_functions(std::vector<BenchCase>& cases);  // bench_functions.cpp: elementwise, reductions
void add_movement(std::vector<BenchCase>& cases);   // bench_data.cpp
void add_selection(std::vector<BenchCase>& cases);  // sorts, positions, random numbers
void add_linear_algebra(std::vector<BenchCase>& cases);

}  // namespace weft
