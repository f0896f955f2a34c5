// Kernels of the user's own, written as micro-ops: checked like the compiler's, optimized, compiled
// for whatever device the inputs are on, timed and shown among the others.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "weft/dtype/value.h"
#include "weft/graph/op.h"
#include "weft/tensor/transforms.h"

namespace weft {

class KernelWriter;

/// A number of a kernel: a loop variable, an element, or what was computed from them. Two meet in
/// the dtype tensors would; literals are weak; loop variables are integers of no width.
class KernelNumber {
 public:
  KernelNumber() = default;
  KernelNumber cast(DType to) const;
  DType dtype() const;
  NodeRef node() const { return node_; }

 private:
  friend class KernelWriter;
  friend struct KernelOperand;
  using Ranges = std::vector<NodeRef>;
  KernelNumber(KernelWriter* writer, NodeRef node, Ranges ranges)
      : writer_(writer), node_(node), ranges_(std::move(ranges)) {}
  KernelWriter* writer_ = nullptr;
  NodeRef node_ = nullptr;
  Ranges ranges_;  ///< that were written into it, also where its value turned out not to vary
};

/// A KernelNumber or a C++ number.
struct KernelOperand {
  KernelOperand(const KernelNumber& x) : number(x) {}  // NOLINT: implicit by purpose
  template <class T>
    requires std::is_arithmetic_v<T>
  KernelOperand(T x) : literal(x) {}  // NOLINT

  KernelWriter* writer() const { return number.writer_; }
  std::span<const NodeRef> ranges() const { return number.ranges_; }
  KernelNumber number;
  Scalar literal = false;
};

/// Writes one kernel. Loops nest in the order range() was called; a store runs once for each value of
/// every range that its position, value or condition is written with, whether or not they vary with
/// it. Sizes are numbers.
class KernelWriter {
 public:
  /// 0, 1, ... size - 1.
  KernelNumber range(int64_t size);
  /// The element of an input, by a position for every axis. Outside of it: 0.
  KernelNumber load(size_t input, const std::vector<KernelOperand>& position);
  /// Writes an element of an output; with a fold, in the order of the loops, on what is there. What
  /// is never written is 0. Where `when` is false nothing happens.
  void store(size_t output, const std::vector<KernelOperand>& position, const KernelOperand& value,
             Fold combine = Fold::Set);
  void store_if(const KernelNumber& when, size_t output, const std::vector<KernelOperand>& position,
                const KernelOperand& value, Fold combine = Fold::Set);
  /// `value` folded over all values of these ranges, which are closed by that.
  KernelNumber reduce(Fold fold, const KernelNumber& value,
                      const std::vector<KernelNumber>& ranges);
  KernelNumber sum(const KernelNumber& value, const std::vector<KernelNumber>& ranges) {
    return reduce(Fold::Add, value, ranges);
  }
  /// A loaded integer as a position in [0, size); others are moved to the nearest end.
  KernelNumber position(const KernelNumber& value, int64_t size);
  /// x in a dtype; a literal becomes a constant.
  KernelNumber as(const KernelOperand& x, DType dtype) { return number(in_dtype(x, dtype), x.number.ranges_); }
  /// Any elementwise op of ops.def.
  KernelNumber op(Op op, const std::vector<KernelOperand>& operands);
  KernelNumber where(const KernelNumber& condition, const KernelOperand& a,
                     const KernelOperand& b) {
    return op(Op::Where, {condition, a, b});
  }

  const Dims& input_shape(size_t input) const;
  const Dims& output_shape(size_t output) const;

 private:
  friend class KernelNumber;
  friend Tensors custom_kernel(const std::string&, const Tensors&,
                               const std::vector<struct CustomOutput>&,
                               const std::function<void(KernelWriter&)>&, const GradientFunction&,
                               CallSite);
  struct Argument {
    Dims dims;
    DType dtype;
  };
  KernelWriter(Graph& g, std::vector<Argument> outputs, std::vector<Argument> inputs);
  using Ranges = KernelNumber::Ranges;
  KernelNumber number(NodeRef n, Ranges ranges) { return {this, n, std::move(ranges)}; }
  NodeRef in_dtype(const KernelOperand& x, DType to);
  NodeRef place(const char* tag, const Argument& a, const std::vector<KernelOperand>& position,
                NodeRef& valid);
  NodeRef param(size_t slot);
  NodeRef sink();

  Graph& g_;
  std::vector<Argument> outputs_, inputs_;
  std::vector<NodeRef> stores_;
  int64_t next_range_ = 0;
};

/// What a kernel gives.
struct CustomOutput {
  Dims shape;
  DType dtype = DType::F32;
};

/// Runs a kernel of the user's own on whole inputs. `gradient` as in with_gradient(); without one,
/// asking for gradients through it is an Error. Batched by vmap slice by slice. Example:
///   Tensor y = custom_kernel("scale", {x}, {{x.dims()}}, [](KernelWriter& k) {
///     auto i = k.range(8);
///     k.store(0, {i}, k.load(0, {i}) * 2);
///   })[0];
/// Errors: what does not fit in the kernel itself, by position; symbolic sizes.
Tensors custom_kernel(const std::string& name, const Tensors& inputs,
                      const std::vector<CustomOutput>& outputs,
                      const std::function<void(KernelWriter&)>& write,
                      const GradientFunction& gradient = {}, CallSite = CallSite::here());

// ---- operators; / of integers rounds down, & | ^ ~ are logic of bools and integers
KernelNumber operator+(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator-(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator*(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator/(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator%(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator<(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator<=(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator>(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator>=(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator==(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator!=(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator&(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator|(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator^(const KernelOperand& a, const KernelOperand& b);
KernelNumber operator-(const KernelNumber& x);
KernelNumber operator~(const KernelNumber& x);
KernelNumber maximum(const KernelOperand& a, const KernelOperand& b);
KernelNumber minimum(const KernelOperand& a, const KernelOperand& b);
/// Of floats; integers become f32.
KernelNumber exp(const KernelNumber& x);
KernelNumber log(const KernelNumber& x);
KernelNumber sin(const KernelNumber& x);
KernelNumber sqrt(const KernelNumber& x);

}  // namespace weft
