// Files of tensors, and tensors of bytes.
#include <nanobind/stl/map.h>

#include "weft/io/idx.h"
#include "weft/io/tensors.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/tensor/access.h"

namespace weft::python {

namespace {

/// Mapped where the file's bytes are aligned to elements.
Tensor mapped(const HostArray& a) {
  if (a.numel() == 0) return Tensor::empty(Dims(a.shape), a.dtype, CallSite());
  return borrowed_tensor(a.bytes.data(), a.dtype, a.shape, a.owner);
}

nb::dict load_safetensors(const std::string& path) {
  nb::dict all;
  for (const NamedArray& named : read_safetensors_model(path).arrays)
    all[nb::str(named.name.c_str())] = nb::cast(mapped(named.array));
  return all;
}

void save_safetensors(const nb::dict& tensors, const std::string& path, const Metadata& metadata) {
  std::vector<NamedTensor> named;
  for (const auto& [name, t] : tensors)
    named.push_back({nb::cast<std::string>(name), nb::cast<Tensor>(t)});
  const nb::gil_scoped_release released;
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

}  // namespace

void bind_files(nb::module_& m) {
  method(m, "load_safetensors", load_safetensors, "path"_a);
  method(m, "save_safetensors", save_safetensors, "tensors"_a, "path"_a, "metadata"_a);
  method(
      m, "safetensors_metadata",
      [](const std::string& path) { return read_safetensors_model(path).metadata; }, "path"_a);
  method(m, "load_idx", [](const std::string& path) { return mapped(read_idx(path)); }, "path"_a);
  method(m, "tensor_of_bytes", tensor_of_bytes, "data"_a, "dtype"_a, "shape"_a,
         "requires_grad"_a.none());
}

}  // namespace weft::python
