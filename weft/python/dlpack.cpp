// DLPack: memory shared with other libraries, both ways.
#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/python/deferred.h"
#include "weft/python/dlpack_abi.h"
#include "weft/python/host_view.h"

namespace weft::python {

using namespace dlpack;  // NOLINT: this file is about nothing else

namespace {

struct Pairing {
  DType dtype;
  uint8_t code;
};
constexpr Pairing kTypes[] = {
    {DType::Bool, kBool},
    {DType::I8, kInt},
    {DType::I16, kInt},
    {DType::I32, kInt},
    {DType::I64, kInt},
    {DType::U8, kUInt},
    {DType::U16, kUInt},
    {DType::U32, kUInt},
    {DType::U64, kUInt},
    {DType::F16, kFloat},
    {DType::F32, kFloat},
    {DType::F64, kFloat},
    {DType::BF16, kBfloat},
    // DLPack 1.1 numbers every kind of 8-bit float.
    {DType::F8E4M3, 10},
    {DType::F8E4M3Fnuz, 11},
    {DType::F8E5M2, 12},
    {DType::F8E5M2Fnuz, 13},
};

ElementType element_type(DType d) {
  for (const Pairing& p : kTypes)
    if (p.dtype == d) return {p.code, static_cast<uint8_t>(bits(d)), 1};
  internal_error("dlpack", "{} has no DLPack type", name(d));
}

DType dtype_of(ElementType t) {
  for (const Pairing& p : kTypes)
    if (p.code == t.code && bits(p.dtype) == t.bits && t.lanes == 1) return p.dtype;
  fail_type("from_dlpack",
            "elements of DLPack type code {} with {} bits and {} lanes have no dtype", t.code,
            t.bits, t.lanes);
}

// ---- out

/// What an exported capsule owns. M is either form.
template <class M>
struct Exported {
  M managed{};
  std::unique_ptr<HostView> view;
};

template <class M>
struct Names;
template <>
struct Names<Managed> {
  static constexpr const char *fresh = kName, *used = kUsedName;
};
template <>
struct Names<ManagedVersioned> {
  static constexpr const char *fresh = kVersionedName, *used = kUsedVersionedName;
};

/// Called by whoever took the capsule, on any thread, with the GIL or without.
template <class M>
void delete_exported(M* managed) {
  delete static_cast<Exported<M>*>(managed->context);
}

/// A capsule that nobody took.
template <class M>
void drop_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, Names<M>::fresh)) return;
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, Names<M>::fresh));
  managed->deleter(managed);
}

template <class M>
nb::object export_view(std::unique_ptr<HostView> view, uint64_t flags) {
  auto exported = std::make_unique<Exported<M>>();
  exported->view = std::move(view);
  HostView& v = *exported->view;
  M& m = exported->managed;
  m.context = exported.get();
  m.deleter = delete_exported<M>;
  m.array = {const_cast<void*>(v.data),
             {kCpu, 0},
             static_cast<int32_t>(v.shape.size()),
             element_type(v.dtype),
             v.shape.data(),
             v.strides.data(),
             0};
  if constexpr (std::is_same_v<M, ManagedVersioned>) {
    m.version = {kMajor, kMinor};
    m.flags = flags;
  }
  PyObject* capsule = PyCapsule_New(&m, Names<M>::fresh, drop_capsule<M>);
  if (!capsule) throw nb::python_error();
  exported.release();
  return nb::steal(capsule);
}

bool asks_for_version_1(nb::handle max_version) {
  return !max_version.is_none() && nb::cast<int>(max_version[0]) >= 1;
}

void require_cpu(nb::handle device) {
  if (device.is_none() || nb::cast<int>(device[0]) == kCpu) return;
  PyErr_SetString(PyExc_BufferError, "a Tensor can be exported to the CPU only: move it first");
  throw nb::python_error();
}

/// In memory that nothing else reads: the importer may write to it.
Tensor copied(const Tensor& x) {
  const auto view = host_view(x);
  const auto bytes = static_cast<size_t>(bytes_for(view->dtype, view->numel()));
  return Tensor::from_bytes({static_cast<const std::byte*>(view->data), bytes}, view->dtype,
                            x.dims(), CallSite());
}

nb::object to_dlpack(const Tensor& x, nb::handle stream, nb::handle max_version, nb::handle device,
                     nb::handle copy) {
  if (!stream.is_none()) fail("__dlpack__.stream", "memory of the CPU has no streams: pass None");
  require_cpu(device);
  const bool copies = !copy.is_none() && nb::cast<bool>(copy);
  auto view = host_view(copies ? copied(x) : x);
  if (asks_for_version_1(max_version))
    return export_view<ManagedVersioned>(std::move(view), copies ? kIsCopied : kReadOnly);
  return export_view<Managed>(std::move(view), 0);
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

bool is_row_major(const Array& a) {
  if (!a.strides) return true;
  int64_t step = 1;
  for (int32_t i = a.ndim; i-- > 0;) {
    if (a.shape[i] != 1 && a.strides[i] != step) return false;
    step *= a.shape[i];
  }
  return true;
}

Tensor tensor_of(const Array& a, std::shared_ptr<const void> owner, bool copies) {
  if (a.device.type != kCpu)
    fail("from_dlpack.device", "memory of DLPack device type {}: bring it to the CPU first",
         a.device.type);
  const DType dtype = dtype_of(a.dtype);
  const std::span<const int64_t> shape(a.shape, static_cast<size_t>(a.ndim));
  for (int64_t n : shape)
    if (n == 0) return Tensor::empty(Dims(shape), dtype, CallSite());
  const auto* data = static_cast<const std::byte*>(a.data) + a.byte_offset;
  if (is_row_major(a) && !copies) return borrowed_tensor(data, dtype, shape, std::move(owner));
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  if (a.strides) strides.assign(a.strides, a.strides + a.ndim);
  return strided_tensor(data, dtype, shape, strides);
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

Tensor from_dlpack(nb::handle from, nb::handle copy) {
  const nb::object capsule = capsule_of(from);
  const bool copies = !copy.is_none() && nb::cast<bool>(copy);
  if (PyCapsule_IsValid(capsule.ptr(), kVersionedName)) {
    const auto managed = taken<ManagedVersioned>(capsule.ptr());
    if (managed->version.major != kMajor)
      fail("from_dlpack.version", "DLPack {}.{} is not version {}", managed->version.major,
           managed->version.minor, kMajor);
    return tensor_of(managed->array, managed, copies);
  }
  if (!PyCapsule_IsValid(capsule.ptr(), kName))
    fail("from_dlpack.capsule", "the capsule holds no DLPack tensor, or was used before");
  const auto managed = taken<Managed>(capsule.ptr());
  return tensor_of(managed->array, managed, copies);
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
  method(c, "__dlpack__", to_dlpack, nb::kw_only(), "stream"_a = nb::none(),
         "max_version"_a = nb::none(), "dl_device"_a = nb::none(), "copy"_a = nb::none());
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
