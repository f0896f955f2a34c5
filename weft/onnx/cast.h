// Numbers of one ONNX type as another: Cast's rules. https://onnx.ai/onnx/operators/onnx__Cast.html
#pragma once

#include <string_view>

#include "weft/onnx/call.h"

namespace weft::onnx {

struct CastOptions {
  bool saturate = true;                ///< to 8 bits: what is too large becomes the largest number
  std::string_view round_mode = "up";  ///< to float8e8m0: up, down or nearest
};
/// x as dtype_of(to) has that type: rounded to values that the type has. An Error for types without
/// a dtype.
Value cast_to(const Tensor& x, ElementType to, const CastOptions& options = {});

Values cast(const NodeCall& call);
Values cast_like(const NodeCall& call);
Values bit_cast(const NodeCall& call);

}  // namespace weft::onnx
