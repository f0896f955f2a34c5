// Products and distances of products.h.
#include "weft/tensor/products.h"

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/tensor/linalg.h"

namespace weft::python {

namespace {

/// A number of axes, or two lists of them.
Tensor contracted(const Tensor& x, const Tensor& other, nb::handle dims) {
  if (PyLong_Check(dims.ptr())) return tensordot(x, other, nb::cast<int64_t>(dims), CallSite());
  const bool pair = PySequence_Check(dims.ptr()) && PySequence_Size(dims.ptr()) == 2;
  if (!pair) throw nb::type_error("dims is an int or a pair of lists of axes");
  return tensordot(x, other, nb::cast<Ints>(dims[0]), nb::cast<Ints>(dims[1]), CallSite());
}

/// Without an axis the first of size 3, as in PyTorch.
Tensor vector_product(const Tensor& x, const Tensor& other, std::optional<int64_t> dim) {
  int64_t axis = dim.value_or(-1);
  for (size_t i = x.ndim(); !dim && i-- > 0;)
    if (x.dims()[i] == Dim(3)) axis = static_cast<int64_t>(i) - static_cast<int64_t>(x.ndim());
  return cross(x, other, axis, CallSite());
}

}  // namespace

void bind_contractions(TensorClass& c) {
  method(c, "outer", plain(outer), "vec2"_a, "All products: (n) and (m) to (n, m).");
  method(c, "inner", plain(inner), "other"_a, "Sums of products over the last axes.");
  method(c, "tensordot", contracted,
         nb::sig("def tensordot(self, other: Tensor, dims: int | Sequence[Sequence[int]] = 2) -> "
                 "Tensor"),
         "other"_a, "dims"_a = 2,
         "Sums of products over axes: so many last ones with as many first ones, or two lists.");
  method(c, "kron", plain(kron), "other"_a, "Each element times other, in its place.");
  method(c, "cross", vector_product, "other"_a, "dim"_a = nb::none(),
         "The vector product along an axis of size 3, the first such one if none is given.");
  method(c, "cdist", plain(cdist), "other"_a, "p"_a = 2.0,
         "|x - other|_p of rows (..., n, d) with rows (..., m, d).");
  method(c, "dist", plain(dist), "other"_a, "p"_a = 2.0, "|x - other|_p of all elements.");
  method(c, "trace", plain(linalg::trace), "The sum of the diagonal of matrices.");
}

}  // namespace weft::python
