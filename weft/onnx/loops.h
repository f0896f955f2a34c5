// Loop and Scan: subgraphs that run many times.
#pragma once

#include "weft/onnx/operators.h"

namespace weft::onnx {

/// More trips of one loop than this are an Error: a file must not keep a process for ever.
constexpr int64_t kMostTrips = int64_t{1} << 20;

Values loop(const NodeCall& call);
Values scan(const NodeCall& call);          ///< since opset 9
Values scan_batches(const NodeCall& call);  ///< of opset 8: axis 0 of everything is a batch

}  // namespace weft::onnx
