// Formats that choose vectors of 4 or 8 numbers from a table: IQ1, IQ2 and IQ3. For a part's scale
// the best vector is found among all of them, since |x - s g|^2 = x.x - 2 s x.g + s^2 g.g needs x.g
// only once. Scales are candidates below the one at which the largest number fits, each solved for
// again by least squares.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <vector>

#include "weft/io/quantise_block.h"
#include "weft/tensor/packed_block.h"

namespace weft {

namespace {

constexpr int kCandidates = 12;  // scales of a part
constexpr size_t kBlock = 256;

/// A table as numbers, all of them moved by `delta`. Vectors of one length lie together: whatever
/// the scale, the best of them is the one of greatest x.g.
struct Vectors {
  struct Sphere {
    float square;  // g.g
    size_t begin, end;
  };
  size_t width, count;
  std::vector<float> values;      // number j of vector i at j * count + i
  std::vector<uint16_t> entries;  // of each vector: its number in the table
  std::vector<size_t> places;     // of each entry: where its vector is
  std::vector<float> squares;     // of each entry
  std::vector<Sphere> spheres;
  float greatest = 0;

  explicit Vectors(const packed::Grid& grid, float delta = 0)
      : width(static_cast<size_t>(grid.width())),
        count(grid.entries.size()),
        values(width * count),
        entries(count),
        places(count),
        squares(count) {
    const auto number = [&](size_t entry, size_t j) {
      const int code =
          grid.entries[entry] >> (static_cast<int>(j) * grid.bits) & ((1 << grid.bits) - 1);
      const int extra = code == grid.last ? grid.last_extra : 0;
      return static_cast<float>(grid.first + grid.step * code + extra) + delta;
    };
    for (size_t e = 0; e < count; ++e)
      for (size_t j = 0; j < width; ++j) {
        squares[e] += number(e, j) * number(e, j);
        greatest = std::max(greatest, number(e, j));
      }
    std::iota(entries.begin(), entries.end(), uint16_t{0});
    std::ranges::sort(entries, {}, [&](uint16_t e) { return std::pair(squares[e], e); });
    for (size_t i = 0; i < count; ++i) {
      const size_t e = entries[i];
      places[e] = i;
      for (size_t j = 0; j < width; ++j) values[j * count + i] = number(e, j);
      if (spheres.empty() || spheres.back().square != squares[e])
        spheres.push_back({squares[e], i, i});
      spheres.back().end = i + 1;
    }
  }
};

/// x.g of one vector of numbers with every vector of the table.
void products(const Vectors& all, const float* x, float* out) {
  std::fill_n(out, all.count, 0.f);
  for (size_t j = 0; j < all.width; ++j)
    for (size_t i = 0; i < all.count; ++i) out[i] += x[j] * all.values[j * all.count + i];
}

/// Of a sphere: the vector of greatest x.g, that, and the next product, which may be as great.
struct Peak {
  size_t at;
  float most, next;
};
Peak peak_of(const Vectors::Sphere& sphere, const float* xg) {
  Peak peak{sphere.begin, xg[sphere.begin], -INFINITY};
  for (size_t i = sphere.begin + 1; i < sphere.end; ++i) {
    peak.next = std::max(peak.next, std::min(xg[i], peak.most));
    peak.at = xg[i] > peak.most ? i : peak.at;
    peak.most = std::max(peak.most, xg[i]);
  }
  return peak;
}

/// How much less the squared error is with a vector than with zeros.
float gain_of(float xg, float square, float scale) {
  return 2 * scale * xg - scale * scale * square;
}

struct BestEntry {
  uint16_t entry;
  float gain;
};

/// Where several are as good, the one whose number has the least remainder by 8, and of these the
/// least.
BestEntry first_of_best(const Vectors& all, const float* xg, float scale) {
  BestEntry best{0, -INFINITY};
  const auto comes_first = [](uint16_t a, uint16_t b) {
    return a % 8 != b % 8 ? a % 8 < b % 8 : a < b;
  };
  for (size_t i = 0; i < all.count; ++i) {
    const uint16_t e = all.entries[i];
    const float gain = gain_of(xg[i], all.squares[e], scale);
    if (gain > best.gain || (gain == best.gain && comes_first(e, best.entry))) best = {e, gain};
  }
  return best;
}

BestEntry best_entry(const Vectors& all, const float* xg, std::span<const Peak> peaks,
                     float scale) {
  size_t at = 0;
  float most = -INFINITY, next = -INFINITY;
  for (size_t k = 0; k < peaks.size(); ++k) {
    const float square = all.spheres[k].square, gain = gain_of(peaks[k].most, square, scale);
    next = std::max({next, std::min(gain, most), gain_of(peaks[k].next, square, scale)});
    at = gain > most ? peaks[k].at : at;
    most = std::max(most, gain);
  }
  return next < most ? BestEntry{all.entries[at], most} : first_of_best(all, xg, scale);
}

/// A part of a block: its vectors' entries, and how much less the squared error is than with zeros.
struct Part {
  std::array<uint16_t, 8> entries{};
  float scale = 0, gain = 0;
};

/// Numbers of a part with their products with the table.
class PartSearch {
 public:
  PartSearch(const Vectors& all, std::span<const float> x) : all_(all), x_(x) {
    products_.resize(x.size() / all.width * all.count);
    for (size_t v = 0; v < x.size() / all.width; ++v) {
      float* xg = &products_[v * all.count];
      products(all, x.data() + v * all.width, xg);
      for (const Vectors::Sphere& s : all.spheres) peaks_.push_back(peak_of(s, xg));
    }
  }

  /// The best entries at this scale, of all vectors or of `count` from `first` on.
  Part at(float scale) const { return at(scale, 0, x_.size() / all_.width); }
  Part at(float scale, size_t first, size_t count) const {
    Part part;
    part.scale = scale;
    for (size_t v = first; v < first + count; ++v) {
      const size_t spheres = all_.spheres.size();
      const auto [entry, gain] = best_entry(all_, &products_[v * all_.count],
                                            std::span(peaks_).subspan(v * spheres, spheres), scale);
      part.entries[v] = entry;
      part.gain += gain;
    }
    return part;
  }

  Part best() const {
    float peak = 0;
    for (const float v : x_) peak = std::max(peak, std::fabs(v));
    Part best;
    for (int i = 0; i < kCandidates && peak > 0; ++i) {
      const Part tried = at(peak / all_.greatest * (1.1f - 0.06f * static_cast<float>(i)));
      if (const Part solved = at(least_squares(tried)); solved.gain > best.gain) best = solved;
    }
    return best;
  }

 private:
  float least_squares(const Part& part) const {
    float xg = 0, gg = 0;
    for (size_t v = 0; v < x_.size() / all_.width; ++v) {
      xg += products_[v * all_.count + all_.places[part.entries[v]]];
      gg += all_.squares[part.entries[v]];
    }
    return gg > 0 ? std::max(xg / gg, 0.f) : 0;
  }

  const Vectors& all_;
  std::span<const float> x_;
  std::vector<float> products_;
  std::vector<Peak> peaks_;
};

/// A block whose parts have scales unit * (2 code + 1).
struct Chosen {
  float unit = 0;
  std::array<int, 16> scales{};
  std::array<uint16_t, 64> entries{};
  std::array<uint8_t, 32> signs{};     // of eight numbers each
  std::array<uint8_t, 32> negative{};  // of tables with two deltas: of each vector
};

float unit_of(std::span<const float> scales, int most) {
  return as_f16(*std::ranges::max_element(scales) / static_cast<float>(2 * most + 1));
}
int code_of(float scale, float unit, int most) {
  return rounded((scale * inverse(unit) - 1) / 2, 0, most);
}
float scale_of(float unit, int code) { return unit * static_cast<float>(2 * code + 1); }

/// The numbers without signs, and these. Where the eighth sign follows from the others (the number
/// of negative ones is even) the number that matters least takes the other sign.
std::array<float, kBlock> magnitudes(const float* x, bool even, Chosen& out) {
  std::array<float, kBlock> all;
  for (size_t v = 0; v < 32; ++v) {
    float* m = &all[8 * v];
    int signs = 0, count = 0;
    for (size_t j = 0; j < 8; ++j) {
      const bool negative = x[8 * v + j] < 0;
      m[j] = std::fabs(x[8 * v + j]);
      signs |= negative << j;
      count += negative;
    }
    if (even && count % 2 == 1) {
      const auto least = std::min_element(m, m + 8) - m;
      m[least] = -m[least];
      signs ^= 1 << least;
    }
    out.signs[v] = static_cast<uint8_t>(signs);
  }
  return all;
}

Chosen signed_choice(const Vectors& all, const float* x, size_t parts, bool even) {
  constexpr int kMost = 15;
  Chosen out;
  const std::array<float, kBlock> m = magnitudes(x, even, out);
  const size_t size = kBlock / parts, each = size / all.width;
  std::vector<PartSearch> searches;
  std::array<float, 16> scales{};
  for (size_t p = 0; p < parts; ++p) {
    searches.emplace_back(all, std::span(m).subspan(p * size, size));
    scales[p] = searches.back().best().scale;
  }
  out.unit = unit_of(scales, kMost);
  for (size_t p = 0; p < parts; ++p) {
    out.scales[p] = code_of(scales[p], out.unit, kMost);
    const Part part = searches[p].at(scale_of(out.unit, out.scales[p]));
    std::copy_n(part.entries.begin(), each, &out.entries[p * each]);
  }
  return out;
}

using Tables = std::span<const Vectors>;  // one; of IQ1 two

// ---- packing

/// Four times seven signs and the scale's code, in a word.
void put_signs7(uint8_t* at, const Chosen& c, size_t part) {
  uint32_t word = static_cast<uint32_t>(c.scales[part]) << 28;
  for (size_t l = 0; l < 4; ++l) word |= (c.signs[4 * part + l] & 127u) << (7 * l);
  std::memcpy(at, &word, sizeof(word));
}
template <size_t n>
void put_scales4(uint8_t* at, const Chosen& c) {
  for (size_t i = 0; i < n; i += 2)
    at[i / 2] = static_cast<uint8_t>(c.scales[i] | c.scales[i + 1] << 4);
}
/// The low bytes of entries, and their bits above at `high`.
template <size_t n>
void put_entries(uint8_t* low, uint8_t* high, int bits, const Chosen& c) {
  std::array<uint8_t, n> above;
  for (size_t i = 0; i < n; ++i) {
    low[i] = static_cast<uint8_t>(c.entries[i]);
    above[i] = static_cast<uint8_t>(c.entries[i] >> 8);
  }
  if (bits > 0) put_fields(high, above, bits, 1);
}

void iq2_xxs(Tables tables, const float* x, uint8_t* block) {
  const Chosen c = signed_choice(tables[0], x, 8, true);
  put_f16(block, 8 * c.unit);
  for (size_t p = 0; p < 8; ++p) {
    for (size_t l = 0; l < 4; ++l)
      block[2 + 8 * p + l] = static_cast<uint8_t>(c.entries[4 * p + l]);
    put_signs7(block + 6 + 8 * p, c, p);
  }
}
void iq2_xs(Tables tables, const float* x, uint8_t* block) {
  const Chosen c = signed_choice(tables[0], x, 16, true);
  put_f16(block, 8 * c.unit);
  for (size_t i = 0; i < 32; ++i) {
    const auto word = static_cast<uint16_t>(c.entries[i] | (c.signs[i] & 127) << 9);
    std::memcpy(block + 2 + 2 * i, &word, sizeof(word));
  }
  put_scales4<16>(block + 66, c);
}
void iq2_s(Tables tables, const float* x, uint8_t* block) {
  const Chosen c = signed_choice(tables[0], x, 16, false);
  put_f16(block, 8 * c.unit);
  put_entries<32>(block + 2, block + 66, 2, c);
  std::ranges::copy(c.signs, block + 34);
  put_scales4<16>(block + 74, c);
}
void iq3_xxs(Tables tables, const float* x, uint8_t* block) {
  const Chosen c = signed_choice(tables[0], x, 8, true);
  put_f16(block, 4 * c.unit);
  put_entries<64>(block + 2, nullptr, 0, c);
  for (size_t p = 0; p < 8; ++p) put_signs7(block + 66 + 4 * p, c, p);
}
void iq3_s(Tables tables, const float* x, uint8_t* block) {
  const Chosen c = signed_choice(tables[0], x, 8, false);
  put_f16(block, c.unit);
  put_entries<64>(block + 2, block + 66, 1, c);
  std::ranges::copy(c.signs, block + 74);
  put_scales4<8>(block + 106, c);
}

// ---- IQ1: -1, 0 and 1, all of a vector moved by 1/8 up or down

/// `each`: numbers that are moved the same way.
Chosen moved_choice(Tables tables, const float* x, size_t parts, size_t each) {
  constexpr int kMost = 7;
  const size_t size = kBlock / parts;
  Chosen out;
  std::array<float, 16> scales{};
  std::vector<PartSearch> ups, downs;
  for (size_t p = 0; p < parts; ++p) {
    ups.emplace_back(tables[0], std::span(x + p * size, size));
    downs.emplace_back(tables[1], std::span(x + p * size, size));
    const Part up = ups[p].best(), down = downs[p].best();
    scales[p] = up.gain >= down.gain ? up.scale : down.scale;
  }
  out.unit = unit_of(scales, kMost);
  for (size_t at = 0; at < kBlock; at += each) {
    const size_t p = at / size;
    out.scales[p] = code_of(scales[p], out.unit, kMost);
    const float scale = scale_of(out.unit, out.scales[p]);
    const size_t first = at % size / 8;
    const Part up = ups[p].at(scale, first, each / 8), down = downs[p].at(scale, first, each / 8);
    const bool negative = down.gain > up.gain;
    for (size_t v = 0; v < each / 8; ++v) {
      out.entries[at / 8 + v] = (negative ? down : up).entries[first + v];
      out.negative[at / 8 + v] = negative ? 1 : 0;
    }
  }
  return out;
}

void iq1_s(Tables tables, const float* x, uint8_t* block) {
  const Chosen c = moved_choice(tables, x, 8, 32);
  put_f16(block, c.unit);
  for (size_t p = 0; p < 8; ++p) {
    auto high = static_cast<uint16_t>(c.scales[p] << 12 | c.negative[4 * p] << 15);
    for (size_t l = 0; l < 4; ++l) {
      block[2 + 4 * p + l] = static_cast<uint8_t>(c.entries[4 * p + l]);
      high = static_cast<uint16_t>(high | c.entries[4 * p + l] >> 8 << (3 * l));
    }
    std::memcpy(block + 34 + 2 * p, &high, sizeof(high));
  }
}
void iq1_m(Tables tables, const float* x, uint8_t* block) {
  const Chosen c = moved_choice(tables, x, 16, 8);
  std::array<uint8_t, 32> high;
  for (size_t v = 0; v < 32; ++v) {
    block[v] = static_cast<uint8_t>(c.entries[v]);
    high[v] = static_cast<uint8_t>(c.entries[v] >> 8 | c.negative[v] << 3);
  }
  put_fields(block + 32, high, 4, 1);
  const uint16_t unit = f32_to_f16(c.unit);
  for (size_t i = 0; i < 4; ++i) {
    auto word = static_cast<uint16_t>((unit >> (4 * i) & 15) << 12);
    for (size_t k = 0; k < 4; ++k)
      word = static_cast<uint16_t>(word | c.scales[4 * i + k] << (3 * k));
    std::memcpy(block + 48 + 2 * i, &word, sizeof(word));
  }
}

struct Row {
  Codec codec;
  const packed::Grid& grid;
  float delta;
  void (*encode)(Tables tables, const float* x, uint8_t* block);
};
constexpr Row kRows[] = {
    {Codec::IQ1_S, packed::kGrid1, 0.125f, iq1_s},
    {Codec::IQ1_M, packed::kGrid1, 0.125f, iq1_m},
    {Codec::IQ2_XXS, packed::kGrid2Xxs, 0, iq2_xxs},
    {Codec::IQ2_XS, packed::kGrid2Xs, 0, iq2_xs},
    {Codec::IQ2_S, packed::kGrid2S, 0, iq2_s},
    {Codec::IQ3_XXS, packed::kGrid3Xxs, 0, iq3_xxs},
    {Codec::IQ3_S, packed::kGrid3S, 0, iq3_s},
};

}  // namespace

bool has_grid(Codec codec) {
  return std::ranges::find(kRows, codec, &Row::codec) != std::end(kRows);
}

BlockEncoder grid_encoder(Codec codec) {
  const Row& format = *std::ranges::find(kRows, codec, &Row::codec);
  const auto tables = std::make_shared<const std::array<Vectors, 2>>(std::array<Vectors, 2>{
      Vectors(format.grid, format.delta), Vectors(format.grid, -format.delta)});
  return [tables, encode = format.encode](const float* x, uint8_t* block) {
    encode(*tables, x, block);
  };
}

}  // namespace weft
