#include "weft/tensor/selection.h"

#include <bit>
#include <cmath>

#include "weft/tensor/access.h"
#include "weft/tensor/known.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/tables.h"
#include "weft/tensor/tracing.h"

namespace weft {

namespace {

DType position_dtype(const Tensor& x) { return build::position_dtype(x.dims().product().max()); }

/// How many are true; the one sync of an unknown size.
int64_t counted(const Tensor& mask) { return mask.sum({}, false, DType::I64).item<int64_t>(); }

/// (size): the elements of a flat x where mask, in order; `fill` behind them, where there are more
/// places than the mask has elements. Each element has a place, those that are not selected behind
/// the others: stores that depend on data are guessed wrong by processors every second time.
Tensor compacted(const Tensor& x, const Tensor& mask, int64_t size, std::optional<Scalar> fill) {
  const Dim n = x.dim(0);
  if (n == Dim(0)) return Tensor::full({size}, fill.value_or(0), x.dtype());
  const Tensors made = called("compacted", {}, {x, mask}, [](const Tensors& in) {
    const Dim length = in[0].dim(0);
    const Tensor rank = in[1].cast(position_dtype(in[0])).cumsum(0);  // from 1 on
    const Tensor some = rank.index({Slice(length - 1, length)});
    const Tensor behind = some + Tensor::arange(length, rank.dtype()) - rank;
    return Tensors{permuted(in[0], 0, in[1].where(rank - 1, behind)), some};
  });
  const Tensor &all = made[0], &count = made[1];
  if (!fill) return all.index({Slice(0, size)});
  const Tensor places = Tensor::arange(size, count.dtype());
  return (places < count).where(all.gather(0, places), Tensor::full({}, *fill, x.dtype()));
}

int64_t checked_size(const char* tag, std::optional<int64_t> size, const Tensor& mask) {
  if (size && *size < 0) fail(tag, "size {} is negative", *size);
  if (!size) sized_axis(tag, 0, mask);
  return size ? *size : counted(mask);
}

}  // namespace

Tensor masked_select(const Tensor& x, const Tensor& mask, std::optional<int64_t> size, Scalar fill,
                     CallSite at) {
  const CallSiteScope site(at);
  if (!is_bool(mask.dtype()))
    fail_type("masked_select", "the mask must be bool: got {} of shape {}; compare it with 0",
              name(mask.dtype()), mask.dims().text());
  const std::vector<Tensor> both = broadcast_tensors({x, mask});
  const Tensor flat = both[1].flatten();
  const int64_t count = checked_size("masked_select", size, flat);
  return compacted(both[0].flatten(), flat, count, size ? std::optional(fill) : std::nullopt);
}

Tensor nonzero(const Tensor& x, std::optional<int64_t> size, int64_t fill, CallSite at) {
  const CallSiteScope site(at);
  const Tensor flat = (x != 0).flatten();
  const int64_t count = checked_size("nonzero", size, flat), rank = static_cast<int64_t>(x.ndim());
  const DType dtype = position_dtype(x);
  if (rank == 0) return Tensor::zeros({count, 0}, dtype);
  const Tensor all = Tensor::arange(flat.dim(0), dtype);
  Tensor position = compacted(all, flat, count, size ? std::optional<Scalar>(-1) : std::nullopt);
  std::vector<Tensor> columns(x.ndim());
  for (int64_t axis = rank; axis-- > 0;) {
    const int64_t n = std::max<int64_t>(1, x.size(axis));
    const Tensor here = axis > 0 ? position % n : position;
    columns[static_cast<size_t>(axis)] = size ? (position < 0).where(fill, here) : here;
    if (axis > 0) position = position.floor_div(n);
  }
  return Tensor::stack(columns, 1);
}

// ---- sorted values

namespace {

/// Flat x in order, and which of that are the first of their value.
Tensors first_of_values(const Tensor& flat, const Tensor& from) {
  const Tensor sorted = gather_inside(flat, 0, from).contiguous(), before = sorted.roll(1, 0);
  const Tensor same = (sorted == before) | (sorted.isnan() & before.isnan());
  return {sorted, ~same | (Tensor::arange(flat.dim(0), position_dtype(flat)) == 0)};
}

/// The first `count` values, where each element has its own, how many have each.
Tensors values_of(const Tensor& sorted, const Tensor& first, const Tensor& from, int64_t count,
                  std::optional<Scalar> fill) {
  const DType wide = position_dtype(sorted);
  const Dim n = sorted.dim(0);
  const Tensor at_all = Tensor::arange(n, wide), rank = first.cast(wide).cumsum(0) - 1;
  const Tensor begin = compacted(at_all, first, count + 1, sorted.size(0));
  const Tensor counts = begin.index({Slice(1, count + 1)}) - begin.index({Slice(0, count)});
  const Tensor inverse = scatter_distinct(Tensor::zeros({n}, wide), 0, from, rank);
  return {compacted(sorted, first, count, fill), inverse, counts};
}

/// Of integers at hand, which lie close together: the least of them, and a power of two of places
/// from there on, no more than elements.
struct Places {
  int64_t least, count;

  static std::optional<Places> of(const Tensor& flat) {
    const auto known = is_int(flat.dtype()) ? known_bounds(flat) : std::nullopt;
    if (!known) return {};
    const uint64_t range =
        static_cast<uint64_t>(known->second) - static_cast<uint64_t>(known->first);
    if (range >= static_cast<uint64_t>(flat.size(0))) return {};
    return Places{known->first, static_cast<int64_t>(std::bit_ceil(range + 1))};
  }
};

/// By counting what is at each place: nothing is put in order.
Tensors values_at_places(const Tensor& place, const Tensor& values, const Tensor& met,
                         int64_t count, std::optional<Scalar> fill) {
  const Tensor has = met > 0, rank = has.cast(met.dtype()).cumsum(0) - 1;
  const std::optional<Scalar> none = fill ? std::optional<Scalar>(0) : std::nullopt;
  return {compacted(values, has, count, fill), gather_inside(rank, 0, place),
          compacted(met, has, count, none)};
}

Unique unique_by_places(const Tensor& x, const Places& places, std::optional<int64_t> size,
                        Scalar fill) {
  const Tensor flat = x.flatten();
  const Tensor least = constant_table(std::vector<int64_t>{places.least}, {}, flat);
  const Tensors found =
      called("met_at_places", {places.count}, {flat, least}, [&](const Tensors& in) {
        const DType wide = position_dtype(in[0]);
        // In memory: an index that is computed in i64 where it counts takes six times the time.
        const Tensor place = (in[0].cast(DType::I64) - in[1]).cast(wide).contiguous();
        const Tensor all = (Tensor::arange(places.count, DType::I64) + in[1]).cast(in[0].dtype());
        return Tensors{place, all, counts_in_blocks(place, places.count).cast(wide)};
      });
  if (!size) realize({found[0], found[2]});
  const int64_t count = checked_size("unique", size, found[2] > 0);
  const TensorFunction f = [&](const Tensors& in) {
    const std::optional<Scalar> rest = size ? std::optional(fill) : std::nullopt;
    return values_at_places(in[0], in[1], in[2], count, rest);
  };
  const Tensors made = size ? f(found) : called("values_at_places", {count}, found, f);
  return {made[0], made[1].reshape(x.dims()), made[2]};
}

}  // namespace

Unique unique(const Tensor& x, std::optional<int64_t> size, Scalar fill, CallSite at) {
  const CallSiteScope site(at);
  const Tensor flat = x.flatten();
  sized_axis("unique", 0, flat);
  if (const auto places = Places::of(flat)) return unique_by_places(x, *places, size, fill);
  Tensor from = flat.argsort(0);
  Tensors sorted = called("first_of_values", {}, {flat, from},
                          [](const Tensors& in) { return first_of_values(in[0], in[1]); });
  // What is counted and then computed is put in order once; gradients go through values of floats.
  std::vector<Tensor> counted_of{from, sorted[1]};
  if (!is_float(x.dtype())) counted_of.push_back(sorted[0]);
  if (!size) realize(counted_of);
  const int64_t count = checked_size("unique", size, sorted[1]);
  const TensorFunction f = [&](const Tensors& in) {
    return values_of(in[0], in[1], in[2], count, size ? std::optional(fill) : std::nullopt);
  };
  const Tensors in{sorted[0], sorted[1], from};
  const Tensors made = size ? f(in) : called("values_of", {count}, in, f);
  return {made[0], made[1].reshape(x.dims()), made[2]};
}

namespace {

/// a sorts before b; NaN is the largest.
Tensor precedes(const Tensor& a, const Tensor& b, bool or_equal) {
  const Tensor less = or_equal ? a <= b : a < b;
  if (!is_float(a.dtype()) && !is_float(b.dtype())) return less;
  return less | (or_equal ? b.isnan() : b.isnan() & ~a.isnan());
}

/// How many of a sorted axis come before each of `wanted`: its position grows by ever smaller
/// powers of 2.
Tensor positions_in(const Tensor& sorted, const Tensor& wanted, bool right) {
  const int64_t n = sorted.size(-1);
  Tensor below = Tensor::zeros(wanted.dims(), build::position_dtype(n));
  for (auto step = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))); step > 0;
       step /= 2) {
    const Tensor next = below + step;
    const Tensor last = gather_inside(sorted, -1, (next - 1).minimum(n - 1));
    below = ((next <= n) & precedes(last, wanted, right)).where(next, below);
  }
  return below;
}

}  // namespace

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right, CallSite at) {
  const CallSiteScope site(at);
  if (sorted.ndim() == 0) fail("searchsorted", "the sorted tensor needs an axis: got shape ()");
  sized_axis("searchsorted", -1, sorted);
  const bool rows = sorted.ndim() > 1;
  const Tensor wanted = rows ? values : values.flatten();
  Dims expected = sorted.dims();
  if (wanted.ndim() == expected.size()) expected.back() = wanted.dim(-1);
  if (rows && !(expected == wanted.dims()))
    fail("searchsorted",
         "sorted {} and values {} do not fit: the sorted tensor must be 1-D or have the same axes "
         "before the last",
         sorted.dims().text(), values.dims().text());
  const TensorFunction f = [=](const Tensors& in) {
    return Tensors{positions_in(in[0], in[1], right)};
  };
  return called("searchsorted", {right}, {sorted.detach(), wanted.detach()}, f)[0].reshape(
      values.dims());
}

// ---- take and put

Tensor take(const Tensor& x, const Tensor& positions, CallSite at) {
  const CallSiteScope site(at);
  return x.flatten().gather(0, positions.flatten()).reshape(positions.dims());
}

Tensor put(const Tensor& x, const Tensor& positions, const Operand& values, bool accumulate,
           CallSite at) {
  const CallSiteScope site(at);
  const Fold combine = accumulate ? Fold::Add : Fold::Set;
  const Tensor flat = x.flatten(), to = positions.flatten();
  const Tensor result = values.tensor() && values.tensor()->ndim() > 0
                            ? flat.scatter(0, to, values.tensor()->flatten(), combine)
                            : flat.scatter(0, to, values, combine);
  return result.reshape(x.dims());
}

namespace {

/// x and positions with equal sizes on all axes but one.
std::pair<Tensor, Tensor> aligned(const char* tag, const Tensor& x, const Tensor& positions,
                                  int64_t axis) {
  if (x.ndim() != positions.ndim())
    fail(tag, "positions {} and {} must have the same number of axes", positions.dims().text(),
         x.dims().text());
  Dims other = x.dims(), wanted = positions.dims();
  const auto a = static_cast<size_t>(axis);
  for (size_t i = 0; i < other.size(); ++i) {
    if (i == a) continue;
    if (other[i] == Dim(1)) other[i] = wanted[i];
    if (wanted[i] == Dim(1)) wanted[i] = other[i];
  }
  return {x.expand(other), positions.expand(wanted)};
}

}  // namespace

Tensor take_along_axis(const Tensor& x, const Tensor& positions, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("take_along_axis", axis, x);
  const auto [from, index] = aligned("take_along_axis", x, positions, a);
  return from.gather(a, index);
}

Tensor put_along_axis(const Tensor& x, const Tensor& positions, const Operand& values, int64_t axis,
                      CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("put_along_axis", axis, x);
  const auto [into, index] = aligned("put_along_axis", x, positions, a);
  if (!values.tensor()) return into.scatter(a, index, values);
  return into.scatter(a, index, values.tensor()->expand(index.dims()));
}

// ---- scattered reductions

namespace {

struct ScatterFold {
  Fold fold;
  double identity;
};
constexpr ScatterFold kScatterFolds[] = {
    {Fold::Add, 0}, {Fold::Mul, 1}, {Fold::Add, 0}, {Fold::Max, -INFINITY}, {Fold::Min, INFINITY}};

Scalar identity_of(const ScatterFold& f, DType d) {
  if (std::isfinite(f.identity)) return f.identity;
  if (is_float(d)) return std::copysign(float_top(d), f.identity);
  return f.identity < 0 ? Scalar(int_min(d)) : Scalar(int_max(d));
}

}  // namespace

Tensor scatter_reduce(const Tensor& x, int64_t axis, const Tensor& index, const Tensor& src,
                      ScatterReduce reduce, bool include_self, CallSite at) {
  const CallSiteScope site(at);
  const ScatterFold& f = kScatterFolds[static_cast<size_t>(reduce)];
  const bool mean = reduce == ScatterReduce::Mean;
  const Tensor hits =
      include_self && !mean
          ? Tensor()
          : Tensor::zeros(x.dims(), position_dtype(index)).scatter(axis, index, 1, Fold::Add);
  Tensor base = x;
  if (!include_self) {
    const Tensor identity = Tensor::full({}, identity_of(f, x.dtype()), x.dtype());
    base = (hits > 0).where(identity, x);
  }
  const Tensor folded = base.scatter(axis, index, src, f.fold);
  if (!mean) return folded;
  const Tensor count = include_self ? hits + 1 : hits.maximum(1);
  return is_float(x.dtype()) ? folded / count.cast(x.dtype())
                             : folded.floor_div(count.cast(x.dtype()));
}

}  // namespace weft
