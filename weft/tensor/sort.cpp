// Sorting: positions first, by counting smaller elements or digit by digit; values by gather.
#include <algorithm>
#include <bit>
#include <cmath>

#include "weft/base/context.h"
#include "weft/device/device.h"
#include "weft/tensor/access.h"
#include "weft/tensor/known.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/tracing.h"

namespace weft {

namespace {

// Up to here one kernel that compares all pairs takes less time than passes over every bit (Zen 4,
// two cores, rows of f32: 256 of 128 284 against 446 us, of 192 768 and 501, one of 192 6.4 and 10,
// of 256 13 and 10). On grids passes wait for each other.
constexpr int64_t kMostCounted = 192, kMostCountedOnGrids = 512;

// Of a pass over few keys, whose counts and sums of counts cost as much as it does, and over many;
// counts of both lie in the L1 cache. (65536 numbers of 32 bits in passes of 8 and of 11: 315 and
// 275 us, Zen 5, two cores.)
constexpr int kDigitBits = 8, kLongDigitBits = 11;
constexpr int64_t kManyKeys = 1 << 15;

/// positions[.., i] = i on the last axis.
Tensor last_positions(const Tensor& x) {
  return Tensor::arange(x.dim(-1), build::position_dtype(x.dim(-1).max())).expand(x.dims());
}

int64_t most_counted(const Tensor& x) {
  const Device& device = x.context().get<DeviceTable>().open(x.device());
  return device.target().groups.items > 0 ? kMostCountedOnGrids : kMostCounted;
}

DType unsigned_of(DType d) {
  const int width = bits(d);
  return width == 8 ? DType::U8 : width == 16 ? DType::U16 : width == 32 ? DType::U32 : DType::U64;
}

/// Unsigned integers in the order of x: a float's bits are those of its size and a sign.
Tensor sort_keys(const Tensor& given, bool descending) {
  // f16 holds all 8-bit floats, of which some have their NaN where others have -0.
  const bool tiny = is_float(given.dtype()) && bits(given.dtype()) == 8;
  const Tensor x = tiny ? given.cast(DType::F16) : given;
  const DType d = x.dtype(), u = unsigned_of(d);
  if (is_bool(d)) return (descending ? ~x : x).cast(u);
  Tensor key = x;
  if (is_float(d)) {
    // One zero, and one NaN, which is positive.
    const Tensor number = x.isnan().where(Tensor::full({}, NAN, d), x + 0.0);
    const Tensor raw = number.bitcast(u), top = Tensor::full({}, int64_t{1}, u) << (bits(d) - 1);
    key = ((raw & top) != 0).where(~raw, raw | top);
  } else if (is_signed_int(d)) {
    key = x.bitcast(u) ^ (Tensor::full({}, int64_t{1}, u) << (bits(d) - 1));
  }
  return descending ? ~key : key;
}

/// The integers of dtype `d` that have these keys.
Tensor numbers_of(const Tensor& keys, DType d, bool descending) {
  const DType u = unsigned_of(d);
  const Tensor key = descending ? ~keys.cast(u) : keys.cast(u);
  if (!is_signed_int(d)) return key;
  return (key ^ (Tensor::full({}, int64_t{1}, u) << (bits(d) - 1))).bitcast(d);
}

/// What tells keys apart: so many low bits, once what is around zero is so without a sign.
struct KeyBits {
  int64_t width;
  bool around_zero = false;

  /// Of the keys of integers x, which are looked at where they are at hand and long enough for that
  /// to pay. Nothing: all bits of the keys, which for small floats are more than theirs.
  static std::optional<KeyBits> of(const Tensor& x, int64_t axis) {
    const int width = bits(x.dtype());
    if (!is_int(x.dtype()) || width <= 16 || x.dim(axis).max() <= most_counted(x)) return {};
    const auto known = known_bounds(x);
    if (!known) return {};
    // All between two numbers begin with the bits with which both begin.
    const auto [low, high] = *known;
    const bool around_zero = low < 0 && high >= 0;
    const int64_t differ = around_zero ? std::max(~low, high) : low ^ high;
    const int64_t needed = int64_t(std::bit_width(static_cast<uint64_t>(differ))) + around_zero;
    const int64_t digits = std::max<int64_t>(1, (needed + kDigitBits - 1) / kDigitBits);
    return KeyBits{digits * kDigitBits, around_zero && digits * kDigitBits < width};
  }

  Tensor of_keys(const Tensor& keys) const {
    const Tensor moved = around_zero ? keys - offset(keys.dtype()) : keys;
    return width <= 32 ? moved.cast(DType::U32) : moved;
  }
  /// Of those of 32 bits: the keys that they were.
  Tensor keys_of(const Tensor& moved) const {
    return around_zero ? moved + offset(moved.dtype()) : moved;
  }

 private:
  Tensor offset(DType d) const {
    const Tensor one = Tensor::full({}, int64_t{1}, d);
    return (one << (bits(d) - 1)) - (one << (width - 1));
  }
};

/// An element's rank along the last axis: how many precede it.
Tensor counted_ranks(const Tensor& key) {
  const Tensor at = last_positions(key), others = key.unsqueeze(-2), mine = key.unsqueeze(-1);
  const Tensor in_front = (others == mine) & (at.unsqueeze(-2) < at.unsqueeze(-1));
  return ((others < mine) | in_front).sum(-1);
}

/// Positions in ascending order along the last axis.
Tensor counted_order(const Tensor& key) {
  return permuted(last_positions(key), -1, counted_ranks(key));
}

// Of shorter parts so many are left to be ordered that all may be; comparing so few pairs takes
// less time than choosing again (11 us, two cores).
constexpr int64_t kLeastPart = 4, kFewPairs = 1 << 18;

/// (..., n) as (..., parts, elements), with the largest key behind the last.
Tensor filled_parts(const Tensor& key, int64_t parts) {
  const int64_t n = key.size(-1), length = (n + parts - 1) / parts;
  std::vector<DimPair> by(key.ndim(), DimPair(0, 0));
  by.back() = {0, parts * length - n};
  if (parts * length == n) return key.unflatten(-1, {parts, length});
  const Tensor padded = key.pad(by), inside = last_positions(padded) < n;
  return inside.where(padded, ~Tensor::zeros({}, key.dtype())).unflatten(-1, {parts, length});
}

/// How many elements of (..., blocks, elements) have each digit, in each block.
Tensor digit_counts(const Tensor& digit, int64_t digits, int64_t n) {
  return added_at(digit, digits, Tensor::ones({}, build::position_dtype(n)));
}

/// How many have a smaller digit.
Tensor smaller_digits(const Tensor& counts) { return counts.cumsum(-1) - counts; }

/// Where the first of each block goes when elements are ordered by digit and, where that is equal,
/// by block.
Tensor first_places(const Tensor& counts) {
  const Tensor up_to = counts.cumsum(-2);
  const Tensor all = up_to.index({kEllipsis, Slice(-1, {}), Slice()});
  return smaller_digits(all) + (up_to - counts);
}

/// How many passes order `n` keys of `width` bits, and by how many bits each.
std::pair<int, int> passes_of(int64_t n, int width) {
  const int most = n < kManyKeys ? kDigitBits : kLongDigitBits;
  const int passes = (width + most - 1) / most;
  return {passes, (width + passes - 1) / passes};
}

/// x with its elements, of one axis or two, at other places.
Tensor placed(const Tensor& x, const Tensor& place) {
  return permuted(x.flatten(-2, -1), -1, place.flatten(-2, -1)).reshape(x.dims());
}

/// The last axis in order: which were where, and the keys, where those of 32 bits went along.
struct Ordered {
  Tensor positions, keys = {};
};

/// In ascending order along the last axis, by one digit of the keys after the other, the lowest
/// first: counts, running sums and scatters. (Knuth, The Art of Computer Programming 3,
/// 5.2.5.) Keys are equal but for their `width` low bits.
Ordered radix_order(const Tensor& given, int width) {
  const int64_t n = given.size(-1);
  const auto [passes, digit_bits] = passes_of(n, width);
  const int64_t digits = int64_t{1} << digit_bits, blocks = counting_blocks(given, digits);
  Tensor key = filled_parts(given, blocks);  // what fills up comes last
  Tensor from = last_positions(key.flatten(-2, -1)).reshape(key.dims());
  // Key and position are one number where they fit.
  const int low = bits(given.dtype()) <= 32 ? 32 : 0;
  if (low > 0) key = key.cast(DType::U64) << low | from.cast(DType::U64);
  key = key.contiguous();
  from = from.contiguous();
  // The place of the digit is data: one set of kernels does for all.
  const auto digit_at = [&](const std::vector<int32_t>& places, const Dims& shape) {
    const Tensor shift = constant_table(places, shape, given).cast(key.dtype());
    const Tensor by = shift & (bits(key.dtype()) - 1);  // which says: in range
    return (key >> by & (digits - 1)).cast(DType::I32);
  };
  // Passes change the order only: of one block all digits are counted at once.
  Tensor first;
  if (blocks == 1) {
    std::vector<int32_t> places;
    for (int pass = 0; pass < passes; ++pass) places.push_back(low + pass * digit_bits);
    const Tensor all = digit_at(places, {passes, 1});
    first = smaller_digits(digit_counts(all, digits, n));
  }
  for (int pass = 0; pass < passes; ++pass) {
    const Tensor digit = digit_at({low + pass * digit_bits}, {});
    const Tensor begin = blocks == 1 ? first.index({kEllipsis, Slice(pass, pass + 1), Slice()})
                                     : first_places(digit_counts(digit, digits, n));
    const Tensor place = cumcount(begin, -1, digit);
    key = placed(key, place);
    if (low == 0) from = placed(from, place);
  }
  const auto all = [n](const Tensor& x) {
    return x.flatten(-2, -1).index({kEllipsis, Slice(0, n)});
  };
  if (low == 0) return {all(from)};
  return {all((key & int64_t{UINT32_MAX}).cast(from.dtype())), all((key >> low).cast(DType::U32))};
}

/// The last axis in ascending order of the keys there, equal ones as they are.
Ordered ordered(const Tensor& key, std::optional<KeyBits> known = {}) {
  if (key.size(-1) <= most_counted(key)) return {counted_order(key.contiguous())};
  const KeyBits bits_of_key = known.value_or(KeyBits{bits(key.dtype())});
  return radix_order(bits_of_key.of_keys(key), static_cast<int>(bits_of_key.width));
}

/// Where the `k` first of that order are, in order. They are in the k parts of the axis whose
/// smallest keys come first: of any other part, each element has one of each of those before it.
/// Those keys and what is in those parts are chosen from in the same way while that makes less.
Tensor first_of_order(const Tensor& given, int64_t k) {
  const Slice first(0, k);
  const int64_t n = given.size(-1);
  // About as many parts as elements of the chosen ones; a power of two makes whole vectors.
  const double each = static_cast<double>(n) / static_cast<double>(std::max<int64_t>(k, 1));
  const auto part =
      static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::sqrt(2 * each))));
  const bool few = given.dims().product().max() <= kFewPairs / std::max<int64_t>(n, 1);
  if (k == 0 || part < kLeastPart || few) return ordered(given).positions.index({kEllipsis, first});
  const Tensor key = filled_parts(given, (n + part - 1) / part);
  const Tensor chosen = first_of_order(key.min(-1), k).sort(-1).first;
  Dims shape = key.dims();
  shape[shape.size() - 2] = k;
  const Tensor rows = chosen.unsqueeze(-1).expand(shape);
  const Tensor among = gather_inside(key, -2, rows).flatten(-2, -1);
  const Tensor at = (rows * key.size(-1) + last_positions(rows)).flatten(-2, -1);
  return gather_inside(at, -1, first_of_order(among.contiguous(), k));
}

// A digit of a selection has 4 bits where there are few keys, whose passes cost their launches;
// else 2, which compare each key with 3 bounds instead of 15 (2^20 of f32, two cores: 2.1 ms,
// not 3.9).
constexpr int64_t kFewKeys = 1 << 14;

// One rank of a row is found among all pairs up to here (64 rows, two cores: of 128 66 us, not 97;
// of 256 230 and 83).
constexpr int64_t kMostPaired = 128;

int64_t bound_bits(const Tensor& key) { return key.dims().product().max() < kFewKeys ? 4 : 2; }

/// (..., 1): of unsigned keys of `width` bits the one with `rank` (..., 1) others before it when
/// they are in order. Digit by digit, the highest first: as many bounds are not above it as have no
/// more than `rank` keys below them.
Tensor key_of_rank(const Tensor& key, int64_t width, const Tensor& rank) {
  const int64_t digit_bits = bound_bits(key);
  const Tensor digits = Tensor::arange((1 << digit_bits) - 1, key.dtype()) + 1;
  Tensor found = Tensor::zeros(rank.dims(), key.dtype());
  for (int64_t done = width - digit_bits; done >= 0; done -= digit_bits) {
    // The place of the digit is data: one set of kernels does for all.
    const Tensor table = constant_table(std::vector<int32_t>{static_cast<int32_t>(done)}, {}, key);
    const Tensor shift = table.cast(key.dtype()) & (bits(key.dtype()) - 1);  // which says: in range
    const Tensor bounds = found + (digits << shift);
    const Tensor below = (key.unsqueeze(-2) < bounds.unsqueeze(-1)).sum(-1);
    const Tensor digit = (below <= rank).sum(-1, true).cast(key.dtype());
    found = found + (digit << shift);
  }
  return found;
}

/// Where the element is that has `rank` (..., 1) others before it in stable order: of those equal
/// to it the one with so many equal ones in front.
Tensor place_by_digits(const Tensor& x, const Tensor& rank) {
  const Tensor given = sort_keys(x, false);
  const Tensor key = (bits(given.dtype()) < 32 ? given.cast(DType::U32) : given).contiguous();
  const Tensor found = key_of_rank(key, bits(given.dtype()), rank);
  const Tensor before = (key < found).sum(-1, true);
  const Tensor same = key == found;
  const Tensor wanted = same & (same.cast(before.dtype()).cumsum(-1) == rank - before + 1);
  return wanted.where(last_positions(key), 0).max(-1, true);
}

Tensor place_by_pairs(const Tensor& x, const Tensor& rank) {
  const Tensor ranks = counted_ranks(sort_keys(x, false).contiguous());
  return (ranks == rank).where(last_positions(x), 0).max(-1, true);
}

}  // namespace

Tensor place_of_rank(const Tensor& x, const Tensor& rank) {
  const bool few = x.size(-1) <= kMostPaired;
  return called("place_of_rank", {}, {x.detach(), rank}, [few](const Tensors& in) {
    return Tensors{few ? place_by_pairs(in[0], in[1]) : place_by_digits(in[0], in[1])};
  })[0];
}

Tensor order_by_pairs(const Tensor& x) { return counted_order(sort_keys(x, false).contiguous()); }

std::pair<Tensor, Tensor> Tensor::sort(int64_t axis, bool descending, CallSite at) const {
  const CallSiteScope site(at);
  if (ndim() == 0) return {*this, zeros({}, DType::I32)};
  const int64_t a = sized_axis("sort", axis, *this);
  const std::optional<KeyBits> known = KeyBits::of(*this, a);
  const KeyBits options = known.value_or(KeyBits{0});
  const DType d = dtype();
  // An integer is what its key says: it need not be looked up.
  const bool by_keys = is_int(d) && bits(d) <= 32 && size(a) > most_counted(*this);
  const Tensors made = called("sort", {descending, options.width, options.around_zero},
                              {transpose(a, -1).detach()}, [=](const Tensors& in) {
                                const Ordered all = ordered(sort_keys(in[0], descending), known);
                                if (!by_keys) return Tensors{all.positions};
                                const Tensor keys = options.keys_of(all.keys);
                                return Tensors{all.positions, numbers_of(keys, d, descending)};
                              });
  const Tensor positions = made[0].transpose(a, -1);
  if (by_keys) return {made[1].transpose(a, -1), positions};
  return {gather_inside(*this, a, positions), positions};
}

Tensor Tensor::argsort(int64_t axis, bool descending, CallSite at) const {
  const CallSiteScope site(at);
  if (ndim() > 0) sized_axis("argsort", axis, *this);
  return sort(axis, descending, at).second;
}

std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t axis, bool largest, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = sized_axis("topk", axis, *this);
  if (k < 0 || k > size(a))
    fail("topk", "{} of axis {} of shape {}: k must be from 0 to {}", k, axis, dims().text(),
         size(a));
  const Tensor positions =
      called("topk", {k, largest}, {transpose(a, -1).detach()},
             [=](auto& in) { return Tensors{first_of_order(sort_keys(in[0], largest), k)}; })[0]
          .transpose(a, -1);
  return {gather_inside(*this, a, positions), positions};
}

}  // namespace weft
