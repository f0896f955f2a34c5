// A GGUF file's weights as tensors that stay packed: decoded where they are used, or not at all.
#pragma once

#include <string>
#include <vector>

#include "weft/io/gguf.h"
#include "weft/tensor/packed.h"
#include "weft/tensor/tensor.h"

namespace weft {

/// A weight in the file's mapping, or in a device's memory after to().
struct PackedTensor {
  std::string name;
  Codec codec = Codec::F32;
  Dims shape;
  Tensor packed;  ///< of shape `shape` in the codec's dtype where it is plain; else bytes, u8 1-D

  /// The numbers, as an expression that decodes where it is used. Plain ones keep their dtype where
  /// none is given; packed ones are f32 then.
  Tensor value(DType dtype = DType::Void, CallSite = CallSite::here()) const;
  /// x @ value()^T of a matrix, as f32: product_with() of weft/tensor/packed.h.
  Tensor product(const Tensor& x, Factors factors = Factors::F32,
                 CallSite = CallSite::here()) const;
};

struct GgufModel {
  GgufContent content;  ///< metadata, and where in the file tensors lie
  std::vector<PackedTensor> tensors;

  const PackedTensor* find(std::string_view name) const;  ///< null: none
};

/// What read_gguf() reads; nothing is copied before it is used.
///   const GgufModel model = load_gguf("model-Q4_K_M.gguf");
///   Tensor y = x.matmul(model.find("output.weight")->value().T());
GgufModel load_gguf(const std::string& path);
GgufModel gguf_model(GgufContent content);

/// A tensor for save_gguf(), quantised on the host. Realizes; F32, F16, BF16, F64 and integers of a
/// plain codec's own dtype are written as they are.
GgufTensor gguf_tensor(const std::string& name, const Tensor& x, Codec codec);

}  // namespace weft
