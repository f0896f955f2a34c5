// Rows of convolution_operators.cpp that have files of their own.
#pragma once

#include "weft/onnx/call.h"

namespace weft::onnx {

// convolution_operators.cpp
Values causal_convolution(const NodeCall& call);

// pool_operators.cpp
Values max_pool(const NodeCall& call);
Values average_pool(const NodeCall& call);
Values lp_pool(const NodeCall& call);
Values global_average_pool(const NodeCall& call);
Values global_max_pool(const NodeCall& call);
Values global_lp_pool(const NodeCall& call);
Values max_unpool(const NodeCall& call);
Values max_roi_pool(const NodeCall& call);

// deformed_convolution.cpp
Values deformed_convolution(const NodeCall& call);

}  // namespace weft::onnx
