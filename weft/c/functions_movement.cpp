// Operations that move, choose and write elements.
#include "weft/base/error.h"
#include "weft/c/functions.h"
#include "weft/c/index_text.h"
#include "weft/tensor/einsum.h"
#include "weft/tensor/movement.h"
#include "weft/tensor/selection.h"

namespace weft::c {

WEFT_CHOICE(PadMode, "constant|reflect|replicate|circular")
WEFT_CHOICE(ScatterReduce, "sum|prod|mean|amax|amin")

template <>
struct Listed<Unique> {
  static Results of(Unique x) {
    return {std::move(x.values), std::move(x.inverse), std::move(x.counts)};
  }
};

namespace {

using MaybeAxis = std::optional<int64_t>;

Tensor squeeze(const Tensor& x, MaybeAxis axis) {
  return axis ? x.squeeze(*axis, CallSite()) : x.squeeze(CallSite());
}

std::vector<Tensor> split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t axis) {
  return sizes.size() == 1 ? x.split(sizes[0], axis, CallSite()) : x.split(sizes, axis, CallSite());
}

std::vector<Tensor> cut(const Tensor& x, const std::vector<int64_t>& places, int64_t axis) {
  return places.size() == 1 ? tensor_split(x, places[0], axis, CallSite())
                            : tensor_split(x, places, axis, CallSite());
}

Tensor index(const Tensor& x, std::string_view at, const std::vector<Tensor>& tensors) {
  return x.index(parse_index(at, tensors), CallSite());
}

Tensor index_put(const Tensor& x, std::string_view at, const Operand& value,
                 const std::vector<Tensor>& tensors) {
  Tensor written = x;
  return written.index_put(parse_index(at, tensors), value, CallSite());
}

/// Sizes as "h=3 w=4".
Tensor rearrange_by(const Tensor& x, std::string_view formula, std::string_view names,
                    const std::vector<int64_t>& sizes) {
  AxisSizes axes;
  for (size_t begin = 0; begin < names.size();) {
    const size_t end = std::min(names.find(' ', begin), names.size());
    if (axes.size() == sizes.size()) break;
    if (end > begin) axes.emplace_back(names.substr(begin, end - begin), sizes[axes.size()]);
    begin = end + 1;
  }
  if (axes.size() != sizes.size())
    fail("rearrange", "{} sizes, and fewer names in \"{}\"", sizes.size(), names);
  return rearrange(x, formula, axes, CallSite());
}

constexpr Function kFunctions[] = {
    row<&Tensor::reshape>("reshape", "x, shape"),
    row<&Tensor::expand>("expand", "x, shape"),
    row<&Tensor::permute>("permute", "x, axes"),
    row<&Tensor::transpose>("transpose", "x, a = 1, b = 0"),
    row<&Tensor::T>("T", "x", "the last two axes exchanged"),
    row<&Tensor::flip>("flip", "x, axes = []"),
    row<&Tensor::shrink>("shrink", "x, ranges", "[begin, end) of every axis"),
    row<squeeze>("squeeze", "x, axis = none"),
    row<&Tensor::unsqueeze>("unsqueeze", "x, axis"),
    row<&Tensor::flatten>("flatten", "x, first = 0, last = -1"),
    row<&Tensor::unflatten>("unflatten", "x, axis, sizes"),
    row<&Tensor::window>("window", "x, axis, size, stride = 1, dilation = 1"),
    row<&Tensor::unfold>("unfold", "x, axis, size, step"),
    row<split>("split", "x, sizes, axis = 0", "one size for all pieces, or one for each"),
    row<&Tensor::chunk>("chunk", "x, parts, axis = 0"),
    row<&Tensor::diagonal>("diagonal", "x, offset = 0, a = 0, b = 1"),
    row<Method<Tensor, const std::vector<DimPair>&, Scalar>(&Tensor::pad)>(
        "pad", "x, amounts, value = 0", "(before, after) of every axis"),
    row<static_cast<Tensor (*)(const Tensor&, const std::vector<DimPair>&, PadMode, Scalar,
                               CallSite)>(pad)>("pad_mode", "x, amounts, mode, value = 0"),
    row<&Tensor::cat>("cat", "parts, axis = 0"),
    row<&Tensor::stack>("stack", "parts, axis = 0"),
    row<&Tensor::repeat>("repeat", "x, counts"),
    row<&Tensor::repeat_interleave>("repeat_interleave", "x, count, axis"),
    row<&Tensor::roll>("roll", "x, shifts, axes = []"),
    row<&Tensor::tril>("tril", "x, diagonal = 0"),
    row<&Tensor::triu>("triu", "x, diagonal = 0"),
    row<&Tensor::one_hot>("one_hot", "x, classes"),
    row<meshgrid>("meshgrid", "axes, xy = false"),
    row<diag>("diag", "x, offset = 0"),
    row<movedim>("movedim", "x, from, to"),
    row<broadcast_tensors>("broadcast_tensors", "tensors"),
    row<unbind>("unbind", "x, axis = 0"),
    row<cut>("tensor_split", "x, places, axis = 0", "one number of pieces, or where each ends"),
    row<rot90>("rot90", "x, k = 1, a = 0, b = 1"),
    row<diag_embed>("diag_embed", "x, offset = 0, a = -2, b = -1"),
    row<block_diag>("block_diag", "blocks"),
    row<vander>("vander", "x, columns, increasing = false"),
    row<rearrange_by>("rearrange", "x, formula, names = '', sizes = []",
                      "names of axes, with spaces, and their sizes"),

    row<index>("index", "x, at, tensors = []",
               "\"1:5, ::-1, ..., new, 3, t\": t is the next tensor"),
    row<index_put>("index_put", "x, at, value, tensors = []", "writes to x, and gives it"),
    row<&Tensor::gather>("gather", "x, axis, index"),
    row<&Tensor::scatter>("scatter", "x, axis, index, src, combine = set"),
    row<&Tensor::index_select>("index_select", "x, axis, index"),
    row<masked_select>("masked_select", "x, mask, size = none, fill = 0"),
    row<nonzero>("nonzero", "x, size = none, fill = 0"),
    row<unique>("unique", "x, size = none, fill = 0", "values, inverse, counts"),
    row<searchsorted>("searchsorted", "sorted, values, right = false"),
    row<static_cast<Tensor (*)(const Tensor&, const Tensor&, CallSite)>(weft::take)>(
        "take", "x, positions"),
    row<put>("put", "x, positions, values, accumulate = false"),
    row<take_along_axis>("take_along_axis", "x, positions, axis"),
    row<put_along_axis>("put_along_axis", "x, positions, values, axis"),
    row<index_add>("index_add", "x, axis, positions, src"),
    row<index_copy>("index_copy", "x, axis, positions, src"),
    row<index_fill>("index_fill", "x, axis, positions, value"),
    row<masked_scatter>("masked_scatter", "x, mask, src"),
    row<isin>("isin", "x, elements"),
    row<scatter_reduce>("scatter_reduce", "x, axis, index, src, reduce, include_self = true"),
};

}  // namespace

std::span<const Function> movement_functions() { return kFunctions; }

}  // namespace weft::c
