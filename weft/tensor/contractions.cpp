// Products and distances made of matmul and broadcasting: products.h.
#include <algorithm>

#include "weft/tensor/access.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/products.h"
#include "weft/tensor/reductions.h"

namespace weft {

Tensor outer(const Tensor& x, const Tensor& other, CallSite at) {
  const CallSiteScope site(at);
  return x.reshape({-1, 1}) * other.flatten();
}

Tensor inner(const Tensor& x, const Tensor& other, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() == 0 || other.ndim() == 0) return x * other;
  return tensordot(x, other, Ints(-1), Ints(-1));
}

namespace {

/// x with `axes` behind the others, as a matrix (others, axes).
Tensor as_matrix(const Tensor& x, const Ints& axes, Dims& kept) {
  Ints order;
  Dim inside = 1;
  for (int64_t i = 0; i < static_cast<int64_t>(x.ndim()); ++i) {
    if (std::ranges::find(axes, i) != axes.end()) continue;
    order.push_back(i);
    kept.push_back(x.dim(i));
  }
  for (const int64_t a : axes) {
    order.push_back(a);
    inside = inside * x.dim(a);
  }
  return x.permute(order).reshape({x.dims().product() / max(inside, Dim(1)), inside});
}

Ints checked_axes(const Tensor& x, const Ints& axes) {
  Ints found;
  for (const int64_t a : axes) {
    found.push_back(checked_axis("tensordot", a, x));
    if (std::ranges::count(found, found.back()) > 1)
      fail("tensordot", "axis {} is listed twice", a);
  }
  return found;
}

}  // namespace

Tensor tensordot(const Tensor& x, const Tensor& other, const Ints& x_axes, const Ints& other_axes,
                 CallSite at) {
  const CallSiteScope site(at);
  const Ints a = checked_axes(x, x_axes), b = checked_axes(other, other_axes);
  if (a.size() != b.size())
    fail("tensordot", "{} axes and {}: give as many of both tensors", a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i)
    if (!(x.dim(a[i]) == other.dim(b[i])))
      fail("tensordot", "axis {} of shape {} and axis {} of shape {} differ: they must be equal",
           x_axes[i], x.dims().text(), other_axes[i], other.dims().text());
  Dims shape;
  const Tensor left = as_matrix(x, a, shape), right = as_matrix(other, b, shape);
  return left.matmul(right.T()).reshape(shape);
}

Tensor tensordot(const Tensor& x, const Tensor& other, int64_t axes, CallSite at) {
  const CallSiteScope site(at);
  const auto most = static_cast<int64_t>(std::min(x.ndim(), other.ndim()));
  if (axes < 0 || axes > most)
    fail("tensordot", "{} axes of shapes {} and {}: give 0 to {}", axes, x.dims().text(),
         other.dims().text(), most);
  Ints last, first;
  for (int64_t i = 0; i < axes; ++i) {
    last.push_back(i - axes);
    first.push_back(i);
  }
  return tensordot(x, other, last, first);
}

Tensor kron(const Tensor& x, const Tensor& other, CallSite at) {
  const CallSiteScope site(at);
  const size_t rank = std::max(x.ndim(), other.ndim());
  Dims left, right, merged;
  for (size_t i = 0; i < rank; ++i) {
    const size_t missing = rank - x.ndim(), lacking = rank - other.ndim();
    const Dim n = i < missing ? Dim(1) : x.dims()[i - missing];
    const Dim m = i < lacking ? Dim(1) : other.dims()[i - lacking];
    left.push_back(n), left.push_back(1);
    right.push_back(1), right.push_back(m);
    merged.push_back(n * m);
  }
  return (x.reshape(left) * other.reshape(right)).reshape(merged);
}

Tensor cross(const Tensor& x, const Tensor& other, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  const std::vector<Tensor> both = broadcast_tensors({x, other});
  const int64_t a = checked_axis("cross", axis, both[0]);
  if (!(both[0].dim(a) == Dim(3)))
    fail("cross", "axis {} of shapes {} and {} must be of size 3", axis, x.dims().text(),
         other.dims().text());
  const auto turned = [a](const Tensor& v, int64_t by) { return v.roll(-by, a); };
  return turned(both[0], 1) * turned(both[1], 2) - turned(both[0], 2) * turned(both[1], 1);
}

// ---- distances

Tensor cdist(const Tensor& x, const Tensor& other, double p, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() < 2 || other.ndim() < 2 || !(x.dim(-1) == other.dim(-1)))
    fail("cdist", "rows of {} and {}: both need two axes at least, and rows of one length",
         x.dims().text(), other.dims().text());
  return vector_norm(x.unsqueeze(-2) - other.unsqueeze(-3), p, -1);
}

Tensor dist(const Tensor& x, const Tensor& other, double p, CallSite at) {
  const CallSiteScope site(at);
  return vector_norm(x - other, p);
}

}  // namespace weft
