#include "weft/tensor/packed_block.h"

#include <algorithm>

#include "weft/tensor/tables.h"

namespace weft::packed {

namespace {

constexpr int64_t kWord = 4;  // bytes

Dim blocks_of(const Tensor& x) { return x.dim(0); }

/// (blocks, ...) to (blocks, all).
Tensor flat(const Tensor& x) { return x.flatten(1, -1); }

/// 0, 1, ... as a vector along axis `axis` of `rank`.
Tensor steps(int64_t count, int64_t axis, int64_t rank, DType dtype = DType::I32) {
  Dims shape(std::vector<int64_t>(static_cast<size_t>(rank), 1));
  shape[static_cast<size_t>(axis)] = count;
  return Tensor::arange(count, dtype).reshape(shape);
}

/// Little-endian words of bytes along the last axis.
Tensor joined(const Tensor& bytes, DType dtype) {
  Tensor word;
  for (int64_t i = 0; i < bits(dtype) / 8; ++i) {
    const Tensor part = bytes.index({kEllipsis, i}).cast(dtype) << (8 * i);
    word = i == 0 ? part : word | part;
  }
  return word;
}

/// `byte` in each byte of a word.
Tensor in_each_byte(uint32_t byte) { return Tensor::full({1, 1}, byte * 0x01010101u, DType::U32); }

/// The bits 0 to `count` - 1 of each, as a new last axis.
Tensor spread(const Tensor& x, int64_t count) {
  return (x.unsqueeze(-1) >> steps(count, 2, 3)) & 1;
}

}  // namespace

Tensor Block::raw(int64_t at, int64_t count) const {
  return bytes_.shrink({{0, blocks_of(bytes_)}, {at, at + count}});
}

Tensor Block::raw_words(int64_t at, int64_t count) const {
  return joined(raw(at, count).unflatten(1, {count / kWord, kWord}), DType::U32);
}

/// Each with the ones above it in its word.
Tensor Block::bytes_of_words(int64_t at, int64_t count) const {
  return flat(raw_words(at, count).unsqueeze(-1) >> (steps(kWord, 2, 3, DType::U32) * 8))
      .bitcast(DType::I32);
}

Tensor Block::u8(int64_t at, int64_t count) const {
  if (by_words_ && count % kWord == 0) return bytes_of_words(at, count) & 255;
  return raw(at, count).cast(DType::I32);
}

Tensor Block::i8(int64_t at, int64_t count) const {
  if (by_words_ && count % kWord == 0) return (bytes_of_words(at, count) << 24) >> 24;
  return raw(at, count).bitcast(DType::I8).cast(DType::I32);
}

Tensor Block::signed_bytes(int64_t at, int64_t count) const {
  return words_ ? raw_words(at, count) ^ in_each_byte(128) : i8(at, count) + 128;
}

Tensor Block::u16(int64_t at, int64_t count) const {
  return joined(raw(at, 2 * count).unflatten(1, {count, 2}), DType::U16).cast(DType::I32);
}

Tensor Block::f16(int64_t at) const {
  if (by_words_) {
    const int64_t word = std::min(at / kWord * kWord, bytes_.size(1) - kWord);
    const Tensor pattern = raw_words(word, kWord) >> static_cast<uint32_t>(8 * (at - word));
    return pattern.cast(DType::U16).bitcast(DType::F16).cast(DType::F32);
  }
  const Tensor pattern = joined(raw(at, 2).unsqueeze(1), DType::U16);
  return pattern.bitcast(DType::F16).cast(DType::F32);
}

Tensor Block::f32(int64_t at) const {
  return joined(raw(at, 4).unsqueeze(1), DType::U32).bitcast(DType::F32);
}

Tensor Block::strided(int64_t at, int64_t count, int64_t step, int64_t take) const {
  const Tensor rows = raw(at, count * step).unflatten(1, {count, step});
  return flat(rows.shrink({{0, blocks_of(rows)}, {0, count}, {0, take}}).cast(DType::I32));
}

Tensor Block::words(int64_t at, int64_t step) const {
  constexpr int64_t kCount = 8, kSize = 4;
  // The last word may end where the block does: the bytes between two are those before the second.
  const int64_t gap = step - kSize;
  const Tensor rows = raw(at - gap, kCount * step).unflatten(1, {kCount, step});
  return joined(rows.shrink({{0, blocks_of(rows)}, {0, kCount}, {gap, step}}), DType::U32);
}

Tensor Block::fields(int64_t at, int64_t count, int bits, int64_t group) const {
  const int64_t parts = 8 / bits;
  if (words_) {
    const Tensor words = raw_words(at, count).unflatten(1, {count / group, 1, group / 4});
    const Tensor field = flat(words >> (steps(parts, 2, 4, DType::U32) * bits));
    return field & in_each_byte((1u << bits) - 1);
  }
  const Tensor bytes = u8(at, count).unflatten(1, {count / group, 1, group});
  const Tensor field = bytes >> (steps(parts, 2, 4) * bits);
  return flat(field & ((1 << bits) - 1));
}

Tensor Block::bits32(int64_t at) const {
  const Tensor word = joined(raw(at, 4).unsqueeze(1), DType::U32);
  if (words_) {
    // Of four bits, bit i goes up by 7 i places.
    const Tensor four = (word >> (steps(8, 1, 2, DType::U32) * 4)) & 15;
    return (four * 0x204081) & in_each_byte(1);
  }
  return ((word >> steps(32, 1, 2, DType::U32)) & 1).cast(DType::I32);
}

Tensor Block::pairs16(int64_t at) const { return (u16(at, 1) >> (steps(8, 1, 2) * 2)) & 3; }

Tensor Block::k_scales(int64_t at, int64_t first, int shift) const {
  // Of the first four the byte itself; of the others the rest's, and what lies four before. All
  // are read side by side.
  const Tensor rest = u8(at + 4, 8), before = u8(first - 4, 8);
  const Tensor late = ((rest >> shift) & 15) | ((before >> 6) << 4);
  return (steps(8, 1, 2) < 4).where(u8(first, 8) & 63, late);
}

Tensor Block::quarters_f16(int64_t at) const {
  const Tensor words = u16(at, 4);
  Tensor pattern;
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor part = (words[{Slice(), Slice(i, i + 1)}] >> 12) << (4 * i);
    pattern = i == 0 ? part : pattern | part;
  }
  return pattern.cast(DType::U16).bitcast(DType::F16).cast(DType::F32);
}

Tensor Block::trits() const {
  // (at, bytes, numbers of each): the first 160 numbers, 80 more, and four of the last bytes.
  constexpr int64_t kParts[][3] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
  std::vector<Tensor> all;
  for (const auto& [at, count, numbers] : kParts) {
    const Tensor powers = constant_table<int32_t>({1, 3, 9, 27, 81}, {5}, bytes_);
    const Tensor power = powers.shrink({{0, numbers}}).reshape({1, numbers, 1});
    // A byte is 256 / 243 of the number with these digits: each multiplication by 3 brings the next
    // digit over 256.
    all.push_back(flat((((u8(at, count).unsqueeze(1) * power) & 255) * 3) >> 8));
  }
  return Tensor::cat(all, 1);
}

Tensor Block::value4(const Tensor& x) const {
  // Four values in each of four words: choosing a word and a byte of it stays in vectors, where a
  // table in memory is read element by element.
  constexpr uint32_t kWords[] = {0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535};
  const auto word = [&](int i) { return Tensor::full({1, 1}, kWords[i], DType::U32); };
  const Tensor chosen =
      (x < 8).where((x < 4).where(word(0), word(1)), (x < 12).where(word(2), word(3)));
  // The byte on top, then down again with its sign.
  const Tensor raised = chosen << (24 - ((x & 3) << 3)).cast(DType::U32);
  return raised.bitcast(DType::I32) >> 24;
}

Tensor Block::grid(const Grid& grid, const Tensor& index) const {
  const std::vector<int32_t> entries(grid.entries.begin(), grid.entries.end());
  const Tensor entry = constant_table(entries, {entries.size()}, bytes_)[index].unsqueeze(-1);
  const Tensor code = (entry >> (steps(grid.width(), 2, 3) * grid.bits)) & ((1 << grid.bits) - 1);
  const Tensor value = code * grid.step + grid.first;
  if (grid.last_extra == 0) return flat(value);
  return flat((code == grid.last).where(value + grid.last_extra, value));
}

Tensor Block::signed_grid(const Grid& grid, const Tensor& index, const Tensor& signs) const {
  const Tensor magnitude = this->grid(grid, index);
  return flat(spread(signs, 8)).cast(DType::Bool).where(-magnitude, magnitude);
}

Tensor numbers_of(const Coded& c) {
  if (c.numbers.defined()) return c.numbers;
  const Tensor codes = c.zero == 0 ? c.codes : c.codes - c.zero;
  const Tensor y = each(c.scale) * groups(codes, c.scale.size(1));
  return flat(c.min.defined() ? y - each(c.min) : y);
}

Tensor each(const Tensor& x) { return x.unsqueeze(-1); }

Tensor groups(const Tensor& x, int64_t count) { return x.unflatten(1, {count, -1}); }

Tensor every(int64_t times, const Tensor& x) {
  return flat(x.unsqueeze(-1).expand({-1, -1, times}));
}

Tensor triples(const Tensor& u16) { return flat((u16.unsqueeze(-1) >> (steps(4, 2, 3) * 3)) & 7); }

Tensor with_parity(const Tensor& sevens) {
  Tensor odd = sevens ^ (sevens >> 4);
  odd = odd ^ (odd >> 2);
  odd = odd ^ (odd >> 1);
  return sevens | ((odd & 1) << 7);
}

Tensor signs_of_sevens(const Tensor& words) {
  const Tensor shifts = steps(4, 2, 3, DType::U32) * 7;
  return with_parity(flat((words.unsqueeze(-1) >> shifts) & 127).cast(DType::I32));
}

Tensor eighth(const Tensor& negative) { return (negative == 0).where(0.125f, -0.125f); }

Tensor half_power(const Tensor& e8m0) {
  const Tensor pattern = (e8m0 < 2).where(e8m0 * 0x200000 + 0x200000, (e8m0 - 1) << 23);
  return pattern.bitcast(DType::F32);
}

Tensor half_e4m3(const Tensor& x) {
  const Tensor exponent = (x >> 3) & 15, mantissa = x & 7;
  // An exponent e stands for 2^(e - 7); half of it, biased as f32's.
  const Tensor normal = (((exponent + 119) << 23) | (mantissa << 20)).bitcast(DType::F32);
  const Tensor value = (exponent == 0).where(mantissa * 0x1p-10f, normal);
  return (x == 127).where(0.f, value);
}

Tensor twice_e2m1(const Tensor& code) {
  const Tensor magnitudes = Tensor::full({1, 1}, 0xc8643210u, DType::U32);  // four bits each
  const Tensor shift = ((code & 7) << 2).cast(DType::U32);
  const Tensor magnitude = ((magnitudes >> shift) & 15).cast(DType::I32);
  return (code < 8).where(magnitude, -magnitude);
}

}  // namespace weft::packed
