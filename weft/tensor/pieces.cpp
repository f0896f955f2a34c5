// Pieces of tensors, turns, and matrices put together of pieces: movement.h.
#include <algorithm>

#include "weft/tensor/access.h"
#include "weft/tensor/movement.h"

namespace weft {

std::vector<Tensor> unbind(const Tensor& x, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("unbind", axis, x);
  std::vector<Tensor> slices;
  if (x.size(a) == 0) return slices;
  for (const Tensor& slice : x.split(int64_t{1}, a)) slices.push_back(slice.squeeze(a));
  return slices;
}

// Some gigabytes of tensors, empty ones among them.
constexpr int64_t kMostPieces = int64_t{1} << 24;

std::vector<Tensor> tensor_split(const Tensor& x, int64_t parts, int64_t axis, CallSite at) {
  const CallSiteScope site(at);
  if (parts < 1) fail("tensor_split", "{} parts: give at least 1", parts);
  if (parts > kMostPieces)
    fail("tensor_split", "{} parts: a list of more than {} tensors does not fit into memory", parts,
         kMostPieces);
  const int64_t n = x.size(axis);
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < parts; ++i) sizes.push_back(n / parts + (i < n % parts ? 1 : 0));
  return x.split(sizes, axis);
}

std::vector<Tensor> tensor_split(const Tensor& x, const std::vector<int64_t>& places, int64_t axis,
                                 CallSite at) {
  const CallSiteScope site(at);
  const auto a = static_cast<size_t>(checked_axis("tensor_split", axis, x));
  const int64_t n = x.size(axis);
  std::vector<DimPair> ranges;
  for (const Dim& d : x.dims()) ranges.emplace_back(0, d);
  std::vector<Tensor> pieces;
  int64_t begin = 0;
  for (size_t i = 0; i <= places.size(); ++i) {
    const int64_t place = i < places.size() ? places[i] : n;
    const int64_t end = std::clamp<int64_t>(place < 0 ? place + n : place, 0, n);
    ranges[a] = {std::min(begin, end), end};
    pieces.push_back(x.shrink(ranges));
    begin = end;
  }
  return pieces;
}

Tensor rot90(const Tensor& x, int64_t k, int64_t first, int64_t second, CallSite at) {
  const CallSiteScope site(at);
  const int64_t a = checked_axis("rot90", first, x), b = checked_axis("rot90", second, x);
  if (a == b) fail("rot90", "axes {} and {} are the same one", first, second);
  switch (((k % 4) + 4) % 4) {
    case 1: return x.flip(b).transpose(a, b);
    case 2: return x.flip({a, b});
    case 3: return x.flip(a).transpose(a, b);
    default: return x;
  }
}

Tensor diag_embed(const Tensor& x, int64_t offset, int64_t first, int64_t second, CallSite at) {
  const CallSiteScope site(at);
  const std::string shape = x.dims().text() + " with a new axis";
  const int64_t a = checked_axis("diag_embed", first, x.ndim() + 1, shape);
  const int64_t b = checked_axis("diag_embed", second, x.ndim() + 1, shape);
  if (a == b) fail("diag_embed", "axes {} and {} are the same one", first, second);
  const int64_t n = x.size(-1), right = std::max<int64_t>(0, offset);
  const int64_t down = std::max<int64_t>(0, -offset), size = n + right + down;
  const Tensor here = Tensor::eye(n, x.dtype()) != 0;
  std::vector<DimPair> around(x.ndim() + 1, DimPair(0, 0));
  around[x.ndim() - 1] = {down, size - n - down};
  around[x.ndim()] = {right, size - n - right};
  const Tensor matrices = here.where(x.unsqueeze(-1), 0).pad(around);
  if (a < b) return movedim(movedim(matrices, -2, a), -1, b);
  return movedim(movedim(matrices, -1, b), -1, a);
}

Tensor block_diag(const std::vector<Tensor>& blocks, CallSite at) {
  const CallSiteScope site(at);
  if (blocks.empty()) fail("block_diag", "there is nothing to join: give at least one tensor");
  Dim left = 0, width = 0;
  std::vector<Tensor> matrices, rows;
  for (const Tensor& block : blocks) {
    if (block.ndim() > 2) fail("block_diag", "takes matrices: got shape {}", block.dims().text());
    matrices.push_back(block.ndim() == 2 ? block : block.reshape({1, -1}));
    width = width + matrices.back().dim(1);
  }
  for (const Tensor& m : matrices) {
    const Dim right = width - left - m.dim(1);
    rows.push_back(m.pad({{0, 0}, {left, right}}));
    left = left + m.dim(1);
  }
  return Tensor::cat(rows);
}

Tensor vander(const Tensor& x, int64_t columns, bool increasing, CallSite at) {
  const CallSiteScope site(at);
  if (x.ndim() != 1) fail("vander", "takes a 1-D tensor: got shape {}", x.dims().text());
  if (columns < 0) fail("vander", "{} columns: give at least 0", columns);
  if (columns == 0) return Tensor::zeros({x.dim(0), 0}, x.dtype());
  const Tensor ones = x.ones_like().unsqueeze(1);
  const Tensor rest = x.unsqueeze(1).expand({-1, columns - 1});
  const Tensor powers = Tensor::cat({ones, rest}, 1).cumprod(1);
  return increasing ? powers : powers.flip(1);
}

}  // namespace weft
