// Formats whose blocks have scales for parts: Q2_K to Q6_K, IQ4_NL and IQ4_XS. For each part the
// scale (and offset) of least squared error is looked for among candidates: round with one, solve
// the linear least squares problem for scale (and offset) with these codes, keep the best. Then
// scales are rounded, the block's own scale is solved for, and numbers are rounded once more.
#include <algorithm>
#include <array>

#include "weft/io/quantise_block.h"

namespace weft {

namespace {

constexpr int kCandidates = 10;  // on either side of the scale that just fits

// ---- one scale: x is about d * scale * level

/// What codes stand for, ascending: whole numbers from -size / 2 on.
struct WholeLevels {
  int size;
  float front() const { return static_cast<float>(-size / 2); }
  float operator[](size_t code) const {
    return static_cast<float>(static_cast<int>(code) - size / 2);
  }
  uint8_t nearest(float x) const {
    if (!(x > front())) return 0;
    if (x >= front() + static_cast<float>(size - 1)) return static_cast<uint8_t>(size - 1);
    int below = static_cast<int>(x);
    below -= x < static_cast<float>(below) ? 1 : 0;
    return static_cast<uint8_t>(below + size / 2 + (x - static_cast<float>(below) < 0.5f ? 0 : 1));
  }
};

/// The same of any numbers.
struct ListedLevels {
  static constexpr int size = 16;
  std::array<float, size> levels;
  float front() const { return levels.front(); }
  float operator[](size_t code) const { return levels[code]; }
  uint8_t nearest(float x) const {
    const auto above = std::ranges::lower_bound(levels, x);
    if (above == levels.begin()) return 0;
    if (above == levels.end()) return static_cast<uint8_t>(size - 1);
    return static_cast<uint8_t>(above - levels.begin() - (x - above[-1] < *above - x ? 1 : 0));
  }
};
constexpr ListedLevels kIq4Levels = {
    {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}};

/// Of numbers and the levels chosen for them.
struct Moments {
  float xy = 0, yy = 0;
  void add(float x, float y) {
    xy += x * y;
    yy += y * y;
  }
  float scale() const { return yy > 0 ? xy / yy : 0; }
  float gain() const { return yy > 0 ? xy * xy / yy : 0; }  // how much less the squared error is
};

float best_scale(std::span<const float> x, const auto& levels) {
  const float peak = *std::ranges::max_element(x, {}, [](float v) { return std::fabs(v); });
  if (peak == 0) return 0;
  const float step = 0.2f / static_cast<float>(levels.size);
  Moments best;
  for (int i = -kCandidates; i <= kCandidates; ++i) {
    const float id = levels.front() * (1 + step * static_cast<float>(i)) / peak;
    Moments tried;
    for (const float v : x) tried.add(v, levels[levels.nearest(v * id)]);
    if (tried.gain() > best.gain()) best = tried;
  }
  return best.scale();
}

/// A block of parts with whole scales from `least` to -least - 1.
struct Scaled {
  float d = 0;
  std::array<int, 16> scales{};
  std::array<uint8_t, 256> codes{};
};

void choose_codes(std::span<const float> x, const auto& levels, size_t parts, Scaled& out) {
  const size_t size = x.size() / parts;
  for (size_t i = 0; i < x.size(); ++i) {
    const float id = inverse(out.d * static_cast<float>(out.scales[i / size]));
    out.codes[i] = levels.nearest(x[i] * id);
  }
}

Scaled scaled_parts(std::span<const float> x, const auto& levels, size_t parts, int least) {
  const size_t size = x.size() / parts;
  Scaled out;
  std::array<float, 16> scales{};
  for (size_t p = 0; p < parts; ++p) scales[p] = best_scale(x.subspan(p * size, size), levels);
  const float peak = *std::ranges::max_element(scales, {}, [](float v) { return std::fabs(v); });
  out.d = as_f16(peak / static_cast<float>(least));
  for (size_t p = 0; p < parts; ++p)
    out.scales[p] = rounded(scales[p] * inverse(out.d), least, -least - 1);
  choose_codes(x, levels, parts, out);
  Moments all;
  for (size_t i = 0; i < x.size(); ++i)
    all.add(x[i], static_cast<float>(out.scales[i / size]) * levels[out.codes[i]]);
  out.d = as_f16(all.scale());
  choose_codes(x, levels, parts, out);
  return out;
}

void q3_k(const float* x, uint8_t* block) {
  const Scaled s = scaled_parts({x, 256}, WholeLevels{8}, 16, -32);
  uint8_t scales[16];
  for (size_t i = 0; i < 16; ++i) scales[i] = static_cast<uint8_t>(s.scales[i] + 32);
  put_high_fields(block, s.codes, 2, 1, 32);
  put_fields(block + 32, s.codes, 2, 32);
  put_fields(block + 96, scales, 4, 8);
  put_high_fields(block + 104, scales, 4, 2, 4);
  put_f16(block + 108, s.d);
}

void q6_k(const float* x, uint8_t* block) {
  const Scaled s = scaled_parts({x, 256}, WholeLevels{64}, 16, -128);
  put_fields(block, s.codes, 4, 64);
  put_high_fields(block + 128, s.codes, 4, 2, 32);
  for (size_t i = 0; i < 16; ++i) block[192 + i] = static_cast<uint8_t>(s.scales[i]);
  put_f16(block + 208, s.d);
}

void iq4_nl(const float* x, uint8_t* block) {
  const float d = as_f16(best_scale({x, 32}, kIq4Levels)), id = inverse(d);
  uint8_t codes[32];
  for (int i = 0; i < 32; ++i) codes[i] = kIq4Levels.nearest(x[i] * id);
  put_f16(block, d);
  put_fields(block + 2, codes, 4, 16);
}

void iq4_xs(const float* x, uint8_t* block) {
  const Scaled s = scaled_parts({x, 256}, kIq4Levels, 8, -32);
  put_f16(block, s.d);
  uint8_t scales[8];
  uint16_t high = 0;
  for (size_t i = 0; i < 8; ++i) {
    scales[i] = static_cast<uint8_t>(s.scales[i] + 32);
    high = static_cast<uint16_t>(high | (scales[i] >> 4) << (2 * i));
  }
  std::memcpy(block + 2, &high, sizeof(high));
  put_fields(block + 4, scales, 4, 1);
  put_fields(block + 8, s.codes, 4, 16);
}

// ---- scale and offset: x is about d * scale * code - least * offset

struct Line {
  float scale = 0, offset = 0;  // x is about scale * code - offset, offset >= 0
};

/// Sums over pairs (x, code), and the line through them.
struct Fit {
  float n = 0, x = 0, q = 0, xq = 0, qq = 0, xx = 0;

  void add(float value, float code) {
    n += 1;
    x += value;
    q += code;
    xq += value * code;
    qq += code * code;
    xx += value * value;
  }
  Line line() const {
    const float det = n * qq - q * q;
    Line best = det > 0 ? Line{(n * xq - x * q) / det, (q * xq - x * qq) / det} : Line{};
    if (det > 0 && best.offset >= 0) return best;
    return {qq > 0 ? xq / qq : 0, 0};
  }
  float error(const Line& at) const {
    const float s = at.scale, o = at.offset;
    return xx + s * s * qq + n * o * o - 2 * s * xq + 2 * o * x - 2 * s * o * q;
  }
};

Line best_line(std::span<const float> x, int most) {
  const float least = std::min(0.f, *std::ranges::min_element(x));
  const float range = *std::ranges::max_element(x) - least;
  if (range <= 0) return {0, -least};
  Line best;
  float error = INFINITY;
  for (int i = -kCandidates; i <= kCandidates; ++i) {
    const float id = (static_cast<float>(most) + 0.1f * static_cast<float>(i)) / range;
    Fit fit;
    for (const float v : x) fit.add(v, static_cast<float>(rounded((v - least) * id, 0, most)));
    const Line line = fit.line();
    if (fit.error(line) >= error) continue;
    best = line;
    error = fit.error(line);
  }
  return best;
}

struct Lines {
  float d = 0, least = 0;
  std::array<int, 16> scales{}, offsets{};
  std::array<uint8_t, 256> codes{};
};

void choose_codes(std::span<const float> x, size_t parts, int most, Lines& out) {
  const size_t size = x.size() / parts;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t p = i / size;
    const float id = inverse(out.d * static_cast<float>(out.scales[p]));
    const float up = x[i] + out.least * static_cast<float>(out.offsets[p]);
    out.codes[i] = static_cast<uint8_t>(rounded(up * id, 0, most));
  }
}

/// The scales of the block with what was chosen for parts: least squares in two unknowns.
void solve_block(std::span<const float> x, size_t parts, Lines& out) {
  const size_t size = x.size() / parts;
  float aa = 0, ab = 0, bb = 0, ax = 0, bx = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto a = static_cast<float>(out.scales[i / size] * out.codes[i]);
    const auto b = static_cast<float>(-out.offsets[i / size]);
    aa += a * a, ab += a * b, bb += b * b, ax += a * x[i], bx += b * x[i];
  }
  const float det = aa * bb - ab * ab;
  if (det > 1e-6f * aa * bb) {
    out.d = as_f16((ax * bb - bx * ab) / det);
    out.least = as_f16((bx * aa - ax * ab) / det);
  } else if (bb == 0 && aa > 0) {
    out.d = as_f16(ax / aa);
  }
}

Lines lines_of_parts(std::span<const float> x, size_t parts, int most, int most_scale) {
  const size_t size = x.size() / parts;
  std::array<Line, 16> lines{};
  float scale = 0, offset = 0;
  for (size_t p = 0; p < parts; ++p) {
    lines[p] = best_line(x.subspan(p * size, size), most);
    scale = std::max(scale, lines[p].scale);
    offset = std::max(offset, lines[p].offset);
  }
  Lines out;
  out.d = as_f16(scale / static_cast<float>(most_scale));
  out.least = as_f16(offset / static_cast<float>(most_scale));
  for (size_t p = 0; p < parts; ++p) {
    out.scales[p] = rounded(lines[p].scale * inverse(out.d), 0, most_scale);
    out.offsets[p] = rounded(lines[p].offset * inverse(out.least), 0, most_scale);
  }
  choose_codes(x, parts, most, out);
  solve_block(x, parts, out);
  choose_codes(x, parts, most, out);
  return out;
}

void q2_k(const float* x, uint8_t* block) {
  const Lines l = lines_of_parts({x, 256}, 16, 3, 15);
  for (size_t i = 0; i < 16; ++i) block[i] = static_cast<uint8_t>(l.scales[i] | l.offsets[i] << 4);
  put_fields(block + 16, l.codes, 2, 32);
  put_f16(block + 80, l.d);
  put_f16(block + 82, l.least);
}

/// Block::k_scales(), of scales and offsets.
void put_k_scales(uint8_t* at, const Lines& l) {
  for (size_t i = 0; i < 4; ++i) {
    const int late = l.scales[i + 4], late_offset = l.offsets[i + 4];
    at[i] = static_cast<uint8_t>(l.scales[i] | late >> 4 << 6);
    at[4 + i] = static_cast<uint8_t>(l.offsets[i] | late_offset >> 4 << 6);
    at[8 + i] = static_cast<uint8_t>((late & 15) | (late_offset & 15) << 4);
  }
}

void q4_k(const float* x, uint8_t* block) {
  const Lines l = lines_of_parts({x, 256}, 8, 15, 63);
  put_f16(block, l.d);
  put_f16(block + 2, l.least);
  put_k_scales(block + 4, l);
  put_fields(block + 16, l.codes, 4, 32);
}

void q5_k(const float* x, uint8_t* block) {
  const Lines l = lines_of_parts({x, 256}, 8, 31, 63);
  put_f16(block, l.d);
  put_f16(block + 2, l.least);
  put_k_scales(block + 4, l);
  put_high_fields(block + 16, l.codes, 4, 1, 32);
  put_fields(block + 48, l.codes, 4, 32);
}

}  // namespace

Encoder k_encoder(Codec codec) {
  switch (codec) {
    case Codec::Q2_K: return q2_k;
    case Codec::Q3_K: return q3_k;
    case Codec::Q4_K: return q4_k;
    case Codec::Q5_K: return q5_k;
    case Codec::Q6_K: return q6_k;
    case Codec::IQ4_NL: return iq4_nl;
    case Codec::IQ4_XS: return iq4_xs;
    default: return nullptr;
  }
}

}  // namespace weft
