// PyTorch's names of element types and of the storages that have them.
#pragma once

#include <string_view>

#include "weft/dtype/dtype.h"

namespace weft {

struct PtType {
  DType dtype;
  std::string_view name;     // torch.float32
  std::string_view storage;  // torch.FloatStorage; empty: its tensors have a storage of bytes
};

// The first row of a dtype is what is written.
inline constexpr PtType kPtTypes[] = {
    {DType::F32, "float32", "FloatStorage"},
    {DType::F64, "float64", "DoubleStorage"},
    {DType::F16, "float16", "HalfStorage"},
    {DType::BF16, "bfloat16", "BFloat16Storage"},
    {DType::U8, "uint8", "ByteStorage"},
    {DType::I8, "int8", "CharStorage"},
    {DType::I16, "int16", "ShortStorage"},
    {DType::I32, "int32", "IntStorage"},
    {DType::I64, "int64", "LongStorage"},
    {DType::Bool, "bool", "BoolStorage"},
    {DType::U16, "uint16", ""},
    {DType::U32, "uint32", ""},
    {DType::U64, "uint64", ""},
    {DType::F8E4M3, "float8_e4m3fn", ""},
    {DType::F8E5M2, "float8_e5m2", ""},
    {DType::F8E4M3Fnuz, "float8_e4m3fnuz", ""},
    {DType::F8E5M2Fnuz, "float8_e5m2fnuz", ""},
    {DType::U8, "", "UntypedStorage"},
};

}  // namespace weft
