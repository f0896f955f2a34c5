// Tensor: what users touch. Every method records graph nodes; nothing runs before realize().
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/dtype/value.h"
#include "weft/graph/op.h"
#include "weft/tensor/dim.h"
#include "weft/tensor/index.h"

namespace weft {

class Context;
class Graph;
class Storage;
class Tensor;
struct TensorCell;

/// A tensor or a C++ number where a tensor is expected. A number is weak: it takes the other
/// operand's dtype where its kind allows (i8 + 1 is i8, i8 + 0.5 is f32). Knows its call site.
class Operand {
 public:
  Operand(const Tensor& t, CallSite at = CallSite::here()) : tensor_(&t), at_(at) {}  // NOLINT
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T x, CallSite at = CallSite::here()) : scalar_(x), at_(at) {}  // NOLINT

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
  int64_t groups = 1;
  Ints stride = 1, dilation = 1, padding = 0;
  Ints output_padding = 0;  ///< conv_transpose2d only
};

/// Arguments of the pools. An empty stride means the kernel size.
struct PoolOptions {
  Ints stride = {}, dilation = 1, padding = 0;
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< avg_pool2d only
};

struct AttentionOptions {
  const Tensor* mask = nullptr;  ///< bool (true takes part) or added to the scores
  double dropout = 0;
  bool causal = false;
  bool grouped_queries = false;  ///< key and value have fewer heads, repeated to match
};

enum class Reduction : uint8_t { None, Mean, Sum };

/// A cheap handle: copies and views share storage, with NumPy's aliasing. A default-made Tensor
/// holds nothing; using it is an Error. A Tensor may be read by several threads at once; writing to
/// it (assign, +=, realize, backward) needs the caller's own lock. Never outlive the Context.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Scalar value);

  // ---- creation
  static Tensor zeros(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor ones(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor full(const Dims& shape, Scalar value, CallSite = CallSite::here());
  static Tensor full(const Dims& shape, Scalar value, DType dtype, CallSite = CallSite::here());
  /// Contents are unspecified (zeros today).
  static Tensor empty(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor arange(const Dim& stop, DType dtype = kDefaultInt, CallSite = CallSite::here());
  /// start, start + step, ... before stop; f32 when any of them is a floating-point number.
  static Tensor arange(Scalar start, Scalar stop, Scalar step = 1, CallSite = CallSite::here());
  static Tensor linspace(double start, double stop, int64_t steps, DType dtype = kDefaultFloat,
                         CallSite = CallSite::here());
  static Tensor eye(const Dim& rows, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor eye(const Dim& rows, const Dim& columns, DType dtype, CallSite = CallSite::here());
  /// Copies the elements now.
  template <class T>
  static Tensor from(std::span<const T> data, const Dims& shape, CallSite at = CallSite::here()) {
    return from_bytes(std::as_bytes(data), dtype_of<T>(), shape, at);
  }
  template <class T>
  static Tensor from(const std::vector<T>& data, const Dims& shape,
                     CallSite at = CallSite::here()) {
    return from(std::span<const T>(data), shape, at);
  }
  template <class T>
  static Tensor from(const std::vector<T>& data) {
    return from(data, {data.size()}, CallSite());
  }
  /// Tensor::of({1, 2, 3}), Tensor::of({{1.f, 2.f}, {3.f, 4.f}}). double becomes f32.
  template <class T>
  static Tensor of(std::initializer_list<T> values, CallSite at = CallSite::here()) {
    return of_rows(std::vector<T>(values), {values.size()}, at);
  }
  template <class T>
  static Tensor of(std::initializer_list<std::initializer_list<T>> rows,
                   CallSite at = CallSite::here()) {
    std::vector<T> all;
    for (const auto& r : rows) all.insert(all.end(), r.begin(), r.end());
    const size_t width = rows.size() == 0 ? 0 : rows.begin()->size();
    return of_rows(all, {rows.size(), width}, at);
  }
  static Tensor from_bytes(std::span<const std::byte> data, DType dtype, const Dims& shape,
                           CallSite = CallSite::here());
  Tensor zeros_like(CallSite at = CallSite::here()) const { return full_like(0, at); }
  Tensor ones_like(CallSite at = CallSite::here()) const { return full_like(1, at); }
  Tensor full_like(Scalar value, CallSite = CallSite::here()) const;

  // ---- random numbers (threefry2x32, counter based: the same bits for every thread count)
  static void manual_seed(uint64_t seed);  ///< of the current context
  static Tensor rand(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor randn(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor randint(int64_t low, int64_t high, const Dims& shape, DType dtype = kDefaultInt,
                        CallSite = CallSite::here());
  static Tensor uniform(const Dims& shape, double low, double high, DType dtype = kDefaultFloat,
                        CallSite = CallSite::here());
  static Tensor normal(const Dims& shape, double mean, double std, DType dtype = kDefaultFloat,
                       CallSite = CallSite::here());
  static Tensor kaiming_uniform(const Dims& shape, double a = 0.01, CallSite = CallSite::here());
  static Tensor kaiming_normal(const Dims& shape, double a = 0.01, CallSite = CallSite::here());
  static Tensor glorot_uniform(const Dims& shape, CallSite = CallSite::here());
  static Tensor randperm(int64_t n, DType dtype = kDefaultInt, CallSite = CallSite::here());
  /// The two output words of threefry2x32-20 (Salmon et al. 2011) for u32 tensors.
  static std::pair<Tensor, Tensor> threefry2x32(const Tensor& key0, const Tensor& key1,
                                                const Tensor& counter0, const Tensor& counter1,
                                                CallSite = CallSite::here());
  Tensor dropout(double p = 0.5, CallSite = CallSite::here()) const;  ///< while training

  // ---- what it is
  bool defined() const { return cell_ != nullptr; }
  DType dtype() const;
  size_t ndim() const;
  Dims dims() const;
  std::vector<int64_t> shape(CallSite = CallSite::here()) const;  ///< Error when symbolic
  Dim dim(int64_t axis, CallSite = CallSite::here()) const;
  int64_t size(int64_t axis, CallSite = CallSite::here()) const;
  int64_t numel(CallSite = CallSite::here()) const;
  std::string device() const;
  Tensor to(std::string_view device, CallSite = CallSite::here()) const;
  /// "f32 (2, 2) [[1, 2], [3, 4]]": realizes; long tensors are abbreviated.
  std::string text(CallSite = CallSite::here()) const;

  // ---- views: share storage where NumPy would; expand, window and unfold are read-only
  Tensor reshape(const Dims& shape, CallSite = CallSite::here()) const;  ///< one size may be -1
  Tensor expand(const Dims& shape, CallSite = CallSite::here()) const;   ///< -1 keeps a size
  Tensor permute(const Ints& axes, CallSite = CallSite::here()) const;
  Tensor transpose(int64_t a = 1, int64_t b = 0, CallSite = CallSite::here()) const;
  Tensor T(CallSite = CallSite::here()) const;  ///< the last two axes exchanged
  Tensor flip(const Axes& axes, CallSite = CallSite::here()) const;
  Tensor shrink(const std::vector<DimPair>& ranges, CallSite = CallSite::here()) const;
  Tensor squeeze(CallSite = CallSite::here()) const;
  Tensor squeeze(int64_t axis, CallSite = CallSite::here()) const;
  Tensor unsqueeze(int64_t axis, CallSite = CallSite::here()) const;
  Tensor flatten(int64_t first = 0, int64_t last = -1, CallSite = CallSite::here()) const;
  Tensor unflatten(int64_t axis, const Dims& sizes, CallSite = CallSite::here()) const;
  /// Sliding windows: axis becomes the number of windows, a new last axis has the given size.
  Tensor window(int64_t axis, int64_t size, int64_t stride = 1, int64_t dilation = 1,
                CallSite = CallSite::here()) const;
  Tensor unfold(int64_t axis, int64_t size, int64_t step, CallSite at = CallSite::here()) const {
    return window(axis, size, step, 1, at);
  }
  std::vector<Tensor> split(int64_t size, int64_t axis = 0, CallSite = CallSite::here()) const;
  std::vector<Tensor> split(const std::vector<int64_t>& sizes, int64_t axis = 0,
                            CallSite = CallSite::here()) const;
  std::vector<Tensor> chunk(int64_t parts, int64_t axis = 0, CallSite = CallSite::here()) const;
  Tensor diagonal(CallSite = CallSite::here()) const;  ///< of a square matrix (copies)

  // ---- movement that copies
  /// (before, after) per axis; negative amounts cut.
  Tensor pad(const std::vector<DimPair>& amounts, Scalar value = 0,
             CallSite = CallSite::here()) const;
  static Tensor cat(const std::vector<Tensor>& parts, int64_t axis = 0,
                    CallSite = CallSite::here());
  static Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0,
                      CallSite = CallSite::here());
  Tensor repeat(const Ints& counts, CallSite = CallSite::here()) const;
  Tensor repeat_interleave(int64_t count, int64_t axis, CallSite = CallSite::here()) const;
  Tensor roll(int64_t shift, int64_t axis, CallSite = CallSite::here()) const;
  Tensor tril(int64_t diagonal = 0, CallSite = CallSite::here()) const;
  Tensor triu(int64_t diagonal = 0, CallSite = CallSite::here()) const;
  Tensor one_hot(int64_t classes, CallSite = CallSite::here()) const;  ///< of integers, to i32

  // ---- indexing (NumPy's rules; see index.h)
  Tensor operator[](std::initializer_list<Index> at) const {
    return index({at.begin(), at.end()}, at.size() ? at.begin()->site() : CallSite());
  }
  Tensor operator[](const Index& at) const { return index({at}, at.site()); }
  Tensor index(const std::vector<Index>& at, CallSite = CallSite::here()) const;
  /// Writes value (broadcast) to the indexed elements; with index tensors the last write wins.
  Tensor& index_put(const std::vector<Index>& at, const Operand& value,
                    CallSite = CallSite::here());
  /// out[i][j] = this[index[i][j]][j] for axis 0, and so on; outside [-n, n) reads 0.
  Tensor gather(int64_t axis, const Tensor& index, CallSite = CallSite::here()) const;
  /// This with src combined in at index along axis, in row-major order.
  Tensor scatter(int64_t axis, const Tensor& index, const Operand& src, Fold combine = Fold::Set,
                 CallSite = CallSite::here()) const;
  Tensor index_select(int64_t axis, const Tensor& index, CallSite = CallSite::here()) const;

  // ---- writing: all aliases see it
  /// Replaces the elements by value, broadcast and cast to this dtype.
  Tensor& assign(const Operand& value, CallSite = CallSite::here());
  Tensor& operator+=(const Operand& b) {
    return assign(binary("+", Op::Add, {*this, b.at()}, b), b.at());
  }
  Tensor& operator-=(const Operand& b) { return assign(subtract({*this, b.at()}, b), b.at()); }
  Tensor& operator*=(const Operand& b) {
    return assign(binary("*", Op::Mul, {*this, b.at()}, b), b.at());
  }
  Tensor& operator/=(const Operand& b) { return assign(divide({*this, b.at()}, b), b.at()); }

  // ---- elementwise
  friend Tensor operator+(const Operand& a, const Operand& b) { return binary("+", Op::Add, a, b); }
  friend Tensor operator-(const Operand& a, const Operand& b) { return subtract(a, b); }
  friend Tensor operator*(const Operand& a, const Operand& b) { return binary("*", Op::Mul, a, b); }
  friend Tensor operator/(const Operand& a, const Operand& b) { return divide(a, b); }
  /// Floor remainder, sign of the divisor, as Python's.
  friend Tensor operator%(const Operand& a, const Operand& b) { return remainder(a, b); }
  friend Tensor operator&(const Operand& a, const Operand& b) { return binary("&", Op::And, a, b); }
  friend Tensor operator|(const Operand& a, const Operand& b) { return binary("|", Op::Or, a, b); }
  friend Tensor operator^(const Operand& a, const Operand& b) { return binary("^", Op::Xor, a, b); }
  friend Tensor operator<<(const Operand& a, const Operand& b) {
    return binary("<<", Op::Shl, a, b);
  }
  friend Tensor operator>>(const Operand& a, const Operand& b) {
    return binary(">>", Op::Shr, a, b);
  }
  friend Tensor operator<(const Operand& a, const Operand& b) { return binary("<", Op::Lt, a, b); }
  friend Tensor operator<=(const Operand& a, const Operand& b) {
    return binary("<=", Op::Le, a, b);
  }
  friend Tensor operator>(const Operand& a, const Operand& b) { return binary(">", Op::Lt, b, a); }
  friend Tensor operator>=(const Operand& a, const Operand& b) {
    return binary(">=", Op::Le, b, a);
  }
  friend Tensor operator==(const Operand& a, const Operand& b) {
    return binary("==", Op::Eq, a, b);
  }
  friend Tensor operator!=(const Operand& a, const Operand& b) {
    return binary("!=", Op::Ne, a, b);
  }
  friend Tensor operator-(const Operand& x) { return negate(x); }
  friend Tensor operator~(const Operand& x) { return invert(x); }  ///< of bits; of a bool: not

  Tensor floor_div(const Operand& other, CallSite = CallSite::here()) const;
  Tensor pow(const Operand& exponent, CallSite = CallSite::here()) const;
  /// This is the condition: a where true, else b.
  Tensor where(const Operand& a, const Operand& b, CallSite = CallSite::here()) const;
  // The functions of ops.def: sqrt, exp2, log2, sin, of which integers become f32; maximum,
  // minimum.
#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, ...) \
  Tensor method(WEFT_PARAMS_##group CallSite = CallSite::here()) const;
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
  Tensor trunc(CallSite = CallSite::here()) const;
  Tensor cast(DType dtype, CallSite = CallSite::here()) const;
  Tensor bitcast(DType dtype, CallSite = CallSite::here()) const;
  Tensor clamp(const Operand& low, const Operand& high, CallSite = CallSite::here()) const;
  Tensor clamp_min(const Operand& low, CallSite at = CallSite::here()) const {
    return maximum(low, at);
  }
  Tensor clamp_max(const Operand& high, CallSite at = CallSite::here()) const {
    return minimum(high, at);
  }
  // Every derived elementwise op (relu, exp, gelu, ...) is one row of derived.def.
#define WEFT_ARGS(...) __VA_ARGS__ __VA_OPT__(, )
#define WEFT_DERIVED(name, declared, params, doc, ...) \
  Tensor name(WEFT_ARGS declared CallSite = CallSite::here()) const;
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
#undef WEFT_ARGS

  // ---- reductions: no axes means all; sums of f16 and bf16 run in f32, of bool, i8, i16 in i32
  Tensor sum(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor max(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor min(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor any(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor all(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor mean(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor var(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1,
             CallSite = CallSite::here()) const;
  Tensor std(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1,
             CallSite = CallSite::here()) const;
  Tensor logsumexp(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor argmax(CallSite = CallSite::here()) const;  ///< over all elements, row-major; i32
  Tensor argmax(int64_t axis, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor argmin(CallSite = CallSite::here()) const;
  Tensor argmin(int64_t axis, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor softmax(int64_t axis = -1, CallSite = CallSite::here()) const;
  Tensor log_softmax(int64_t axis = -1, CallSite = CallSite::here()) const;
  Tensor cumsum(int64_t axis = 0, CallSite = CallSite::here()) const;
  Tensor cumprod(int64_t axis = 0, CallSite = CallSite::here()) const;
  Tensor cummax(int64_t axis = 0, CallSite = CallSite::here()) const;
  Tensor cummin(int64_t axis = 0, CallSite = CallSite::here()) const;
  /// Values and i32 positions; stable; NaN sorts as the largest.
  std::pair<Tensor, Tensor> sort(int64_t axis = -1, bool descending = false,
                                 CallSite = CallSite::here()) const;
  Tensor argsort(int64_t axis = -1, bool descending = false, CallSite = CallSite::here()) const;
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t axis = -1, bool largest = true,
                                 CallSite = CallSite::here()) const;

  // ---- products, convolutions, pools, normalisation, attention
  Tensor matmul(const Tensor& other, CallSite = CallSite::here()) const;
  Tensor dot(const Tensor& other, CallSite at = CallSite::here()) const {
    return matmul(other, at);
  }
  /// x @ weight (in, out) + bias, tinygrad's orientation.
  Tensor linear(const Tensor& weight, const Tensor& bias = {}, CallSite = CallSite::here()) const;
  /// (N, C, spatial...) with weight (out, C / groups, kernel...); any number of spatial axes.
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {},
                CallSite = CallSite::here()) const;
  /// (N, C, spatial...) with weight (C, out / groups, kernel...).
  Tensor conv_transpose2d(const Tensor& weight, const Tensor& bias = {},
                          const ConvOptions& options = {}, CallSite = CallSite::here()) const;
  Tensor max_pool2d(const Ints& kernel = {2, 2}, const PoolOptions& options = {},
                    CallSite = CallSite::here()) const;
  Tensor avg_pool2d(const Ints& kernel = {2, 2}, const PoolOptions& options = {},
                    CallSite = CallSite::here()) const;
  Tensor layernorm(const Axes& axes = -1, double eps = 1e-5, CallSite = CallSite::here()) const;
  /// Channel axis 1; weight and bias may be empty Tensors.
  Tensor batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean,
                   const Tensor& invstd, CallSite = CallSite::here()) const;
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                      const AttentionOptions& options = {},
                                      CallSite = CallSite::here()) const;

  // ---- losses
  Tensor mse_loss(const Tensor& target, Reduction reduction = Reduction::Mean,
                  CallSite = CallSite::here()) const;
  Tensor binary_crossentropy(const Tensor& target, Reduction reduction = Reduction::Mean,
                             CallSite = CallSite::here()) const;
  Tensor binary_crossentropy_logits(const Tensor& target, Reduction reduction = Reduction::Mean,
                                    CallSite = CallSite::here()) const;
  /// Logits (N, classes) and class numbers (N); classes equal to ignore_index do not count.
  Tensor sparse_categorical_crossentropy(const Tensor& target, double label_smoothing = 0,
                                         int64_t ignore_index = -1,
                                         Reduction reduction = Reduction::Mean,
                                         CallSite = CallSite::here()) const;
  /// Logits (N, classes, ...) with class numbers (N, ...) or probabilities of the same shape.
  Tensor cross_entropy(const Tensor& target, double label_smoothing = 0,
                       Reduction reduction = Reduction::Mean, CallSite = CallSite::here()) const;
  /// Log-probabilities (N, classes, ...) and class numbers.
  Tensor nll_loss(const Tensor& target, Reduction reduction = Reduction::Mean,
                  CallSite = CallSite::here()) const;

  // ---- autograd
  Tensor detach(CallSite = CallSite::here()) const;  ///< the same values; gradients stop here
  /// Marks this tensor as a leaf that backward() fills the gradient of.
  Tensor& requires_grad_(bool on = true, CallSite = CallSite::here());
  bool requires_grad() const;
  Tensor grad() const;  ///< an empty Tensor before the first backward()
  void zero_grad();     ///< forgets the gradient
  void set_grad(const Tensor& g, CallSite = CallSite::here());
  /// Adds d this / d leaf to the grad() of every live leaf with requires_grad; this is a scalar.
  void backward(CallSite = CallSite::here()) const;
  void backward(const Tensor& gradient, CallSite = CallSite::here()) const;
  /// d this / d target for each, as ordinary differentiable graphs; zeros where there is no path.
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets,
                               CallSite = CallSite::here()) const;
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets, const Tensor& upstream,
                               CallSite = CallSite::here()) const;

  // ---- values
  Tensor contiguous(CallSite = CallSite::here()) const;  ///< asks for a buffer of its own
  Tensor& realize(CallSite = CallSite::here());
  const Tensor& realize(CallSite = CallSite::here()) const;
  /// All elements in row-major order, converted to T as a cast would.
  template <class T>
  std::vector<T> to_vector(CallSite = CallSite::here()) const;
  template <class T>
  T item(CallSite = CallSite::here()) const;
  /// Replaces the contents by these bytes (same dtype, dense, row-major).
  void copy_from(std::span<const std::byte> data, CallSite = CallSite::here());
  void copy_to(std::span<std::byte> data, CallSite = CallSite::here()) const;

  // ---- below the surface
  /// A fresh tensor whose value is this node of the current context's graph.
  static Tensor from_node(NodeRef n);
  /// The value read now.
  NodeRef node() const;
  Context& context() const;
  const std::shared_ptr<TensorCell>& cell() const { return cell_; }
  bool is_view() const { return static_cast<bool>(chain_); }
  friend struct TensorAccess;

 private:
  Tensor(std::shared_ptr<TensorCell> cell, RootedNode chain)
      : cell_(std::move(cell)), chain_(std::move(chain)) {}
  static Tensor binary(const char* name, Op op, const Operand& a, const Operand& b);
  static Tensor subtract(const Operand& a, const Operand& b);
  static Tensor divide(const Operand& a, const Operand& b);
  static Tensor negate(const Operand& x);
  static Tensor invert(const Operand& x);
  static Tensor remainder(const Operand& a, const Operand& b);
  template <class T>
  static Tensor of_rows(const std::vector<T>& data, const Dims& shape, CallSite at) {
    if constexpr (std::is_same_v<T, double>) {
      return from(std::vector<float>(data.begin(), data.end()), shape, at);
    } else if constexpr (std::is_same_v<T, bool>) {
      return from(std::vector<int8_t>(data.begin(), data.end()), shape, at).cast(DType::Bool);
    } else {
      return from(data, shape, at);
    }
  }
  template <class T>
  static constexpr DType dtype_of() {
    static_assert(std::is_arithmetic_v<T>, "elements are C++ numbers");
    if constexpr (std::is_same_v<T, bool>) return DType::Bool;
    if constexpr (std::is_floating_point_v<T>) return sizeof(T) == 4 ? DType::F32 : DType::F64;
    constexpr DType kSigned[] = {DType::I8, DType::I16, DType::I32, DType::I64};
    constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
    constexpr int log2 = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3;
    return std::is_signed_v<T> ? kSigned[log2] : kUnsigned[log2];
  }

  std::shared_ptr<TensorCell> cell_;  // what aliases share
  RootedNode chain_;  // movement ops over a placeholder for the storage's value; null: all of it
};

/// Runs what these need, together; afterwards each has its values in a buffer.
void realize(const std::vector<Tensor>& tensors, CallSite = CallSite::here());

/// Whether dropout and batch norm train; a thread's innermost scope counts, the default is false.
bool is_training();
class TrainingScope {
 public:
  explicit TrainingScope(bool on = true);
  ~TrainingScope();
  TrainingScope(const TrainingScope&) = delete;
  TrainingScope& operator=(const TrainingScope&) = delete;

 private:
  bool outer_;
};

}  // namespace weft
