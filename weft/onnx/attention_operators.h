// Rows of attention_operators.cpp that have files of their own.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

// linear_attention.cpp
Values linear_attention(const NodeCall& call);
// rotary_embedding.cpp
Values rotary_embedding(const NodeCall& call);

}  // namespace weft::onnx
