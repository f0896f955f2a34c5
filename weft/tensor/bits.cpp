// The same bits as another dtype: views, which a write goes through.
#include <bit>

#include "weft/tensor/access.h"

namespace weft {

namespace {

DType unsigned_of(int width) {
  constexpr DType kUnsigned[] = {DType::U8, DType::U16, DType::U32, DType::U64};
  return kUnsigned[std::countr_zero(static_cast<unsigned>(width) / 8)];
}

/// (..., n): 0, step, 2 step, ... along the last axis of `as`.
NodeRef shifts(Graph& g, NodeRef as, int step, DType dtype) {
  NodeRef count = as->dim(as->rank() - 1);
  NodeRef places = build::iota(g, {&count, 1}, 0, dtype);
  return build::broadcast_to(g, g.mul(places, build::scalar(g, dtype, step)), as->shape->span());
}

}  // namespace

namespace build {

NodeRef bitcast(Graph& g, NodeRef x, DType to) {
  NodeRef src[] = {x};
  return x->dtype == to ? x : g.make({Op::Bitcast, to, src});
}

// Low bits first: memory's order on machines that store low bytes first, which all of ours are.

NodeRef in_pieces(Graph& g, NodeRef x, DType narrow) {
  Extents dims = extents(x);
  dims.back() = g.index(bits(x->dtype) / bits(narrow));
  NodeRef all = expand(g, x, dims);
  return g.cast(g.make(Op::Shr, x->dtype, {all, shifts(g, all, bits(narrow), x->dtype)}), narrow);
}

NodeRef from_pieces(Graph& g, NodeRef x, DType wide) {
  NodeRef places = shifts(g, x, bits(x->dtype), wide);
  const int64_t last[] = {static_cast<int64_t>(x->rank()) - 1};
  return reduce(g, g.make(Op::Shl, wide, {g.cast(x, wide), places}), Fold::Add, last);
}

}  // namespace build

namespace {

/// What `change` makes of x's chain, as a view of what x views.
template <class Change>
Tensor seen_as(const Tensor& x, Change change) {
  const OpScope scope(x, CallSite::here());
  return TensorAccess::view(x, change(scope.g, TensorAccess::chain(scope.g, x)));
}

Tensor same_width(const Tensor& x, DType to) {
  return seen_as(x, [to](Graph& g, NodeRef chain) { return build::bitcast(g, chain, to); });
}

/// The last axis gets longer.
Tensor narrowed(const Tensor& x, DType to) {
  const Tensor whole = same_width(x, unsigned_of(bits(x.dtype()))).unsqueeze(-1);
  const Tensor pieces = seen_as(whole, [to](Graph& g, NodeRef chain) {
    return build::in_pieces(g, chain, unsigned_of(bits(to)));
  });
  return same_width(pieces, to).flatten(static_cast<int64_t>(x.ndim()) - 1, -1);
}

/// The last axis gets shorter.
Tensor widened(const Tensor& x, DType to) {
  const Tensor pieces =
      same_width(x, unsigned_of(bits(x.dtype()))).unflatten(-1, {-1, bits(to) / bits(x.dtype())});
  const Tensor whole = seen_as(pieces, [to](Graph& g, NodeRef chain) {
    return build::from_pieces(g, chain, unsigned_of(bits(to)));
  });
  return same_width(whole, to);
}

}  // namespace

Tensor Tensor::bitcast(DType to, CallSite at) const {
  const OpScope scope(*this, at);
  const bool means_nothing =
      !is_data(to) || (bits(dtype()) != 8 && (is_bool(to) || is_bool(dtype())));
  if (means_nothing) fail_type("bitcast", "bits of {} mean nothing as {}", name(dtype()), name(to));
  if (to == dtype()) return *this;
  // A bool is 0 or 1, whatever the bits were: no view of them.
  if (is_bool(to)) return same_width(*this, DType::U8) != 0;
  const int from = bits(dtype());
  if (bits(to) == from) return same_width(*this, to);
  if (ndim() == 0 || (bits(to) > from && dims().back().max() * from % bits(to) != 0))
    fail_type("bitcast",
              "{} of shape {} cannot be seen as {}: the last axis changes its size with the width, "
              "and its bits must fill whole elements",
              name(dtype()), dims().text(), name(to));
  return bits(to) < from ? narrowed(*this, to) : widened(*this, to);
}

}  // namespace weft
