// Products with packed weights by what their factors are rounded to.
#include <algorithm>
#include <optional>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/tensor/access.h"
#include "weft/tensor/elementwise.h"
#include "weft/tensor/packed.h"
#include "weft/tensor/packed_block.h"
#include "weft/tensor/packed_products.h"
#include "weft/tensor/tracing.h"
#include "weft/tensor/transforms.h"

namespace weft {

namespace {

// So many rows are multiplied as they are decoded, in registers, where rounding only takes time.
constexpr int64_t kFewRows = 6;
// More are multiplied as bf16, which is no less precise and, by tiles, no slower.
constexpr int64_t kMostRows = 32;
// Numbers of x that share a scale, and of a word.
constexpr int64_t kBlock = 32, kWord = 4;
// Words that are summed side by side: as many as the longest vectors have lanes.
constexpr int64_t kLanes = 16;
// Columns side by side take a transposition of what is read, words side by side a scale for each.
constexpr int64_t kBitsByWords = 6;
// Where registers transpose, wider ones take longer to read than to multiply, however they lie.
// Narrower ones, codes of grids and trits, take many operations, which more rows than a few share
// where they lie as in files (16 rows by 16 times 2048 x 8192, Zen 4: TQ1_0 67 ms, 186 interleaved,
// IQ2_S 38 and 48).
constexpr double kMostInterleaved = 7, kLeastInterleaved = 2.6;
// Of codes that are decoded at a time for many rows: a part of L2.
constexpr int64_t kBlockBytes = 1 << 19;
constexpr int64_t kFewestColumns = 64;
constexpr float kLargest = 127;

using packed::PackedWeight;
using Combine = FunctionRef<Tensor(const Tensors& products)>;

const Target& default_target() {
  return Context::current().get<DeviceTable>().default_device().target();
}

bool has_unit(FunctionRef<bool(const MatrixUnit&)> is_one) {
  return std::ranges::any_of(default_target().matrix_units, is_one);
}
bool multiplies_bytes() {
  return has_unit([](const MatrixUnit& u) { return u.op == Op::Dot4; });
}
/// Or by pairs of 16 bits (lower/dot_products.cpp).
bool multiplies_pairs_or_bytes() {
  return multiplies_bytes() || has_unit([](const MatrixUnit& u) { return u.op == Op::Dot2I16; });
}
bool multiplies_bf16() {
  return has_unit([](const MatrixUnit& u) { return u.left == DType::BF16; });
}

/// Whether registers put words of two of them in any order.
bool permutes_words() { return default_target().permutes_pairs(DType::U32); }

/// What decode() or decode_interleaved() has made `weight` of, if one has: of the formats that so
/// many bytes may be, the one that gives the same expression.
std::optional<PackedWeight> packed_weight(const Tensor& weight) {
  const OpScope scope(weight, CallSite::here());
  for (NodeRef n : Toposort(weight.node())) {
    if (n->op != Op::Detach || n->dtype != DType::U8) continue;
    const Tensor bytes = TensorAccess::make(scope.context, n->src(0));
    for (const CodecRow& r : kCodecs) {
      const auto size = packed_bytes(r.codec, weight.shape());
      if (is_plain(r.codec) || size != bytes.numel()) continue;
      for (const bool interleaved : {false, true}) {
        const PackedWeight as{bytes, r.codec, interleaved};
        if (interleaved && !may_be_interleaved(r.codec, weight.dims(), 1)) continue;
        if (as.decoded(weight.dims()).node() == weight.node()) return as;
      }
    }
  }
  return std::nullopt;
}

/// (rows, sum) rounded to bytes.
struct RoundedRows {
  Tensor codes;  ///< (rows, sum) u8, the bits of i8
  Tensor scale;  ///< (rows, blocks) f32
};

RoundedRows rounded(const Tensor& x) {
  constexpr float kNothing = 0x1p-126f;  // what 1 divided by may be infinite
  const Tensor blocks = x.unflatten(1, {x.size(1) / kBlock, kBlock});
  // Stored, because products read one of a part for each column.
  const Tensor scale = (blocks.abs().max({-1}, true) * (1 / kLargest)).contiguous();
  const Tensor inverse = (scale > kNothing).where(1 / scale, 0.f);
  const Tensor codes = (blocks * inverse).round().cast(DType::I8).bitcast(DType::U8);
  return {codes.flatten(1, -1).contiguous(), scale.flatten(1, -1)};
}

/// (rows, sum / 4) u32, read from where the codes lie.
Tensor words_of(const Tensor& codes) {
  return packed::words_of(codes.unflatten(1, {codes.size(1) / kWord, kWord}));
}

Tensor dot4(const Tensor& words, const Tensor& with, const Tensor& sum) {
  const OpScope scope(words, CallSite::here());
  const NodeRef operands[] = {words.node(), with.node(), sum.node()};
  const build::Extents dims = broadcast("product_with", operands);
  SmallVector<NodeRef, 3> src;
  for (NodeRef n : operands) src.push_back(build::broadcast_to(scope.g, n, dims));
  return scope.result(scope.g.make({Op::Dot4, DType::I32, src}));
}

/// sum, where there is one, + a * b.
Tensor add_product(const Tensor& sum, const Tensor& a, const Tensor& b) {
  return sum.defined() ? elementwise::multiply_add(a, b, sum) : a * b;
}

/// Rows of packed matrices. A block has parts, of at most as many numbers as share a scale; what a
/// part of one row times another sums is exact.
struct CodedRows {
  /// `shape`: (columns, sum), or (matrices, columns, sum).
  CodedRows(const PackedWeight& w, const Dims& shape, packed::CodesAs as, const Tensor& given = {})
      : matrices(shape.size() == 3 ? shape[0].value() : 1),
        columns(shape[shape.size() - 2].value()),
        blocks(shape.back().value() / w.block_elements()),
        coded(packed::coded(w.blocks(), w.codec, as, given)),
        parts(std::max(coded.scale.size(1), w.block_elements() / kBlock)),
        words(w.block_elements() / parts / kWord) {}

  int64_t matrices, columns, blocks;
  packed::Coded coded;
  int64_t parts, words;  ///< of a block, of a part
};

/// (rows, parts) of what has one number for several of them.
Tensor of_parts(const Tensor& x, int64_t parts) {
  return parts == x.size(1) ? x : x.repeat_interleave(parts / x.size(1), -1);
}

/// i32, (rows, parts): what the codes of each part sum up to.
Tensor sums_of(const Tensor& codes, int64_t parts) {
  const Tensor words = words_of(codes).unflatten(1, {parts, -1});
  return dot4(Tensor::full({}, 0x01010101, DType::U32), words, Tensor::full({}, 0, DType::I32))
      .sum({2}, false, DType::I32);
}

/// Of few rows: (rows, columns), where each has a matrix of its own or all have one. Parts are
/// scaled one after the other, so that columns may lie side by side: only their order counts.
Tensor of_few_rows(const PackedWeight& w, const Dims& shape, const RoundedRows& rows) {
  const CodedRows m(w, shape, packed::CodesAs::AllWords);
  const auto by_parts = [&](const Tensor& x) {
    return x.unflatten(1, {1, m.blocks, m.parts, x.size(1) / m.blocks / m.parts});
  };
  const auto one = [](const Tensor& x, int64_t part) { return x.index({kEllipsis, part}); };
  // (1 or rows, columns, blocks).
  const auto of_columns = [&](const Tensor& x, int64_t part) {
    return one(x, part * x.size(1) / m.parts).reshape({m.matrices, m.columns, m.blocks});
  };
  const Tensor words = by_parts(words_of(rows.codes));
  const Tensor codes = m.coded.codes.reshape({m.matrices, m.columns, m.blocks, m.parts, m.words});
  const auto number = [&](const Tensor& x) { return by_parts(x).squeeze(-1); };
  const Tensor sums = number(sums_of(rows.codes, m.blocks * m.parts)),
               with = number(of_parts(rows.scale, m.blocks * m.parts));
  const Tensor first = m.coded.zero != 0 ? (sums * -m.coded.zero).contiguous() : Tensor();
  const Tensor less =
      m.coded.min.defined() ? (-(sums.cast(DType::F32) * with)).contiguous() : Tensor();
  Tensor sum;
  for (int64_t part = 0; part < m.parts; ++part) {
    const auto of = [&](const Tensor& t) { return t.index({kEllipsis, part, Slice()}); };
    Tensor dot = dot4(of(codes), of(words), Tensor::full({}, 0, DType::I32))
                     .sum({3}, false, DType::I32);  // (rows, columns, blocks)
    if (first.defined()) dot = dot + one(first, part);
    sum = add_product(sum, dot.cast(DType::F32) * one(with, part), of_columns(m.coded.scale, part));
    if (less.defined()) sum = add_product(sum, one(less, part), of_columns(m.coded.min, part));
  }
  return sum.sum({2});
}

/// The same, of words that lie side by side: each is scaled by itself, and columns come one after
/// the other.
Tensor of_words(const PackedWeight& w, const Dims& shape, const RoundedRows& rows) {
  const CodedRows m(w, shape, packed::CodesAs::Words);
  const int64_t words = m.parts * m.words;  // of a block
  const auto of_rows = [&](const Tensor& t) { return t.unflatten(1, {1, m.blocks, -1, kLanes}); };
  const auto of_columns = [&](const Tensor& t) {
    return of_parts(t, words).reshape({m.matrices, m.columns, m.blocks, -1, kLanes});
  };
  const Tensor sums = sums_of(rows.codes, m.blocks * words),
               with = of_parts(rows.scale, m.blocks * words).contiguous();
  const Tensor first = m.coded.zero != 0 ? of_rows((sums * -m.coded.zero).contiguous())
                                         : Tensor::full({}, 0, DType::I32);
  const Tensor dot = dot4(of_columns(m.coded.codes), of_rows(words_of(rows.codes)), first);
  Tensor sum = dot.cast(DType::F32);
  if (permutes_words()) {
    // Both scales of a part are multiplied before there is one for each word: four times fewer
    // bytes beside the codes in L1 (2048 x 8192 of Q6_K by one row, Zen 4: 616 -> 430 us).
    const Tensor row_scale = of_parts(rows.scale, m.blocks * m.parts).contiguous();
    const Tensor scale =
        row_scale.unflatten(1, {1, m.blocks, m.parts}) *
        of_parts(m.coded.scale, m.parts).reshape({m.matrices, m.columns, m.blocks, m.parts});
    sum = sum * scale.repeat_interleave(m.words, -1).unflatten(-1, {-1, kLanes});
  } else {
    sum = sum * of_rows(with) * of_columns(m.coded.scale);
  }
  if (m.coded.min.defined())
    sum = add_product(sum, of_rows((-(sums.cast(DType::F32) * with)).contiguous()),
                      of_columns(m.coded.min));
  return sum.sum({2, 3, 4});
}

bool has_whole_vectors(Codec codec) { return row(codec).elements % (kLanes * kWord) == 0; }
bool is_best_by_words(Codec codec) {
  const CodecRow& format = row(codec);
  return has_whole_vectors(codec) && format.bytes * 8 > kBitsByWords * format.elements;
}

/// Whether registers can transpose what columns side by side need.
bool transposes_words() { return default_target().vector_bits == 0 || permutes_words(); }

/// How many rows, at most, are best multiplied by words side by side: all where registers cannot
/// transpose.
int64_t most_rows_by_words(const PackedWeight& w) {
  const bool transposes = transposes_words();
  if (w.interleaved) return 0;
  if (is_best_by_words(w.codec)) return transposes ? kFewRows : kMostRows;
  return transposes || !has_whole_vectors(w.codec) ? 0 : kMostRows;
}

/// Columns whose codes are decoded at a time: as many as L2 holds, in vectors; 0 where no such
/// number divides them, or only one so small that rounds would take longer than what they do.
int64_t columns_of_block(int64_t columns, int64_t sum) {
  int64_t most = std::min(columns, kBlockBytes / sum) / kLanes * kLanes;
  while (most > 0 && columns % most != 0) most -= kLanes;
  return most >= kFewestColumns || most == columns ? most : 0;
}

/// The words of blocks of columns, where they are whole: in memory vectors of columns lie side by
/// side, so that codes and scales are taken out of them by vectors.
Tensor words_in_lanes(const Tensor& blocks, int64_t columns) {
  if (blocks.size(1) % kWord != 0) return {};
  const int64_t words = blocks.size(1) / kWord;
  const Tensor all = packed::words_of(blocks.unflatten(1, {words, kWord}))
                         .reshape({columns / kLanes, kLanes, -1, words});
  return all.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}).reshape({-1, words});
}

/// Whether codes are below 128, as those on both sides of a smaller zero are: products by pairs
/// take them as they are.
bool has_small_codes(const packed::Coded& coded) { return coded.zero < 128; }

/// What a product needs of many rows, the same for all columns, (rows, 1, parts of blocks, ..):
/// codes, what scales them, and what is less for a zero or a minimum.
Tensors rows_by_parts(const RoundedRows& rows, Codec codec) {
  const Tensor block = Tensor::full({1, row(codec).bytes}, 0, DType::U8);
  const CodedRows like({block, codec}, {1, row(codec).elements}, packed::CodesAs::AllWords);
  const int64_t count = rows.codes.size(0);
  const int64_t parts = rows.codes.size(1) / row(codec).elements * like.parts;
  const auto by_parts = [&](const Tensor& t) { return t.reshape({count, 1, parts, -1}); };
  const Tensor sums = sums_of(rows.codes, parts), with = of_parts(rows.scale, parts);
  const Tensor less =
      like.coded.min.defined() ? -(sums.cast(DType::F32) * with) : sums * -like.coded.zero;
  return {by_parts(rows.codes), by_parts(with).contiguous(), by_parts(less).contiguous()};
}

/// Of many rows with a block of columns: (rows, columns / lanes, lanes). Codes and scales are
/// decoded once for all of them, to where vectors of columns lie side by side.
Tensor of_columns_in_lanes(const PackedWeight& w, int64_t columns, std::span<const Tensor> rows) {
  const int64_t parts = rows[0].size(2), sum = parts * rows[0].size(3);
  const CodedRows m(w, {columns, sum}, packed::CodesAs::AllWords,
                    words_in_lanes(w.blocks(), columns));
  // (1, columns / lanes, parts, .., lanes).
  const auto in_lanes = [&](const Tensor& t, int64_t each) {
    const Tensor lanes = t.reshape({1, columns / kLanes, kLanes, parts, each});
    return lanes.permute({0, 1, 3, 4, 2}).contiguous();
  };
  const auto of_part = [&](const Tensor& t) {
    return in_lanes(of_parts(t, m.parts), 1).squeeze(3);
  };
  Tensor codes = in_lanes(m.coded.codes, m.words);
  // What is read from memory is not known to be small.
  if (!multiplies_bytes() && has_small_codes(m.coded))
    codes = codes & Tensor::full({}, 0x7f7f7f7f, DType::U32);
  Tensor dot = dot4(codes, packed::words_of(rows[0].unflatten(3, {m.words, kWord})).unsqueeze(-1),
                    Tensor::full({}, 0, DType::I32))
                   .sum({3}, false, DType::I32);  // (rows, columns / lanes, parts, lanes)
  if (m.coded.zero != 0) dot = dot + rows[2];
  Tensor y = dot.cast(DType::F32) * rows[1] * of_part(m.coded.scale);
  if (m.coded.min.defined()) y = add_product(y, rows[2], of_part(m.coded.min));
  return y.sum({2});
}

/// What `combine` makes of the products of many rows with matrices of one shape: (rows, columns),
/// one block of columns after the other.
Tensor of_many_rows(std::span<const PackedWeight> all, const Dims& shape, const RoundedRows& rows,
                    Combine combine) {
  const int64_t columns = shape[0].value(), width = columns_of_block(columns, shape[1].value());
  RepeatInputs in;
  in.count = columns / width;
  in.apart = true;
  for (const PackedWeight& w : all) {
    in.stacked.push_back(w.bytes.reshape({in.count, -1}));
    for (const Tensor& t : rows_by_parts(rows, w.codec)) in.whole.push_back(t);
  }
  const auto body = [&](const Tensors& slices, const Tensors& whole, const Tensors&) {
    const size_t each = whole.size() / all.size();
    Tensors products;
    for (size_t i = 0; i < all.size(); ++i)
      products.push_back(of_columns_in_lanes({slices[i], all[i].codec, all[i].interleaved}, width,
                                             std::span(whole).subspan(i * each, each)));
    return RepeatBody{{}, {combine(products)}};
  };
  return repeat(in, body).outs[0].permute({1, 0, 2, 3}).flatten(1, -1);
}

bool has_most_rows(const Tensor& x, int64_t most) {
  Dim rows = 1;
  for (size_t i = 0; i + 1 < x.ndim(); ++i) rows = rows * x.dim(static_cast<int64_t>(i));
  return rows.is_static() && rows.value() <= most;
}

/// Packed, or kept in 16 bits.
bool is_narrow(const Tensor& weight) {
  const OpScope scope(weight, CallSite::here());
  const auto moved = [](NodeRef n) {
    while (is_movement(n->op)) n = n->src(0);
    return n;
  };
  const auto few_bits = [&](const NodeRef& n) {
    return bits((n->op == Op::Cast ? moved(n->src(0)) : n)->dtype) <= 16;
  };
  const NodeRef n = moved(weight.node());
  const bool scaled = n->op == Op::Mul &&  // codes and their scales
                      (few_bits(moved(n->src(0))) || few_bits(moved(n->src(1))));
  return scaled || few_bits(n) || packed_weight(weight);
}

/// Of x with a packed weight: how it is computed.
struct ByBytes {
  PackedWeight weight;
  bool many, words;
};

std::optional<ByBytes> by_bytes(const Tensor& x, const Tensor& weight) {
  const bool each =
      weight.ndim() == 3 && x.ndim() == 3 && x.dim(1) == 1 && x.dim(0) == weight.dim(0);
  const bool fits = (weight.ndim() == 2 || each) && x.ndim() > 0 && is_float(x.dtype()) &&
                    x.dim(-1).is_static() && x.size(-1) == weight.size(-1);
  const auto packed = fits ? packed_weight(weight) : std::nullopt;
  if (!packed) return std::nullopt;
  const bool many = !has_most_rows(x, kMostRows);
  if (many &&
      (each || !x.dims().is_static() || columns_of_block(weight.size(0), weight.size(1)) == 0))
    return std::nullopt;
  const int64_t most = most_rows_by_words(*packed);
  return ByBytes{*packed, many, most > 0 && (each || has_most_rows(x, most))};
}

/// (rows, sum).
RoundedRows rounded_rows(const Tensor& x) {
  return rounded(x.cast(DType::F32).reshape({-1, x.size(-1)}));
}

Dims dims_of_product(const Tensor& x, const Dims& weight) {
  Dims shape = x.dims();
  shape.back() = weight[weight.size() - 2];
  return shape;
}

/// Of many rows; nothing where a weight is not packed, or no blocks of columns divide it.
std::optional<Tensor> combined_by_bytes(const Tensor& x, const Tensors& weights, Combine combine) {
  std::vector<PackedWeight> packed;
  for (const Tensor& w : weights) {
    const auto by = by_bytes(x, w);
    if (!by || !by->many || !(w.dims() == weights[0].dims())) return std::nullopt;
    packed.push_back(by->weight);
  }
  const auto forward = [&](const Tensors& in) {
    const Tensor y = of_many_rows(packed, weights[0].dims(), rounded_rows(in[0]), combine);
    return Tensors{y.reshape(dims_of_product(x, weights[0].dims()))};
  };
  const auto apart = [&](const Tensors& in) {
    Tensors products;
    for (const Tensor& w : weights) products.push_back(*product_by_bytes(in[0], w));
    return Tensors{combine(products)};
  };
  const auto backward = [&](const Tensors& in, const Tensors&, const Tensors& up) {
    return vjp(apart, in).second(up);
  };
  return with_gradient(forward, backward, {x})[0];
}

/// Whether more rows than a few are multiplied by bytes: rows have the same bits among few and
/// many.
bool any_rows_by_bytes() { return multiplies_pairs_or_bytes() && !multiplies_bf16(); }

}  // namespace

std::optional<Tensor> product_by_bytes(const Tensor& x, const Tensor& weight) {
  const auto by = by_bytes(x, weight);
  if (!by) return std::nullopt;
  const Dims shape = weight.dims();
  const Codec codec = by->weight.codec;
  const bool interleaved = by->weight.interleaved;
  Ints about{static_cast<int64_t>(codec), interleaved, by->many, by->words};
  for (const Dim& d : shape) about.push_back(d.value());
  // A model's layers have some hundred products, and this takes thousands of operations.
  return called("product_by_bytes", about, {x, by->weight.bytes}, [&](const Tensors& given) {
    const PackedWeight packed{given[1], codec, interleaved};
    const auto forward = [&](const Tensors& in) {
      const RoundedRows rows = rounded_rows(in[0]);
      const auto few = by->words ? of_words : of_few_rows;
      const auto only = [](const Tensors& products) { return products[0]; };
      const Tensor y =
          by->many ? of_many_rows({&packed, 1}, shape, rows, only) : few(packed, shape, rows);
      return Tensors{y.reshape(dims_of_product(in[0], shape))};
    };
    const auto backward = [&](const Tensors&, const Tensors&, const Tensors& up) {
      return Tensors{up[0].matmul(packed.decoded(shape))};
    };
    return with_gradient(forward, backward, {given[0]});
  })[0];
}

std::optional<Factors> factors_named(std::string_view text) {
  if (text == "auto") return std::nullopt;
  if (text == "f32") return Factors::F32;
  if (text == "bf16") return Factors::BF16;
  if (text == "q8") return Factors::Q8;
  fail("factors", "there are no factors '{}': f32, bf16, q8, or auto", text);
}

int64_t interleaved_rows(Codec codec, int64_t rows) {
  const bool tiles = has_unit([](const MatrixUnit& u) { return u.tile > 0; });
  const CodecRow& format = row(codec);
  const bool words =
      !is_plain(codec) && (format.bytes % kWord == 0 || packed::scale_at(codec) >= 0);
  const double width = static_cast<double>(8 * format.bytes) / static_cast<double>(format.elements);
  // One row by words takes as long as reading them (Q6_K, likewise: 5.9 ms, 6.8 interleaved; four
  // rows 11.1 and 7.7), also where registers do not transpose (1.1 B in Q6_K, Zen 3, one text, six
  // turns: 10.6 to 15.2 tokens/s, 9.5 to 15.4 interleaved).
  const bool wide = transposes_words() && width > kMostInterleaved;
  const bool pays = !wide && (rows > 1 || !is_best_by_words(codec)) &&
                    (rows <= kFewRows || width >= kLeastInterleaved);
  return multiplies_pairs_or_bytes() && !tiles && words && pays ? default_target().lanes(DType::U32)
                                                                : 0;
}

// (One row by 6 times 36 M elements, Zen 4, two threads, in turns, as in files over side by side:
// Q4_K 1.01 to 1.3, Q4_0 1.03 to 1.3, Q5_0 1.25 to 1.5, IQ4_XS 1.1 to 1.5; by AVX2 1.8 to 3.1.)
bool interleaving_may_wait(Codec codec) { return transposes_words() && !is_best_by_words(codec); }

Factors fastest_factors() { return multiplies_pairs_or_bytes() ? Factors::Q8 : Factors::F32; }

Tensor product_with(const Tensor& x, const Tensor& weight, Factors factors, CallSite at) {
  const CallSiteScope scope(at);
  if (factors == Factors::Q8 && (any_rows_by_bytes() || has_most_rows(x, kMostRows)))
    if (const auto y = product_by_bytes(x, weight)) return *y;
  const bool rounds = factors == Factors::BF16
                          ? !has_most_rows(x, kFewRows)
                          : factors == Factors::Q8 && multiplies_bf16() && is_narrow(weight) &&
                                !has_most_rows(x, kMostRows);
  const auto factor = [&](const Tensor& t) {
    return (rounds ? t.cast(DType::BF16) : t).cast(DType::F32);
  };
  return factor(x).matmul(factor(weight).T());
}

Tensor products_with(const Tensor& x, const Tensors& weights, Combine combine, Factors factors,
                     CallSite at) {
  const CallSiteScope scope(at);
  if (factors == Factors::Q8 && any_rows_by_bytes())
    if (const auto y = combined_by_bytes(x, weights, combine)) return *y;
  Tensors products;
  for (const Tensor& w : weights) products.push_back(product_with(x, w, factors, at));
  return combine(products);
}

}  // namespace weft
