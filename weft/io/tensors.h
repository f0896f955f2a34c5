// Tensors to files and back: host arrays, safetensors files of named tensors.
#pragma once

#include <string>
#include <vector>

#include "weft/io/safetensors.h"
#include "weft/tensor/tensor.h"

namespace weft {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

// A tensor with a copy of the array's elements, on the context's default device.
Tensor tensor_of(const HostArray& array);
// The array's own memory, not copied, where it has an owner, its elements are aligned and the
// default device is the host: arrays of a mapped file are read when they are used.
Tensor lent_tensor(const HostArray& array);
// The tensor's values now. Realizes; the shape must be numbers.
HostArray host_array_of(const Tensor& tensor);

// One safetensors file. Saving realizes all tensors together and replaces the file atomically.
void save_tensors(const std::string& path, const std::vector<NamedTensor>& tensors,
                  const Metadata& metadata = {});
struct LoadedTensors {
  std::vector<NamedTensor> tensors;  // sorted by name
  Metadata metadata;
};
// Files by what they are, whatever they are called: safetensors (a file, an index or a directory),
// PyTorch's (by the names that dicts give), .npz and .npy (one tensor named ""), and GGUF, whose
// packed tensors decode to f32 where they are used and whose metadata are texts here. Nothing is
// copied before it is used.
LoadedTensors load_tensors(const std::string& path);

}  // namespace weft
