// Tensor: what users touch. Every method records graph nodes; nothing runs before realize().
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "weft/graph/op.h"
#include "weft/tensor/cell_ref.h"
#include "weft/tensor/elements.h"
#include "weft/tensor/index.h"
#include "weft/tensor/operand.h"

namespace weft {

class Context;
class Graph;
class Storage;

/// A cheap handle: copies and views share storage, with NumPy's aliasing. A default-made Tensor
/// holds nothing; using it is an Error. A Tensor may be read by several threads at once; writing to
/// it (assign, +=, realize, backward) needs the caller's own lock. Never outlive the Context.
///
/// What holds for every method: axes count from 0, negative ones from the end, and one that is out
/// of range or listed twice is an Error. Shapes broadcast by NumPy's rule, dtypes by promote() of
/// dtype.h. Results are lazy and differentiable unless said otherwise. Errors are thrown by the
/// call itself, not when it runs; they name the method, the values, what to do, and the caller's
/// line (which the last parameter captures).
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Scalar value);  ///< shape (); f32, i32 (i64, u64 where it is too large) or bool

  // ---- creation, on the current context's default device. A negative size is an Error.
  static Tensor zeros(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor ones(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor full(const Dims& shape, Scalar value, CallSite = CallSite::here());
  static Tensor full(const Dims& shape, Scalar value, DType dtype, CallSite = CallSite::here());
  /// Contents are unspecified (zeros today).
  static Tensor empty(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  /// 0, 1, ... before stop, which may be symbolic; (0) for a stop below 1.
  static Tensor arange(const Dim& stop, DType dtype = kDefaultInt, CallSite = CallSite::here());
  /// start, start + step, ... before stop; f32 when any of them is a floating-point number. Numbers
  /// that are not finite, or a step of 0, are an Error. arange(2, 7, 2) is [2, 4, 6].
  static Tensor arange(Scalar start, Scalar stop, Scalar step = 1, CallSite = CallSite::here());
  /// (steps): evenly spaced from start to stop, both included. linspace(0, 1, 3) is [0, 0.5, 1].
  static Tensor linspace(double start, double stop, int64_t steps, DType dtype = kDefaultFloat,
                         CallSite = CallSite::here());
  /// 1 where row and column are equal, else 0; square where no columns are given.
  static Tensor eye(const Dim& rows, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  static Tensor eye(const Dim& rows, const Dim& columns, DType dtype, CallSite = CallSite::here());
  /// Copies the elements now, row-major; as many as the shape has, or an Error. 1-D without one.
  template <class T>
  static Tensor from(std::span<const T> data, const Dims& shape, CallSite at = CallSite::here()) {
    return from_bytes(std::as_bytes(data), dtype_of<T>(), shape, at);
  }
  template <class T>
  static Tensor from(const std::vector<T>& data, const Dims& shape,
                     CallSite at = CallSite::here()) {
    if constexpr (std::is_same_v<T, bool>) {  // packed: it has no span
      const std::vector<uint8_t> bytes(data.begin(), data.end());
      return from_bytes(std::as_bytes(std::span(bytes)), DType::Bool, shape, at);
    } else {
      return from(std::span<const T>(data), shape, at);
    }
  }
  template <class T>
  static Tensor from(const std::vector<T>& data) {
    return from(data, {data.size()}, CallSite());
  }
  /// Tensor::of({1, 2, 3}), Tensor::of({{1.f, 2.f}, {3.f, 4.f}}); such a double becomes f32. Rows
  /// of several lengths are an Error.
  template <class T>
  static Tensor of(std::initializer_list<T> values, CallSite at = CallSite::here()) {
    return of_literals(std::vector<T>(values), {values.size()}, at);
  }
  template <class T>
  static Tensor of(std::initializer_list<std::initializer_list<T>> rows,
                   CallSite at = CallSite::here()) {
    return of_literals(joined_rows<T>(rows, at), rows_shape(rows), at);
  }
  /// A copy of a vector, 1-D, or of a vector of rows, 2-D. The dtype is T's: double is f64.
  template <class T>
  static Tensor of(const std::vector<T>& values, CallSite at = CallSite::here()) {
    return from(values, {values.size()}, at);
  }
  template <class T>
  static Tensor of(const std::vector<std::vector<T>>& rows, CallSite at = CallSite::here()) {
    return from(joined_rows<T>(rows, at), rows_shape(rows), at);
  }
  /// The same from raw elements of `dtype`.
  static Tensor from_bytes(std::span<const std::byte> data, DType dtype, const Dims& shape,
                           CallSite = CallSite::here());
  /// This one's shape and dtype, filled.
  Tensor zeros_like(CallSite at = CallSite::here()) const { return full_like(0, at); }
  Tensor ones_like(CallSite at = CallSite::here()) const { return full_like(1, at); }
  Tensor full_like(Scalar value, CallSite = CallSite::here()) const;

  // ---- random numbers: threefry2x32-20 (Salmon et al. 2011) on a counter, so the same bits for
  // every thread count and device. No gradients. At most 2^31 - 1 elements a call.
  static void manual_seed(uint64_t seed);  ///< of the current context; starts its sequence anew
  /// Floats: [0, 1) on a grid of as many bits as the dtype's significand.
  static Tensor rand(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  /// Floats: the normal distribution, mean 0, variance 1 (Box and Muller 1958).
  static Tensor randn(const Dims& shape, DType dtype = kDefaultFloat, CallSite = CallSite::here());
  /// Integers in [low, high), at most 2^32 of them; each within 2^-32 of equally likely.
  static Tensor randint(int64_t low, int64_t high, const Dims& shape, DType dtype = kDefaultInt,
                        CallSite = CallSite::here());
  /// Floats: [low, high), and normal(mean, std^2).
  static Tensor uniform(const Dims& shape, double low, double high, DType dtype = kDefaultFloat,
                        CallSite = CallSite::here());
  static Tensor normal(const Dims& shape, double mean, double std, DType dtype = kDefaultFloat,
                       CallSite = CallSite::here());
  /// Weights (out, in, spatial...) in f32 for layers with leaky_relu of slope a (He et al. 2015),
  /// or for symmetric ones (Glorot and Bengio 2010). An Error below 2 axes.
  static Tensor kaiming_uniform(const Dims& shape, double a = 0.01, CallSite = CallSite::here());
  static Tensor kaiming_normal(const Dims& shape, double a = 0.01, CallSite = CallSite::here());
  static Tensor glorot_uniform(const Dims& shape, CallSite = CallSite::here());
  /// (n): 0 to n - 1 in random order.
  static Tensor randperm(int64_t n, DType dtype = kDefaultInt, CallSite = CallSite::here());
  /// The two output words of threefry2x32-20 for u32 tensors, which broadcast.
  static std::pair<Tensor, Tensor> threefry2x32(const Tensor& key0, const Tensor& key1,
                                                const Tensor& counter0, const Tensor& counter1,
                                                CallSite = CallSite::here());
  /// Inside a TrainingScope: 0 with probability p, else this / (1 - p). Otherwise this.
  Tensor dropout(double p = 0.5, CallSite = CallSite::here()) const;

  // ---- what it is: dims() and dim() may be symbolic; shape(), size() and numel() are numbers, and
  // an Error where they are not
  bool defined() const { return static_cast<bool>(cell_); }
  DType dtype() const;
  size_t ndim() const;
  Dims dims() const;
  Dim dim(int64_t axis, CallSite = CallSite::here()) const;
  std::vector<int64_t> shape(CallSite = CallSite::here()) const;
  int64_t size(int64_t axis, CallSite = CallSite::here()) const;
  int64_t numel(CallSite = CallSite::here()) const;
  std::string device() const;  ///< "CPU:C"
  /// A copy on another device ("CPU:INTERP", as `weft devices` lists them), or this. Operands of
  /// one operation must be on one device.
  Tensor to(std::string_view device, CallSite = CallSite::here()) const;
  /// "f32 (2, 2) [[1, 2], [3, 4]]": realizes; long tensors are abbreviated.
  std::string text(CallSite = CallSite::here()) const;

  // ---- views: share storage where NumPy would; expand, window and unfold are read-only
  /// The same elements in row-major order; one size may be -1 and is computed. An Error where the
  /// numbers of elements differ. Copies where no strides describe the result.
  Tensor reshape(const Dims& shape, CallSite = CallSite::here()) const;
  /// Repeats axes of size 1 and adds axes in front; -1 keeps a size. (3, 1) expands to (2, 3, 4).
  Tensor expand(const Dims& shape, CallSite = CallSite::here()) const;
  /// Axis i of the result is axis axes[i]; each is listed once.
  Tensor permute(const Ints& axes, CallSite = CallSite::here()) const;
  Tensor transpose(int64_t a = 1, int64_t b = 0, CallSite = CallSite::here()) const;
  Tensor T(CallSite = CallSite::here()) const;  ///< the last two axes exchanged
  /// Reverses the axes listed, all where none is.
  Tensor flip(const Axes& axes, CallSite = CallSite::here()) const;
  /// [begin, end) of every axis, inside the shape: x.shrink({{0, 2}, {1, 3}}).
  Tensor shrink(const std::vector<DimPair>& ranges, CallSite = CallSite::here()) const;
  /// Without axes of size 1, or without this one if it is; with a new one there.
  Tensor squeeze(CallSite = CallSite::here()) const;
  Tensor squeeze(int64_t axis, CallSite = CallSite::here()) const;
  Tensor unsqueeze(int64_t axis, CallSite = CallSite::here()) const;
  /// Axes first to last merged into one; one axis split into sizes, of which one may be -1.
  Tensor flatten(int64_t first = 0, int64_t last = -1, CallSite = CallSite::here()) const;
  Tensor unflatten(int64_t axis, const Dims& sizes, CallSite = CallSite::here()) const;
  /// Sliding windows: axis becomes the number of windows, a new last axis has the given size.
  /// arange(5).window(0, 3) is [[0, 1, 2], [1, 2, 3], [2, 3, 4]].
  Tensor window(int64_t axis, int64_t size, int64_t stride = 1, int64_t dilation = 1,
                CallSite = CallSite::here()) const;
  Tensor unfold(int64_t axis, int64_t size, int64_t step, CallSite at = CallSite::here()) const {
    return window(axis, size, step, 1, at);
  }
  /// Pieces along axis: of one size (the last may be smaller), of these sizes (which add up to the
  /// axis), or at most `parts` of equal size.
  std::vector<Tensor> split(int64_t size, int64_t axis = 0, CallSite = CallSite::here()) const;
  std::vector<Tensor> split(const std::vector<int64_t>& sizes, int64_t axis = 0,
                            CallSite = CallSite::here()) const;
  std::vector<Tensor> chunk(int64_t parts, int64_t axis = 0, CallSite = CallSite::here()) const;

  // ---- movement that copies
  /// The elements whose index along axis b is `offset` more than along axis a, as a new last axis
  /// in place of the two. Copies.
  Tensor diagonal(int64_t offset = 0, int64_t a = 0, int64_t b = 1,
                  CallSite = CallSite::here()) const;
  /// (before, after) per axis filled with value; negative amounts cut.
  Tensor pad(const std::vector<DimPair>& amounts, Scalar value = 0,
             CallSite = CallSite::here()) const;
  /// Joined along axis, all other sizes equal; stack along a new axis, all sizes equal. dtypes
  /// promote. An empty list is an Error.
  static Tensor cat(const std::vector<Tensor>& parts, int64_t axis = 0,
                    CallSite = CallSite::here());
  static Tensor stack(const std::vector<Tensor>& parts, int64_t axis = 0,
                      CallSite = CallSite::here());
  /// The whole tensor so often along each axis ([1, 2] by 2 is [1, 2, 1, 2]), or each element next
  /// to itself ([1, 1, 2, 2]).
  Tensor repeat(const Ints& counts, CallSite = CallSite::here()) const;
  Tensor repeat_interleave(int64_t count, int64_t axis, CallSite = CallSite::here()) const;
  /// Elements move by shift along axis; those past its end come in at the front. Without axes one
  /// shift rolls the flat elements.
  Tensor roll(const Ints& shifts, const Axes& axes = {}, CallSite = CallSite::here()) const;
  /// Matrices (..., rows, columns): 0 above (below) the diagonal that starts at column `diagonal`.
  Tensor tril(const Dim& diagonal = 0, CallSite = CallSite::here()) const;
  Tensor triu(const Dim& diagonal = 0, CallSite = CallSite::here()) const;
  /// Integers or bools (...) to i32 (..., classes): 1 at the class, else 0. Outside [0, classes):
  /// an Error where the value is known, all 0 where it is not.
  Tensor one_hot(int64_t classes, CallSite = CallSite::here()) const;

  // ---- indexing (NumPy's rules; see index.h)
  /// x[2], x[{Slice(1, 5), kNewAxis, kEllipsis, positions}]. Numbers, slices and kNewAxis give
  /// views; index tensors copy. A number outside the axis is an Error.
  Tensor operator[](std::initializer_list<Index> at) const {
    return index({at.begin(), at.end()}, at.size() ? at.begin()->site() : CallSite());
  }
  Tensor operator[](const Index& at) const { return index({at}, at.site()); }
  Tensor index(const std::vector<Index>& at, CallSite = CallSite::here()) const;
  /// Writes value (broadcast) to the indexed elements; with index tensors the last write wins.
  Tensor& index_put(const std::vector<Index>& at, const Operand& value,
                    CallSite = CallSite::here());
  /// out[i][j] = this[index[i][j]][j] for axis 0, and so on. Outside [-n, n), here and below: an
  /// Error where the index is known, as what lies in the host's memory is unless a function is
  /// being captured; reads 0 and writes nothing where it is computed later.
  Tensor gather(int64_t axis, const Tensor& index, CallSite = CallSite::here()) const;
  /// This with src combined in at index along axis, in row-major order: the last write wins for
  /// Fold::Set. src is a number or has index's shape.
  Tensor scatter(int64_t axis, const Tensor& index, const Operand& src, Fold combine = Fold::Set,
                 CallSite = CallSite::here()) const;
  /// Slices at 1-D positions along axis, one after the other.
  Tensor index_select(int64_t axis, const Tensor& index, CallSite = CallSite::here()) const;

  // ---- writing: all aliases see it
  /// Replaces the elements by value, broadcast and cast to this dtype. An Error for a value that
  /// does not fit, and through expanded or windowed views, where several elements are one.
  Tensor& assign(const Operand& value, CallSite = CallSite::here());
  Tensor& operator+=(const Operand& b) {
    return assign(binary("+", Op::Add, {*this, b.at()}, b), b.at());
  }
  Tensor& operator-=(const Operand& b) { return assign(subtract({*this, b.at()}, b), b.at()); }
  Tensor& operator*=(const Operand& b) {
    return assign(binary("*", Op::Mul, {*this, b.at()}, b), b.at());
  }
  Tensor& operator/=(const Operand& b) { return assign(divide({*this, b.at()}, b), b.at()); }

  // ---- elementwise. / of integers gives f32; & | ^ ~ take integers and bools, << >> integers;
  // comparisons give bool, false with NaN (!= true). No gradient flows through integers or
  // comparisons; that of trunc is 0.
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

  /// Rounded to minus infinity; integers by 0 give 0.
  Tensor floor_div(const Operand& other, CallSite = CallSite::here()) const;
  /// Integers give integers (rounded), floats NaN for fractional powers of negative numbers; 0^0
  /// is 1.
  Tensor pow(const Operand& exponent, CallSite = CallSite::here()) const;
  /// This is the condition (not 0 is true): a where true, else b.
  Tensor where(const Operand& a, const Operand& b, CallSite = CallSite::here()) const;
  // The functions of ops.def: sqrt, exp2, log2, sin, of which integers become f32; maximum, minimum
  // (NaN wins; ties share the gradient). docs/ops.md says how exact each is.
#define WEFT_OP(...)
#define WEFT_FUNCTION(id, Name, mnemonic, group, arity, traits, method, ...) \
  Tensor method(WEFT_PARAMS_##group CallSite = CallSite::here()) const;
#include "weft/graph/ops.def"
#undef WEFT_FUNCTION
#undef WEFT_OP
  Tensor trunc(CallSite = CallSite::here()) const;
  /// The same values: floats to integers truncate and saturate, NaN gives 0; integers wrap; to bool
  /// is x != 0.
  Tensor cast(DType dtype, CallSite = CallSite::here()) const;
  /// The same bits as another dtype. Of another width: the last axis grows or shrinks with it, low
  /// bits first. An Error to and from bool, and where bits would be left over.
  Tensor bitcast(DType dtype, CallSite = CallSite::here()) const;
  /// low where this is less, high where it is more. NaN stays; at a bound the gradient is 1.
  Tensor clamp(const Operand& low, const Operand& high, CallSite = CallSite::here()) const;
  Tensor clamp_min(const Operand& low, CallSite = CallSite::here()) const;
  Tensor clamp_max(const Operand& high, CallSite = CallSite::here()) const;
  // Every derived elementwise op (relu, exp, gelu, ...) is one row of derived.def.
#define WEFT_ARGS(...) __VA_ARGS__ __VA_OPT__(, )
#define WEFT_DERIVED(name, declared, params, doc, ...) \
  Tensor name(WEFT_ARGS declared CallSite = CallSite::here()) const;
#include "weft/tensor/derived.def"
#undef WEFT_DERIVED
#undef WEFT_ARGS

  // ---- reductions: no axes means all; keepdim keeps them with size 1. Sums and products of f16
  // and bf16 run in f32 and give their own dtype, those of bools and small integers are i32 or u32.
  // NaN wins in max and min, whose gradient ties share. Of no elements sum is 0 and prod 1, while
  // max and min are an Error.
  Tensor sum(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor prod(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  /// In this dtype from the first element on.
  Tensor sum(const Axes& axes, bool keepdim, DType dtype, CallSite = CallSite::here()) const;
  Tensor prod(const Axes& axes, bool keepdim, DType dtype, CallSite = CallSite::here()) const;
  Tensor max(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor min(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor any(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor all(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  /// Integers give f32. var and std divide by count - correction (1: the unbiased variance), floats
  /// only.
  Tensor mean(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor var(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1,
             CallSite = CallSite::here()) const;
  Tensor std(const Axes& axes = {}, bool keepdim = false, int64_t correction = 1,
             CallSite = CallSite::here()) const;
  /// log(sum(exp(x))) that overflows for no x.
  Tensor logsumexp(const Axes& axes = {}, bool keepdim = false, CallSite = CallSite::here()) const;
  /// i32: the first position of the largest (smallest) element along axis, or of all elements in
  /// row-major order. NaN wins.
  Tensor argmax(CallSite = CallSite::here()) const;
  Tensor argmax(int64_t axis, bool keepdim = false, CallSite = CallSite::here()) const;
  Tensor argmin(CallSite = CallSite::here()) const;
  Tensor argmin(int64_t axis, bool keepdim = false, CallSite = CallSite::here()) const;
  /// exp(x) / sum(exp(x)) along axis, and its logarithm, of floats; no x overflows.
  Tensor softmax(int64_t axis = -1, CallSite = CallSite::here()) const;
  Tensor log_softmax(int64_t axis = -1, CallSite = CallSite::here()) const;
  /// Running folds along axis, in the dtypes of sum, prod, max and min.
  Tensor cumsum(int64_t axis = 0, CallSite = CallSite::here()) const;
  Tensor cumprod(int64_t axis = 0, CallSite = CallSite::here()) const;
  Tensor cummax(int64_t axis = 0, CallSite = CallSite::here()) const;
  Tensor cummin(int64_t axis = 0, CallSite = CallSite::here()) const;
  /// Values and i32 positions; stable; NaN sorts as the largest. A pass for every bit above 64
  /// elements. topk gives the first k, an Error outside [0, size].
  std::pair<Tensor, Tensor> sort(int64_t axis = -1, bool descending = false,
                                 CallSite = CallSite::here()) const;
  Tensor argsort(int64_t axis = -1, bool descending = false, CallSite = CallSite::here()) const;
  std::pair<Tensor, Tensor> topk(int64_t k, int64_t axis = -1, bool largest = true,
                                 CallSite = CallSite::here()) const;

  // ---- products, convolutions, pools, normalisation, attention
  /// (..., m, k) @ (..., k, n), batch axes broadcast; 1-D operands are a row on the left, a column
  /// on the right. Sums as sum() does, the result in the promoted dtype.
  Tensor matmul(const Tensor& other, CallSite = CallSite::here()) const;
  Tensor dot(const Tensor& other, CallSite at = CallSite::here()) const {
    return matmul(other, at);
  }
  /// x (..., in) @ weight (in, out) + bias (out), tinygrad's orientation; a 1-D weight multiplies.
  Tensor linear(const Tensor& weight, const Tensor& bias = {}, CallSite = CallSite::here()) const;
  /// (N, C, spatial...) with weight (out, C / groups, kernel...) to (N, out, places...), padded
  /// with zeros; any number of spatial axes. A cross-correlation, as in other libraries.
  Tensor conv2d(const Tensor& weight, const Tensor& bias = {}, const ConvOptions& options = {},
                CallSite = CallSite::here()) const;
  /// Its adjoint: (N, C, spatial...) with weight (C, out / groups, kernel...).
  Tensor conv_transpose2d(const Tensor& weight, const Tensor& bias = {},
                          const ConvOptions& options = {}, CallSite = CallSite::here()) const;
  /// (..., spatial...) to (..., places...): the last axes, as many as the kernel lists; one number
  /// stands for two where there are at least 4 axes. avg_pool2d takes floats.
  Tensor max_pool2d(const Ints& kernel = {2, 2}, const PoolOptions& options = {},
                    CallSite = CallSite::here()) const;
  Tensor avg_pool2d(const Ints& kernel = {2, 2}, const PoolOptions& options = {},
                    CallSite = CallSite::here()) const;
  /// (x - mean) / sqrt(var + eps) over axes, of floats (Ba, Kiros and Hinton 2016).
  Tensor layernorm(const Axes& axes = -1, double eps = 1e-5, CallSite = CallSite::here()) const;
  /// (x - mean) * invstd * weight + bias with vectors for axis 1 (Ioffe and Szegedy 2015); weight
  /// and bias may be empty Tensors.
  Tensor batchnorm(const Tensor& weight, const Tensor& bias, const Tensor& mean,
                   const Tensor& invstd, CallSite = CallSite::here()) const;
  /// softmax(q k^T / sqrt(d)) v for q = this (..., n, d), key (..., m, d) and value (..., m, e), to
  /// (..., n, e) (Vaswani et al. 2017). Floats.
  Tensor scaled_dot_product_attention(const Tensor& key, const Tensor& value,
                                      const AttentionOptions& options = {},
                                      CallSite = CallSite::here()) const;

  // ---- losses: this is what was predicted; shapes are equal where nothing else is said. With
  // Reduction::None one number per sample, else a scalar.
  /// (x - target)^2.
  Tensor mse_loss(const Tensor& target, Reduction reduction = Reduction::Mean,
                  CallSite = CallSite::here()) const;
  /// -target log p - (1 - target) log(1 - p) for p = this, or for p = sigmoid(this), which then
  /// overflows for no x.
  Tensor binary_crossentropy(const Tensor& target, Reduction reduction = Reduction::Mean,
                             CallSite = CallSite::here()) const;
  Tensor binary_crossentropy_logits(const Tensor& target, Reduction reduction = Reduction::Mean,
                                    CallSite = CallSite::here()) const;
  /// -log softmax at the target: logits (N, classes, ...) and integer class numbers (N, ...); those
  /// equal to ignore_index do not count; others outside are an Error where they are known, and NaN
  /// where they are not. Smoothing s mixes in s of the mean over classes.
  Tensor sparse_categorical_crossentropy(const Tensor& target, double label_smoothing = 0,
                                         int64_t ignore_index = -1,
                                         Reduction reduction = Reduction::Mean,
                                         CallSite = CallSite::here()) const;
  /// The same with class numbers (-100 is ignored), or with probabilities of this one's shape.
  Tensor cross_entropy(const Tensor& target, double label_smoothing = 0,
                       Reduction reduction = Reduction::Mean, CallSite = CallSite::here()) const;
  /// -this at the target: log-probabilities (N, classes, ...) and class numbers (-100 is ignored).
  Tensor nll_loss(const Tensor& target, Reduction reduction = Reduction::Mean,
                  CallSite = CallSite::here()) const;

  // ---- autograd
  /// A view of the same elements where gradients stop. Asked to be a leaf, it becomes a copy.
  Tensor detach(CallSite = CallSite::here()) const;
  /// Marks this tensor as a leaf that backward() fills the gradient of. Floats, and no views.
  Tensor& requires_grad_(bool on = true, CallSite = CallSite::here());
  bool requires_grad() const;
  Tensor grad() const;  ///< of this shape; an empty Tensor before the first backward()
  void zero_grad();     ///< forgets the gradient
  void set_grad(const Tensor& g, CallSite = CallSite::here());
  /// Adds d this / d leaf to the grad() of every live leaf with requires_grad. This has one
  /// element, or the gradient from above is given. An Error where it depends on no leaf; realize()
  /// forgets what a tensor was computed from.
  void backward(CallSite = CallSite::here()) const;
  void backward(const Tensor& gradient, CallSite = CallSite::here()) const;
  /// d this / d target for each, as ordinary differentiable graphs; zeros where there is no path.
  /// Views of views forget the view between them: an Error where that may have been the target.
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets,
                               CallSite = CallSite::here()) const;
  std::vector<Tensor> gradient(const std::vector<Tensor>& targets, const Tensor& upstream,
                               CallSite = CallSite::here()) const;

  // ---- values
  Tensor contiguous(CallSite = CallSite::here()) const;  ///< asks for a buffer of its own
  /// Runs what this needs; afterwards it has its values in a buffer. Compile, device and memory
  /// errors are thrown here, and leave every tensor as it was or say that it is lost.
  Tensor& realize(CallSite = CallSite::here());
  const Tensor& realize(CallSite = CallSite::here()) const;
  /// All elements in row-major order, converted to T as a cast would; item() is the one element of
  /// a tensor that has one. Both realize.
  template <class T>
  std::vector<T> to_vector(CallSite = CallSite::here()) const;
  template <class T>
  T item(CallSite = CallSite::here()) const;
  /// Replaces the contents by these bytes (same dtype, dense, row-major), or writes them out.
  void copy_from(std::span<const std::byte> data, CallSite = CallSite::here());
  void copy_to(std::span<std::byte> data, CallSite = CallSite::here()) const;

  // ---- below the surface
  /// A fresh tensor whose value is this node of the current context's graph.
  static Tensor from_node(NodeRef n);
  /// The value read now.
  NodeRef node() const;
  Context& context() const;
  const CellRef& cell() const { return cell_; }
  bool is_view() const { return static_cast<bool>(chain_); }
  friend struct TensorAccess;

 private:
  Tensor(CellRef cell, RootedNode chain) : cell_(std::move(cell)), chain_(std::move(chain)) {}
  static Tensor binary(const char* name, Op op, const Operand& a, const Operand& b);
  static Tensor subtract(const Operand& a, const Operand& b);
  static Tensor divide(const Operand& a, const Operand& b);
  static Tensor negate(const Operand& x);
  static Tensor invert(const Operand& x);
  static Tensor remainder(const Operand& a, const Operand& b);
  template <class T>
  static Tensor of_literals(const std::vector<T>& data, const Dims& shape, CallSite at) {
    if constexpr (std::is_same_v<T, double>) {
      return from(std::vector<float>(data.begin(), data.end()), shape, at);
    } else {
      return from(data, shape, at);
    }
  }

  CellRef cell_;      // what aliases share
  RootedNode chain_;  // movement ops over a placeholder for the storage's value; null: all of it
};

/// Runs what these need, together; afterwards each has its values in a buffer.
void realize(const std::vector<Tensor>& tensors, CallSite = CallSite::here());

}  // namespace weft
