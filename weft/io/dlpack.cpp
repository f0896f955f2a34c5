#include "weft/io/dlpack.h"

#include <type_traits>

#include "weft/base/error.h"
#include "weft/io/host_array.h"

namespace weft::dlpack {

namespace {

// kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool
constexpr uint8_t kInt = 0, kUInt = 1, kFloat = 2, kBfloat = 4, kBool = 6;

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

template <class M>
struct Exported {
  M managed{};
  std::unique_ptr<HostView> view;
};

std::span<const int64_t> checked_shape(const Array& a, DType dtype) {
  constexpr int32_t kMostAxes = 64;  // NumPy's
  if (a.ndim < 0 || a.ndim > kMostAxes || (a.ndim > 0 && !a.shape))
    fail("from_dlpack.shape", "{} axes{}: a tensor has 0 to {}", a.ndim,
         a.shape ? "" : " without a shape", kMostAxes);
  const std::span<const int64_t> shape(a.shape, static_cast<size_t>(a.ndim));
  if (!checked_bytes(dtype, shape))
    fail("from_dlpack.shape", "shape {} has a negative size or more bytes than memory",
         shape_text(shape));
  return shape;
}

}  // namespace

template <class M>
M* export_view(std::unique_ptr<HostView> view, uint64_t flags) {
  auto exported = std::make_unique<Exported<M>>();
  exported->view = std::move(view);
  HostView& v = *exported->view;
  M& m = exported->managed;
  m.context = exported.get();
  m.deleter = [](M* managed) { delete static_cast<Exported<M>*>(managed->context); };
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
  return &exported.release()->managed;
}
template Managed* export_view(std::unique_ptr<HostView>, uint64_t);
template ManagedVersioned* export_view(std::unique_ptr<HostView>, uint64_t);

bool is_row_major(const Array& a) {
  if (!a.strides) return true;
  int64_t step = 1;
  for (int32_t i = a.ndim; i-- > 0;) {
    if (a.shape[i] != 1 && a.strides[i] != step) return false;
    step *= a.shape[i];
  }
  return true;
}

Tensor import_array(const Array& a, std::shared_ptr<const void> owner, bool copies) {
  if (a.device.type != kCpu)
    fail("from_dlpack.device", "memory of DLPack device type {}: bring it to the CPU first",
         a.device.type);
  const DType dtype = dtype_of(a.dtype);
  const std::span<const int64_t> shape = checked_shape(a, dtype);
  for (int64_t n : shape)
    if (n == 0) return Tensor::empty(Dims(shape), dtype, CallSite());
  if (!a.data) fail("from_dlpack.data", "shape {} without memory", shape_text(shape));
  const auto* data = static_cast<const std::byte*>(a.data) + a.byte_offset;
  if (is_row_major(a) && !copies) return borrowed_tensor(data, dtype, shape, std::move(owner));
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  if (a.strides) strides.assign(a.strides, a.strides + a.ndim);
  return strided_tensor(data, dtype, shape, strides);
}

Tensor import_array(std::shared_ptr<const ManagedVersioned> managed, bool copies) {
  if (managed->version.major != kMajor)
    fail("from_dlpack.version", "DLPack {}.{} is not version {}", managed->version.major,
         managed->version.minor, kMajor);
  const Array& array = managed->array;
  return import_array(array, std::move(managed), copies);
}

}  // namespace weft::dlpack
