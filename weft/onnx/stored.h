// Values in files: what the backend tests of onnx keep inputs and outputs in, and .npy files.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/onnx/value.h"

namespace weft::onnx {

/// A TensorProto, SequenceProto, MapProto or OptionalProto: which, the declared type says. Message
/// fields: onnx/onnx-data.proto.
Value parse_stored(std::span<const std::byte> data, std::string_view what,
                   const DeclaredType& declared, std::shared_ptr<const void> owner = nullptr);
Value read_stored(const std::string& path, const DeclaredType& declared);

/// How two values differ, as numpy.testing.assert_allclose() compares: |x - wanted| <= atol + rtol
/// * |wanted|, element types and shapes equal. Empty: they do not. Runs what `x` needs.
std::string difference(const Value& x, const Value& wanted, double rtol, double atol);

}  // namespace weft::onnx
