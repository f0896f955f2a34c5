// The WGSL text of every elementwise op, as data: the first row that fits op and kind of operands.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/graph/op.h"

namespace weft {

/// What values are in WGSL. Integers below 32 bits are i32 or u32 that hold them, 64-bit integers
/// are vec2<u32> with the low word first, f16 and bf16 their bits in a u32.
enum WgslKind : uint8_t {
  kWgslFloat = 1,
  kWgslSigned = 2,
  kWgslUnsigned = 4,
  kWgslI64 = 8,
  kWgslU64 = 16,
  kWgslBool = 32,
  kWgslHalf = 64,
};
constexpr uint8_t kWgslInt = kWgslSigned | kWgslUnsigned;
constexpr uint8_t kWgslLong = kWgslI64 | kWgslU64;

/// In `text`: $0 $1 $2 operands (a name, a literal or a call), $B the bits of the dtype, @function
/// as in wgsl_prelude.cpp. `wraps`: integers below 32 bits are cut to their width.
struct WgslOp {
  Op op;
  uint8_t kinds;
  std::string_view text;
  bool wraps = false;
};

inline constexpr WgslOp kWgslOps[] = {
    {Op::Neg, kWgslFloat, "@negative($0)"},
    {Op::Neg, kWgslSigned, "-$0", true},
    {Op::Neg, kWgslUnsigned, "0u - $0", true},
    {Op::Neg, kWgslLong, "@neg64($0)"},
    {Op::Neg, kWgslBool, "$0"},
    {Op::Not, kWgslInt, "~$0", true},
    {Op::Not, kWgslLong, "~$0"},
    {Op::Not, kWgslBool, "!$0"},
    {Op::Sqrt, kWgslFloat, "@keep(sqrt($0))"},
    {Op::Trunc, kWgslFloat, "@keep(trunc($0))"},
    {Op::Add, kWgslFloat, "@keep($0 + $1)"},
    {Op::Add, kWgslInt, "$0 + $1", true},
    {Op::Add, kWgslLong, "@add64($0, $1)"},
    {Op::Add, kWgslBool, "$0 | $1"},
    {Op::Mul, kWgslFloat, "@keep($0 * $1)"},
    {Op::Mul, kWgslInt, "$0 * $1", true},
    {Op::Mul, kWgslLong, "@mul64($0, $1)"},
    {Op::Mul, kWgslBool, "$0 & $1"},
    {Op::Div, kWgslFloat, "@keep($0 / $1)"},
    {Op::CDiv, kWgslInt, "$0 / $1", true},
    {Op::CDiv, kWgslI64, "@div_i64($0, $1)"},
    {Op::CDiv, kWgslU64, "@divmod64($0, $1).xy"},
    {Op::CMod, kWgslInt, "$0 % $1", true},
    {Op::CMod, kWgslI64, "@mod_i64($0, $1)"},
    {Op::CMod, kWgslU64, "@divmod64($0, $1).zw"},
    {Op::Max, kWgslInt, "max($0, $1)"},
    {Op::Max, kWgslI64, "select($0, $1, @less_i64($0, $1))"},
    {Op::Max, kWgslU64, "select($0, $1, @less_u64($0, $1))"},
    {Op::Max, kWgslBool, "$0 | $1"},
    {Op::Min, kWgslInt, "min($0, $1)"},
    {Op::Min, kWgslI64, "select($0, $1, @less_i64($1, $0))"},
    {Op::Min, kWgslU64, "select($0, $1, @less_u64($1, $0))"},
    {Op::Min, kWgslBool, "$0 & $1"},
    {Op::Lt, kWgslFloat | kWgslInt, "$0 < $1"},
    {Op::Lt, kWgslI64, "@less_i64($0, $1)"},
    {Op::Lt, kWgslU64, "@less_u64($0, $1)"},
    {Op::Lt, kWgslBool, "!$0 & $1"},
    {Op::Le, kWgslFloat | kWgslInt, "$0 <= $1"},
    {Op::Le, kWgslI64, "!@less_i64($1, $0)"},
    {Op::Le, kWgslU64, "!@less_u64($1, $0)"},
    {Op::Le, kWgslBool, "!$0 | $1"},
    {Op::Eq, kWgslFloat | kWgslInt | kWgslBool, "$0 == $1"},
    {Op::Eq, kWgslLong, "all($0 == $1)"},
    // SPIR-V's OpFOrdNotEqual, which naga makes of !=, is false with NaN.
    {Op::Ne, kWgslFloat, "!($0 == $1)"},
    {Op::Ne, kWgslInt | kWgslBool, "$0 != $1"},
    {Op::Ne, kWgslLong, "any($0 != $1)"},
    {Op::And, kWgslInt | kWgslLong | kWgslBool, "$0 & $1"},
    {Op::Or, kWgslInt | kWgslLong | kWgslBool, "$0 | $1"},
    {Op::Xor, kWgslInt | kWgslLong, "$0 ^ $1"},
    {Op::Xor, kWgslBool, "$0 != $1"},
    {Op::Shl, kWgslSigned, "select(0i, $0 << (u32($1) & 31u), u32($1) < $Bu)", true},
    {Op::Shl, kWgslUnsigned, "select(0u, $0 << ($1 & 31u), $1 < $Bu)", true},
    {Op::Shl, kWgslLong, "@shl64($0, $1)"},
    {Op::Shl, kWgslBool, "$0 & !$1"},
    {Op::Shr, kWgslSigned, "$0 >> min(u32($1), 31u)"},
    {Op::Shr, kWgslUnsigned, "select(0u, $0 >> ($1 & 31u), $1 < 32u)"},
    {Op::Shr, kWgslI64, "@shr_i64($0, $1)"},
    {Op::Shr, kWgslU64, "@shr_u64($0, $1)"},
    {Op::Shr, kWgslBool, "$0 & !$1"},
    {Op::Where, 0xff, "select($2, $1, $0)"},
    {Op::MulAcc, kWgslInt, "$0 * $1 + $2", true},
    {Op::MulAcc, kWgslLong, "@add64(@mul64($0, $1), $2)"},
    {Op::MulAcc, kWgslBool, "($0 & $1) | $2"},
};

}  // namespace weft
