// What a tensor is, and its values as Python's objects.

#include <cctype>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/index_value.h"
#include "weft/io/disk.h"
#include "weft/python/bindings.h"
#include "weft/python/context.h"
#include "weft/python/creation.h"
#include "weft/python/data.h"
#include "weft/python/host_view.h"
#include "weft/run/active_capture.h"
#include "weft/run/storage.h"
#include "weft/tensor/access.h"

namespace weft::python {

namespace {

/// Sizes that are no numbers at those their Variables have.
Tensor sized(const Tensor& x) {
  if (x.dims().is_static()) return x;
  std::vector<DimPair> ranges;
  for (const Dim& d : x.dims()) ranges.emplace_back(0, bound_value(d.node()));
  return x.shrink(ranges, CallSite());
}

std::vector<std::byte> bytes_of(const Tensor& x) {
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(x.dtype(), x.numel())));
  const Released released;
  x.copy_to(bytes);
  return bytes;
}

/// Nested lists of the elements from `at` on.
nb::object listed(DType dtype, const std::byte*& at, std::span<const int64_t> shape) {
  if (shape.empty()) {
    nb::object number = nb::steal(python_number(Value::load(dtype, at)));
    at += bits(dtype) / 8;
    return number;
  }
  nb::list list;
  for (int64_t i = 0; i < shape[0]; ++i) list.append(listed(dtype, at, shape.subspan(1)));
  return list;
}

nb::object tolist(const Tensor& original) {
  const Tensor x = sized(original);
  const std::vector<int64_t> shape = x.shape();
  const std::vector<std::byte> bytes = bytes_of(x);
  const std::byte* at = bytes.data();
  return listed(x.dtype(), at, shape);
}

nb::object item(const Tensor& original) {
  const Tensor x = sized(original);
  if (x.numel() != 1)
    fail("item", "shape {} has {} elements: item() takes the one of a tensor that has one",
         x.dims().text(), x.numel());
  const std::vector<std::byte> bytes = bytes_of(x);
  return nb::steal(python_number(Value::load(x.dtype(), bytes.data())));
}

/// NumPy has no bfloat16 and no 8-bit floats.
Tensor for_numpy(const Tensor& x) { return buffer_format(x.dtype()) ? x : x.cast(DType::F32); }

nb::object new_array(const Tensor& x) {
  const nb::object dims = nb::steal(from_dims(x.dims()));
  return nb::module_::import_("numpy").attr("empty")(dims, row(x.dtype()).numpy_name.data());
}

nb::object numpy(const Tensor& original) {
  const Tensor x = for_numpy(sized(original));
  nb::object array = new_array(x);
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_CONTIG) != 0) throw nb::python_error();
  const std::span bytes(static_cast<std::byte*>(view.buf), static_cast<size_t>(view.len));
  struct Release {
    Py_buffer& view;
    ~Release() { PyBuffer_Release(&view); }
  } const release{view};
  const Released released;
  x.copy_to(bytes);
  return array;
}

/// np.asarray() comes here where the buffer protocol does not do.
nb::object array(const Tensor& x, nb::object dtype, nb::object copy) {
  if (!copy.is_none() && !nb::cast<bool>(copy) && !buffer_format(x.dtype()))
    fail("__array__", "{} cannot be an array without a copy", row(x.dtype()).numpy_name);
  const nb::object a = numpy(x);
  return dtype.is_none() ? a : a.attr("astype")(dtype);
}

nb::object memory(TensorObject self) {
  PyObject* view = PyMemoryView_FromObject(self.ptr());
  if (!view) throw nb::python_error();
  return nb::steal(view);
}

// ---- text

std::string dtype_text(const Tensor& x) {
  return "dtypes." + std::string(row(x.dtype()).numpy_name);
}

/// "[True, False]" of "[true, false]".
std::string capitalised(std::string text) {
  for (size_t i = 0; i < text.size(); ++i)
    if (i == 0 || text[i - 1] == '[' || text[i - 1] == ' ')
      text[i] = static_cast<char>(std::toupper(text[i]));
  return text;
}

/// Its values are there, perhaps in another order.
bool in_memory(const Tensor& x) {
  return !x.cell()->lost() && x.cell()->realized() && x.dims().is_static();
}

/// Never computes: what is not realized says so.
std::string repr(const Tensor& x) {
  if (!x.defined()) return "<Tensor that holds nothing>";
  if (!in_memory(x))
    return strformat("<Tensor {} {} on {}, not realized>", x.dims().text(), dtype_text(x),
                     device_name(x));
  const std::string text = x.text();  // "f32 (2, 2) [[1, 2], [3, 4]]"
  const std::string values = text.substr(text.find(") ") + 2);
  return strformat("Tensor({}, dtype={})", is_bool(x.dtype()) ? capitalised(values) : values,
                   dtype_text(x));
}

/// One number as Python formats it; of more there is only the text.
std::string formatted(TensorObject self, const std::string& spec) {
  const Tensor& x = tensor_of(self);
  if (spec.empty()) return nb::cast<std::string>(nb::str(self));
  if (!x.dims().is_static() || x.numel() != 1)
    fail_type("format",
              "\"{}\" formats one number, and shape {} has more or none: use item() of "
              "one",
              spec, x.dims().text());
  return nb::cast<std::string>(nb::module_::import_("builtins").attr("format")(item(x), spec));
}

/// An integer where Python wants one: range(t), a list's index.
nb::object index_of(const Tensor& x) {
  if (!is_int(x.dtype()) || x.ndim() != 0)
    fail_type("index", "an integer tensor of shape () is an index, not {} of shape {}",
              name(x.dtype()), x.dims().text());
  return item(x);
}

bool truth(const Tensor& x) {
  if (x.numel() != 1)
    fail("bool", "the truth of {} elements is ambiguous (shape {}): use any() or all()", x.numel(),
         x.dims().text());
  return nb::cast<bool>(nb::bool_(item(x)));
}

// ---- running

nb::object realize(TensorObject self, const nb::args& others) {
  std::vector<Tensor> all;
  const auto add = [&](nb::handle h) {
    Tensor& x = nb::cast<Tensor&>(h);
    own_elements(x);
    all.push_back(x);
  };
  add(self);
  for (nb::handle t : others) add(t);
  const Released released;
  weft::realize(all, CallSite());
  return nb::borrow(self);
}

nb::object assign(TensorObject self, nb::handle value) {
  Tensor& x = tensor_of(self);
  Tensor own;
  std::optional<Operand> operand;
  if (!to_operand(value.ptr(), own, operand)) {
    own = tensor_from_object(value.ptr(), x.dtype());
    operand.emplace(own, CallSite());
  }
  x.assign(*operand, CallSite());
  const Released released;
  write_to_disk(x);
  return nb::borrow(self);
}

/// True where nothing tells x from an equal expression: constants, positions.
bool is_constant(const Tensor& x) {
  for (NodeRef n : Toposort(x.node()))
    if (n->op == Op::Buffer || n->op == Op::Param) return false;
  return true;
}

/// Equal values share memory until one of them is written; constants, which had none, get their
/// own. The gradient comes along.
Tensor clone(const Tensor& x, const std::optional<DeviceName>& device) {
  Tensor same = unshared(x);
  if (is_float(x.dtype()) && x.dims().is_static() && is_constant(x) &&
      !active_capture(x.context())) {
    {
      const Released released;
      same.realize(CallSite());
    }
    offer_leaf(same, x.cell()->offered != false);
  }
  Tensor copy = device ? same.to(device->text, CallSite()) : same;
  if (!x.is_view() && x.grad().defined()) copy.set_grad(clone(x.grad(), device), CallSite());
  return copy;
}

/// The same object where it is there already.
nb::object moved(TensorObject self, std::optional<DeviceName> device) {
  const Tensor& x = tensor_of(self);
  if (!device) return nb::borrow(self);
  if (const auto path = disk_path(device->text)) {
    Tensor stored;
    {
      const Released released;
      stored = stored_on_disk(x, *path);
    }
    return nb::cast(stored);
  }
  if (disk_path(x)) return nb::cast(unshared(x).to(device->text, CallSite()));
  const Tensor there = x.to(device->text, CallSite());
  return there.cell().get() == x.cell().get() ? nb::borrow(self) : nb::cast(there);
}

nb::object reduce(TensorObject self) {
  const Tensor& x = tensor_of(self);
  const std::vector<std::byte> data = bytes_of(x);
  const nb::bytes bytes(data.data(), data.size());
  return nb::make_tuple(nb::module_::import_("weft.tensor").attr("unpickled"),
                        nb::make_tuple(bytes, x.dtype(), x.dims(), self.attr("requires_grad")));
}

int64_t element_size(const Tensor& x) { return bits(x.dtype()) / 8; }

void bind_properties(TensorClass& c) {
  c.def_prop_ro(
      "shape", [](const Tensor& x) { return x.dims(); },
      "A tuple of ints (and Dims, where sizes are chosen per run).");
  c.def_prop_ro("dtype", &Tensor::dtype);
  c.def_prop_ro("ndim", &Tensor::ndim);
  c.def_prop_ro(
      "device",
      [](const Tensor& x) {
        const auto path = disk_path(x);
        return path ? "DISK:" + *path : device_name(x);
      },
      "\"CPU\", as Device[...] takes it.");
  method(c, "numel", [](const Tensor& x) { return x.dims().product(); }, "Number of elements.");
  method(c, "nbytes", [](const Tensor& x) { return x.numel() * element_size(x); });
  c.def("element_size", element_size, "Bytes.");
  c.def_prop_ro("is_realized", [](const Tensor& x) { return x.cell()->realized(); });
}

void bind_numbers(TensorClass& c) {
  method(c, "item", item, "The one element of a tensor that has one, as a Python number.");
  method(c, "tolist", tolist, "Nested lists of Python numbers; of shape (), a number.");
  method(c, "numpy", numpy,
         "A NumPy array with a copy of the elements; bfloat16 and 8-bit floats as float32.");
  c.def("data", memory, "A read-only memoryview of the elements, without a copy.");
  method(c, "__array__", array, "dtype"_a = nb::none(), "copy"_a = nb::none());
  method(c, "__bool__", truth);
  method(c, "__float__", [](const Tensor& x) { return nb::float_(item(x)); });
  method(c, "__int__", [](const Tensor& x) { return nb::int_(item(x)); });
  computing_method(c, "__contains__", [](const Tensor& x, const Operand& value) {
    return (x == value).any().item<bool>(CallSite());
  });
  c.def("__repr__", repr);
  method(c, "__format__", formatted, "spec"_a);
  method(c, "__index__", index_of);
  method(c, "__reduce__", reduce);
}

}  // namespace

void bind_values(TensorClass& c) {
  bind_properties(c);
  bind_numbers(c);
  method(c, "realize", realize, nb::sig("def realize(self, *others: Tensor) -> Tensor"), "others"_a,
         "Runs what this (and the others) need, together, and returns this.");
  method(c, "assign", assign, nb::sig("def assign(self, x: typing.Any) -> Tensor"), "x"_a,
         "Replaces the elements by x, broadcast and cast to this dtype; all aliases see it.");
  method(c, "clone", clone, "device"_a = nb::none(), "The same values in memory of their own.");
  method(c, "to", moved, nb::sig("def to(self, device: str | Sequence[str] | None) -> Tensor"),
         "device"_a.none(), "A copy on another device, or this.");
  c.def(
      "replace",
      [](TensorObject self, const Tensor& x) {
        tensor_of(self) = x;
        return nb::borrow(self);
      },
      nb::sig("def replace(self, x: Tensor) -> Tensor"), "x"_a, "From here on this is x.");
  c.def(
      "is_", [](const Tensor& a, const Tensor& b) { return a.cell().get() == b.cell().get(); },
      "other"_a, "Whether both share storage.");
}

}  // namespace weft::python
