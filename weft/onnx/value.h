// Value: what flows between the nodes of an ONNX graph.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "weft/onnx/model.h"
#include "weft/tensor/tensor.h"

namespace weft::onnx {

struct Dequantised;

/// A tensor, a tensor of strings, a sequence, an optional, a map, or nothing (an input that is not
/// given). A cheap handle; immutable.
///
/// Tensors come in three states, and an operator rarely cares which: lazy (`Tensor`), constant (a
/// HostArray out of the file or of something folded) and known (small integers as Dims, which may
/// be symbolic: what Shape gives and what shapes are computed from). tensor() makes a Tensor of
/// any; constants become borrowed memory, so weights are never copied.
class Value {
 public:
  enum class Kind : uint8_t { None, Tensor, Strings, Sequence, Optional, Map };

  Value() = default;
  Value(Tensor x);  // NOLINT: implicit by purpose
  /// A type that weft has no dtype for: dtype_of(type) is the tensor's.
  Value(Tensor x, ElementType type);
  explicit Value(const ConstantData& data);
  explicit Value(HostArray data);
  Value(HostArray data, ElementType type);
  /// Integers of rank 0 (one of them) or 1.
  static Value known(std::vector<Dim> elements, DType dtype, bool scalar);
  static Value strings(std::vector<std::string> elements, std::vector<int64_t> shape);
  static Value sequence(std::vector<Value> elements);
  static Value optional(Value element);        ///< a None makes an empty one
  static Value map(Value keys, Value values);  ///< 1-D each, as long as each other
  /// y, which stands for these whole numbers: what multiplies it can multiply them.
  static Value dequantised(Tensor y, ElementType type, Dequantised from);

  Kind kind() const;
  explicit operator bool() const { return kind() != Kind::None; }

  // ---- tensors; an InternalError for others: NodeCall has checked
  ElementType type() const;
  DType dtype() const;
  Dims dims() const;  ///< strings too
  size_t ndim() const { return dims().size(); }
  const Tensor& tensor() const;
  /// Its elements where they are known without running anything: constants, and known integers that
  /// are all numbers.
  std::optional<HostArray> constant() const;
  /// Its elements as integers, symbolic ones too, where they are known; bools count. Only up to
  /// kMostKnown elements.
  std::optional<std::vector<Dim>> integers() const;
  static constexpr int64_t kMostKnown = 4096;

  /// What DequantizeLinear made it of; null for others.
  const Dequantised* dequantised_from() const;
  /// Whether it was computed from dequantised values: off by parts of their steps anyway.
  bool is_rough() const;
  void note_rough();

  // ---- others
  const std::vector<std::string>& texts() const;
  const std::vector<Value>& elements()
      const;  ///< of a sequence; of an optional: none or one; map: keys, values

 private:
  struct Data;
  std::shared_ptr<Data> data_;
};

using Values = std::vector<Value>;

/// (x - zero) * scale; zero may be None. Scales and zeros are one for all, or one for each place
/// of an axis.
struct Dequantised {
  Value x, scale, zero;
  int64_t axis = 0;
};

/// With its zeros. An Error for elements outside, and for more than 2 GiB.
Value dense(const SparseData& sparse);

}  // namespace weft::onnx
