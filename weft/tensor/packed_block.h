// What a row of codecs.def is written in: parts of many blocks at once, as i32 or f32 tensors whose
// first axis counts blocks and whose second counts elements, groups of them, or is 1.
#pragma once

#include <array>

#include "weft/dtype/codec.h"
#include "weft/dtype/codec_grids.h"
#include "weft/tensor/tensor.h"

namespace weft::packed {

/// Vectors to choose from: code c stands for first + step * c, and the last code for a bit more.
struct Grid {
  std::span<const uint16_t> entries;
  int bits;  ///< of a code, of four the highest is 0; an entry has 16 / bits of them
  int first, step, last, last_extra;
  int width() const { return 16 / bits; }
  int value(int code) const { return first + step * code + (code == last ? last_extra : 0); }
};
inline constexpr Grid kGrid1 = {kGridCodes1S, 2, -1, 1, 3, 0};
inline constexpr Grid kGrid2Xxs = {kGridCodes2Xxs, 2, 8, 17, 2, 1};
inline constexpr Grid kGrid2Xs = {kGridCodes2Xs, 2, 8, 17, 2, 1};
inline constexpr Grid kGrid2S = {kGridCodes2S, 2, 8, 17, 2, 1};
inline constexpr Grid kGrid3Xxs = {kGridCodes3Xxs, 4, 4, 8, 7, 2};
inline constexpr Grid kGrid3S = {kGridCodes3S, 4, 1, 2, 7, 0};

/// The bytes that numbers of four bits stand for.
using Table = std::array<uint8_t, 16>;
/// IQ4_NL's values (ggml-common.h, kvalues_iq4nl), and 128 more.
inline constexpr Table kValues4 = {1,   24,  45,  63,  79,  93,  106, 118,
                                   129, 141, 153, 166, 181, 197, 217, 241};
/// Twice the values of e2m1, and 12 more: 0, 1, 2, 3, 4, 6, 8, 12 and their negatives.
inline constexpr Table kTwiceE2m1 = {12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0};

/// How codes are given: numbers, or words of four of them, each a byte, the first in the lowest;
/// and with AllWords scales are made of words, too, as far as they are of bytes.
enum class CodesAs : uint8_t { Numbers, Words, AllWords };

class Block {
 public:
  /// `bytes`: (blocks, bytes of one), u8, or of pairs(). Of words there are fields(), where they
  /// are of bits or of groups of bytes, bits32(), signed_bytes(), trits(), and what is looked up.
  /// `by_words`: bytes are taken out of words where they are read, too.
  /// `given`: the words of the bytes, (blocks or pairs, bytes / 4), where they are in memory.
  Block(const Tensor& bytes, Codec codec, CodesAs codes = CodesAs::Numbers, bool by_words = false,
        const Tensor& given = {});

  // `count` numbers from byte `at` on.
  Tensor u8(int64_t at, int64_t count) const;
  Tensor i8(int64_t at, int64_t count) const;
  /// The same, 128 more: codes have no sign.
  Tensor signed_bytes(int64_t at, int64_t count) const;
  Tensor u16(int64_t at, int64_t count) const;
  Tensor f16(int64_t at) const;  ///< one, as f32
  Tensor f32(int64_t at) const;
  /// A u32 of every `step` bytes from `at` on, eight of them.
  Tensor words(int64_t at, int64_t step) const;
  /// Parts of `bits` bits of `count` bytes: the lowest of `group` bytes, the next ones of the same
  /// bytes, and so on; then those of the next `group` bytes.
  Tensor fields(int64_t at, int64_t count, int bits, int64_t group) const;
  Tensor bits32(int64_t at) const;   ///< of a u32, lowest first
  Tensor pairs16(int64_t at) const;  ///< the pairs of bits of a u16
  /// Eight numbers of 6 bits in 12 bytes: low bits of four in the bytes at `first`; of four more in
  /// the half bytes from `shift` on of the last four, and their high bits over those of the first.
  Tensor k_scales(int64_t at, int64_t first, int shift) const;
  /// An f16 whose half bytes are the highest of four u16.
  Tensor quarters_f16(int64_t at) const;
  Tensor trits() const;  ///< TQ1_0's: five numbers from 0 to 2 in a byte
  /// What codes stand for.
  Tensor values(const Table& table, const Tensor& codes) const;
  /// 128 and the values, which are negative where the bits of `signs`, eight of each, are set.
  Tensor signed_grid(const Grid& grid, const Tensor& index, const Tensor& signs) const;
  /// 128 and eight times what lies an eighth above the values, or below where `below` is 1.
  Tensor shifted_grid(const Grid& grid, const Tensor& index, const Tensor& below) const;

 private:
  Tensor raw(int64_t at, int64_t count) const;
  Tensor raw_words(int64_t at, int64_t count) const;
  Tensor words_from(int64_t from, int64_t count) const;  // of bytes_, from this byte on
  Tensor word_at(int64_t at) const;
  Tensor grid_codes(const Grid& grid, const Tensor& index) const;
  Tensor bits_of(const Tensor& bytes, int place) const;
  Tensor trits_of(int64_t at, int64_t count, int64_t numbers) const;
  Tensor chosen(const Table& table, const Tensor& codes) const;
  int64_t place(int64_t at) const;

  Tensor bytes_, given_;  // of pairs: without what is in scales_
  Tensor scales_;         // of pairs: (blocks, 1), the bits of f16 in u32
  int64_t scale_at_ = -1;
  bool words_, by_words_;
};

/// Where blocks that are no whole words have 16 bits, the scale, without which they would be; -1
/// where there are none.
int64_t scale_at(Codec codec);
/// Of (blocks, bytes of one), u8, blocks that follow each other two by two: the word of both
/// scales, (blocks / 2, 1), and those of what else there is of the first and of the second. A pair
/// is both, one after the other.
std::array<Tensor, 2> pairs(const Tensor& blocks, Codec codec);

/// What the numbers of blocks are made of: scale * (code - zero) - min.
struct Coded {
  Coded(Tensor scale_in, Tensor codes_in, int64_t zero_in, Tensor min_in = {})
      : scale(std::move(scale_in)),
        codes(std::move(codes_in)),
        min(std::move(min_in)),
        zero(zero_in) {}
  Tensor scale;  ///< (blocks, parts), of equal parts of a block, f32
  Tensor codes;  ///< (blocks, elements), or words of four
  Tensor min;    ///< as scale; where there is one
  int64_t zero = 0;
};
/// Of (blocks, bytes of one), u8, or of pairs(), which are blocks of twice as many parts and
/// elements. `given`: their words, where they are in memory.
Coded coded(const Tensor& blocks, Codec codec, CodesAs as = CodesAs::Numbers,
            const Tensor& given = {});
/// (blocks, elements).
Tensor numbers_of(const Coded& coded);

/// What a weight is decoded from.
struct PackedWeight {
  bool paired() const { return interleaved && scale_at(codec) >= 0; }
  int64_t block_elements() const { return row(codec).elements * (paired() ? 2 : 1); }
  int64_t block_bytes() const { return row(codec).bytes * (paired() ? 2 : 1); }
  Tensor blocks() const;  ///< (blocks or pairs, bytes of one)
  Tensor decoded(const Dims& shape) const;

  Tensor bytes;  ///< as in a file, of whatever lies in another order
  Codec codec;
  bool interleaved = false;  ///< words of several rows lie side by side, of pairs()
};

Tensor each(const Tensor& x);                   ///< (blocks, n) to (blocks, n, 1)
Tensor groups(const Tensor& x, int64_t count);  ///< (blocks, n) to (blocks, count, n / count)
Tensor every(int64_t times, const Tensor& x);   ///< each element so often
Tensor bytes_of(const Tensor& words);           ///< the four bytes of each
Tensor words_of(const Tensor& bytes);      ///< of each four along the last axis, the first lowest
Tensor triples(const Tensor& u16);         ///< the four triples of bits of each
Tensor with_parity(const Tensor& sevens);  ///< an eighth bit that makes the set ones even
Tensor signs_of_sevens(const Tensor& words);  ///< the four times seven bits of each, so
Tensor half_power(const Tensor& e8m0);        ///< 2^(x - 128)
Tensor half_e4m3(const Tensor& x);            ///< half an unsigned e4m3; 0 for 127

}  // namespace weft::packed
