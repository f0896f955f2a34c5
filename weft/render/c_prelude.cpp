#include "weft/render/c_prelude.h"

#include <optional>
#include <utility>

#include "weft/base/error.h"

namespace weft {

namespace {

using Kind = CType::Kind;

// One family of inline functions. Scalar and vector texts; where the second is empty the first
// serves both. In them
//   #f32      is the type with this function's lanes: f32, or f32x16
//   @max_f32  is that function with this function's lanes, declared first
//   $T $S     are its first and second type, $t $s the same without lanes, $I $U the signed and
//             unsigned integers as wide as T, $f is "f" for f32 and nothing for f64
//   $F        is its name, $N its lanes, $* is "x, x, ..." once per lane
//   $LO $HI $END are what an integer T spans, as literals of the float type S: [$LO, $HI], $HI + 1
//   $MAX      is the largest T;  $B the bits of T;  $L ends a 64-bit literal
//   $HALF     begins what stands in for an f16 conversion that the C compiler has; $ENDHALF ends it

// Lane loops, where no portable vector operator exists: both compilers turn them into one
// instruction.
constexpr CFamily kFamilies[] = {
    {"sel", "$T $F(int m, $T a, $T b) { return m ? a : b; }",
     "$T $F($I m, $T a, $T b) { return ($T)((($I)a & m) | (($I)b & ~m)); }"},
    {"splat", "$T $F($t x) { return x; }", "$T $F($t x) { return ($T){$*}; }"},
    {"as", "$T $F($S x) { $T r; __builtin_memcpy(&r, &x, sizeof r); return r; }",
     "$T $F($S x) { return ($T)x; }"},
    {"cvt", "$T $F($S x) { return ($T)x; }",
     "$T $F($S x) { return __builtin_convertvector(x, $T); }"},
    {"mask", "int $F(int m) { return m; }",
     "$T $F($S m) { return __builtin_convertvector(m, $T); }"},
    {"sqrt", "$T $F($T x) { return __builtin_sqrt$f(x); }",
     "$T $F($T x) { $T r; for (int k = 0; k < $N; k++) r[k] = __builtin_sqrt$f(x[k]); return r; }"},
    {"fma", "$T $F($T a, $T b, $T c) { return __builtin_fma$f(a, b, c); }",
     "$T $F($T a, $T b, $T c) {\n"
     "#if __has_builtin(__builtin_elementwise_fma)\n"
     "  return __builtin_elementwise_fma(a, b, c);\n"
     "#else\n"
     "  $T r; for (int k = 0; k < $N; k++) r[k] = __builtin_fma$f(a[k], b[k], c[k]); return r;\n"
     "#endif\n}"},
    // t and u differ where a and b are equal, in the sign of zero alone: the bits of both decide. A
    // NaN of either goes through.
    {"max",
     "$T $F($T a, $T b) {\n"
     "  $T t = @sel_$t(($I)(b > a), b, a), u = @sel_$t(($I)(a > b), a, b);\n"
     "  $T most = @as_$t_$u(@as_$u_$t(t) & @as_$u_$t(u));\n"
     "  return @sel_$t(($I)((a != a) | (b != b)), a + b, most);\n}",
     ""},
    {"min",
     "$T $F($T a, $T b) {\n"
     "  $T t = @sel_$t(($I)(b < a), b, a), u = @sel_$t(($I)(a < b), a, b);\n"
     "  $T least = @as_$t_$u(@as_$u_$t(t) | @as_$u_$t(u));\n"
     "  return @sel_$t(($I)((a != a) | (b != b)), a + b, least);\n}",
     ""},
    {"imax", "$T $F($T a, $T b) { return a < b ? b : a; }",
     "$T $F($T a, $T b) { return @sel_$t(($I)(a < b), b, a); }"},
    {"imin", "$T $F($T a, $T b) { return b < a ? b : a; }",
     "$T $F($T a, $T b) { return @sel_$t(($I)(b < a), b, a); }"},
    // Through an integer as wide: exact below 2^(digits-1), and what is not is whole already.
    {"trunc",
     "$T $F($T x) {\n"
     "#ifdef __SSE4_1__\n"
     "  return __builtin_trunc$f(x);\n"
     "#else\n"
     "  $U u = @as_$u_$t(x), small = (u & $ABS) < $WHOLE;\n"
     "  $T t = ($T)($I)(small ? x : 0);\n"
     "  return small ? @as_$t_$u(@as_$u_$t(t) | (u & ~$ABS)) : x;\n"
     "#endif\n}",
     "$T $F($T x) {\n"
     "  $U u = ($U)x;\n"
     "  $I small = ($I)((u & $ABS) < $WHOLE);\n"
     "  $T t = __builtin_convertvector(__builtin_convertvector(($T)(u & ($U)small), $I), $T);\n"
     "  return @sel_$t(small, ($T)(($U)t | (u & ~$ABS)), x);\n}"},
    {"shl", "$T $F($T x, $T y) { return ($U)y < $B ? ($T)(($W)x << y) : 0; }",
     "$T $F($T x, $T y) { return ($T)((($U)x << (($U)y & ($B - 1))) & ($U)(($U)y < $B)); }"},
    {"shr", "$T $F($T x, $T y) { return ($U)y < $B ? ($T)(x >> y) : ($T)(x < 0 ? -1 : 0); }",
     "$T $F($T x, $T y) {\n"
     "  $I in = ($I)(($U)y < $B);\n"
     "  return @sel_$t(in, x >> (y & ($B - 1)), ($T)(x < 0));\n}"},
    {"cdiv", "$T $F($T x, $T y) { return y == ($T)-1 ? ($T)(0 - ($W)x) : ($T)(x / y); }",
     "$T $F($T x, $T y) {\n"
     "  $T r; for (int k = 0; k < $N; k++) r[k] = @@cdiv_$t(x[k], y[k]); return r;\n}"},
    {"cmod", "$T $F($T x, $T y) { return y == ($T)-1 ? 0 : ($T)(x % y); }",
     "$T $F($T x, $T y) {\n"
     "  $T r; for (int k = 0; k < $N; k++) r[k] = @@cmod_$t(x[k], y[k]); return r;\n}"},
    // Float to integer, towards zero and saturating, NaN to 0. Both limits are exact in S ...
    {"sat",
     "$T $F($S x) {\n"
     "  x = @sel_$s(x == x, x, @splat_$s(0));\n"
     "  x = @sel_$s(x < $LO, @splat_$s($LO), x);\n"
     "  x = @sel_$s(x > $HI, @splat_$s($HI), x);\n"
     "  return @cvt_$t_$s(x);\n}",
     ""},
    // ... or only the one after the upper.
    {"satwide",
     "$T $F($S x) {\n"
     "  x = @sel_$s(x == x, x, @splat_$s(0));\n"
     "  x = @sel_$s(x < $LO, @splat_$s($LO), x);\n"
     "  $T r = @cvt_$t_$s(@sel_$s(x >= $END, @splat_$s(0), x));\n"
     "  return @sel_$t(@mask_$i_$j(x >= $END), @splat_$t($MAX), r);\n}",
     ""},
    {"f16_to",
     "#f32 $F(#u16 h) {\n"
     "$HALF"
     "  #u32 u = @cvt_u32_u16(h), m = (u & 0x7fff) << 13;\n"
     "  #u32 normal = m + 0x38000000;\n"
     "  #u32 special = m + 0x70000000;\n"
     "  #u32 small = @as_u32_f32(@as_f32_u32(m + 0x38800000) - 0x1p-14f);\n"
     "  m = @sel_u32(m < 0x00800000, small, @sel_u32(m >= 0x0f800000, special, normal));\n"
     "  return @as_f32_u32(m | (u & 0x8000) << 16);\n"
     "$ENDHALF}",
     ""},
    // To nearest even; NaN stays NaN, made quiet. The sum with 2^-1 (whose last bit is 2^-24, the
    // least f16) rounds subnormal results.
    {"to_f16",
     "#u16 $F(#f32 x) {\n"
     "$HALF"
     "  #u32 b = @as_u32_f32(x), u = b & 0x7fffffff;\n"
     "  #u32 small = @as_u32_f32(@as_f32_u32(u) + 0.5f) - 0x3f000000;\n"
     "  #u32 normal = (u - 0x38000000 + 0xfff + (u >> 13 & 1)) >> 13;\n"
     "  #u32 r = @sel_u32(u < 0x38800000, small, normal);\n"
     "  r = @sel_u32(u >= 0x47800000, @splat_u32(0x7c00), r);\n"
     "  r = @sel_u32(u > 0x7f800000, 0x7e00 | (u >> 13 & 0x3ff), r);\n"
     "  return @cvt_u16_u32(r | (b >> 16 & 0x8000));\n"
     "$ENDHALF}",
     ""},
    {"bf16_to", "#f32 $F(#u16 h) { return @as_f32_u32(@cvt_u32_u16(h) << 16); }", ""},
    {"to_bf16",
     "#u16 $F(#f32 x) {\n"
     "  #u32 u = @as_u32_f32(x);\n"
     "  #u32 r = (u + 0x7fff + (u >> 16 & 1)) >> 16;\n"
     "  return @cvt_u16_u32(@sel_u32((u & 0x7fffffff) > 0x7f800000, u >> 16 | 0x40, r));\n}",
     ""},
    // Rounded to odd, so that rounding once more, to 16 bits, is as if from the original.
    {"odd32",
     "#f32 $F(#f64 x) {\n"
     "  #f32 f = @cvt_f32_f64(x);\n"
     "  #f64 back = @cvt_f64_f32(f);\n"
     "  #u32 u = @as_u32_f32(f);\n"
     "  #u64 far = @as_u64_f64(back) & 0x7fffffffffffffff, near = @as_u64_f64(x) & "
     "0x7fffffffffffffff;\n"
     "  #u32 odd = @sel_u32(@mask_i32_i64(far > near), u - 1, u) | 1;\n"
     "  return @as_f32_u32(@sel_u32(@mask_i32_i64((back != x) & (x == x)), odd, u));\n}",
     ""},
    {"odd64",
     "#f64 $F($T x) {\n"
     "  #i64 sign = @mask64_$t(x);\n"
     "  #u64 m = (@cvt_u64_$t(x) ^ @as_u64_i64(sign)) - @as_u64_i64(sign);\n"
     "  #u64 low = @sel_u64((m & 0xfff) != 0, @splat_u64(0x1000), @splat_u64(0));\n"
     "  m = @sel_u64(m >= 0x20000000000000, (m & ~0xfffu$L) | low, m);\n"
     "  #f64 f = @cvt_f64_u64(m);\n"
     "  return @as_f64_u64(@as_u64_f64(f) | (@as_u64_i64(sign) & 0x8000000000000000));\n}",
     ""},
    {"mask64", "i64 $F($T x) { return x < 0 ? -1 : 0; }",
     "#i64 $F($T x) { return (#i64)(x < 0); }"},
};

const CFamily& find_family(const CDialect& dialect, std::string_view name) {
  for (std::span<const CFamily> families : {dialect.families, std::span<const CFamily>(kFamilies)})
    for (const CFamily& f : families)
      if (f.name == name) return f;
  internal_error("render.c", "there is no inline function {}", name);
}

std::optional<CType> parse_type(std::string_view text, int lanes) {
  constexpr std::pair<std::string_view, CType> kNames[] = {
      {"i8", {Kind::Signed, 8, 1}},     {"i16", {Kind::Signed, 16, 1}},
      {"i32", {Kind::Signed, 32, 1}},   {"i64", {Kind::Signed, 64, 1}},
      {"u8", {Kind::Unsigned, 8, 1}},   {"u16", {Kind::Unsigned, 16, 1}},
      {"u32", {Kind::Unsigned, 32, 1}}, {"u64", {Kind::Unsigned, 64, 1}},
      {"f32", {Kind::Float, 32, 1}},    {"f64", {Kind::Float, 64, 1}},
  };
  for (const auto& [name, type] : kNames)
    if (name == text) return type.with_lanes(lanes);
  return std::nullopt;
}

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string repeat(std::string_view item, int count) {
  std::string out(item);
  for (int i = 1; i < count; ++i) (out += ", ") += item;
  return out;
}

std::string power_of_two(int exponent, bool single) {
  return strformat("0x1p{}{}", exponent, single ? "f" : "");
}

// A limit of integer type T as a literal of float type S.
std::string float_limit(CType t, CType s, bool upper) {
  const bool single = s.bits == 32;
  const int digits = t.kind == Kind::Signed ? t.bits - 1 : t.bits;
  if (!upper)
    return t.kind == Kind::Signed ? "-" + power_of_two(digits, single) : (single ? "0.0f" : "0.0");
  return strformat("({} - 1)", power_of_two(digits, single));
}

std::string largest(CType t, const CDialect& dialect) {
  const std::string all = t.kind == Kind::Signed ? "7" : "f";
  return "0x" + all + std::string(static_cast<size_t>(t.bits / 4 - 1), 'f') +
         (t.kind == Kind::Unsigned ? "u" : "") +
         std::string(t.bits == 64 ? dialect.long_suffix : "");
}

// The value of $<letter> or of a longer $WORD in a family's text; empty when there is no such word.
std::string family_word(const CDialect& dialect, std::string_view word, std::string_view function,
                        CType t, CType s) {
  const CType i{Kind::Signed, t.bits, t.lanes}, u{Kind::Unsigned, t.bits, t.lanes};
  if (word == "T") return t.name();
  if (word == "S") return s.name();
  if (word == "t") return t.scalar();
  if (word == "s") return s.scalar();
  if (word == "I") return i.name();
  if (word == "U") return u.name();
  if (word == "W") return t.lanes > 1 || t.bits > 32 ? u.name() : "u32";
  if (word == "i") return i.scalar();
  if (word == "u") return u.scalar();
  if (word == "j") return CType{Kind::Signed, s.bits, 1}.scalar();
  if (word == "f") return t.bits == 32 ? "f" : "";
  if (word == "F") return std::string(function);
  if (word == "N") return strformat("{}", t.lanes);
  if (word == "B") return strformat("{}", t.bits);
  if (word == "LO") return float_limit(t, s, false);
  if (word == "HI") return float_limit(t, s, true);
  if (word == "END")
    return power_of_two(t.kind == Kind::Signed ? t.bits - 1 : t.bits, s.bits == 32);
  if (word == "MAX") return largest(t, dialect);
  if (word == "L") return std::string(dialect.long_suffix);
  if (word == "ABS") return t.bits == 32 ? "0x7fffffffu" : "0x7fffffffffffffffull";
  // 2^23 and 2^52: every float from here on is whole.
  if (word == "WHOLE") return t.bits == 32 ? "0x4b000000u" : "0x4330000000000000ull";
  internal_error("render.c", "unknown word ${} in the text of {}", word, function);
}

// The hardware conversion; the vector forms are Clang's only.
std::string hardware_half(std::string_view family, int lanes) {
  const bool widen = family == "f16_to";
  if (lanes == 1) {
    return widen ? "_Float16 f; __builtin_memcpy(&f, &h, 2); return f;"
                 : "_Float16 f = (_Float16)x; u16 h; __builtin_memcpy(&h, &f, 2); return h;";
  }
  const std::string half =
      strformat("typedef _Float16 half __attribute__((vector_size({}))); ", lanes * 2);
  return half + (widen ? strformat("return __builtin_convertvector((half)h, f32x{});", lanes)
                       : strformat("return (u16x{})__builtin_convertvector(x, half);", lanes));
}

std::string half_conversion(std::string_view family, int lanes) {
  return strformat("#if defined(__F16C__) && defined(__clang__)\n  {}\n#else\n",
                   hardware_half(family, lanes));
}

std::string substitute(const CDialect& dialect, const CFamily& family, std::string_view function,
                       CType t, CType s) {
  const std::string_view text =
      t.lanes > 1 && !family.vector.empty() ? family.vector : family.scalar;
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '$') {
      out += text[i];
      continue;
    }
    size_t end = i + 1;
    if (text[end] == '*') {
      out += repeat("x", t.lanes);
    } else {
      // One lower-case letter, or all the upper-case letters that follow.
      while (end + 1 < text.size() && text[i + 1] >= 'A' && text[i + 1] <= 'Z' &&
             text[end + 1] >= 'A' && text[end + 1] <= 'Z')
        ++end;
      const std::string_view word = text.substr(i + 1, end - i);
      if (word == "HALF" || word == "ENDHALF") {
        if (dialect.vectors)
          out += word == "HALF" ? half_conversion(family.name, t.lanes) : "#endif\n";
      } else {
        out += family_word(dialect, word, function, t, s);
      }
    }
    i = end;
  }
  return out;
}

}  // namespace

std::string CType::scalar() const {
  if (kind == Kind::Bool) return "b8";
  return strformat("{}{}", kind == Kind::Float ? 'f' : kind == Kind::Signed ? 'i' : 'u', bits);
}

std::string CType::name() const {
  return lanes == 1 ? scalar() : strformat("{}x{}", scalar(), lanes);
}

CType c_mask(int bits, int lanes) {
  return lanes == 1 ? CType{Kind::Bool, 8, 1} : CType{Kind::Signed, bits, lanes};
}

CType c_type(DType dtype, int lanes) {
  switch (kind(dtype)) {
    case DTypeKind::Bool: return c_mask(8, lanes);
    case DTypeKind::Signed:
    case DTypeKind::Index: return {Kind::Signed, bits(dtype), lanes};
    case DTypeKind::Unsigned: return {Kind::Unsigned, bits(dtype), lanes};
    case DTypeKind::Float:
      return {bits(dtype) == 16 ? Kind::Unsigned : Kind::Float, bits(dtype), lanes};
    case DTypeKind::Void: break;
  }
  internal_error("render.c", "a value of dtype {} has no C type", name(dtype));
}

void CPrelude::typedef_once(const std::string& name, const std::string& declaration) {
  // Saying the same typedef again is allowed in C11 and C++, the same macro everywhere: texts can
  // be joined.
  if (known_.insert(name).second) text_ += declaration + "\n";
}

void CPrelude::name_scalar(const std::string& name, const std::string& words) {
  typedef_once(name, dialect_.repeats_typedefs ? strformat("typedef {} {};", words, name)
                                               : strformat("#define {} {}", name, words));
}

std::string CPrelude::type(CType t) {
  constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"i8", "signed char"},   {"i16", "short"},        {"i32", "int"},
      {"f64", "double"},       {"u8", "unsigned char"}, {"u16", "unsigned short"},
      {"u32", "unsigned int"}, {"f32", "float"},
  };
  const std::string scalar = t.scalar();
  for (const auto& [name, words] : kWords)
    if (name == scalar) name_scalar(scalar, std::string(words));
  if (scalar == "b8") name_scalar(scalar, std::string(dialect_.bool_word));
  if (scalar == "i64") name_scalar(scalar, std::string(dialect_.long_word));
  if (scalar == "u64") name_scalar(scalar, strformat("unsigned {}", dialect_.long_word));
  if (t.lanes > 1) {
    typedef_once(t.name(), strformat("typedef {} {} __attribute__((vector_size({})));", scalar,
                                     t.name(), t.lanes * t.bits / 8));
  }
  return t.name();
}

std::string CPrelude::memory_type(CType t) {
  if (t.lanes == 1) return type(t);
  type(t.with_lanes(1));
  const std::string name = t.name() + "_u";
  typedef_once(name, strformat("typedef {} {} __attribute__((vector_size({}), aligned({}), "
                               "may_alias));",
                               t.scalar(), name, t.lanes * t.bits / 8, t.bits / 8));
  return name;
}

std::string CPrelude::function(std::string_view family_name, CType t, CType s) {
  const bool two = family_name == "as" || family_name == "cvt" || family_name == "mask" ||
                   family_name == "sat" || family_name == "satwide";
  std::string name = strformat("{}_{}", family_name, t.scalar());
  if (two) name += "_" + s.scalar();
  if (t.lanes > 1) name += strformat("x{}", t.lanes);
  if (known_.contains(name)) return name;
  s.lanes = t.lanes;
  for (const CType& needed : {t, two ? s : t, CType{Kind::Signed, t.bits, t.lanes},
                              CType{Kind::Unsigned, t.bits, t.lanes}})
    type(needed);
  type({Kind::Unsigned, 32, 1});
  // Expanding declares what the body calls, before the body itself.
  const std::string body =
      expand(substitute(dialect_, find_family(dialect_, family_name), name, t, s), t.lanes);
  known_.insert(name);
  text_ += strformat("#ifndef WEFT_{}\n#define WEFT_{}\n{}{}\n#endif\n", name, name,
                     dialect_.inline_prefix, body);
  return name;
}

std::string CPrelude::call(std::string_view word, int lanes) {
  // family_T_S or family_T, where the family may itself hold an underscore.
  const auto cut = [](std::string_view& rest, int n) -> std::optional<CType> {
    const size_t at = rest.rfind('_');
    if (at == std::string_view::npos) return std::nullopt;
    const std::optional<CType> type = parse_type(rest.substr(at + 1), n);
    if (type) rest = rest.substr(0, at);
    return type;
  };
  std::string_view family = word;
  const std::optional<CType> last = cut(family, lanes);
  WEFT_CHECK(last.has_value(), "bad call @{} in a C text", word);
  const std::optional<CType> first = cut(family, lanes);
  return first ? function(family, *first, *last) : function(family, *last);
}

std::string CPrelude::expand(std::string_view text, int lanes) {
  std::string out;
  size_t i = 0;
  while (i < text.size()) {
    const char c = text[i];
    size_t start = i + 1;
    // "@@f" calls the scalar form from a vector one.
    const bool scalar = c == '@' && text.substr(start).starts_with('@');
    if (scalar) ++start;
    size_t end = start;
    while (end < text.size() && is_word(text[end])) ++end;
    const std::string_view word = text.substr(start, end - start);
    if (c == '@') {
      out += call(word, scalar ? 1 : lanes);
    } else if (const auto t = c == '#' ? parse_type(word, lanes) : std::nullopt) {
      out += type(*t);
    } else {  // "#if" and the like stay
      out += c;
      end = i + 1;
    }
    i = end;
  }
  return out;
}

}  // namespace weft
