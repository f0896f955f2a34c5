// Sorting: positions first, by counting smaller elements or by a bitonic network; values by gather.
#include <cmath>

#include "weft/tensor/access.h"

namespace weft {

namespace {

// Up to here one kernel that compares all pairs is less work than a network of log^2 n steps.
constexpr int64_t kMostCounted = 1024;

/// a sorts before b, where equal values keep the order of their positions. NaN is the largest.
Tensor precedes(const Tensor& a, const Tensor& a_at, const Tensor& b, const Tensor& b_at,
                bool descending) {
  Tensor less = descending ? b < a : a < b;
  Tensor equal = a == b;
  if (is_float(a.dtype())) {
    const Tensor a_nan = a.isnan(), b_nan = b.isnan();
    less = less | (descending ? a_nan & ~b_nan : b_nan & ~a_nan);
    equal = equal | (a_nan & b_nan);
  }
  return less | (equal & (a_at < b_at));
}

/// positions[.., i] = i on the last axis.
Tensor last_positions(const Tensor& x) {
  return Tensor::arange(x.dim(-1), DType::I32).expand(x.dims());
}

/// Positions in sorted order along the last axis: an element's rank is how many precede it.
Tensor counted_order(const Tensor& x, bool descending) {
  const Tensor at = last_positions(x);
  const Tensor rank =
      precedes(x.unsqueeze(-2), at.unsqueeze(-2), x.unsqueeze(-1), at.unsqueeze(-1), descending)
          .sum(-1);
  return Tensor::zeros(x.dims(), DType::I32).scatter(-1, rank, at);
}

/// Values travelling with their positions.
struct Pairs {
  Tensor value, at;
};

/// Orders partners: elements `distance` apart, or mirrored in their block for a merge's first step.
Pairs exchanged(const Pairs& p, int64_t distance, bool mirrored, bool descending) {
  const int64_t n = p.value.size(-1);
  Dims split = p.value.dims();
  split.back() = n / (2 * distance);
  split.push_back(2);
  split.push_back(distance);
  auto halves = [&](const Tensor& t) {
    std::vector<Tensor> h = t.reshape(split).chunk(2, -2);
    if (mirrored) h[1] = h[1].flip(-1);
    return h;
  };
  const auto v = halves(p.value), at = halves(p.at);
  const Tensor keep = precedes(v[0], at[0], v[1], at[1], descending);
  auto joined = [&](const std::vector<Tensor>& h) {
    const Tensor first = keep.where(h[0], h[1]);
    Tensor second = keep.where(h[1], h[0]);
    if (mirrored) second = second.flip(-1);
    return Tensor::cat({first, second}, -2).reshape(p.value.dims()).contiguous();
  };
  return {joined(v), joined(at)};
}

Scalar last_value(DType d, bool descending) {
  if (is_float(d)) return descending ? Scalar(-float_top(d)) : Scalar(NAN);
  return descending ? Scalar(int_min(d)) : Scalar(int_max(d));
}

/// Batcher's bitonic sorter with mirrored first steps, so that every exchange has one direction.
Tensor network_order(const Tensor& x, bool descending) {
  const int64_t n = x.size(-1);
  int64_t size = 1;
  while (size < n) size *= 2;
  std::vector<DimPair> around(x.ndim(), DimPair(0, 0));
  around.back() = {0, size - n};
  // Padding sorts behind everything: it has the extreme value and, among equals, the last
  // positions.
  Pairs p{x.pad(around, last_value(x.dtype(), descending)), Tensor()};
  p.at = last_positions(p.value);
  for (int64_t block = 2; block <= size; block *= 2) {
    p = exchanged(p, block / 2, true, descending);
    for (int64_t distance = block / 4; distance > 0; distance /= 2)
      p = exchanged(p, distance, false, descending);
  }
  std::vector<DimPair> kept;
  for (const Dim& d : x.dims()) kept.emplace_back(0, d);
  return p.at.shrink(kept);
}

}  // namespace

std::pair<Tensor, Tensor> Tensor::sort(int64_t axis, bool descending, CallSite at) const {
  const CallSiteScope site(at);
  if (ndim() == 0) return {*this, zeros({}, DType::I32)};
  const int64_t a = checked_axis("sort", axis, *this);
  const Tensor x = transpose(a, -1).detach();
  const bool counted = x.size(-1) <= kMostCounted;
  const Tensor order = counted ? counted_order(x, descending) : network_order(x, descending);
  const Tensor positions = order.transpose(a, -1);
  return {gather(a, positions), positions};
}

Tensor Tensor::argsort(int64_t axis, bool descending, CallSite at) const {
  return sort(axis, descending, at).second;
}

std::pair<Tensor, Tensor> Tensor::topk(int64_t k, int64_t axis, bool largest, CallSite at) const {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("topk", axis, *this);
  if (k < 0 || k > size(a))
    fail("topk", "{} of axis {} of shape {}: k must be from 0 to {}", k, axis, dims().text(),
         size(a));
  const auto [values, positions] = sort(a, largest);
  std::vector<DimPair> kept;
  for (const Dim& d : dims()) kept.emplace_back(0, d);
  kept[static_cast<size_t>(a)] = {0, k};
  return {values.shrink(kept), positions.shrink(kept)};
}

}  // namespace weft
