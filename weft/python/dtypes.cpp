// DType: one Python object per dtype, and what stands for one in an argument.
#include <array>
#include <cstring>

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"

namespace weft::python {

namespace {

/// Never freed: defaults of arguments may be looked at while the interpreter ends.
std::array<PyObject*, kDTypeCount>& objects() {
  static std::array<PyObject*, kDTypeCount> all{};
  return all;
}

/// float, int, bool.
bool dtype_of_type(PyObject* type, DType& to) {
  const std::pair<PyTypeObject*, DType> kinds[] = {{&PyFloat_Type, default_dtypes().floats},
                                                   {&PyLong_Type, default_dtypes().ints},
                                                   {&PyBool_Type, DType::Bool}};
  for (const auto& [python, dtype] : kinds)
    if (type == reinterpret_cast<PyObject*>(python)) return to = dtype, true;
  return false;
}

bool dtype_of_text(PyObject* text, DType& to) {
  const char* name = PyUnicode_Check(text) ? PyUnicode_AsUTF8(text) : nullptr;
  if (!name) return PyErr_Clear(), false;
  constexpr std::pair<const char*, DType> kAliases[] = {{"half", DType::F16},
                                                        {"float", DType::F32},
                                                        {"double", DType::F64},
                                                        {"char", DType::I8},
                                                        {"short", DType::I16},
                                                        {"int", DType::I32},
                                                        {"long", DType::I64},
                                                        {"uchar", DType::U8},
                                                        {"ushort", DType::U16},
                                                        {"uint", DType::U32},
                                                        {"ulong", DType::U64},
                                                        {"fp8e4m3", DType::F8E4M3},
                                                        {"fp8e5m2", DType::F8E5M2},
                                                        {"fp8e4m3fnuz", DType::F8E4M3Fnuz},
                                                        {"fp8e5m2fnuz", DType::F8E5M2Fnuz}};
  for (const auto& [alias, dtype] : kAliases)
    if (std::strcmp(alias, name) == 0) return to = dtype, true;
  // Of Python's numbers: what they are alone.
  if (std::strcmp(name, "weakint") == 0) return to = default_dtypes().ints, true;
  if (std::strcmp(name, "weakfloat") == 0) return to = default_dtypes().floats, true;
  const auto found = dtype_from_name(name);
  if (found && is_data(*found)) to = *found;
  return found && is_data(*found);
}

/// numpy.float32 is a type, numpy.dtype("float32") an object; both have a name.
bool dtype_of_numpy(PyObject* x, DType& to) {
  for (const char* attribute : {"name", "__name__"}) {
    PyObject* text = PyObject_GetAttrString(x, attribute);
    if (!text) PyErr_Clear();
    const bool found = text && dtype_of_text(text, to);
    Py_XDECREF(text);
    if (found) return true;
  }
  return false;
}

std::string repr(const DTypeObject& d) { return "dtypes." + std::string(row(d.dtype).numpy_name); }

nb::object least_or_greatest(DType d, bool least) {
  if (is_float(d)) return nb::float_(least ? -float_top(d) : float_top(d));
  const Value v = least ? Value::of(d, int_min(d)) : Value::of(d, int_max(d));
  return nb::steal(python_number(v));
}

}  // namespace

bool to_dtype(PyObject* from, DType& to) {
  if (nb::isinstance<DTypeObject>(from)) return to = nb::inst_ptr<DTypeObject>(from)->dtype, true;
  return dtype_of_type(from, to) || dtype_of_text(from, to) || dtype_of_numpy(from, to);
}

void fail_dtype(nb::handle name) {
  fail_type("dtype.name", "there is no dtype {}: use a member of dtypes, or its name",
            nb::repr(name).c_str());
}

PyObject* from_dtype(DType d) { return Py_XNewRef(objects()[static_cast<size_t>(d)]); }

namespace {

void bind_class(nb::module_& m) {
  nb::class_<DTypeObject> c(m, "DType", "The type of a Tensor's elements: a member of dtypes.");
  c.def_prop_ro(
      "name", [](const DTypeObject& d) { return nb::str(row(d.dtype).numpy_name.data()); },
      "NumPy's name: \"float32\".");
  c.def_prop_ro("itemsize", [](const DTypeObject& d) { return bits(d.dtype) / 8; }, "Bytes.");
  c.def_prop_ro("bitsize", [](const DTypeObject& d) { return bits(d.dtype); });
  c.def_prop_ro(
      "fmt", [](const DTypeObject& d) { return buffer_format(d.dtype); },
      "The struct module's letter; None where it has none (bfloat16).");
  c.def_prop_ro("min", [](const DTypeObject& d) { return least_or_greatest(d.dtype, true); });
  c.def_prop_ro("max", [](const DTypeObject& d) { return least_or_greatest(d.dtype, false); });
  c.def("__repr__", repr);
  c.def(
      "__lt__", [](const DTypeObject& a, const DTypeObject& b) { return a.dtype < b.dtype; },
      "The order of the table: bool, integers and floats from narrow to wide.");
  c.def(
      "const",
      [](const DTypeObject& d, const Scalar& x) { return nb::steal(python_number(x.as(d.dtype))); },
      "x"_a, "A number of Python's as an element of this dtype.");
  c.def("__reduce__", [](const DTypeObject& d) {
    return nb::make_tuple(nb::module_::import_("weft.dtype").attr("to_dtype"),
                          nb::make_tuple(row(d.dtype).numpy_name.data()));
  });
}

}  // namespace

void bind_dtypes(nb::module_& m) {
  bind_class(m);
  for (size_t i = 0; i < kDTypeCount; ++i)
    if (is_data(static_cast<DType>(i)))
      objects()[i] = nb::cast(DTypeObject{static_cast<DType>(i)}).release().ptr();

  m.def("dtype_of", [](DType d) { return d; }, "x"_a, "The DType that a name or type stands for.");
  m.def("promote", &promote, "a"_a, "b"_a, "The dtype two tensors meet in.");
  m.def("is_float_dtype", [](DType d) { return is_float(d); }, "x"_a);
  m.def("is_int_dtype", [](DType d) { return is_int(d); }, "x"_a);
  m.def("is_unsigned_dtype", [](DType d) { return is_unsigned(d); }, "x"_a);
  m.def(
      "float_digits", [](DType d) { return float_digits(d); }, "x"_a,
      "Bits of the significand, the hidden one included.");
  m.def("float_most", [](DType d) { return float_max(d); }, "x"_a, "The largest finite value.");
  m.def("set_default_float", [](DType d) { default_dtypes().floats = d; }, "x"_a);
  m.def("set_default_int", [](DType d) { default_dtypes().ints = d; }, "x"_a);
  m.def("default_float", [] { return default_dtypes().floats; });
  m.def("default_int", [] { return default_dtypes().ints; });
}

}  // namespace weft::python
