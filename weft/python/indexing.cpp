// x[...] and x[...] = value, len() and iteration.

#include <algorithm>

#include "weft/base/error.h"
#include "weft/io/disk.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"

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
  const Released released;
  return s.x.index(s.at, CallSite());
}

nb::object get_item(TensorObject self, nb::handle key) {
  if (key.ptr() == Py_Ellipsis) return nb::borrow(self);
  return nb::cast(selected(tensor_of(self), key));
}

/// Python's own AttributeError would not say what is wrong.
void delete_item(const Tensor&, nb::handle) {
  throw nb::type_error("a Tensor has a fixed size: elements cannot be deleted");
}

/// x[mask] = value for a mask of shape (), without a look at it, which a capture could not repeat.
bool put_where(Tensor& x, nb::handle key, const Operand& value) {
  const Tensor* mask = PyTuple_Check(key.ptr()) ? nullptr : tensor_in(key.ptr());
  if (!mask || !is_switch(key.ptr())) return false;
  const Tensor* given = value.tensor();
  if (given && given->ndim() > x.ndim()) return false;
  x.assign(mask->where(given ? Operand(given->cast(x.dtype())) : value, x));
  return true;
}

void set_item(Tensor& x, nb::handle key, nb::handle value) {
  Tensor own;
  std::optional<Operand> operand;
  if (!to_operand(value.ptr(), own, operand)) {
    own = tensor_from_object(value.ptr(), x.dtype());
    operand.emplace(own, CallSite());
  }
  if (!put_where(x, key, *operand)) {
    Selection selection = selection_of(x, key);
    selection.x.index_put(selection.at, *operand, CallSite());
  }
  const Released released;
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
