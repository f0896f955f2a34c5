// x[...] and x[...] = value, gather and scatter.

#include <nanobind/stl/tuple.h>

#include <algorithm>

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/python/disk.h"
#include "weft/tensor/selection.h"

namespace weft::python {

namespace {

std::optional<Dim> bound_of(PyObject* from) {
  if (from == Py_None) return std::nullopt;
  Dim d;
  if (to_dim(from, d)) return d;
  const Tensor* t = tensor_in(from);
  if (t && is_int(t->dtype()) && t->ndim() == 0) return Dim(t->item<int64_t>());
  fail_type("index", "a slice has a {}{} as an end: use ints or bound Variables",
            Py_TYPE(from)->tp_name, t ? " of shape " + t->dims().text() : "");
}

Slice slice_of(PyObject* from) {
  const auto* s = reinterpret_cast<PySliceObject*>(from);
  Slice out(bound_of(s->start), bound_of(s->stop));
  if (const auto step = bound_of(s->step)) out.step = step->value();
  return out;
}

Tensor positions_of(PyObject* from) {
  if (PyRange_Check(from)) return positions_of(nb::steal(PySequence_List(from)).ptr());
  const Tensor t = tensor_from_object(from, std::nullopt);
  // An empty list has the dtype of numbers it does not have.
  return is_float(t.dtype()) && t.numel() == 0 ? t.cast(kDefaultInt) : t;
}

Index index_of(PyObject* from) {
  Dim d;
  if (from == Py_None) return Index(kNewAxis, CallSite());
  if (from == Py_Ellipsis) return Index(kEllipsis, CallSite());
  if (PySlice_Check(from)) return Index(slice_of(from), CallSite());
  if (to_dim(from, d)) return Index(d, CallSite());
  if (const Tensor* t = tensor_in(from)) return Index(*t, CallSite());
  if (PyFloat_Check(from) || PyUnicode_Check(from))
    fail_index("index.type", "a {} is no index: use ints, slices, None, ... or index tensors",
               Py_TYPE(from)->tp_name);
  return Index(positions_of(from), CallSite());
}

/// Lists with slices, None or ... in them are no positions, but an index in brackets.
bool is_index_list(PyObject* key) {
  if (!PyList_Check(key)) return false;
  for (nb::handle m : nb::handle(key))
    if (PySlice_Check(m.ptr()) || m.is_none() || m.ptr() == Py_Ellipsis) return true;
  return false;
}

/// True and False, which index no axis: a mask of shape ().
bool is_switch(PyObject* member) {
  const Tensor* t = tensor_in(member);
  return PyBool_Check(member) || (t && is_bool(t->dtype()) && t->ndim() == 0);
}

/// Axes of the indexed tensor that i takes.
size_t axes_of(const Index& i) {
  if (i.kind() == Index::Kind::NewAxis || i.kind() == Index::Kind::Ellipsis) return 0;
  const bool mask = i.kind() == Index::Kind::Tensor && is_bool(i.tensor().dtype());
  return mask ? i.tensor().ndim() : 1;
}

/// What is indexed, and by what.
struct Selection {
  Tensor x;
  std::vector<Index> at;
};

/// The index of a key for x. A switch is one position, or none, on a new axis in its place.
Selection selection_of(const Tensor& x, nb::handle key) {
  std::vector<nb::handle> members;
  if (PyTuple_Check(key.ptr()) || is_index_list(key.ptr()))
    for (nb::handle m : key) members.push_back(m);
  else
    members.push_back(key);
  Selection out{x, {}};
  size_t used = 0;
  for (nb::handle m : members) {
    out.at.push_back(is_switch(m.ptr()) ? Index(kNewAxis, CallSite()) : index_of(m.ptr()));
    used += axes_of(out.at.back());
  }
  size_t axis = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    if (is_switch(members[i].ptr())) {
      const bool on = nb::cast<bool>(nb::bool_(nb::borrow(members[i])));
      out.x = out.x.unsqueeze(static_cast<int64_t>(axis), CallSite());
      out.at[i] = Index(Tensor::zeros({on ? 1 : 0}, kDefaultInt, CallSite()), CallSite());
      ++axis;
    } else if (out.at[i].kind() == Index::Kind::Ellipsis) {
      axis += x.ndim() - std::min(used, x.ndim());
    } else {
      axis += axes_of(out.at[i]);
    }
  }
  return out;
}

/// A mask is counted first, which computes.
Tensor selected(const Tensor& x, nb::handle key) {
  const Selection s = selection_of(x, key);
  const bool counts = std::any_of(s.at.begin(), s.at.end(), [](const Index& i) {
    return i.kind() == Index::Kind::Tensor && is_bool(i.tensor().dtype());
  });
  if (!counts) return s.x.index(s.at, CallSite());
  const nb::gil_scoped_release released;
  return s.x.index(s.at, CallSite());
}

nb::object get_item(nb::object self, nb::handle key) {
  if (key.ptr() == Py_Ellipsis) return self;
  return nb::cast(selected(nb::cast<const Tensor&>(self), key));
}

/// Python's own AttributeError would not say what is wrong.
void delete_item(const Tensor&, nb::handle) {
  throw nb::type_error("a Tensor has a fixed size: elements cannot be deleted");
}

void set_item(Tensor& x, nb::handle key, nb::handle value) {
  Selection selection = selection_of(x, key);
  Tensor own;
  std::optional<Operand> operand;
  if (!to_operand(value.ptr(), own, operand)) {
    own = tensor_from_object(value.ptr(), x.dtype());
    operand.emplace(own, CallSite());
  }
  selection.x.index_put(selection.at, *operand, CallSite());
  write_to_disk(x);
}

Tensor next_row(const Tensor& x, int64_t i) { return x.index({Index(i, CallSite())}, CallSite()); }

nb::object rows(const Tensor& x) {
  if (x.ndim() == 0) throw nb::type_error("iteration over a Tensor of shape ()");
  nb::list all;
  for (int64_t i = 0; i < x.size(0, CallSite()); ++i) all.append(next_row(x, i));
  return nb::iter(all);
}

int64_t length(const Tensor& x) {
  if (x.ndim() == 0) throw nb::type_error("len() of a Tensor of shape ()");
  return x.size(0, CallSite());
}

// ---- gather, scatter

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

void bind_selection(TensorClass& c) {
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

}  // namespace

void bind_indexing(TensorClass& c) {
  method(c, "__getitem__", get_item, nb::sig("def __getitem__(self, key: typing.Any) -> Tensor"),
         "key"_a.none());
  method(c, "__setitem__", set_item,
         nb::sig("def __setitem__(self, key: typing.Any, value: typing.Any) -> None"),
         "key"_a.none(), "value"_a);
  method(c, "__delitem__", delete_item);
  method(c, "__iter__", rows);
  method(c, "__len__", length);
  bind_selection(c);
  method(c, "gather", gather, "dim"_a, "index"_a,
         "out[i][j] = this[index[i][j]][j] for dim 0; positions outside [-n, n) read 0.");
  method(
      c, "scatter", scatter, "dim"_a, "index"_a, "src"_a, "reduce"_a = nb::none(),
      "This with src written at index along dim; the last write wins, or \"add\", \"multiply\".");
  method(c, "index_select", plain(&Tensor::index_select), "dim"_a, "index"_a,
         "Slices at 1-D positions, one after the other.");
}

}  // namespace weft::python
