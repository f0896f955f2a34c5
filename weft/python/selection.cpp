// Choosing and writing elements by positions and masks: gather, scatter, sorted search.
#include "weft/tensor/selection.h"

#include <nanobind/stl/tuple.h>

#include "weft/base/error.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

Fold fold_of(std::optional<std::string> reduce) {
  if (!reduce) return Fold::Set;
  if (*reduce == "add") return Fold::Add;
  if (*reduce == "multiply") return Fold::Mul;
  fail("scatter.reduce", "\"{}\": use None, \"add\" or \"multiply\"", *reduce);
}

/// PyTorch's rule: other axes of index may be shorter than this one's.
Tensor cut_to(const Tensor& x, const Tensor& index, int64_t dim) {
  if (x.ndim() != index.ndim() || !x.dims().is_static() || !index.dims().is_static()) return x;
  const auto axis = dim < 0 ? dim + static_cast<int64_t>(x.ndim()) : dim;
  std::vector<DimPair> ranges;
  bool cuts = false;
  for (size_t i = 0; i < x.ndim(); ++i) {
    const int64_t size = x.dims()[i].value(), wanted = index.dims()[i].value();
    const bool cut = static_cast<int64_t>(i) != axis && wanted < size;
    cuts |= cut;
    ranges.emplace_back(0, cut ? wanted : size);
  }
  return cuts ? x.shrink(ranges, CallSite()) : x;
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  return cut_to(x, index, dim).gather(dim, index, CallSite());
}

/// What is written must need no cast, as in PyTorch.
void require_dtype(const char* tag, const Tensor& x, const Tensor& src) {
  if (src.dtype() != x.dtype())
    fail_type(tag, "src is {} and the tensor {}: cast one of them", name(src.dtype()),
              name(x.dtype()));
}

/// src may be longer than index along any axis.
Tensor source_of(const Tensor& src, const Tensor& index) { return cut_to(src, index, src.ndim()); }

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Operand& src,
               std::optional<std::string> reduce) {
  const Fold fold = fold_of(reduce);
  if (!src.tensor()) return x.scatter(dim, index, src, fold, CallSite());
  require_dtype("scatter", x, *src.tensor());
  return x.scatter(dim, index, {source_of(*src.tensor(), index), CallSite()}, fold, CallSite());
}

Tensor scatter_reduced(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                       const std::string& reduce, bool include_self) {
  constexpr std::pair<std::string_view, ScatterReduce> kKinds[] = {{"sum", ScatterReduce::Sum},
                                                                   {"prod", ScatterReduce::Prod},
                                                                   {"mean", ScatterReduce::Mean},
                                                                   {"amax", ScatterReduce::Amax},
                                                                   {"amin", ScatterReduce::Amin}};
  for (const auto& [name, kind] : kKinds)
    if (name == reduce) {
      require_dtype("scatter_reduce", x, src);
      return scatter_reduce(x, dim, index, source_of(src, index), kind, include_self, CallSite());
    }
  fail("scatter_reduce", "reduce \"{}\": use \"sum\", \"prod\", \"mean\", \"amax\" or \"amin\"",
       reduce);
}

void bind_by_value(TensorClass& c) {
  computing_method(
      c, "masked_select",
      [](const Tensor& x, const Tensor& mask, std::optional<int64_t> size, const Scalar& fill) {
        return masked_select(x, mask, size, fill, CallSite());
      },
      "mask"_a, "size"_a = nb::none(), "fill_value"_a = 0,
      "The elements where mask. Without a size their number is read back once.");
  computing_method(
      c, "nonzero",
      [](const Tensor& x, std::optional<int64_t> size, int64_t fill) {
        return nonzero(x, size, fill, CallSite());
      },
      "size"_a = nb::none(), "fill_value"_a = 0,
      "(count, ndim): the positions of elements that are not 0.");
  computing_method(
      c, "unique",
      [](const Tensor& x) {
        const Unique u = unique(x, {}, 0, CallSite());
        return std::tuple(u.values, u.inverse, u.counts);
      },
      "The distinct elements in ascending order, where each element is among them, how often each "
      "occurs.");
  method(c, "scatter_reduce", scatter_reduced, "dim"_a, "index"_a, "src"_a, "reduce"_a,
         "include_self"_a = true, "This with src folded in at index along dim.");
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                 double alpha) {
  require_dtype("index_add", x, source);
  return weft::index_add(x, dim, index, alpha == 1 ? source : (source * alpha).cast(x.dtype()),
                         CallSite());
}

Tensor index_copy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  require_dtype("index_copy", x, source);
  return weft::index_copy(x, dim, index, source, CallSite());
}

Tensor masked_scatter_of(const Tensor& x, const Tensor& mask, const Tensor& source) {
  require_dtype("masked_scatter", x, source);
  return masked_scatter(x, mask, source, CallSite());
}

/// Without an axis in row-major order.
Tensor taken_along(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  return dim ? take_along_axis(x, indices, *dim, CallSite())
             : take_along_axis(x.flatten(), indices.flatten(), 0, CallSite());
}

void bind_positions(TensorClass& c) {
  method(c, "index_add", index_add, "dim"_a, "index"_a, "source"_a, "alpha"_a = 1.0,
         "This with alpha times slices of source added at 1-D positions along dim.");
  method(c, "index_copy", index_copy, "dim"_a, "index"_a, "source"_a,
         "This with slices of source written at 1-D positions along dim; the last write wins.");
  method(c, "index_fill", plain(index_fill), "dim"_a, "index"_a, "value"_a,
         "This with one value at 1-D positions along dim.");
  method(
      c, "scatter_add",
      [](const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
        return scatter(x, dim, index, Operand(src, CallSite()), "add");
      },
      "dim"_a, "index"_a, "src"_a, "This with src added at index along dim.");
  method(c, "take", plain(static_cast<Tensor (*)(const Tensor&, const Tensor&, CallSite)>(take)),
         "index"_a, "Elements at positions in row-major order, in the shape of index.");
  method(c, "put", plain(put), "index"_a, "source"_a, "accumulate"_a = false,
         "This with source written at positions in row-major order; or added there.");
  method(c, "put_along_axis", plain(put_along_axis), "indices"_a, "values"_a, "axis"_a,
         "scatter() whose other axes broadcast, NumPy's.");
  method(c, "take_along_dim", taken_along, "indices"_a, "dim"_a = nb::none(),
         "gather() whose other axes broadcast; without dim in row-major order.");
}

}  // namespace

void bind_selection(TensorClass& c) {
  method(c, "gather", gather, "dim"_a, "index"_a,
         "out[i][j] = this[index[i][j]][j] for dim 0; positions outside [-n, n) read 0.");
  method(
      c, "scatter", scatter, "dim"_a, "index"_a, "src"_a, "reduce"_a = nb::none(),
      "This with src written at index along dim; the last write wins, or \"add\", \"multiply\".");
  method(c, "index_select", plain(&Tensor::index_select), "dim"_a, "index"_a,
         "Slices at 1-D positions, one after the other.");
  bind_by_value(c);
  bind_positions(c);
  computing_method(
      c, "masked_scatter", masked_scatter_of, "mask"_a, "source"_a,
      "This with the first elements of source, one after the other, where mask. Where source has "
      "fewer elements than mask they are counted.");
  method(c, "isin", plain(isin), "test_elements"_a,
         "Whether each element is one of test_elements, of any shape.");
  method(c, "searchsorted", plain(searchsorted), "values"_a, "right"_a = false,
         "int32: where in this, which ascends along its last axis, to insert each value: how many "
         "elements are below it (right: not above it).");
  method(
      c, "bucketize",
      [](const Tensor& x, const Tensor& boundaries, bool right) {
        return searchsorted(boundaries, x, right, CallSite());
      },
      "boundaries"_a, "right"_a = false, "boundaries.searchsorted(this).");
}

}  // namespace weft::python
