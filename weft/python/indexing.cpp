// x[...] and x[...] = value, len() and iteration.

#include <algorithm>

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/python/disk.h"

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
  const Tensor t = tensor_from_object(from, std::nullopt);
  // An empty list has the dtype of numbers it does not have.
  return is_float(t.dtype()) && t.numel() == 0 ? t.cast(kDefaultInt) : t;
}

Index index_of(PyObject* from) {
  Dim d;
  if (from == Py_None) return Index(kNewAxis, CallSite());
  if (from == Py_Ellipsis) return Index(kEllipsis, CallSite());
  if (PySlice_Check(from)) return Index(slice_of(from), CallSite());
  if (PyBool_Check(from))
    fail_type("index", "True and False are no positions: use x.where(...), or ints");
  if (to_dim(from, d)) return Index(d, CallSite());
  if (const Tensor* t = tensor_in(from)) return Index(*t, CallSite());
  if (PyFloat_Check(from) || PyUnicode_Check(from))
    fail_index("index.type", "a {} is no index: use ints, slices, None, ... or index tensors",
               Py_TYPE(from)->tp_name);
  return Index(positions_of(from), CallSite());
}

std::vector<Index> indices_of(nb::handle key) {
  std::vector<Index> all;
  if (!PyTuple_Check(key.ptr())) return {index_of(key.ptr())};
  for (nb::handle member : key) all.push_back(index_of(member.ptr()));
  return all;
}

// ---- positions in lists, which are known before anything runs

struct Span {
  int64_t least = INT64_MAX, most = INT64_MIN;
};

/// Widens to the ints in nested lists; true where there are no others.
bool widen(PyObject* from, Span& span) {
  if (PyList_Check(from) || PyTuple_Check(from)) {
    bool all = true;
    for (nb::handle member : nb::handle(from)) all = widen(member.ptr(), span) && all;
    return all;
  }
  Dim d;
  if (PyBool_Check(from) || !to_dim(from, d) || !d.is_static()) return false;
  span.least = std::min(span.least, d.value());
  span.most = std::max(span.most, d.value());
  return true;
}

void require_inside(const Tensor& x, int64_t axis, PyObject* positions) {
  Span span;
  if (!widen(positions, span) || span.least > span.most) return;
  const Dim n = x.dim(axis);
  const int64_t worst = span.most >= n.max() ? span.most : span.least;
  if (worst >= n.max() || worst < -n.max())
    fail_index("index", "position {} is out of bounds for axis {} of shape {}", worst, axis,
               x.dims().text());
}

/// Axes that a member of an index stands for; none for an ellipsis.
size_t axes_of(PyObject* member) {
  if (member == Py_None || member == Py_Ellipsis) return 0;
  const Tensor* t = tensor_in(member);
  return t && is_bool(t->dtype()) ? t->ndim() : 1;
}

void require_lists_inside(const Tensor& x, nb::handle key) {
  const auto is_list = [](PyObject* m) { return PyList_Check(m) || PyTuple_Check(m); };
  if (!PyTuple_Check(key.ptr())) {
    if (is_list(key.ptr()) && x.ndim() > 0) require_inside(x, 0, key.ptr());
    return;
  }
  size_t used = 0, axis = 0;
  for (nb::handle member : key) used += axes_of(member.ptr());
  if (used > x.ndim()) return;  // an error of its own
  for (nb::handle member : key) {
    if (is_list(member.ptr())) require_inside(x, static_cast<int64_t>(axis), member.ptr());
    axis += member.is(nb::ellipsis()) ? x.ndim() - used : axes_of(member.ptr());
  }
}

/// x[True] is x with a new axis of size 1, x[False] with one of size 0.
Tensor behind_switch(const Tensor& x, bool on) {
  const Tensor one = x.unsqueeze(0, CallSite());
  return on ? one : one.index({Index(Slice(0, 0), CallSite())}, CallSite());
}

/// A mask is counted first, which computes.
Tensor selected(const Tensor& x, nb::handle key) {
  if (PyBool_Check(key.ptr())) return behind_switch(x, key.ptr() == Py_True);
  require_lists_inside(x, key);
  const std::vector<Index> at = indices_of(key);
  const bool counts = std::any_of(at.begin(), at.end(), [](const Index& i) {
    return i.kind() == Index::Kind::Tensor && is_bool(i.tensor().dtype());
  });
  if (!counts) return x.index(at, CallSite());
  const nb::gil_scoped_release released;
  return x.index(at, CallSite());
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
  if (key.ptr() == Py_False) return;
  require_lists_inside(x, key);
  const std::vector<Index> at =
      key.ptr() == Py_True ? std::vector<Index>{Index(kNewAxis, CallSite())} : indices_of(key);
  Tensor own;
  std::optional<Operand> operand;
  if (!to_operand(value.ptr(), own, operand)) {
    own = tensor_from_object(value.ptr(), x.dtype());
    operand.emplace(own, CallSite());
  }
  x.index_put(at, *operand, CallSite());
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
}

}  // namespace weft::python
