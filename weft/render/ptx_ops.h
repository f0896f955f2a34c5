// The PTX text of every elementwise op and cast, as data: the first row that fits.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "weft/dtype/dtype.h"
#include "weft/graph/op.h"

namespace weft {

/// What values are in PTX. Integers below 32 bits are words that hold them, sign- or zero-extended;
/// f16 and bf16 their 16 bits; floats lie in untyped registers as all others do, which
/// instructions of any type take ("Type Checking of Operands").
enum PtxKind : uint16_t {
  kPtxBool = 1,
  kPtxS32 = 2,
  kPtxU32 = 4,
  kPtxS64 = 8,
  kPtxU64 = 16,
  kPtxF16 = 32,
  kPtxBF16 = 64,
  kPtxF32 = 128,
  kPtxF64 = 256,
};
constexpr uint16_t kPtxWord = kPtxS32 | kPtxU32;
constexpr uint16_t kPtxLong = kPtxS64 | kPtxU64;
constexpr uint16_t kPtxInt = kPtxWord | kPtxLong;
constexpr uint16_t kPtxHalf = kPtxF16 | kPtxBF16;
constexpr uint16_t kPtxFloat = kPtxF32 | kPtxF64;

/// Registers are numbered by what they hold.
enum class PtxBank : uint8_t { Predicate, Half, Word, Long };

struct PtxKindRow {
  PtxKind kind;
  PtxBank bank;
  std::string_view type, bits;  // of instructions: "s32", "b32"
};
inline constexpr PtxKindRow kPtxKinds[] = {
    {kPtxBool, PtxBank::Predicate, "pred", "pred"}, {kPtxS32, PtxBank::Word, "s32", "b32"},
    {kPtxU32, PtxBank::Word, "u32", "b32"},         {kPtxS64, PtxBank::Long, "s64", "b64"},
    {kPtxU64, PtxBank::Long, "u64", "b64"},         {kPtxF16, PtxBank::Half, "b16", "b16"},
    {kPtxBF16, PtxBank::Half, "b16", "b16"},        {kPtxF32, PtxBank::Word, "f32", "b32"},
    {kPtxF64, PtxBank::Long, "f64", "b64"},
};
/// How values of this dtype are held.
const PtxKindRow& ptx_kind(DType dtype);
/// Of elements in memory, and of conversions that cut integers to their width: "s8"; "u8" of bool.
std::string ptx_element(DType dtype);
/// An integer below 32 bits, in a word.
bool is_narrow(DType dtype);

/// When a row holds.
enum class PtxWhen : uint8_t {
  Always,
  ConstShift,    // the second operand is a constant inside [0, bits)
  NotNegative,   // neither operand is below 0
  SafeQuotient,  // the divisor is not -1, or the quotient by it fits in a word
  Narrow,        // the result is an integer below 32 bits
};

/// Statements with ; between them. $d is the result, $0 $1 $2 are operands: registers, or literals
/// where the row is no cast. $t is the operands' type ("s32"), $b that without a meaning ("b32"),
/// $T $B the result's, $N that of the elements it stands for ("s8"). Registers for what comes in
/// between: $P $Q predicates, $W a word, $X $Y as the operands, $U as the result. `wraps`: integers
/// below 32 bits are cut to their width.
///
/// Sums and products are written .rn, without which the assembler may fuse them ("Floating Point
/// Instructions: add"); nothing is flushed to zero without .ftz.
struct PtxOp {
  Op op;
  uint16_t kinds;
  std::string_view text;
  bool wraps = false;
  PtxWhen when = PtxWhen::Always;
};

inline constexpr PtxOp kPtxOps[] = {
    {Op::Neg, kPtxFloat, "neg.$t $d, $0"},
    {Op::Neg, kPtxWord, "neg.s32 $d, $0", true},
    {Op::Neg, kPtxLong, "neg.s64 $d, $0"},
    {Op::Neg, kPtxBool, "mov.pred $d, $0"},
    {Op::Not, kPtxInt, "not.$b $d, $0", true},
    {Op::Not, kPtxBool, "not.pred $d, $0"},
    {Op::Sqrt, kPtxFloat, "sqrt.rn.$t $d, $0"},
    {Op::Trunc, kPtxFloat, "cvt.rzi.$t.$t $d, $0"},
    {Op::Rint, kPtxFloat, "cvt.rni.$t.$t $d, $0"},
    {Op::Add, kPtxFloat, "add.rn.$t $d, $0, $1"},
    {Op::Add, kPtxInt, "add.$t $d, $0, $1", true},
    {Op::Add, kPtxBool, "or.pred $d, $0, $1"},
    {Op::Mul, kPtxFloat, "mul.rn.$t $d, $0, $1"},
    {Op::Mul, kPtxInt, "mul.lo.$t $d, $0, $1", true},
    {Op::Mul, kPtxBool, "and.pred $d, $0, $1"},
    {Op::Div, kPtxFloat, "div.rn.$t $d, $0, $1"},
    // A division of signed numbers is that of their absolute values, and then the sign.
    {Op::CDiv, kPtxS32, "div.u32 $d, $0, $1", false, PtxWhen::NotNegative},
    {Op::CDiv, kPtxS64, "div.u64 $d, $0, $1", false, PtxWhen::NotNegative},
    {Op::CDiv, kPtxInt, "div.$t $d, $0, $1", true, PtxWhen::SafeQuotient},
    {Op::CDiv, kPtxS32 | kPtxS64,
     "div.$t $X, $0, $1; neg.$t $Y, $0; setp.eq.$t $P, $1, -1; selp.$t $d, $Y, $X, $P"},
    {Op::CMod, kPtxS32, "rem.u32 $d, $0, $1", false, PtxWhen::NotNegative},
    {Op::CMod, kPtxS64, "rem.u64 $d, $0, $1", false, PtxWhen::NotNegative},
    {Op::CMod, kPtxInt, "rem.$t $d, $0, $1", true, PtxWhen::SafeQuotient},
    {Op::CMod, kPtxS32 | kPtxS64,
     "rem.$t $X, $0, $1; setp.eq.$t $P, $1, -1; selp.$t $d, 0, $X, $P"},
    {Op::Max, kPtxF32, "max.NaN.f32 $d, $0, $1"},
    // There is no .NaN of f64, and which zero it gives is not said: X and Y differ where operands
    // are equal, in the sign of zero alone.
    {Op::Max, kPtxF64,
     "setp.gt.f64 $P, $1, $0; selp.f64 $X, $1, $0, $P; setp.gt.f64 $P, $0, $1; "
     "selp.f64 $Y, $0, $1, $P; and.b64 $X, $X, $Y; add.rn.f64 $Y, $0, $1; "
     "setp.nan.f64 $P, $0, $1; selp.f64 $d, $Y, $X, $P"},
    {Op::Max, kPtxInt, "max.$t $d, $0, $1"},
    {Op::Max, kPtxBool, "or.pred $d, $0, $1"},
    {Op::Min, kPtxF32, "min.NaN.f32 $d, $0, $1"},
    {Op::Min, kPtxF64,
     "setp.lt.f64 $P, $1, $0; selp.f64 $X, $1, $0, $P; setp.lt.f64 $P, $0, $1; "
     "selp.f64 $Y, $0, $1, $P; or.b64 $X, $X, $Y; add.rn.f64 $Y, $0, $1; "
     "setp.nan.f64 $P, $0, $1; selp.f64 $d, $Y, $X, $P"},
    {Op::Min, kPtxInt, "min.$t $d, $0, $1"},
    {Op::Min, kPtxBool, "and.pred $d, $0, $1"},
    {Op::Lt, kPtxFloat | kPtxInt, "setp.lt.$t $d, $0, $1"},
    {Op::Lt, kPtxBool, "not.pred $P, $0; and.pred $d, $P, $1"},
    {Op::Le, kPtxFloat | kPtxInt, "setp.le.$t $d, $0, $1"},
    {Op::Le, kPtxBool, "not.pred $P, $0; or.pred $d, $P, $1"},
    {Op::Eq, kPtxFloat | kPtxInt, "setp.eq.$t $d, $0, $1"},
    {Op::Eq, kPtxBool, "xor.pred $P, $0, $1; not.pred $d, $P"},
    {Op::Ne, kPtxFloat, "setp.neu.$t $d, $0, $1"},  // true with NaN
    {Op::Ne, kPtxInt, "setp.ne.$t $d, $0, $1"},
    {Op::Ne, kPtxBool, "xor.pred $d, $0, $1"},
    {Op::And, kPtxInt | kPtxBool, "and.$b $d, $0, $1"},
    {Op::Or, kPtxInt | kPtxBool, "or.$b $d, $0, $1"},
    {Op::Xor, kPtxInt | kPtxBool, "xor.$b $d, $0, $1"},
    // The amount is a u32, and more than there are bits shifts all of them out ("Logic and Shift
    // Instructions: shl"): a negative one, too.
    {Op::Shl, kPtxWord, "shl.b32 $d, $0, $1", true},
    {Op::Shl, kPtxLong, "shl.b64 $d, $0, $1", false, PtxWhen::ConstShift},
    {Op::Shl, kPtxLong, "min.u64 $X, $1, 64; cvt.u32.u64 $W, $X; shl.b64 $d, $0, $W"},
    {Op::Shl, kPtxBool, "not.pred $P, $1; and.pred $d, $0, $P"},
    {Op::Shr, kPtxWord, "shr.$t $d, $0, $1"},
    {Op::Shr, kPtxLong, "shr.$t $d, $0, $1", false, PtxWhen::ConstShift},
    {Op::Shr, kPtxLong, "min.u64 $X, $1, 64; cvt.u32.u64 $W, $X; shr.$t $d, $0, $W"},
    {Op::Shr, kPtxBool, "not.pred $P, $1; and.pred $d, $0, $P"},
    {Op::Where, kPtxInt | kPtxFloat | kPtxHalf, "selp.$t $d, $1, $2, $0"},
    {Op::Where, kPtxBool,
     "not.pred $P, $0; and.pred $P, $P, $2; and.pred $Q, $0, $1; or.pred $d, $P, $Q"},
    {Op::MulAcc, kPtxFloat, "fma.rn.$t $d, $0, $1, $2"},
    {Op::MulAcc, kPtxInt, "mad.lo.$t $d, $0, $1, $2", true},
    {Op::MulAcc, kPtxBool, "and.pred $P, $0, $1; or.pred $d, $P, $2"},
};

/// Of a value conversion. $1 and $2 are the result's 1 and 0, $3 the operand's 0. Where no row fits
/// the way leads over f32.
struct PtxCast {
  uint16_t from, to;
  std::string_view text;
  PtxWhen when = PtxWhen::Always;
};

inline constexpr PtxCast kPtxCasts[] = {
    {kPtxBool, kPtxInt | kPtxFloat | kPtxHalf, "selp.$T $d, $1, $2, $0"},
    {kPtxInt, kPtxBool, "setp.ne.$t $d, $0, 0"},
    {kPtxFloat, kPtxBool, "setp.neu.$t $d, $0, $3"},
    {kPtxHalf, kPtxBool, "cvt.u32.u16 $W, $0; and.b32 $W, $W, 0x7FFF; setp.ne.u32 $d, $W, 0"},
    {kPtxF16, kPtxF32, "cvt.f32.f16 $d, $0"},
    {kPtxBF16, kPtxF32, "mov.b32 $d, {0, $0}"},
    {kPtxF32, kPtxF16, "cvt.rn.f16.f32 $d, $0"},
    {kPtxF32, kPtxBF16, "cvt.rn.bf16.f32 $d, $0"},
    {kPtxInt, kPtxFloat, "cvt.rn.$T.$t $d, $0"},
    {kPtxF32, kPtxF64, "cvt.f64.f32 $d, $0"},
    {kPtxF64, kPtxF32, "cvt.rn.f32.f64 $d, $0"},
    // Saturates, and gives 0 for the NaN of f32 in a word and something else for others ("Data
    // Movement and Conversion Instructions: cvt").
    {kPtxF32, kPtxWord, "cvt.rzi.$T.f32 $d, $0"},
    {kPtxFloat, kPtxInt, "cvt.rzi.$T.$t $U, $0; setp.nan.$t $P, $0, $0; selp.$T $d, 0, $U, $P"},
    {kPtxInt, kPtxWord, "cvt.$T.$N $d, $0", PtxWhen::Narrow},
    {kPtxLong, kPtxWord, "cvt.u32.u64 $d, $0"},
    {kPtxWord, kPtxWord, "mov.b32 $d, $0"},
    {kPtxS32, kPtxLong, "cvt.s64.s32 $d, $0"},
    {kPtxU32, kPtxLong, "cvt.u64.u32 $d, $0"},
    {kPtxLong, kPtxLong, "mov.b64 $d, $0"},
};

/// To f32, rounded to odd, so that rounding once more, to 16 bits, is as if from the original: the
/// last bit is set where what is rounded towards zero differs from it.
inline constexpr PtxCast kPtxOddCasts[] = {
    {kPtxInt, kPtxF32,
     "cvt.rz.f32.$t $U, $0; cvt.rzi.$t.f32 $X, $U; setp.ne.$t $P, $X, $0; "
     "selp.b32 $W, 1, 0, $P; or.b32 $d, $U, $W"},
    {kPtxF64, kPtxF32,
     "cvt.rz.f32.f64 $U, $0; cvt.f64.f32 $X, $U; setp.ne.f64 $P, $X, $0; "
     "selp.b32 $W, 1, 0, $P; or.b32 $d, $U, $W"},
};

/// Of another dtype of equal width.
inline constexpr PtxCast kPtxBitcasts[] = {
    {kPtxHalf, kPtxWord, "cvt.$T.$N $d, $0"},
    {kPtxWord, kPtxHalf, "cvt.u16.u32 $d, $0"},
    {kPtxWord, kPtxWord, "cvt.$T.$N $d, $0", PtxWhen::Narrow},
    {kPtxInt | kPtxFloat | kPtxHalf, kPtxInt | kPtxFloat | kPtxHalf, "mov.$B $d, $0"},
};

}  // namespace weft
