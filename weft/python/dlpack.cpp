// DLPack: memory shared with other libraries, both ways.
#include "weft/io/dlpack.h"

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/deferred.h"
#include "weft/python/host_view.h"

namespace weft::python {

using namespace dlpack;  // NOLINT: this file is about nothing else

namespace {

// ---- out

template <class M>
struct Names;
template <>
struct Names<Managed> {
  static constexpr const char *fresh = "dltensor", *used = "used_dltensor";
};
template <>
struct Names<ManagedVersioned> {
  static constexpr const char *fresh = "dltensor_versioned", *used = "used_dltensor_versioned";
};

/// A capsule that nobody took.
template <class M>
void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Names<M>::fresh)) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, Names<M>::fresh));
  managed->deleter(managed);
}

template <class M>
nb::object capsule_with(std::unique_ptr<HostView> view, uint64_t flags) {
  M* managed = export_view<M>(std::move(view), flags);
  PyObject* capsule = PyCapsule_New(managed, Names<M>::fresh, drop_capsule<M>);
  if (capsule) return nb::steal(capsule);
  managed->deleter(managed);
  throw nb::python_error();
}

bool asks_for_version_1(nb::handle max_version) {
  return !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
}

void require_cpu(nb::handle device) {
  if (device.is_none() || nb::cast<int>(device[0]) == kCpu) return;
  PyErr_SetString(PyExc_BufferError, "a Tensor can be exported to the CPU only: move it first");
  throw nb::python_error();
}

/// Memory is lent to those alone who can be told that it is read-only: the flag came with version
/// 1, and PyTorch, which asks for that version but does not look at the flag, is known by not
/// saying what it wants of `copy` (NumPy says None).
nb::object to_dlpack(const Tensor& x, nb::handle stream, nb::handle max_version, nb::handle device,
                     nb::handle copy) {
  if (!stream.is_none()) fail("__dlpack__.stream", "memory of the CPU has no streams: pass None");
  require_cpu(device);
  const bool versioned = asks_for_version_1(max_version);
  const bool is_said = copy.ptr() != Py_Ellipsis, must_lend = copy.ptr() == Py_False;
  const bool copies = !must_lend && (!versioned || !is_said || copy.ptr() == Py_True);
  if (must_lend && !versioned) {
    PyErr_SetString(
        PyExc_BufferError,
        "a Tensor's memory is read-only, which DLPack says from version 1.0 on: ask with "
        "max_version, or for a copy");
    throw nb::python_error();
  }
  auto view = copies ? host_copy_nogil(x) : host_view_nogil(x);
  if (versioned)
    return capsule_with<ManagedVersioned>(std::move(view), copies ? kIsCopied : kReadOnly);
  return capsule_with<Managed>(std::move(view), 0);
}

// ---- in

/// The producer's struct; given back when the last reader is gone. Its deleter may need the GIL,
/// which a thread that frees buffers must not wait for.
template <class M>
std::shared_ptr<M> taken(PyObject* capsule) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, Names<M>::fresh));
  if (!managed) throw nb::python_error();
  PyCapsule_SetName(capsule, Names<M>::used);
  return std::shared_ptr<M>(managed, [](M* m) {
    if (m->deleter)
      run_with_gil([](void* p) { static_cast<M*>(p)->deleter(static_cast<M*>(p)); }, m);
  });
}

/// from.__dlpack__(max_version=(1, 0)), or without the argument, which came with 1.0.
PyObject* call_dlpack(nb::handle from, bool versioned) {
  static PyObject* method = PyUnicode_InternFromString("__dlpack__");
  static PyObject* names = nb::make_tuple("max_version").release().ptr();
  static PyObject* version = nb::make_tuple(kMajor, kMinor).release().ptr();
  PyObject* arguments[] = {from.ptr(), version};
  return PyObject_VectorcallMethod(method, arguments, 1, versioned ? names : nullptr);
}

/// The newest form the producer has.
nb::object capsule_of(nb::handle from) {
  if (PyCapsule_CheckExact(from.ptr())) return nb::borrow(from);
  PyObject* capsule = call_dlpack(from, true);
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = call_dlpack(from, false);
  }
  if (capsule) return nb::steal(capsule);
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw nb::python_error();
  PyErr_Clear();
  throw nb::type_error("from_dlpack() takes an object with __dlpack__, or a capsule");
}

/// `imported`, unless a copy was made that is not wanted.
Tensor with_or_without_copy(const Array& array, const Tensor& imported, nb::handle copy) {
  if (copy.ptr() != Py_False || imported.numel() == 0 || is_row_major(array)) return imported;
  PyErr_SetString(
      PyExc_BufferError,
      "elements that do not lie in row-major order are copied: allow it with copy=None");
  throw nb::python_error();
}

Tensor from_dlpack(nb::handle from, nb::handle copy) {
  const nb::object capsule = capsule_of(from);
  const bool copies = !copy.is_none() && nb::cast<bool>(copy);
  if (PyCapsule_IsValid(capsule.ptr(), Names<ManagedVersioned>::fresh)) {
    const auto managed = taken<ManagedVersioned>(capsule.ptr());
    return with_or_without_copy(managed->array, import_array(managed, copies), copy);
  }
  if (!PyCapsule_IsValid(capsule.ptr(), Names<Managed>::fresh))
    fail("from_dlpack.capsule", "the capsule holds no DLPack tensor, or was used before");
  const auto managed = taken<Managed>(capsule.ptr());
  return with_or_without_copy(managed->array, import_array(managed->array, managed, copies), copy);
}

/// Memory at an address, of which the caller says that it stays.
Tensor from_blob(uintptr_t address, const Dims& dims, DType dtype,
                 std::optional<DeviceName> device) {
  std::vector<int64_t> shape;
  for (const Dim& d : dims) shape.push_back(d.value());
  static const auto nobody = std::make_shared<int>(0);
  const Tensor t = borrowed_tensor(reinterpret_cast<const void*>(address), dtype, shape, nobody);
  return device ? t.to(device->text, CallSite()) : t;
}

}  // namespace

void bind_dlpack(nb::module_& m, TensorClass& c) {
  method(
      c, "__dlpack__", to_dlpack, nb::kw_only(), "stream"_a = nb::none(),
      "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a.none() = nb::ellipsis(),
      nb::sig("def __dlpack__(self, *, stream: None = None, max_version: tuple[int, int] | None = "
              "None, dl_device: tuple[int, int] | None = None, copy: bool | None = ...) -> "
              "typing.Any"));
  c.def("__dlpack_device__", [](const Tensor&) { return nb::make_tuple(kCpu, 0); });
  static_method(c, "from_blob", from_blob, "ptr"_a, "shape"_a, "dtype"_a = DType::F32,
                "device"_a = nb::none(),
                "The elements at an address, which must stay while anything reads them.");
  m.def("from_dlpack", from_dlpack, "x"_a, nb::kw_only(), "copy"_a = nb::none(),
        "A Tensor of another library's memory, without a copy where its elements lie in row-major "
        "order. weft never writes there; what the owner writes shows.",
        nb::call_guard<PythonSite>());
}

}  // namespace weft::python
