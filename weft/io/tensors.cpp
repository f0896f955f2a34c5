#include "weft/io/tensors.h"

#include <algorithm>
#include <cstring>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/io/gguf_model.h"
#include "weft/io/host_memory.h"
#include "weft/io/npy.h"
#include "weft/io/pt.h"
#include "weft/io/zip.h"

namespace weft {

Tensor tensor_of(const HostArray& array) {
  return Tensor::from_bytes(array.bytes, array.dtype, Dims(array.shape));
}

Tensor lent_tensor(const HostArray& array) {
  if (array.owner == nullptr || array.numel() == 0) return tensor_of(array);
  return borrowed_tensor(array.bytes.data(), array.dtype, array.shape, array.owner);
}

HostArray host_array_of(const Tensor& tensor) {
  std::vector<int64_t> shape = tensor.shape();
  std::vector<std::byte> bytes(static_cast<size_t>(bytes_for(tensor.dtype(), tensor.numel())));
  tensor.copy_to(bytes);
  return HostArray::owned(tensor.dtype(), std::move(shape), std::move(bytes));
}

void save_tensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                  const Metadata& metadata) {
  std::vector<Tensor> values;
  for (const NamedTensor& named : tensors) values.push_back(named.tensor);
  realize(values);
  std::vector<NamedArray> arrays;
  for (const NamedTensor& named : tensors) {
    arrays.push_back({named.name, host_array_of(named.tensor)});
  }
  save_safetensors(path, std::move(arrays), metadata);
}

namespace {

LoadedTensors load_packed(const std::string& path) {
  GgufModel model = load_gguf(path);
  LoadedTensors loaded;
  for (const auto& [key, value] : model.content.metadata)
    loaded.metadata.emplace(
        key, value.type == GgufType::String ? std::string(value.text()) : value.shown(UINT64_MAX));
  for (PackedTensor& t : model.tensors) loaded.tensors.push_back({std::move(t.name), t.value()});
  std::ranges::sort(loaded.tensors, {}, &NamedTensor::name);
  return loaded;
}

bool is_numpy(std::span<const std::byte> data) {
  return data.size() >= 6 && std::memcmp(data.data(), "\x93NUMPY", 6) == 0;
}

SafetensorsContent arrays_in_archive(std::span<const std::byte> data, const std::string& path,
                                     const std::shared_ptr<const void>& owner) {
  for (const ZipMember& member : parse_zip(data, path))
    if (member.name.ends_with(".npy")) return {parse_npz(data, path, owner), {}};
  return {parse_pt(data, path, owner).arrays, {}};
}

// By what a file begins with.
SafetensorsContent arrays_in(const std::string& path) {
  if (is_directory(path) || path.ends_with(".index.json")) return read_safetensors_model(path);
  const auto file = MappedFile::open(path);
  const std::span<const std::byte> data = file->bytes();
  if (is_zip(data)) return arrays_in_archive(data, path, file);
  if (is_numpy(data)) return {{{"", parse_npy(data, path, file)}}, {}};
  constexpr std::byte kProtocol{0x80};
  if (data.size() >= 2 && data[0] == kProtocol && data[1] == std::byte{2})
    return {parse_pt(data, path, file).arrays, {}};
  return parse_safetensors(data, path, file);
}

}  // namespace

LoadedTensors load_tensors(const std::string& path) {
  if (is_gguf(path)) return load_packed(path);
  SafetensorsContent content = arrays_in(path);
  if (!std::ranges::is_sorted(content.arrays, {}, &NamedArray::name))
    std::ranges::sort(content.arrays, {}, &NamedArray::name);
  LoadedTensors loaded;
  loaded.metadata = std::move(content.metadata);
  for (NamedArray& named : content.arrays)
    loaded.tensors.push_back({std::move(named.name), lent_tensor(named.array)});
  return loaded;
}

}  // namespace weft
