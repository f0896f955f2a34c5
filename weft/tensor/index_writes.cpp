// Writes at 1-D positions and under masks, and what is looked for among others: selection.h.
#include "weft/tensor/access.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/selection.h"

namespace weft {

namespace {

/// 1-D positions along axis for every element of slices like x's.
Tensor expanded(const char* tag, const Tensor& x, int64_t axis, const Tensor& positions) {
  if (positions.ndim() > 1 || !is_int(positions.dtype()))
    fail_type(tag, "positions are 1-D integers: got {} of shape {}", name(positions.dtype()),
              positions.dims().text());
  Dims single(std::vector<Dim>(x.ndim(), 1)), all = x.dims();
  single[static_cast<size_t>(axis)] = all[static_cast<size_t>(axis)] = positions.flatten().dim(0);
  return positions.reshape(single).expand(all);
}

Tensor written(const char* tag, const Tensor& x, int64_t axis, const Tensor& positions,
               const Tensor& src, Fold fold) {
  const int64_t a = checked_axis(tag, axis, x);
  const Tensor index = expanded(tag, x, a, positions);
  if (!(src.dims() == index.dims()))
    fail(tag, "src {} for {} positions along axis {} of shape {}: it must be {}", src.dims().text(),
         positions.dims().product().text(), axis, x.dims().text(), index.dims().text());
  return x.scatter(a, index, src, fold);
}

}  // namespace

Tensor index_add(const Tensor& x, int64_t axis, const Tensor& positions, const Tensor& src,
                 CallSite at) {
  const CallSiteScope site(at);
  return written("index_add", x, axis, positions, src, Fold::Add);
}

Tensor index_copy(const Tensor& x, int64_t axis, const Tensor& positions, const Tensor& src,
                  CallSite at) {
  const CallSiteScope site(at);
  return written("index_copy", x, axis, positions, src, Fold::Set);
}

Tensor index_fill(const Tensor& x, int64_t axis, const Tensor& positions, const Operand& value,
                  CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("index_fill", axis, x);
  const Tensor index = expanded("index_fill", x, a, positions);
  if (!value.tensor()) return x.scatter(a, index, value);
  if (value.tensor()->ndim() > 0)
    fail("index_fill", "the value has shape {}: give a number", value.tensor()->dims().text());
  return x.scatter(a, index, value.tensor()->expand(index.dims()));
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& src, CallSite at) {
  const CallSiteScope site(at);
  if (!is_bool(mask.dtype()))
    fail_type("masked_scatter", "the mask must be bool: got {} of shape {}; compare it with 0",
              name(mask.dtype()), mask.dims().text());
  const Tensor flat = mask.expand(x.dims()).flatten();
  const Dim given = src.dims().product();
  if (given.max() < flat.dim(0).max()) {
    const auto count = flat.sum({}, false, DType::I64).item<int64_t>();
    if (count > given.max())
      fail("masked_scatter", "{} elements for {} places where the mask is true", given.text(),
           count);
    if (count == 0) return x;
  }
  const Tensor place = (flat.cast(DType::I64).cumsum(0) - 1).maximum(0);
  const Tensor found = src.flatten().gather(0, place).reshape(x.dims());
  return flat.reshape(x.dims()).where(found, x);
}

Tensor isin(const Tensor& x, const Tensor& elements, CallSite at) {
  const CallSiteScope site(at);
  const DType met = promote(x.dtype(), elements.dtype());
  if (elements.dims().product() == Dim(0)) return Tensor::full(x.dims(), false);
  const Tensor among = elements.cast(met).flatten().sort(0).first, wanted = x.cast(met);
  const Tensor place = searchsorted(among, wanted).minimum(among.size(0) - 1);
  return take(among, place) == wanted;
}

}  // namespace weft
