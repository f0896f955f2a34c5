#include "weft/render/wgsl_prelude.h"

#include "weft/base/error.h"

namespace weft {

namespace {

struct WgslFunction {
  std::string_view name, text;  // @name: another of these, declared before it
};

constexpr WgslFunction kFunctions[] = {
    // WGSL lets compilers reassociate, contract and take NaN, infinities and -0 for absent;
    // args.zero
    // is 0, which none of them knows: a value that went through it is what was computed.
    {"keep", "(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ args.zero); }"},
    // What WGSL has no literal for, or whose literal compilers would calculate with.
    {"number", "(b: u32) -> f32 { return bitcast<f32>(b ^ args.zero); }"},
    {"negative", "(x: f32) -> f32 { return bitcast<f32>(bitcast<u32>(x) ^ 0x80000000u); }"},
    {"is_nan", "(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }"},

    // ---- integers of 64 bits: (low, high)
    {"add64",
     "(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
     "  let low = a.x + b.x;\n"
     "  return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));\n}"},
    {"neg64", "(a: vec2<u32>) -> vec2<u32> { return @add64(~a, vec2<u32>(1u, 0u)); }"},
    {"product32",
     "(a: u32, b: u32) -> vec2<u32> {\n"
     "  let al = a & 0xffffu; let ah = a >> 16u; let bl = b & 0xffffu; let bh = b >> 16u;\n"
     "  let ll = al * bl; let lh = al * bh; let hl = ah * bl;\n"
     "  let middle = (ll >> 16u) + (lh & 0xffffu) + (hl & 0xffffu);\n"
     "  return vec2<u32>((ll & 0xffffu) | (middle << 16u),\n"
     "                   ah * bh + (lh >> 16u) + (hl >> 16u) + (middle >> 16u));\n}"},
    {"mul64",
     "(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
     "  let p = @product32(a.x, b.x);\n"
     "  return vec2<u32>(p.x, p.y + a.x * b.y + a.y * b.x);\n}"},
    {"less_u64",
     "(a: vec2<u32>, b: vec2<u32>) -> bool {\n"
     "  return a.y < b.y || (a.y == b.y && a.x < b.x);\n}"},
    {"less_i64",
     "(a: vec2<u32>, b: vec2<u32>) -> bool {\n"
     "  return i32(a.y) < i32(b.y) || (a.y == b.y && a.x < b.x);\n}"},
    {"shl64",
     "(a: vec2<u32>, by: vec2<u32>) -> vec2<u32> {\n"
     "  if (by.y != 0u || by.x > 63u) { return vec2<u32>(0u, 0u); }\n"
     "  if (by.x == 0u) { return a; }\n"
     "  if (by.x > 31u) { return vec2<u32>(0u, a.x << (by.x - 32u)); }\n"
     "  return vec2<u32>(a.x << by.x, (a.y << by.x) | (a.x >> (32u - by.x)));\n}"},
    {"shr_u64",
     "(a: vec2<u32>, by: vec2<u32>) -> vec2<u32> {\n"
     "  if (by.y != 0u || by.x > 63u) { return vec2<u32>(0u, 0u); }\n"
     "  if (by.x == 0u) { return a; }\n"
     "  if (by.x > 31u) { return vec2<u32>(a.y >> (by.x - 32u), 0u); }\n"
     "  return vec2<u32>((a.x >> by.x) | (a.y << (32u - by.x)), a.y >> by.x);\n}"},
    {"shr_i64",
     "(a: vec2<u32>, by: vec2<u32>) -> vec2<u32> {\n"
     "  let sign = u32(i32(a.y) >> 31u);\n"
     "  return @shr_u64(a ^ vec2<u32>(sign), by) ^ vec2<u32>(sign);\n}"},
    // Quotient and remainder, a bit at a time from where the dividend begins.
    {"divmod64",
     "(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {\n"
     "  if (a.y == 0u && b.y == 0u) { return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u); }\n"
     "  var rest = vec2<u32>(0u, 0u); var left = a; var quotient = vec2<u32>(0u, 0u);\n"
     "  for (var i = 0u; i < 64u; i++) {\n"
     "    let carry = rest.y >> 31u;\n"
     "    rest = vec2<u32>((rest.x << 1u) | (left.y >> 31u), (rest.y << 1u) | (rest.x >> 31u));\n"
     "    left = vec2<u32>(left.x << 1u, (left.y << 1u) | (left.x >> 31u));\n"
     "    quotient = vec2<u32>(quotient.x << 1u, (quotient.y << 1u) | (quotient.x >> 31u));\n"
     "    if (carry != 0u || !@less_u64(rest, b)) {\n"
     "      rest = @add64(rest, @neg64(b));\n"
     "      quotient.x |= 1u;\n"
     "    }\n"
     "  }\n"
     "  return vec4<u32>(quotient, rest);\n}"},
    {"magnitude64",
     "(a: vec2<u32>) -> vec2<u32> { return select(a, @neg64(a), (a.y >> 31u) != 0u); }"},
    {"div_i64",
     "(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
     "  let q = @divmod64(@magnitude64(a), @magnitude64(b)).xy;\n"
     "  return select(q, @neg64(q), ((a.y ^ b.y) >> 31u) != 0u);\n}"},
    {"mod_i64",
     "(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
     "  let r = @divmod64(@magnitude64(a), @magnitude64(b)).zw;\n"
     "  return select(r, @neg64(r), (a.y >> 31u) != 0u);\n}"},
    {"i64_of_i32", "(x: i32) -> vec2<u32> { return vec2<u32>(u32(x), u32(x >> 31u)); }"},

    // ---- to f32: 24 bits of m times 2^s, rounded to nearest even, or to odd so that rounding once
    // more, to 16 bits, is as if from the original
    {"f32_of_bits",
     "(m: vec2<u32>, odd: bool) -> f32 {\n"
     "  if (m.y == 0u && m.x < 0x1000000u) { return f32(m.x); }\n"
     "  let lead = select(31u - countLeadingZeros(m.x), 63u - countLeadingZeros(m.y), m.y != 0u);\n"
     "  let s = lead - 23u;\n"
     "  let top = @shr_u64(m, vec2<u32>(s, 0u)).x;\n"
     "  let lost = @shl64(m, vec2<u32>(64u - s, 0u));\n"
     "  let any_lost = any(lost != vec2<u32>(0u, 0u));\n"
     "  let tie = lost.x == 0u && lost.y == 0x80000000u;\n"
     "  let up = select(lost.y >= 0x80000000u, (top & 1u) != 0u, tie);\n"
     "  let rounded = select(top + select(0u, 1u, up), top | select(0u, 1u, any_lost), odd);\n"
     "  return f32(rounded) * bitcast<f32>((s + 127u) << 23u);\n}"},
    {"f32_of_u64", "(x: vec2<u32>) -> f32 { return @f32_of_bits(x, false); }"},
    {"f32_of_i64",
     "(x: vec2<u32>) -> f32 {\n"
     "  let f = @f32_of_bits(@magnitude64(x), false);\n"
     "  return select(f, -f, (x.y >> 31u) != 0u);\n}"},
    {"odd_of_u64", "(x: vec2<u32>) -> f32 { return @f32_of_bits(x, true); }"},
    {"odd_of_i64",
     "(x: vec2<u32>) -> f32 {\n"
     "  let f = @f32_of_bits(@magnitude64(x), true);\n"
     "  return select(f, -f, (x.y >> 31u) != 0u);\n}"},

    // ---- from f32: towards zero and saturating, NaN to 0
    {"sat_i32",
     "(x: f32) -> i32 {\n"
     "  if (@is_nan(x)) { return 0i; }\n"
     "  if (x >= 2147483648.0f) { return 2147483647i; }\n"
     "  if (x < -2147483648.0f) { return -2147483647i - 1i; }\n"
     "  return i32(x);\n}"},
    {"sat_u32",
     "(x: f32) -> u32 {\n"
     "  if (@is_nan(x) || x < 0.0f) { return 0u; }\n"
     "  if (x >= 4294967296.0f) { return 0xffffffffu; }\n"
     "  return u32(x);\n}"},
    // Of 0 <= x < 2^64; every step is exact.
    {"words",
     "(x: f32) -> vec2<u32> {\n"
     "  let high = trunc(x * 0x1p-32f);\n"
     "  return vec2<u32>(u32(x - high * 0x1p+32f), u32(high));\n}"},
    {"sat_u64",
     "(x: f32) -> vec2<u32> {\n"
     "  if (@is_nan(x) || x < 0.0f) { return vec2<u32>(0u, 0u); }\n"
     "  if (x >= 0x1p+64f) { return vec2<u32>(0xffffffffu, 0xffffffffu); }\n"
     "  return @words(x);\n}"},
    {"sat_i64",
     "(x: f32) -> vec2<u32> {\n"
     "  if (@is_nan(x)) { return vec2<u32>(0u, 0u); }\n"
     "  if (x >= 0x1p+63f) { return vec2<u32>(0xffffffffu, 0x7fffffffu); }\n"
     "  if (x < -0x1p+63f) { return vec2<u32>(0u, 0x80000000u); }\n"
     "  let w = @words(abs(x));\n"
     "  return select(w, @neg64(w), x < 0.0f);\n}"},

    // ---- f16 and bf16: as in c_prelude.cpp
    {"f16_to",
     "(h: u32) -> f32 {\n"
     "  let m = (h & 0x7fffu) << 13u;\n"
     "  let small = bitcast<u32>(@number(m + 0x38800000u) - 0x1p-14f);\n"
     "  var r = m + 0x38000000u;\n"
     "  if (m < 0x00800000u) { r = small; }\n"
     "  if (m >= 0x0f800000u) { r = m + 0x70000000u; }\n"
     "  return bitcast<f32>(r | ((h & 0x8000u) << 16u));\n}"},
    {"to_f16",
     "(x: f32) -> u32 {\n"
     "  let b = bitcast<u32>(x); let u = b & 0x7fffffffu;\n"
     "  var r = (u - 0x38000000u + 0xfffu + ((u >> 13u) & 1u)) >> 13u;\n"
     "  if (u < 0x38800000u) { r = bitcast<u32>(bitcast<f32>(u) + 0.5f) - 0x3f000000u; }\n"
     "  if (u >= 0x47800000u) { r = 0x7c00u; }\n"
     "  if (u > 0x7f800000u) { r = 0x7e00u | ((u >> 13u) & 0x3ffu); }\n"
     "  return r | ((b >> 16u) & 0x8000u);\n}"},
    {"bf16_to", "(h: u32) -> f32 { return bitcast<f32>(h << 16u); }"},
    {"to_bf16",
     "(x: f32) -> u32 {\n"
     "  let u = bitcast<u32>(x);\n"
     "  if (@is_nan(x)) { return (u >> 16u) | 0x40u; }\n"
     "  return (u + 0x7fffu + ((u >> 16u) & 1u)) >> 16u;\n}"},
};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

const WgslFunction& find_function(std::string_view name) {
  for (const WgslFunction& f : kFunctions)
    if (f.name == name) return f;
  internal_error("render.wgsl", "there is no function {}", name);
}

}  // namespace

std::string WgslPrelude::expand(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '@') {
      out += text[i];
      continue;
    }
    size_t end = i + 1;
    while (end < text.size() && is_word(text[end])) ++end;
    const WgslFunction& f = find_function(text.substr(i + 1, end - i - 1));
    if (known_.insert(f.name).second) {
      const std::string body = expand(f.text);  // declares what it needs first
      text_ += strformat("fn {}{}\n", f.name, body);
    }
    out += f.name;
    i = end - 1;
  }
  return out;
}

}  // namespace weft
