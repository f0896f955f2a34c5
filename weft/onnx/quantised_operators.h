// Rows of quantised_operators.cpp that have files of their own.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

// quantised_products.cpp
Values product_of_integers(const NodeCall& call);
Values quantised_product(const NodeCall& call);
Values convolution_of_integers(const NodeCall& call);
Values quantised_convolution(const NodeCall& call);

}  // namespace weft::onnx
