#include "weft/io/tensors.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/io/gguf_model.h"

namespace weft {

Tensor tensor_of(const HostArray& array) {
  return Tensor::from_bytes(array.bytes, array.dtype, Dims(array.shape));
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

}  // namespace

LoadedTensors load_tensors(const std::string& path) {
  if (is_gguf(path)) return load_packed(path);
  SafetensorsContent content = read_safetensors_model(path);
  LoadedTensors loaded;
  loaded.metadata = std::move(content.metadata);
  for (NamedArray& named : content.arrays) {
    loaded.tensors.push_back({std::move(named.name), tensor_of(named.array)});
  }
  return loaded;
}

}  // namespace weft
