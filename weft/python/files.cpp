// Files of tensors, and tensors of bytes.
#include <nanobind/stl/map.h>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/io/idx.h"
#include "weft/io/tensors.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/python/host_view.h"
#include "weft/tensor/access.h"

namespace weft::python {

namespace {

/// Mapped where the file's bytes are aligned to elements.
Tensor mapped(const HostArray& a) {
  if (a.numel() == 0) return Tensor::empty(Dims(a.shape), a.dtype, CallSite());
  return borrowed_tensor(a.bytes.data(), a.dtype, a.shape, a.owner);
}

nb::dict mapped(const SafetensorsContent& content) {
  nb::dict all;
  for (const NamedArray& named : content.arrays)
    all[nb::str(named.name.data(), named.name.size())] = nb::cast(mapped(named.array));
  return all;
}

nb::dict load_safetensors(const std::string& path) { return mapped(read_safetensors_model(path)); }

/// The same of a file that is a tensor of its bytes.
nb::dict parse_safetensors_in(const Tensor& bytes, const std::string& what) {
  if (bytes.ndim() != 1 || bytes.dtype() != DType::U8)
    fail("safetensors", "{}: a 1-D uint8 Tensor can be read as a file, not {} of shape {}", what,
         name(bytes.dtype()), bytes.dims().text());
  const std::shared_ptr<HostView> view = host_view(bytes);
  const std::span data(static_cast<const std::byte*>(view->data),
                       static_cast<size_t>(view->numel()));
  return mapped(parse_safetensors(data, what, view));
}

void save_safetensors(const nb::dict& tensors, const std::string& path, const Metadata& metadata) {
  std::vector<NamedTensor> named;
  for (const auto& [name, t] : tensors)
    named.push_back({nb::cast<std::string>(name), nb::cast<Tensor>(t)});
  const Released released;
  save_tensors(path, named, metadata);
}

Tensor tensor_of_bytes(const nb::bytes& data, DType dtype, const Dims& shape,
                       std::optional<bool> requires_grad) {
  const std::span bytes(static_cast<const std::byte*>(data.data()), data.size());
  Tensor t = Tensor::from_bytes(bytes, dtype, shape, CallSite());
  if (requires_grad == true) t.requires_grad_(true, CallSite());
  if (is_float(dtype)) offer_leaf(t, requires_grad.value_or(true));
  return t;
}

/// Elements from the first to the last that these strides (in elements) reach; none of nothing.
int64_t reach(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  int64_t last = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) return 0;
    if (shape[i] < 0 || strides[i] < 0)
      fail("elements", "a size or stride is negative: {} and {}", shape[i], strides[i]);
    last = add_or_fail("elements", last, mul_or_fail("elements", shape[i] - 1, strides[i]));
  }
  return add_or_fail("elements", last, 1);
}

/// What repeats along an axis (a stride of 0) needs no memory for each.
Tensor repeated(const Tensor& bytes, int64_t offset, DType dtype, std::vector<int64_t> shape,
                const std::vector<int64_t>& strides) {
  const Dims whole(shape);
  int64_t step = 1;
  bool dense = true;
  for (size_t i = shape.size(); i-- > 0;) {
    if (strides[i] == 0) shape[i] = 1;
    dense = dense && (shape[i] == 1 || strides[i] == step);
    step *= shape[i];
  }
  const std::shared_ptr<HostView> view = host_view(bytes);
  const auto* data = static_cast<const std::byte*>(view->data) + offset;
  const Tensor t = dense ? borrowed_tensor(data, dtype, shape, view)
                         : strided_tensor(data, dtype, shape, strides);
  return t.expand(whole, CallSite());
}

/// Elements of another dtype in bytes offset to end of a tensor, in its memory where they are in
/// order and aligned. What would be outside of those bytes is an error.
Tensor elements_in(const Tensor& bytes, int64_t offset, int64_t end, DType dtype,
                   const std::vector<int64_t>& shape, const std::vector<int64_t>& strides) {
  if (bits(bytes.dtype()) != 8 || strides.size() != shape.size())
    fail("elements", "bytes, and a stride for every axis, are wanted");
  const int64_t count = reach(shape, strides), size = bits(dtype) / 8;
  const int64_t wanted = mul_or_fail("elements", count, size);
  if (offset < 0 || offset > end || end > bytes.numel() || wanted > end - offset)
    fail("elements", "{} bytes at {} are not before {} of {} bytes", wanted, offset, end,
         bytes.numel());
  if (count == 0) return Tensor::empty(Dims(shape), dtype, CallSite());
  int64_t all = size, distinct = 1;  // a file must not ask for more memory than it has
  for (size_t i = 0; i < shape.size(); ++i) {
    all = mul_or_fail("elements", all, shape[i]);
    if (strides[i] != 0) distinct = mul_or_fail("elements", distinct, shape[i]);
  }
  if (distinct > count) fail("elements", "{} elements overlap in {}", distinct, count);
  return repeated(bytes, offset, dtype, shape, strides);
}

}  // namespace

void bind_files(nb::module_& m) {
  method(m, "load_safetensors", load_safetensors, "path"_a);
  method(m, "parse_safetensors", parse_safetensors_in, "bytes"_a, "what"_a);
  method(m, "save_safetensors", save_safetensors, "tensors"_a, "path"_a, "metadata"_a);
  method(
      m, "safetensors_metadata",
      [](const std::string& path) { return read_safetensors_model(path).metadata; }, "path"_a);
  method(m, "elements_in", elements_in, "bytes"_a, "offset"_a, "end"_a, "dtype"_a, "shape"_a,
         "strides"_a, "A tensor of the elements in a tensor of bytes.");
  method(m, "load_idx", [](const std::string& path) { return mapped(read_idx(path)); }, "path"_a);
  method(m, "tensor_of_bytes", tensor_of_bytes, "data"_a, "dtype"_a, "shape"_a,
         "requires_grad"_a.none());
}

}  // namespace weft::python
