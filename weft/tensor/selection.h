// Choosing elements by value: masks, positions of what is not zero, sorted search, unique, take and
// put, scattered reductions. Index tensors are of any integer dtype; negative positions count from
// the end; a position outside reads 0 and writes nothing. Where the number of results depends on
// values, it is read back once (a jit must give a size instead); with a size the results are that
// many, filled up or cut, and lazy.
#pragma once

#include <optional>

#include "weft/tensor/tensor.h"

namespace weft {

/// (count): the elements of x where mask, in row-major order; the shapes broadcast. Differentiable
/// in x.
Tensor masked_select(const Tensor& x, const Tensor& mask, std::optional<int64_t> size = {},
                     Scalar fill = 0, CallSite = CallSite::here());
/// (count, rank): the positions of elements that are not 0 (NaN is not), in row-major order; i32,
/// or i64 for 2^31 elements and more.
Tensor nonzero(const Tensor& x, std::optional<int64_t> size = {}, int64_t fill = 0,
               CallSite = CallSite::here());

struct Unique {
  Tensor values;   ///< (count), ascending; NaN once, at the end
  Tensor inverse;  ///< i32, of x's shape: the position of each element in values
  Tensor counts;   ///< i32 (count): how often each occurs; 0 where filled up
};
/// The distinct elements of x.
Unique unique(const Tensor& x, std::optional<int64_t> size = {}, Scalar fill = 0,
              CallSite = CallSite::here());
/// i32, of the shape of values: how many elements of `sorted` are below the value (not above it,
/// with right): where to insert it. `sorted` ascends along its last axis and is 1-D, or has the
/// values' other axes. log2(n) gathers (binary search). NaN is above everything.
Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right = false,
                    CallSite = CallSite::here());

/// x's elements in row-major order at these positions, in the shape of positions.
Tensor take(const Tensor& x, const Tensor& positions, CallSite = CallSite::here());
/// x with values (as many as positions, or one) written there; the last write wins, or all are
/// added.
Tensor put(const Tensor& x, const Tensor& positions, const Operand& values, bool accumulate = false,
           CallSite = CallSite::here());
/// gather and scatter whose other axes broadcast, as NumPy's.
Tensor take_along_axis(const Tensor& x, const Tensor& positions, int64_t axis,
                       CallSite = CallSite::here());
Tensor put_along_axis(const Tensor& x, const Tensor& positions, const Operand& values, int64_t axis,
                      CallSite = CallSite::here());

/// x with slices of src, as many as the 1-D positions, added at or written to these along axis, the
/// last write wins; or with one value there.
Tensor index_add(const Tensor& x, int64_t axis, const Tensor& positions, const Tensor& src,
                 CallSite = CallSite::here());
Tensor index_copy(const Tensor& x, int64_t axis, const Tensor& positions, const Tensor& src,
                  CallSite = CallSite::here());
Tensor index_fill(const Tensor& x, int64_t axis, const Tensor& positions, const Operand& value,
                  CallSite = CallSite::here());
/// x with the first elements of src, one after the other, where mask, which broadcasts to x. Where
/// src has fewer elements than mask they are counted, and too few are an Error.
Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& src,
                      CallSite = CallSite::here());
/// Whether each element of x is one of `elements`, of any shape. NaN is none.
Tensor isin(const Tensor& x, const Tensor& elements, CallSite = CallSite::here());

enum class ScatterReduce : uint8_t { Sum, Prod, Mean, Amax, Amin };
/// x with src (index's shape) folded in at index along axis; without include_self, elements that
/// get something forget what they were. Means of integers round down.
Tensor scatter_reduce(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& src,
                      ScatterReduce reduce, bool include_self = true, CallSite = CallSite::here());

}  // namespace weft
