#include "weft/tensor/rotations.h"

#include "weft/tensor/matrices.h"
#include "weft/tensor/tracing.h"

namespace weft::linalg {

Tensors folded_along(const Tensors& elems, size_t carries, int64_t axis,
                     FunctionRef<Tensors(const Tensors& elems, const Tensors& carried)> body) {
  const OpScope scope(elems[0], CallSite::here());
  const std::vector<NodeRef> some = nodes_of(elems);
  const build::Extents shape = broadcast("loop", some);
  std::vector<NodeRef> given;
  for (NodeRef e : some) given.push_back(build::broadcast_to(scope.g, e, shape));
  const auto seen = [&](std::span<const NodeRef> nodes) {
    Tensors out;
    for (NodeRef n : nodes) out.push_back(TensorAccess::make(scope.context, n));
    return out;
  };
  const std::vector<NodeRef> inits(carries, build::scalar(scope.g, elems[0].dtype(), 0));
  const int64_t along = axis + static_cast<int64_t>(shape.size());
  const int64_t salt[] = {along, static_cast<int64_t>(carries)};
  return seen(build::loop(scope.g, given, inits, along, true, salt, [&](auto in, auto carried) {
    return nodes_of(body(seen(in), seen(carried)));
  }));
}

Rotation rotation_of(const Tensor& x, const Tensor& z, const Tensor& on) {
  const Tensor length = (x * x + z * z).sqrt(), some = on & (length > negligible(length));
  const Tensor inverse = 1 / some.where(length, 1);
  return {some.where(x * inverse, 1), some.where(z * inverse, 0), length};
}

Tensor turned_rows(const Tensor& x, const Tensor& c, const Tensor& s) {
  const Tensors elems{x, next_along(x, -2), c.unsqueeze(-1), s.unsqueeze(-1),
                      starts(c).unsqueeze(-1)};
  return folded_along(elems, 2, -2, [](const Tensors& e, const Tensors& carried) {
    const Tensor upper = e[4].where(e[0], carried[0]);
    return Tensors{e[2] * e[1] - e[3] * upper, e[2] * upper + e[3] * e[1]};
  })[1];
}

Chain last_chain(const Tensor& off) {
  const Tensor below = places(off) + 1, linked = off != 0;
  const Tensor last = linked.where(below, 0).max({-1}, true);
  return {(~linked & (below < last)).where(below, 0).max({-1}, true), last};
}

Tensor element(const Tensor& x, const Tensor& at) {
  return column(x.unsqueeze(-2), at.unsqueeze(-1)).squeeze(-2);
}

Tensor next_along(const Tensor& x, int64_t axis) {
  std::vector<DimPair> by(x.ndim(), DimPair(0, 0));
  by[static_cast<size_t>(static_cast<int64_t>(x.ndim()) + axis)] = {-1, 1};
  return x.pad(by);
}

Tensor starts(const Tensor& x) { return (places(x) == 0).contiguous(); }

Tensor places(const Tensor& x) { return Tensor::arange(x.dim(-1)).to(x.device()); }

}  // namespace weft::linalg
