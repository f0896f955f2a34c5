#include "weft/tensor/packed_block.h"

#include <algorithm>

#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/tables.h"

namespace weft::packed {

namespace {

constexpr int64_t kWord = 4, kScaleBytes = 2;

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

/// The parts of every word, each with the ones above it, as i32.
Tensor parts_of(const Tensor& words, int64_t parts) {
  const Tensor places = steps(parts, 2, 3, DType::U32) * (32 / parts);
  return flat(words.unsqueeze(-1) >> places).bitcast(DType::I32);
}

/// `byte` in each byte of a word.
Tensor in_each_byte(uint32_t byte) { return Tensor::full({1, 1}, byte * 0x01010101u, DType::U32); }

/// Of four bits, bit i goes up by 7 i places and so many more: one in each byte.
Tensor in_bytes(const Tensor& four, int place = 0) {
  return (four * int64_t{0x204081 << place}) & in_each_byte(1u << place);
}

/// The byte of the table that the lower half of each byte counts.
Tensor looked_up(const Tensor& words, const Table& table) {
  const OpScope scope(words, CallSite::here());
  SmallVector<NodeRef, 5> operands{words.node()};
  for (size_t i = 0; i < table.size(); i += 4) {
    uint32_t word = 0;
    for (size_t k = 0; k < 4; ++k) word |= uint32_t{table[i + k]} << (8 * k);
    operands.push_back(Tensor::full({}, word, DType::U32).node());
  }
  const build::Extents dims = broadcast("looked_up", operands);
  for (NodeRef& n : operands) n = build::broadcast_to(scope.g, n, dims);
  return scope.result(scope.g.make({Op::Lookup4, DType::U32, operands}));
}

/// Where code `i` is in what a table has of an entry: the first four in the lower halves of its
/// bytes, the others in the upper ones.
constexpr uint32_t place_of(int i) { return static_cast<uint32_t>(8 * (i % 4) + 4 * (i / 4)); }

std::vector<int32_t> placed(const Grid& grid) {
  std::vector<int32_t> out;
  for (const uint16_t entry : grid.entries) {
    uint32_t word = 0;
    for (int i = 0; i < grid.width(); ++i) {
      const uint32_t code = entry >> (i * grid.bits) & ((1u << grid.bits) - 1);
      word |= code << place_of(i);
    }
    out.push_back(static_cast<int32_t>(word));
  }
  return out;
}

/// Codes have two bits where an entry has eight, and else three at most.
int sign_place(const Grid& grid) { return grid.bits == 2 ? 2 : 3; }

/// What codes stand for without the bit above them, and with it.
Table table_of(const Grid& grid, FunctionRef<int(int value, bool bit)> of) {
  Table table{};
  const int codes = 1 << sign_place(grid);
  for (int c = 0; c < codes; ++c)
    for (const bool bit : {false, true})
      table[static_cast<size_t>(c + bit * codes)] = static_cast<uint8_t>(of(grid.value(c), bit));
  return table;
}

}  // namespace

int64_t scale_at(Codec codec) {
  const int64_t bytes = row(codec).bytes;
  if (bytes % kWord != kScaleBytes) return -1;
  const bool last = codec == Codec::Q3_K || codec == Codec::Q6_K || codec == Codec::TQ1_0 ||
                    codec == Codec::TQ2_0;
  return last ? bytes - kScaleBytes : 0;
}

std::array<Tensor, 2> pairs(const Tensor& blocks, Codec codec) {
  const int64_t bytes = row(codec).bytes, at = scale_at(codec), from = at == 0 ? kScaleBytes : 0;
  const auto words = [&](int64_t begin, int64_t end) {
    const Tensor two = blocks.index({Slice(), Slice(begin, end)}).reshape({-1, 2 * (end - begin)});
    return words_of(two.unflatten(1, {-1, kWord}));
  };
  return {words(at, at + kScaleBytes), words(from, from + bytes - kScaleBytes)};
}

Block::Block(const Tensor& bytes, Codec codec, CodesAs codes, bool by_words, const Tensor& given)
    : bytes_(bytes), given_(given), words_(codes != CodesAs::Numbers), by_words_(by_words) {
  const int64_t size = row(codec).bytes;
  if (bytes.size(1) == size) return;
  // Each block's own, from behind both scales on.
  const auto rest = [&](const Tensor& t, int64_t scales) {
    return t.index({Slice(), Slice(scales, std::nullopt)}).reshape({-1, (t.size(1) - scales) / 2});
  };
  const Tensor both = given.defined() ? given.index({Slice(), Slice(0, 1)}) : words_from(0, 1);
  scales_ = (parts_of(both, 2) & 0xffff).reshape({-1, 1});
  bytes_ = rest(bytes, 2 * kScaleBytes);
  if (given.defined()) given_ = rest(given, 1);
  scale_at_ = scale_at(codec);
}

/// Where what is at `at` in a block of a file is in bytes_.
int64_t Block::place(int64_t at) const {
  return at - (scale_at_ >= 0 && at > scale_at_ ? kScaleBytes : 0);
}

Tensor Block::raw(int64_t at, int64_t count) const {
  const int64_t from = place(at);
  return bytes_.shrink({{0, blocks_of(bytes_)}, {from, from + count}});
}

Tensor Block::words_from(int64_t from, int64_t count) const {
  if (given_.defined()) {
    const auto words = [&](int64_t first) {
      return given_.shrink({{0, blocks_of(given_)}, {first, first + count}});
    };
    const int64_t first = from / kWord, shift = 8 * (from % kWord);
    return shift == 0 ? words(first) : (words(first) >> shift) | (words(first + 1) << (32 - shift));
  }
  const Tensor bytes = bytes_.shrink({{0, blocks_of(bytes_)}, {from, from + kWord * count}});
  return joined(bytes.unflatten(1, {count, kWord}), DType::U32);
}

Tensor Block::raw_words(int64_t at, int64_t count) const {
  return words_from(place(at), count / kWord);
}

/// The word whose lowest byte is the one at `at`; of what is above it as much as the block has.
Tensor Block::word_at(int64_t at) const {
  const int64_t from = place(at);
  const int64_t word = std::min(from / kWord * kWord, bytes_.size(1) - kWord);
  return words_from(word, 1) >> static_cast<uint32_t>(8 * (from - word));
}

Tensor Block::u8(int64_t at, int64_t count) const {
  if (by_words_ && count == 1) return (word_at(at) & 255).bitcast(DType::I32);
  if (by_words_ && count % kWord == 0) return parts_of(raw_words(at, count), 4) & 255;
  return raw(at, count).cast(DType::I32);
}

Tensor Block::i8(int64_t at, int64_t count) const {
  if (by_words_ && count % kWord == 0) return (parts_of(raw_words(at, count), 4) << 24) >> 24;
  return raw(at, count).bitcast(DType::I8).cast(DType::I32);
}

Tensor Block::signed_bytes(int64_t at, int64_t count) const {
  return words_ ? raw_words(at, count) ^ in_each_byte(128) : i8(at, count) + 128;
}

Tensor Block::u16(int64_t at, int64_t count) const {
  if (by_words_ && count == 1) return (word_at(at) & 0xffff).bitcast(DType::I32);
  if (by_words_ && count % 2 == 0) return parts_of(raw_words(at, 2 * count), 2) & 0xffff;
  return joined(raw(at, 2 * count).unflatten(1, {count, 2}), DType::U16).cast(DType::I32);
}

Tensor Block::f16(int64_t at) const {
  const Tensor pattern = at == scale_at_ ? scales_.cast(DType::U16)
                         : by_words_     ? word_at(at).cast(DType::U16)
                                         : joined(raw(at, 2).unsqueeze(1), DType::U16);
  return pattern.bitcast(DType::F16).cast(DType::F32);
}

Tensor Block::f32(int64_t at) const {
  return joined(raw(at, 4).unsqueeze(1), DType::U32).bitcast(DType::F32);
}

Tensor Block::words(int64_t at, int64_t step) const {
  constexpr int64_t kCount = 8, kSize = 4;
  // The last word may end where the block does: the bytes between two are those before the second,
  // where there are any.
  const int64_t gap = std::min(place(at), step - kSize);
  const Tensor rows = raw(at - gap, kCount * step).unflatten(1, {kCount, step});
  return joined(rows.shrink({{0, blocks_of(rows)}, {0, kCount}, {gap, gap + kSize}}), DType::U32);
}

Tensor Block::fields(int64_t at, int64_t count, int bits, int64_t group) const {
  const int64_t parts = 8 / bits;
  if (words_ && group == 1) {  // of bits
    return in_bytes(flat(raw_words(at, count).unsqueeze(-1) >> (steps(8, 2, 3, DType::U32) * 4)) &
                    15);
  }
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
  if (words_) return in_bytes((word >> (steps(8, 1, 2, DType::U32) * 4)) & 15);
  return ((word >> steps(32, 1, 2, DType::U32)) & 1).cast(DType::I32);
}

Tensor Block::pairs16(int64_t at) const { return (u16(at, 1) >> (steps(8, 1, 2) * 2)) & 3; }

Tensor Block::k_scales(int64_t at, int64_t first, int shift) const {
  const auto bytes = [&](int64_t from) {
    return raw_words(from, kWord).unsqueeze(-1) >> (steps(4, 2, 3, DType::U32) * 8);
  };
  const Tensor early = bytes(first), rest = bytes(at + 8);
  const Tensor late = ((rest >> shift) & 15) | ((early >> 2) & 48);
  return flat((steps(2, 1, 3) < 1).where(early & 63, late)).bitcast(DType::I32);
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

/// (blocks, numbers of all bytes, bytes): digit after digit.
Tensor Block::trits_of(int64_t at, int64_t count, int64_t numbers) const {
  // 3^i, as constants where i is known.
  const Tensor i = steps(numbers, 1, 3, words_ ? DType::U32 : DType::I32);
  Tensor power = Tensor::full({1, 1, 1}, 81, i.dtype());
  for (const auto& [below, value] : {std::pair{4, 27}, {3, 9}, {2, 3}, {1, 1}})
    power = (i < below).where(value, power);
  // A byte is 256 / 243 of the number with these digits: each multiplication by 3 brings the next
  // digit over 256.
  if (!words_) return flat((((u8(at, count).unsqueeze(1) * power) & 255) * 3) >> 8);
  // Two bytes of a word at a time: 16 bits hold what they are multiplied by.
  constexpr int64_t kBytes = 0x00ff00ff;
  const auto digits = [&](const Tensor& two) {
    return (((((two & kBytes) * power) & kBytes) * 3) >> 8) & kBytes;
  };
  const Tensor words = raw_words(at, count).unsqueeze(1);
  return flat(digits(words) | (digits(words >> 8) << 8));
}

Tensor Block::trits() const {
  // (at, bytes, numbers of each): the first 160 numbers, 80 more, and four of the last bytes. Zeros
  // beside them are read nowhere; parts put one after the other would be stored.
  constexpr int64_t kParts[][3] = {{0, 32, 5}, {32, 16, 5}, {48, 4, 4}};
  constexpr int64_t kNumbers = 256;
  const int64_t unit = words_ ? kWord : 1;
  int64_t before = 0;
  Tensor all;
  for (const auto& [at, count, numbers] : kParts) {
    const int64_t after = kNumbers - before - count * numbers;
    const Tensor part = trits_of(at, count, numbers).pad({{0, 0}, {before / unit, after / unit}});
    all = all.defined() ? all | part : part;
    before += count * numbers;
  }
  return all;
}

Tensor Block::values(const Table& table, const Tensor& codes) const {
  if (words_) return looked_up(codes, table);
  return (looked_up(codes.bitcast(DType::U32), table) & 255).bitcast(DType::I32);
}

/// The same of what has more bits.
Tensor Block::chosen(const Table& table, const Tensor& codes) const {
  return values(table, words_ ? codes & in_each_byte(15) : codes & 15);
}

/// Each in the lower half of a byte, as numbers or words.
Tensor Block::grid_codes(const Grid& grid, const Tensor& index) const {
  const Tensor entry =
      constant_table(placed(grid), {grid.entries.size()}, bytes_)[index].unsqueeze(-1);
  const Tensor words =
      flat(entry.bitcast(DType::U32) >> (steps(grid.width() / kWord, 2, 3, DType::U32) * 4));
  return words_ ? words : parts_of(words, 4);
}

/// Of each of eight bits one, lowest first, so far up in a number or a byte.
Tensor Block::bits_of(const Tensor& bytes, int place) const {
  if (!words_) return flat(((bytes.unsqueeze(-1) >> steps(8, 2, 3)) & 1) << place);
  const Tensor four = bytes.bitcast(DType::U32).unsqueeze(-1) >> (steps(2, 2, 3, DType::U32) * 4);
  return in_bytes(flat(four & 15), place);
}

Tensor Block::signed_grid(const Grid& grid, const Tensor& index, const Tensor& signs) const {
  const Table table =
      table_of(grid, [](int value, bool negative) { return 128 + (negative ? -value : value); });
  return chosen(table, grid_codes(grid, index) | bits_of(signs, sign_place(grid)));
}

Tensor Block::shifted_grid(const Grid& grid, const Tensor& index, const Tensor& below) const {
  const Table table =
      table_of(grid, [](int value, bool down) { return 128 + 8 * value + (down ? -1 : 1); });
  const Tensor codes = grid_codes(grid, index);
  const int64_t times = grid.width() / (words_ ? kWord : 1);
  const int64_t bit = int64_t{words_ ? 0x01010101 : 1} << sign_place(grid);
  const Tensor bits = words_ ? below.bitcast(DType::U32) * bit : below * bit;
  return chosen(table, codes | every(times, bits));
}

Tensor words_of(const Tensor& bytes) { return joined(bytes, DType::U32); }

Tensor numbers_of(const Coded& c) {
  const Tensor codes = c.zero == 0 ? c.codes : c.codes - c.zero;
  const Tensor y = each(c.scale) * groups(codes, c.scale.size(1));
  return flat(c.min.defined() ? y - each(c.min) : y);
}

Tensor each(const Tensor& x) { return x.unsqueeze(-1); }

Tensor groups(const Tensor& x, int64_t count) { return x.unflatten(1, {count, -1}); }

Tensor every(int64_t times, const Tensor& x) {
  return flat(x.unsqueeze(-1).expand({-1, -1, times}));
}

Tensor bytes_of(const Tensor& words) { return parts_of(words, 4) & 255; }

Tensor triples(const Tensor& u16) { return flat((u16.unsqueeze(-1) >> (steps(4, 2, 3) * 3)) & 7); }

Tensor with_parity(const Tensor& sevens) {
  Tensor odd = sevens ^ (sevens >> 4);
  odd = odd ^ (odd >> 2);
  odd = odd ^ (odd >> 1);
  return sevens | ((odd & 1) << 7);
}

Tensor signs_of_sevens(const Tensor& words) {
  // The lowest of every seven bits becomes the parity of all of them, with no regard to what the
  // others become; it goes where an eighth would be.
  const Tensor two = words ^ (words >> 4);
  const Tensor eighth = (two ^ (two >> 1) ^ (two >> 2) ^ (words >> 3)) << 7;
  const Tensor shifts = steps(4, 2, 3, DType::U32) * 7;
  const auto each_seven = [&](const Tensor& x) { return x.unsqueeze(-1) >> shifts; };
  return flat((each_seven(words) & 127) | (each_seven(eighth) & 128)).bitcast(DType::I32);
}

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

}  // namespace weft::packed
