// Operand and the options of methods: what Tensor's methods take besides tensors, sizes and axes.
#pragma once

#include <type_traits>

#include "weft/dtype/value.h"
#include "weft/tensor/dim.h"

namespace weft {

class Tensor;

/// A tensor or a C++ number where a tensor is expected. A number is weak: it takes the other
/// operand's dtype where its kind allows (i8 + 1 is i8, i8 + 0.5 is f32). Knows its call site.
class Operand {
 public:
  Operand(const Tensor& t, CallSite at = CallSite::here()) : tensor_(&t), at_(at) {}  // NOLINT
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T x, CallSite at = CallSite::here()) : scalar_(x), at_(at) {}  // NOLINT
  Operand(const Scalar& x, CallSite at) : scalar_(x), at_(at) {}

  const Tensor* tensor() const { return tensor_; }  ///< null for a number
  const Scalar& scalar() const { return scalar_; }
  CallSite at() const { return at_; }

 private:
  const Tensor* tensor_ = nullptr;
  Scalar scalar_ = false;
  CallSite at_;
};

/// Arguments of conv2d and conv_transpose2d; each list is one number for all spatial axes or one
/// per axis. padding may also be (last_before, last_after, ..., first_before, first_after).
struct ConvOptions {
  int64_t groups = 1;  ///< channels are split into so many convolutions of their own
  Ints stride = 1, dilation = 1, padding = 0;
  Ints output_padding = 0;  ///< conv_transpose2d only: more places at the end of each axis
};

/// Arguments of the pools. An empty stride means the kernel size.
struct PoolOptions {
  Ints stride = {}, dilation = 1, padding = 0;
  bool ceil_mode = false;         ///< a last window that is only partly inside counts too
  bool count_include_pad = true;  ///< avg_pool2d only: padding counts in the mean
};

/// Arguments of scaled_dot_product_attention.
struct AttentionOptions {
  const Tensor* mask = nullptr;  ///< bool (true takes part) or added to the scores
  double dropout = 0;            ///< of the weights, while training
  bool causal = false;           ///< position i sees key positions up to i; not with a mask
  bool grouped_queries = false;  ///< key and value have fewer heads, repeated to match
  int64_t window = 0;            ///< position i sees only key positions above i - window; 0: all
  double scale = 0;              ///< of the scores; 0: 1 / sqrt(d)
};

/// What div() makes of the quotient: nothing, towards zero, or down.
enum class Rounding : uint8_t { None, Trunc, Floor };

/// What a loss gives: one number per sample, their mean or their sum.
enum class Reduction : uint8_t { None, Mean, Sum };

}  // namespace weft
