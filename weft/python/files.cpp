// Files of tensors, and tensors of bytes.
#include <nanobind/stl/map.h>

#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/io/idx.h"
#include "weft/io/npy.h"
#include "weft/io/pt.h"
#include "weft/io/tar.h"
#include "weft/io/tensors.h"
#include "weft/io/zip.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/python/host_view.h"
#include "weft/tensor/access.h"

namespace weft::python {

namespace {

/// By name; mapped where the file's bytes are aligned to elements.
nb::dict mapped(const std::vector<NamedArray>& arrays) {
  nb::dict all;
  for (const NamedArray& named : arrays)
    all[nb::str(named.name.data(), named.name.size())] = nb::cast(lent_tensor(named.array));
  return all;
}

/// A file that is a tensor of its bytes.
struct FileBytes {
  std::shared_ptr<HostView> view;
  std::span<const std::byte> data;
  std::shared_ptr<const void> owner;
};
FileBytes bytes_of_file(const Tensor& bytes, const std::string& what) {
  if (bytes.ndim() != 1 || bytes.dtype() != DType::U8)
    fail("files", "{}: a 1-D uint8 Tensor can be read as a file, not {} of shape {}", what,
         name(bytes.dtype()), bytes.dims().text());
  FileBytes file;
  file.view = host_view_nogil(bytes);
  file.data = {static_cast<const std::byte*>(file.view->data),
               static_cast<size_t>(file.view->numel())};
  file.owner = memory_owner(file.view);
  return file;
}

nb::dict load_safetensors(const std::string& path) {
  return mapped(read_safetensors_model(path).arrays);
}

/// The same of a file that is a tensor of its bytes.
nb::dict parse_safetensors_in(const Tensor& bytes, const std::string& what) {
  const FileBytes file = bytes_of_file(bytes, what);
  return mapped(parse_safetensors(file.data, what, file.owner).arrays);
}

void save_safetensors(const nb::dict& tensors, const std::string& path, const Metadata& metadata) {
  std::vector<NamedTensor> named;
  for (const auto& [name, t] : tensors)
    named.push_back({nb::cast<std::string>(name), nb::cast<Tensor>(t)});
  const Released released;
  save_tensors(path, named, metadata);
}

/// A reader of arrays out of a file's bytes.
using ReadArrays = std::vector<NamedArray>(std::span<const std::byte>, std::string_view,
                                           std::shared_ptr<const void>, const UnpackLimits&);
template <ReadArrays* read>
nb::dict arrays_in(const Tensor& bytes, const std::string& what, uint64_t max_bytes) {
  const FileBytes file = bytes_of_file(bytes, what);
  std::vector<NamedArray> arrays;
  {
    const Released released;
    const HostArray all{DType::U8, {bytes.numel()}, file.data, file.owner};
    UnpackLimits limits;
    limits.most_bytes = max_bytes;
    const HostArray plain = unpacked(all, what, limits);
    arrays = read(plain.bytes, what, plain.owner, limits);
  }
  return mapped(arrays);
}

/// What a pickle says as Python's objects: containers, numbers, texts, and Tensors. For all else
/// `foreign` is called with its name.
class PickledObjects {
 public:
  PickledObjects(const PtContent& content, nb::object foreign)
      : content_(content), foreign_(std::move(foreign)), made_(content.pickle.nodes.size()) {}

  nb::object of(uint32_t node) {
    if (made_[node]) return made_[node];
    if (++depth_ > kDeepest) fail_runtime("pt.size", "containers nested deeper than {}", kDeepest);
    nb::object object = make(node);
    --depth_;
    return made_[node] = std::move(object);
  }

 private:
  using Kind = PickleNode::Kind;
  static constexpr int kDeepest = 200;

  nb::object make(uint32_t node) {
    const auto tensor = content_.tensors.find(node);
    if (tensor != content_.tensors.end()) return nb::cast(lent_tensor(tensor->second));
    const PickleNode& n = content_.pickle[node];
    switch (n.kind) {
      case Kind::None: return nb::none();
      case Kind::Bool: return nb::bool_(n.integer != 0);
      case Kind::Integer: return nb::int_(n.integer);
      case Kind::Number: return nb::float_(n.number);
      case Kind::Text: return nb::str(n.text.data(), n.text.size());
      case Kind::Bytes: return nb::bytes(n.text.data(), n.text.size());
      case Kind::LongInteger:
        return nb::handle(reinterpret_cast<PyObject*>(&PyLong_Type))
            .attr("from_bytes")(nb::bytes(n.text.data(), n.text.size()), "little",
                                nb::arg("signed") = true);
      case Kind::Name: return foreign_(nb::str(n.text.data(), n.text.size()));
      case Kind::Call: return foreign_(nb::str(content_.pickle[n.items[0]].text.c_str()));
      case Kind::Persistent: return foreign_("");
      default: return container(node, n);
    }
  }

  // Lists and dicts may hold themselves: known before their members are made.
  nb::object container(uint32_t node, const PickleNode& n) {
    if (n.kind == Kind::Dict) {
      nb::dict dict;
      made_[node] = dict;
      for (size_t i = 0; i + 1 < n.items.size(); i += 2) dict[of(n.items[i])] = of(n.items[i + 1]);
      return dict;
    }
    nb::list list;
    if (n.kind == Kind::List) made_[node] = list;
    for (const uint32_t item : n.items) list.append(of(item));
    if (n.kind == Kind::Tuple) return nb::tuple(list);
    return n.kind == Kind::Set ? nb::steal(PySet_New(list.ptr())) : list;
  }

  const PtContent& content_;
  nb::object foreign_;
  std::vector<nb::object> made_;
  int depth_ = 0;
};

nb::object load_pt(const Tensor& bytes, const std::string& what, uint64_t max_bytes,
                   const nb::object& foreign) {
  const FileBytes file = bytes_of_file(bytes, what);
  UnpackLimits limits;
  limits.most_bytes = max_bytes;
  const PtContent content = parse_pt(file.data, what, file.owner, limits);
  return PickledObjects(content, foreign).of(content.pickle.root);
}

template <void (*save)(const std::string&, const std::vector<NamedArray>&)>
void save_arrays(const nb::dict& tensors, const std::string& path) {
  std::vector<Tensor> values;
  std::vector<NamedArray> arrays;
  for (const auto& [key, t] : tensors) {
    values.push_back(nb::cast<Tensor>(t));
    arrays.push_back({nb::cast<std::string>(key), {}});
  }
  const Released released;
  realize(values);
  for (size_t i = 0; i < values.size(); ++i) arrays[i].array = host_array_of(values[i]);
  save(path, arrays);
}

Tensor load_npy(const Tensor& bytes, const std::string& what) {
  const FileBytes file = bytes_of_file(bytes, what);
  return lent_tensor(parse_npy(file.data, what, file.owner));
}

Tensor decompressed(const Tensor& bytes, const std::string& what, uint64_t max_bytes) {
  const FileBytes file = bytes_of_file(bytes, what);
  UnpackLimits limits;
  limits.most_bytes = max_bytes;
  return lent_tensor(unpacked({DType::U8, {bytes.numel()}, file.data, file.owner}, what, limits));
}

void bind_archives(nb::module_& m) {
  method(m, "unzip", arrays_in<unzip>, "bytes"_a, "what"_a, "max_bytes"_a,
         "The members of a zip archive by name; max_bytes 0: 256 MiB, or 100 times the archive.");
  method(m, "untar", arrays_in<untar>, "bytes"_a, "what"_a, "max_bytes"_a,
         "The files of a tar archive, also of a compressed one, by name.");
  method(m, "load_npz", arrays_in<parse_npz>, "bytes"_a, "what"_a, "max_bytes"_a);
  method(m, "load_npy", load_npy, "bytes"_a, "what"_a);
  method(m, "decompressed", decompressed, "bytes"_a, "what"_a, "max_bytes"_a,
         "The content of gzip or zstd; what is neither as it is.");
  method(m, "load_pt", load_pt, "bytes"_a, "what"_a, "max_bytes"_a, "foreign"_a);
  method(m, "save_pt", save_arrays<save_pt>, "tensors"_a, "path"_a);
  method(m, "save_npz", save_arrays<save_npz>, "tensors"_a, "path"_a);
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
  method(m, "parse_safetensors", parse_safetensors_in, "bytes"_a, "what"_a);
  method(m, "save_safetensors", save_safetensors, "tensors"_a, "path"_a, "metadata"_a);
  method(
      m, "safetensors_metadata",
      [](const std::string& path) { return read_safetensors_model(path).metadata; }, "path"_a);
  method(
      m, "load_idx", [](const std::string& path) { return lent_tensor(read_idx(path)); }, "path"_a);
  bind_archives(m);
  method(m, "tensor_of_bytes", tensor_of_bytes, "data"_a, "dtype"_a, "shape"_a,
         "requires_grad"_a.none());
}

}  // namespace weft::python
