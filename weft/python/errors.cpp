// Which exception of Python an error of weft is.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "weft/base/error.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

/// Exceptions that are ours, made when the module is.
PyObject* argument_error = nullptr;
PyObject* dtype_error = nullptr;
PyObject* dtype_name_error = nullptr;
PyObject* jit_error = nullptr;
PyObject* device_error = nullptr;
PyObject* internal_error_type = nullptr;

struct Row {
  std::string_view code;  // the whole code, or a tag
  PyObject** type;
};
/// Looked at first; the kind decides about all others.
const Row kByCode[] = {
    {"jit", &jit_error},
    {"dtype.name", &dtype_name_error},
    {"pad.mode", &PyExc_NotImplementedError},
    {"scatter.reduce", &PyExc_TypeError},
    {"file.missing", &PyExc_FileNotFoundError},
    {"file.read", &PyExc_OSError},
    {"file.write", &PyExc_OSError},
};
/// In the order of ErrorKind.
PyObject** const kByKind[] = {&argument_error,     &dtype_error,       &PyExc_IndexError,
                              &PyExc_RuntimeError, &PyExc_MemoryError, &device_error,
                              &internal_error_type};

PyObject* type_of(const Error& error) {
  for (const Row& r : kByCode)
    if (r.code == error.code() || r.code == error.tag()) return *r.type;
  return *kByKind[static_cast<size_t>(error.kind())];
}

/// Raises it with its text, and its stable code as an attribute.
void raise(const Error& error) {
  PyObject* type = type_of(error);
  const std::string_view text = error.what();
  // It may quote a damaged file.
  const auto size = static_cast<Py_ssize_t>(text.size());
  PyObject* message = PyUnicode_DecodeUTF8(text.data(), size, "backslashreplace");
  if (!message) return;
  PyObject* exception = PyObject_CallOneArg(type, message);
  Py_DECREF(message);
  if (!exception) return;
  PyObject* code = PyUnicode_FromString(error.code().c_str());
  if (code) PyObject_SetAttrString(exception, "code", code);
  Py_XDECREF(code);
  PyErr_SetObject(type, exception);
  Py_DECREF(exception);
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    raise(error);
  } catch (const std::bad_cast&) {  // nb::cast() of an argument that may be one of several things
    PyErr_SetString(PyExc_TypeError, "[argument] of a type that this does not take: see help()");
  }
}

PyObject* new_type(nb::module_& m, const char* name, const char* doc,
                   std::initializer_list<PyObject*> also = {}) {
  const std::string whole = std::string("weft.") + name;
  nb::list all;
  for (PyObject* base : also) all.append(nb::handle(base));
  all.append(nb::handle(PyExc_RuntimeError));
  const nb::tuple bases(all);
  PyObject* type = PyErr_NewExceptionWithDoc(whole.c_str(), doc, bases.ptr(), nullptr);
  if (!type) throw nb::python_error();
  m.attr(name) = nb::borrow(type);
  return type;
}

}  // namespace

void bind_errors(nb::module_& m) {
  // NumPy's and Python's programs catch the one, PyTorch's and tinygrad's the other.
  argument_error =
      new_type(m, "ArgumentError", "Shapes, sizes or values that do not fit.", {PyExc_ValueError});
  dtype_error =
      new_type(m, "DTypeError", "A dtype that an operation does not take.", {PyExc_TypeError});
  // dtypes.typo and numpy.dtype("typo").
  dtype_name_error = new_type(m, "DTypeNameError", "A name that no dtype has.",
                              {dtype_error, PyExc_AttributeError});
  jit_error =
      new_type(m, "JitError", "A call of a captured function that a replay would get wrong.");
  device_error = new_type(m, "DeviceError", "A call into a driver or library that failed.");
  internal_error_type = new_type(m, "InternalError", "A bug of weft: please report it.");
  nb::register_exception_translator(translate, nullptr);
  m.def(
      "explain",
      [](const std::string& code) {
        const ErrorCode* row = find_error_code(code);
        if (!row) fail("explain", "'{}' is not an error code; error.code is one", code);
        return std::string(row->explanation);
      },
      nb::arg("code"),
      "What an error's code means and what to do: weft.explain(error.code). As `weft explain` of "
      "the command.");
}

}  // namespace weft::python
