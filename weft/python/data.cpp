#include "weft/python/data.h"

#include <array>
#include <cstring>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/python/casters.h"

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT: "copy"_a

namespace weft::python {

namespace {

/// An exception of Python is set; nanobind passes it on.
[[noreturn]] void python_failed() { throw nb::python_error(); }

using Owned = std::unique_ptr<PyObject, decltype([](PyObject* o) { Py_DECREF(o); })>;

}  // namespace

// ---- the struct module's letters

namespace {

struct Format {
  DType dtype;
  char letter;
};
/// Native sizes; the first of a dtype is what we write.
/// https://docs.python.org/3/library/struct.html
constexpr Format kFormats[] = {
    {DType::Bool, '?'}, {DType::I8, 'b'},  {DType::U8, 'B'},  {DType::I16, 'h'}, {DType::U16, 'H'},
    {DType::I32, 'i'},  {DType::U32, 'I'}, {DType::I64, 'q'}, {DType::U64, 'Q'}, {DType::F16, 'e'},
    {DType::F32, 'f'},  {DType::F64, 'd'}, {DType::I64, 'l'}, {DType::U64, 'L'}, {DType::U8, 'c'},
};

}  // namespace

const char* buffer_format(DType d) {
  for (const Format& f : kFormats) {
    static const auto texts = [] {
      std::array<std::array<char, 2>, std::size(kFormats)> all{};
      for (size_t i = 0; i < all.size(); ++i) all[i] = {kFormats[i].letter, 0};
      return all;
    }();
    if (f.dtype == d) return texts[static_cast<size_t>(&f - kFormats)].data();
  }
  return nullptr;
}

std::optional<DType> dtype_of_format(const char* format, Py_ssize_t itemsize) {
  if (!format) return DType::U8;
  // '<' is this machine's order; '>' and '!' are not.
  if (*format == '@' || *format == '=' || *format == '<') ++format;
  if (*format == 0 || format[1] != 0) return std::nullopt;
  for (const Format& f : kFormats)
    if (f.letter == *format && bits(f.dtype) == 8 * itemsize) return f.dtype;
  // 'l' is 4 bytes in the standard sizes.
  if (itemsize == 4 && (*format == 'l' || *format == 'L'))
    return *format == 'l' ? DType::I32 : DType::U32;
  return std::nullopt;
}

// ---- memory of others

namespace {

/// So many elements are that many bytes.
int64_t elements_in(size_t bytes, DType dtype) {
  const auto size = static_cast<size_t>(bits(dtype) / 8);
  if (bytes % size != 0)
    fail("Tensor.bytes", "{} bytes are no whole number of {} elements, which have {} each", bytes,
         name(dtype), size);
  return static_cast<int64_t>(bytes / size);
}

Tensor tensor_of_raw(PyObject* bytes, DType dtype) {
  const auto size = static_cast<size_t>(PyBytes_GET_SIZE(bytes));
  const auto* data = reinterpret_cast<const std::byte*>(PyBytes_AS_STRING(bytes));
  return Tensor::from_bytes({data, size}, dtype, {elements_in(size, dtype)});
}

}  // namespace

// ---- buffers

namespace {

class BufferView {
 public:
  explicit BufferView(PyObject* from) {
    if (PyObject_GetBuffer(from, &view_, PyBUF_FORMAT | PyBUF_STRIDES) != 0) python_failed();
  }
  ~BufferView() { PyBuffer_Release(&view_); }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;
  const Py_buffer& operator*() const { return view_; }
  const Py_buffer* operator->() const { return &view_; }

 private:
  Py_buffer view_{};
};

Tensor copy_of(const Py_buffer& view, DType dtype) {
  const auto rank = static_cast<size_t>(view.ndim);
  std::vector<int64_t> shape(view.shape, view.shape + rank);
  const auto* data = static_cast<const std::byte*>(view.buf);
  if (PyBuffer_IsContiguous(&view, 'C'))
    return Tensor::from_bytes({data, static_cast<size_t>(view.len)}, dtype, Dims(shape));
  std::vector<int64_t> strides;
  for (size_t i = 0; i < rank; ++i) {
    if (view.strides[i] % view.itemsize != 0)
      fail("Tensor.stride", "axis {} has a stride of {} bytes for elements of {}: copy the array",
           i, view.strides[i], view.itemsize);
    strides.push_back(view.strides[i] / view.itemsize);
  }
  return strided_tensor(data, dtype, shape, strides);
}

}  // namespace

Tensor tensor_from_buffer(PyObject* from, std::optional<DType> dtype) {
  const BufferView view(from);
  const auto found = dtype_of_format(view->format, view->itemsize);
  if (!found)
    fail_type(
        "Tensor",
        "elements of format \"{}\" ({} bytes each) have no dtype of weft: convert the array to "
        "a bool, integer or float type in this machine's byte order",
        view->format, view->itemsize);
  const Tensor t = copy_of(*view, *found);
  return dtype ? t.cast(*dtype) : t;
}

// ---- numbers and nested lists

namespace {

/// What kinds of numbers a nested list has, and its shape.
struct Survey {
  std::vector<int64_t> shape;
  bool has_float = false, has_int = false, has_bool = false;
  bool is_64_bits = false, is_u64 = false, is_negative = false, is_beyond = false;  // of the ints

  DType dtype() const {
    if (has_float || !(has_int || has_bool)) return default_dtypes().floats;
    if (!has_int) return DType::Bool;
    if (is_beyond || (is_u64 && is_negative))
      fail("Tensor.range", "no integer dtype holds all of these numbers: give floats, or a dtype");
    if (is_u64) return DType::U64;
    return is_64_bits ? DType::I64 : default_dtypes().ints;
  }

  void note_int(const Scalar& x) {
    has_int = true;
    const DType d = x.default_dtype();
    is_64_bits |= bits(d) == 64;
    is_u64 |= d == DType::U64;
    is_negative |= x.as(DType::I64).as_int() < 0 && d != DType::U64;
  }
};

constexpr size_t kMostAxes = 64;  // also stops lists that contain themselves

void note_number(PyObject* x, Survey& s) {
  std::optional<Scalar> scalar;
  if (!to_scalar(x, scalar)) {
    Owned index(PyNumber_Index(x));  // NumPy's integers
    if (!index) PyErr_Clear();
    if (index && to_scalar(index.get(), scalar)) return s.note_int(*scalar);
    if (index) {
      s.has_int = s.is_beyond = true;
      return;
    }
    if (PyNumber_Check(x) && !tensor_in(x)) {
      s.has_float = true;
      return;
    } else {
      fail_type("Tensor",
                "a {} is not a number: give numbers, nested lists of them, arrays or bytes",
                Py_TYPE(x)->tp_name);
    }
  }
  s.has_float |= scalar->is_float();
  s.has_bool |= scalar->is_bool();
  if (!scalar->is_float() && !scalar->is_bool()) s.note_int(*scalar);
}

bool is_list(PyObject* x) { return PyList_Check(x) || PyTuple_Check(x); }

void survey(PyObject* x, size_t depth, Survey& s) {  // as deep as the list
  if (!is_list(x)) {
    if (depth != s.shape.size())
      fail("Tensor.ragged", "a number stands where other elements are lists (depth {}): {}", depth,
           "nested lists must be rectangular");
    return note_number(x, s);
  }
  if (depth == kMostAxes) fail("Tensor.depth", "lists are nested deeper than {}", kMostAxes);
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(x);
  if (depth == s.shape.size())
    fail("Tensor.ragged",
         "a list stands where other elements are numbers: "
         "nested lists must be rectangular");
  if (s.shape[depth] != size)
    fail("Tensor.ragged", "a list of {} stands beside one of {} (depth {}): {}", size,
         s.shape[depth], depth, "nested lists must be rectangular");
  for (Py_ssize_t i = 0; i < size; ++i) survey(PySequence_Fast_GET_ITEM(x, i), depth + 1, s);
}

/// The shape along first elements, which all others must then have.
std::vector<int64_t> outer_shape(PyObject* x) {
  std::vector<int64_t> shape;
  while (is_list(x) && shape.size() <= kMostAxes) {
    shape.push_back(PySequence_Fast_GET_SIZE(x));
    if (shape.back() == 0) break;
    x = PySequence_Fast_GET_ITEM(x, 0);
  }
  return shape;
}

Value value_of(PyObject* x, DType dtype) {
  std::optional<Scalar> scalar;
  if (to_scalar(x, scalar)) return scalar->as(dtype);
  Owned index(PyNumber_Index(x));
  if (index && to_scalar(index.get(), scalar)) return scalar->as(dtype);
  PyErr_Clear();
  if (index && !is_float(dtype))
    fail("Tensor.range", "{} does not fit {}", nb::cast<std::string>(nb::str(nb::handle(x))),
         name(dtype));
  const double number = PyFloat_AsDouble(x);
  if (number == -1 && PyErr_Occurred()) python_failed();
  return Value::of(dtype, number);
}

void store_all(PyObject* x, DType dtype, std::byte*& to) {
  if (is_list(x)) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(x); ++i)
      store_all(PySequence_Fast_GET_ITEM(x, i), dtype, to);
    return;
  }
  value_of(x, dtype).store(to);
  to += bits(dtype) / 8;
}

Tensor tensor_of_numbers(PyObject* from, std::optional<DType> asked) {
  Survey s;
  s.shape = outer_shape(from);
  survey(from, 0, s);
  const DType dtype = asked ? *asked : s.dtype();
  const Dims shape(s.shape);
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(dtype, shape.product().value())));
  std::byte* to = bytes.data();
  store_all(from, dtype, to);
  return Tensor::from_bytes(bytes, dtype, shape);
}

/// Another library's array, of which no buffer is to be had: PyTorch's.
bool is_foreign_array(PyObject* x) {
  return !tensor_in(x) && !PyType_Check(x) && nb::hasattr(x, "__dlpack__");
}

/// What a nested list holds, by the first of it.
enum class Held : uint8_t { Numbers, Arrays, Tensors };
Held held_by(PyObject* x) {
  for (size_t depth = 0; is_list(x) && PySequence_Fast_GET_SIZE(x) > 0; ++depth) {
    if (depth == kMostAxes) return Held::Numbers;
    x = PySequence_Fast_GET_ITEM(x, 0);
  }
  if (PyFloat_Check(x) || PyLong_Check(x)) return Held::Numbers;
  if (tensor_in(x) || (is_foreign_array(x) && !PyObject_CheckBuffer(x))) return Held::Tensors;
  return PyObject_CheckBuffer(x) ? Held::Arrays : Held::Numbers;
}

/// Tensors, and what can be made one, along a new axis for each level of lists.
Tensor stacked(PyObject* from, std::optional<DType> dtype) {  // as deep as the list
  if (!is_list(from)) return tensor_from_object(from, dtype);
  std::vector<Tensor> members;
  for (nb::handle member : nb::handle(from)) members.push_back(stacked(member.ptr(), dtype));
  return Tensor::stack(members);
}

Tensor tensor_of_list(PyObject* from, std::optional<DType> dtype) {
  const Held held = held_by(from);
  if (held == Held::Tensors) return stacked(from, dtype);
  if (held == Held::Numbers) return tensor_of_numbers(from, dtype);
  const nb::object joined = nb::module_::import_("numpy").attr("array")(nb::handle(from));
  return tensor_from_buffer(joined.ptr(), dtype);
}

/// A copy, as of NumPy's arrays.
Tensor copy_of_foreign(PyObject* from, std::optional<DType> dtype) {
  const nb::object take = nb::module_::import_("weft._core").attr("from_dlpack");
  const Tensor t = nb::cast<Tensor>(take(nb::handle(from), "copy"_a = true));
  return dtype ? t.cast(*dtype) : t;
}

/// ml_dtypes' floats have no letter; their bits have.
Tensor tensor_of_array(PyObject* from, std::optional<DType> dtype) {
  const nb::handle array(from);
  const nb::object dtype_name =
      nb::getattr(nb::getattr(array, "dtype", nb::none()), "name", nb::none());
  const auto named = nb::isinstance<nb::str>(dtype_name)
                         ? dtype_from_name(nb::cast<std::string>(dtype_name))
                         : std::nullopt;
  if (!named || !is_float(*named) || buffer_format(*named)) return tensor_from_buffer(from, dtype);
  const char* as_bits = bits(*named) == 8 ? "uint8" : "uint16";
  const Tensor t = tensor_from_buffer(nb::object(array.attr("view")(as_bits)).ptr(), std::nullopt)
                       .bitcast(*named);
  return dtype ? t.cast(*dtype) : t;
}

}  // namespace

Tensor tensor_from_object(PyObject* from, std::optional<DType> dtype) {
  if (const Tensor* t = tensor_in(from)) return dtype ? t->cast(*dtype) : *t;
  if (Dim d; !PyLong_Check(from) && to_dim(from, d) && !d.is_static()) {
    const Tensor size = tensor_of_size(d);
    return dtype ? size.cast(*dtype) : size;
  }
  if (from == Py_None) return Tensor::empty({0}, dtype.value_or(default_dtypes().floats));
  if (is_list(from)) return tensor_of_list(from, dtype);
  if (nb::hasattr(from, "__fspath__")) {
    const nb::object path = nb::handle(from).attr("__fspath__")();
    return tensor_from_file(nb::cast<std::string>(path), dtype.value_or(DType::U8));
  }
  if (PyBytes_Check(from)) return tensor_of_raw(from, dtype.value_or(DType::U8));
  const bool number = PyFloat_Check(from) || PyLong_Check(from);
  if (!number && PyObject_CheckBuffer(from)) return tensor_of_array(from, dtype);
  if (is_foreign_array(from)) return copy_of_foreign(from, dtype);
  if (PyRange_Check(from)) return tensor_of_numbers(nb::list(nb::handle(from)).ptr(), dtype);
  return tensor_of_numbers(from, dtype);
}

// ---- out

PyObject* python_number(Value v) {
  if (is_bool(v.dtype())) return PyBool_FromLong(v.as_bool());
  if (is_float(v.dtype())) return PyFloat_FromDouble(v.as_double());
  if (is_unsigned(v.dtype())) return PyLong_FromUnsignedLongLong(v.as_uint());
  return PyLong_FromLongLong(v.as_int());
}

DefaultDTypes& default_dtypes() { return Context::current().get<DefaultDTypes>(); }

}  // namespace weft::python
