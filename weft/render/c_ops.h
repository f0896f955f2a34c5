// The C text of every elementwise op, as data: the first row that fits op, dtype kind and form.
#pragma once

#include <cstdint>
#include <string_view>

#include "weft/graph/op.h"

namespace weft {

enum COpKind : uint8_t { kCFloat = 1, kCInt = 2, kCBool = 4 };
enum COpForm : uint8_t { kCScalar = 1, kCVector = 2, kCBoth = 3 };
/// When the row holds.
enum class COpWhen : uint8_t {
  Always,
  NoWrap,        // bounds prove that a signed result does not overflow
  ConstShift,    // the second operand is a constant inside [0, bits)
  SafeQuotient,  // the divisor is not -1
};

/// In `text`: $0 $1 $2 operands (always a name or a literal), $T type of the result, $U its
/// unsigned form, $W that but at least 32 bits wide, $I its mask type, $M type of a comparison's
/// result, $t $f and @function as in c_prelude.cpp. Integers wrap, so arithmetic is done unsigned.
struct COp {
  Op op;
  uint8_t kinds, forms;
  std::string_view text;
  COpWhen when = COpWhen::Always;
};

inline constexpr COp kCOps[] = {
    {Op::Neg, kCFloat, kCBoth, "-$0"},
    {Op::Neg, kCInt, kCBoth, "-$0", COpWhen::NoWrap},
    {Op::Neg, kCInt, kCBoth, "($T)-($W)$0"},
    {Op::Neg, kCBool, kCBoth, "$0"},
    {Op::Not, kCInt, kCBoth, "($T)~$0"},
    {Op::Not, kCBool, kCScalar, "!$0"},
    {Op::Not, kCBool, kCVector, "~$0"},
    {Op::Sqrt, kCFloat, kCBoth, "@sqrt_$t($0)"},
    {Op::Trunc, kCFloat, kCBoth, "@trunc_$t($0)"},
    {Op::Add, kCFloat, kCBoth, "$0 + $1"},
    {Op::Add, kCInt, kCBoth, "$0 + $1", COpWhen::NoWrap},
    {Op::Add, kCInt, kCBoth, "($T)(($W)$0 + ($W)$1)"},
    {Op::Add, kCBool, kCBoth, "$0 | $1"},
    {Op::Mul, kCFloat, kCBoth, "$0 * $1"},
    {Op::Mul, kCInt, kCBoth, "$0 * $1", COpWhen::NoWrap},
    {Op::Mul, kCInt, kCBoth, "($T)(($W)$0 * ($W)$1)"},
    {Op::Mul, kCBool, kCBoth, "$0 & $1"},
    {Op::Div, kCFloat, kCBoth, "$0 / $1"},
    {Op::CDiv, kCInt, kCBoth, "($T)($0 / $1)", COpWhen::SafeQuotient},
    {Op::CDiv, kCInt, kCBoth, "@cdiv_$t($0, $1)"},
    {Op::CMod, kCInt, kCBoth, "($T)($0 % $1)", COpWhen::SafeQuotient},
    {Op::CMod, kCInt, kCBoth, "@cmod_$t($0, $1)"},
    {Op::Max, kCFloat, kCBoth, "@max_$t($0, $1)"},
    {Op::Max, kCInt, kCBoth, "@imax_$t($0, $1)"},
    {Op::Max, kCBool, kCBoth, "$0 | $1"},
    {Op::Min, kCFloat, kCBoth, "@min_$t($0, $1)"},
    {Op::Min, kCInt, kCBoth, "@imin_$t($0, $1)"},
    {Op::Min, kCBool, kCBoth, "$0 & $1"},
    {Op::Lt, kCFloat | kCInt, kCBoth, "($M)($0 < $1)"},
    {Op::Le, kCFloat | kCInt, kCBoth, "($M)($0 <= $1)"},
    {Op::Eq, kCFloat | kCInt, kCBoth, "($M)($0 == $1)"},
    {Op::Ne, kCFloat | kCInt, kCBoth, "($M)($0 != $1)"},
    {Op::Lt, kCBool, kCScalar, "!$0 & $1"},
    {Op::Le, kCBool, kCScalar, "!$0 | $1"},
    {Op::Eq, kCBool, kCScalar, "$0 == $1"},
    {Op::Lt, kCBool, kCVector, "~$0 & $1"},
    {Op::Le, kCBool, kCVector, "~$0 | $1"},
    {Op::Eq, kCBool, kCVector, "~($0 ^ $1)"},
    {Op::Ne, kCBool, kCBoth, "$0 ^ $1"},
    {Op::And, kCInt | kCBool, kCBoth, "($T)($0 & $1)"},
    {Op::Or, kCInt | kCBool, kCBoth, "($T)($0 | $1)"},
    {Op::Xor, kCInt | kCBool, kCBoth, "($T)($0 ^ $1)"},
    {Op::Shl, kCInt, kCBoth, "($T)(($W)$0 << $1)", COpWhen::ConstShift},
    {Op::Shl, kCInt, kCBoth, "@shl_$t($0, $1)"},
    {Op::Shr, kCInt, kCBoth, "($T)($0 >> $1)", COpWhen::ConstShift},
    {Op::Shr, kCInt, kCBoth, "@shr_$t($0, $1)"},
    {Op::Shl, kCBool, kCScalar, "$0 & !$1"},
    {Op::Shr, kCBool, kCScalar, "$0 & !$1"},
    {Op::Shl, kCBool, kCVector, "$0 & ~$1"},
    {Op::Shr, kCBool, kCVector, "$0 & ~$1"},
    {Op::Where, kCFloat | kCInt | kCBool, kCScalar, "$0 ? $1 : $2"},
    {Op::Where, kCFloat | kCInt | kCBool, kCVector, "($T)((($I)$1 & $0) | (($I)$2 & ~$0))"},
    {Op::MulAcc, kCFloat, kCBoth, "@fma_$t($0, $1, $2)"},
    {Op::MulAcc, kCInt, kCBoth, "($T)(($W)$0 * ($W)$1 + ($W)$2)"},
    {Op::MulAcc, kCBool, kCBoth, "($0 & $1) | $2"},
};

}  // namespace weft
