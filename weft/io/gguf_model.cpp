#include "weft/io/gguf_model.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/io/host_memory.h"
#include "weft/io/quantise.h"
#include "weft/io/tensors.h"
#include "weft/tensor/packed.h"

namespace weft {

namespace {

Tensor in_file(const GgufTensor& tensor) {
  const CodecRow& format = row(tensor.codec);
  const DType dtype = is_plain(tensor.codec) ? format.dtype : DType::U8;
  const std::vector<int64_t> shape = is_plain(tensor.codec)
                                         ? tensor.shape
                                         : std::vector{static_cast<int64_t>(tensor.bytes.size())};
  if (tensor.bytes.empty()) return Tensor::empty(Dims(shape), dtype);
  return borrowed_tensor(tensor.bytes.data(), dtype, shape, tensor.owner);
}

}  // namespace

Tensor PackedTensor::value(DType dtype, CallSite at) const {
  if (is_plain(codec)) return dtype == DType::Void ? packed : packed.cast(dtype, at);
  return decode(packed, codec, shape, dtype == DType::Void ? DType::F32 : dtype, at);
}

Tensor PackedTensor::product(const Tensor& x, Factors factors, CallSite at) const {
  return product_with(x, value(DType::F32, at), factors, at);
}

const PackedTensor* GgufModel::find(std::string_view name) const {
  const auto at = std::ranges::find(tensors, name, &PackedTensor::name);
  return at == tensors.end() ? nullptr : &*at;
}

GgufModel gguf_model(GgufContent content) {
  GgufModel model;
  for (const GgufTensor& tensor : content.tensors)
    model.tensors.push_back({tensor.name, tensor.codec, Dims(tensor.shape), in_file(tensor)});
  model.content = std::move(content);
  return model;
}

GgufModel load_gguf(const std::string& path) { return gguf_model(read_gguf(path)); }

GgufTensor gguf_tensor(const std::string& name, const Tensor& x, Codec codec) {
  const bool as_it_is = row(codec).dtype == x.dtype();
  if (!as_it_is && !is_float(x.dtype())) {
    fail_type("gguf_tensor", "'{}' is {}: only floats are quantised, to {} here", name,
              weft::name(x.dtype()), weft::name(codec));
  }
  const HostArray array = host_array_of(as_it_is ? x : x.cast(DType::F32));
  if (as_it_is) return {name, codec, array.shape, array.bytes, array.owner};
  const std::span values(reinterpret_cast<const float*>(array.bytes.data()),
                         static_cast<size_t>(array.numel()));
  auto bytes = std::make_shared<const std::vector<std::byte>>(quantise(values, codec, array.shape));
  return {name, codec, array.shape, *bytes, bytes};
}

}  // namespace weft
