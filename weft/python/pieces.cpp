// Pieces, turns, diagonals: movement.h and image.h.
#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/tensor/image.h"
#include "weft/tensor/movement.h"

namespace weft::python {

namespace {

std::vector<Tensor> cut(const Tensor& x, nb::handle sections, int64_t dim) {
  Ints list;
  if (const Tensor* t = tensor_in(sections.ptr())) {
    for (const int64_t place : t->to_vector<int64_t>()) list.push_back(place);
    if (t->ndim() > 0) return tensor_split(x, {list.begin(), list.end()}, dim, CallSite());
  } else if (!to_ints(sections.ptr(), list)) {
    throw nb::type_error("tensor_split() takes an int or a list of them");
  }
  if (PyLong_Check(sections.ptr())) return tensor_split(x, list[0], dim, CallSite());
  if (tensor_in(sections.ptr())) return tensor_split(x, list[0], dim, CallSite());
  return tensor_split(x, std::vector<int64_t>(list.begin(), list.end()), dim, CallSite());
}

std::vector<Tensor> with_self(const Tensor& x, const nb::args& others) {
  std::vector<Tensor> all{x};
  for (nb::handle other : others) all.push_back(nb::cast<Tensor>(other));
  return all;
}

Tensor turned(const Tensor& x, int64_t k, const Ints& dims) {
  if (dims.size() != 2) fail("rot90", "{} axes: give two", dims.size());
  return rot90(x, k, dims[0], dims[1], CallSite());
}

/// Axes one by one, or lists of them.
Tensor moved(const Tensor& x, const Ints& source, const Ints& destination) {
  const auto rank = static_cast<int64_t>(x.ndim());
  if (source.size() != destination.size())
    fail("movedim", "{} axes to {} places: give as many", source.size(), destination.size());
  if (source.size() == 1) return movedim(x, source[0], destination[0], CallSite());
  Ints order = Ints::filled(x.ndim(), -1);
  std::vector<bool> used(x.ndim(), false);
  for (size_t i = 0; i < source.size(); ++i) {
    x.dim(source[i], CallSite()), x.dim(destination[i], CallSite());  // checks both
    const auto from = (source[i] + rank) % rank, to = (destination[i] + rank) % rank;
    if (used[static_cast<size_t>(from)] || order[static_cast<size_t>(to)] >= 0)
      fail("movedim", "an axis or a place is listed twice");
    order[static_cast<size_t>(to)] = from;
    used[static_cast<size_t>(from)] = true;
  }
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (used[static_cast<size_t>(next)]) ++next;
    axis = next++;
  }
  return x.permute(order, CallSite());
}

Tensor sampled(const Tensor& x, const Tensor& grid, const std::string& mode,
               const std::string& padding_mode, bool align_corners) {
  if (mode != "bilinear" && mode != "nearest")
    fail("grid_sample", "mode \"{}\": use \"bilinear\" or \"nearest\"", mode);
  constexpr std::pair<std::string_view, Outside> kOutside[] = {
      {"zeros", Outside::Zeros}, {"border", Outside::Border}, {"reflection", Outside::Reflection}};
  for (const auto& [known, outside] : kOutside)
    if (known == padding_mode)
      return grid_sample(x, grid, mode == "nearest", outside, align_corners, CallSite());
  fail("grid_sample", "padding_mode \"{}\": use \"zeros\", \"border\" or \"reflection\"",
       padding_mode);
}

Tensor affine(const Tensor& theta, const Ints& size, bool align_corners) {
  if (size.size() != 4 || size[0] != theta.size(0, CallSite()))
    fail("affine_grid", "theta {} for a size of {} numbers: give (n, c, h, w)", theta.dims().text(),
         size.size());
  return affine_grid(theta, size[2], size[3], align_corners, CallSite());
}

void bind_images(TensorClass& c) {
  method(c, "pixel_shuffle", plain(pixel_shuffle), "upscale_factor"_a,
         "(..., c r^2, h, w) to (..., c, h r, w r).");
  method(c, "pixel_unshuffle", plain(pixel_unshuffle), "downscale_factor"_a,
         "(..., c, h r, w r) to (..., c r^2, h, w).");
  method(c, "channel_shuffle", plain(channel_shuffle), "groups"_a,
         "(n, c, ...): channels of so many groups in turns.");
  method(c, "grid_sample", sampled, "grid"_a, "mode"_a = "bilinear", "padding_mode"_a = "zeros",
         "align_corners"_a = false,
         "(n, c, h, w) read at a grid (n, oh, ow, 2) of (column, row), -1 and 1 the image's edges. "
         "mode: \"bilinear\", \"nearest\"; padding_mode: \"zeros\", \"border\", "
         "\"reflection\".");
  method(c, "affine_grid", affine, "size"_a, "align_corners"_a = false,
         "The grid for grid_sample() of maps (n, 2, 3) and an image (n, c, h, w).");
}

}  // namespace

void bind_pieces(TensorClass& c) {
  method(c, "unbind", plain(unbind), "dim"_a = 0, "The slices of an axis, without it.");
  method(c, "tensor_split", cut,
         nb::sig("def tensor_split(self, indices_or_sections: int | Sequence[int] | Tensor, "
                 "dim: int = 0) -> list[Tensor]"),
         "indices_or_sections"_a, "dim"_a = 0,
         "So many pieces of which the first are one longer, or cut at these places.");
  method(c, "movedim", moved, "source"_a, "destination"_a,
         "Axes at other places; the others keep their order.");
  method(c, "rot90", turned, "k"_a = 1, "dims"_a = nb::make_tuple(0, 1),
         "Turned by k quarters from the first of two axes towards the second.");
  method(c, "diag_embed", plain(diag_embed), "offset"_a = 0, "dim1"_a = -2, "dim2"_a = -1,
         "Matrices with the last axis on a diagonal, 0 elsewhere.");
  method(
      c, "broadcast_tensors",
      [](const Tensor& x, const nb::args& others) {
        return broadcast_tensors(with_self(x, others), CallSite());
      },
      nb::sig("def broadcast_tensors(self, *others: Tensor) -> list[Tensor]"), "others"_a,
      "All of them, expanded to the shape that they broadcast to.");
  method(
      c, "block_diag",
      [](const Tensor& x, const nb::args& others) {
        return block_diag(with_self(x, others), CallSite());
      },
      nb::sig("def block_diag(self, *others: Tensor) -> Tensor"), "others"_a,
      "Matrices along the diagonal of one, 0 elsewhere.");
  method(
      c, "vander",
      [](const Tensor& x, std::optional<int64_t> n, bool increasing) {
        return vander(x, n.value_or(x.ndim() == 1 ? x.size(0) : 0), increasing, CallSite());
      },
      "N"_a = nb::none(), "increasing"_a = false, "Powers of a vector as columns.");
  bind_images(c);
}

}  // namespace weft::python
