#include "weft/python/casters.h"

#include <limits>

#include "weft/base/context.h"
#include "weft/python/data.h"
#include "weft/tensor/access.h"

namespace nb = nanobind;

namespace weft::python {

namespace {

/// Anything with __index__ but bool: NumPy's integers too.
bool to_int64(PyObject* from, int64_t& to) {
  if (PyBool_Check(from) || tensor_in(from)) return false;
  PyObject* number = PyLong_CheckExact(from) ? Py_NewRef(from) : PyNumber_Index(from);
  if (!number) return PyErr_Clear(), false;
  int overflow = 0;
  to = PyLong_AsLongLongAndOverflow(number, &overflow);
  Py_DECREF(number);
  return overflow == 0;
}

/// Calls `take` for each member of a tuple or list (of what can be made one); false where it says
/// so.
template <class Take>
bool for_each(PyObject* from, const Take& take) {
  if (PyUnicode_Check(from) || PyBytes_Check(from) || tensor_in(from)) return false;
  PyObject* list = PySequence_Fast(from, "");
  if (!list) return PyErr_Clear(), false;
  bool all = true;
  for (Py_ssize_t i = 0; all && i < PySequence_Fast_GET_SIZE(list); ++i)
    all = take(PySequence_Fast_GET_ITEM(list, i));
  Py_DECREF(list);
  return all;
}

}  // namespace

// ---- sizes

bool to_dim(PyObject* from, Dim& to) {
  int64_t number = 0;
  if (to_int64(from, number)) return to = number, true;
  if (nb::isinstance<DimObject>(from)) return to = nb::inst_ptr<DimObject>(from)->dim, true;
  if (!nb::isinstance<Variable>(from)) return false;
  to = nb::inst_ptr<Variable>(from)->unbound();
  return true;
}

PyObject* from_dim(const Dim& d) {
  if (d.is_static()) return PyLong_FromLongLong(d.value());
  return nb::cast(DimObject{d}).release().ptr();
}

bool to_dims(PyObject* from, Dims& to) {
  to = Dims();
  Dim one;
  if (to_dim(from, one)) return to.push_back(one), true;
  return for_each(from, [&](PyObject* member) {
    if (!to_dim(member, one)) return false;
    to.push_back(one);
    return true;
  });
}

PyObject* from_dims(const Dims& dims) {
  PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(dims.size()));
  for (size_t i = 0; tuple && i < dims.size(); ++i)
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), from_dim(dims[i]));
  return tuple;
}

bool to_ints(PyObject* from, Ints& to) {
  to = Ints();
  int64_t one = 0;
  if (from == Py_None) return true;
  if (to_int64(from, one)) return to.push_back(one), true;
  return for_each(from, [&](PyObject* member) {
    if (!to_int64(member, one)) return false;
    to.push_back(one);
    return true;
  });
}

// ---- devices

bool to_device(PyObject* from, DeviceName& to) {
  // Whole: one with a NUL in it is no other name.
  const auto name_in = [](PyObject* x) -> std::optional<std::string> {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_Check(x) ? PyUnicode_AsUTF8AndSize(x, &size) : nullptr;
    if (text) return std::string(text, static_cast<size_t>(size));
    PyErr_Clear();
    return std::nullopt;
  };
  if (auto one = name_in(from)) return to.text = std::move(*one), true;
  if (!PyTuple_Check(from) && !PyList_Check(from)) return false;
  to.text.clear();
  const bool all = for_each(from, [&](PyObject* member) {
    auto name = name_in(member);
    if (name && to.text.empty()) to.text = std::move(*name);
    return name.has_value();
  });
  return all && !to.text.empty();
}

// ---- operands

bool to_scalar(PyObject* from, std::optional<Scalar>& to) {
  if (PyFloat_Check(from)) return to.emplace(PyFloat_AS_DOUBLE(from)), true;
  if (PyBool_Check(from)) return to.emplace(from == Py_True), true;
  if (!PyLong_Check(from)) return false;
  int overflow = 0;
  const int64_t number = PyLong_AsLongLongAndOverflow(from, &overflow);
  if (overflow == 0) return to.emplace(number), true;
  const uint64_t large = PyLong_AsUnsignedLongLong(from);
  if (PyErr_Occurred()) return PyErr_Clear(), false;
  to.emplace(large);
  return true;
}

Tensor* tensor_in(PyObject* from) {
  static PyTypeObject* type = reinterpret_cast<PyTypeObject*>(nb::type<Tensor>().ptr());
  if (Py_TYPE(from) != type && !PyType_IsSubtype(Py_TYPE(from), type)) return nullptr;
  return nb::inst_ptr<Tensor>(from);
}

Tensor tensor_of_size(const Dim& size) {
  const OpScope scope(Context::current(), CallSite());
  const bool wide = size.max() > INT32_MAX || size.min() < INT32_MIN;
  return scope.result(scope.g.cast(size.node(), wide ? DType::I64 : default_dtypes().ints));
}

bool to_operand(PyObject* from, Tensor& own, std::optional<Operand>& to) {
  if (const Tensor* tensor = tensor_in(from)) return to.emplace(*tensor, CallSite()), true;
  std::optional<Scalar> scalar;
  if (to_scalar(from, scalar)) return to.emplace(*scalar, CallSite()), true;
  if (Dim size; to_dim(from, size)) {
    own = tensor_of_size(size);
    return to.emplace(own, CallSite()), true;
  }
  if (!PyObject_CheckBuffer(from) || PyBytes_Check(from)) return false;
  try {
    own = tensor_from_buffer(from, std::nullopt);
    to.emplace(own, CallSite());
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

HeldOperand::HeldOperand(nb::handle from) {
  if (!from.is_none() && !to_operand(from.ptr(), own, operand))
    throw nb::type_error(
        ("a Tensor or a number is wanted, not a " + std::string(Py_TYPE(from.ptr())->tp_name))
            .c_str());
}

}  // namespace weft::python
