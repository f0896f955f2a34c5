// Views and movement: reshape to tril.

#include "weft/tensor/movement.h"
#include "weft/base/checked.h"
#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/creation.h"
#include "weft/tensor/einsum.h"
#include "weft/tensor/tables.h"

namespace weft::python {

namespace {

/// What f(2, 3), f((2, 3)) and f(shape=(2, 3)) were given.
nb::args listed(const nb::args& args, nb::handle by_name) {
  if (by_name.is_none()) return args;
  if (args.size() > 0) throw nb::type_error("a list is given twice: by position and by name");
  return nb::borrow<nb::args>(nb::make_tuple(by_name));
}

Ints ints_of_args(const nb::args& args) {
  Ints ints;
  PyObject* from = args.size() == 1 ? nb::handle(args[0]).ptr() : args.ptr();
  if (!to_ints(from, ints)) throw nb::type_error("ints are wanted: (2, 3), or 2, 3");
  return ints;
}

/// None keeps a size; so does -1 in expand().
Dims dims_or_kept(const char* tag, const Tensor& x, const nb::args& args) {
  const bool one = args.size() == 1 && (PyTuple_Check(nb::handle(args[0]).ptr()) ||
                                        PyList_Check(nb::handle(args[0]).ptr()));
  const nb::object list = one ? nb::object(args[0]) : nb::object(args);
  Dims dims;
  size_t axis = 0;
  for (nb::handle member : list) {
    Dim d;
    if (member.is_none()) {
      if (axis >= x.ndim()) fail(tag, "None for axis {} of shape {}", axis, x.dims().text());
      d = x.dim(static_cast<int64_t>(axis), CallSite());
    } else if (!to_dim(member.ptr(), d)) {
      throw nb::type_error("sizes are ints, bound Variables or None");
    }
    dims.push_back(d);
    ++axis;
  }
  return dims;
}

/// One (start, stop) or (before, after) per axis; None leaves an axis as it is.
std::vector<DimPair> pairs(const char* tag, const Tensor& x, nb::handle list, bool bounds) {
  std::vector<DimPair> all;
  int64_t axis = 0;
  for (nb::handle member : list) {
    if (axis >= static_cast<int64_t>(x.ndim()))
      fail(tag, "more pairs than the {} axes of shape {}", x.ndim(), x.dims().text());
    DimPair pair{0, bounds ? x.dim(axis, CallSite()) : Dim(0)};
    if (!member.is_none()) {
      Dims two;
      if (!to_dims(member.ptr(), two) || two.size() != 2)
        throw nb::type_error("each axis has a pair of ints, or None");
      pair = {two[0], two[1]};
    }
    all.push_back(pair);
    ++axis;
  }
  return all;
}

Tensor shrink(const Tensor& x, nb::handle ranges) {
  return x.shrink(pairs("shrink", x, ranges, true), CallSite());
}

PadMode mode_of(const std::string& name) {
  constexpr std::pair<std::string_view, PadMode> kModes[] = {{"constant", PadMode::Constant},
                                                             {"reflect", PadMode::Reflect},
                                                             {"replicate", PadMode::Replicate},
                                                             {"circular", PadMode::Circular}};
  for (const auto& [known, mode] : kModes)
    if (known == name) return mode;
  fail("pad.mode", "\"{}\": use \"constant\", \"reflect\", \"replicate\" or \"circular\"", name);
}

/// A flat list counts from the last axis, PyTorch's way: (left, right, top, bottom).
Tensor padded(const Tensor& x, nb::handle padding, const std::string& mode, const Scalar& value) {
  Dims flat;
  const bool is_flat = !padding.is_none() && to_dims(padding.ptr(), flat);
  const auto amounts = is_flat ? pads_from_last(x, flat) : pairs("pad", x, padding, false);
  return pad(x, amounts, mode_of(mode), value, CallSite());
}

std::vector<std::optional<Dim>> kept_or_sizes(const nb::args& args) {
  const bool one = args.size() == 1 && !nb::isinstance<nb::int_>(args[0]) && !args[0].is_none();
  std::vector<std::optional<Dim>> sizes;
  for (nb::handle member : one ? nb::object(args[0]) : nb::object(args))
    sizes.push_back(member.is_none() ? std::nullopt : std::optional(nb::cast<Dim>(member)));
  return sizes;
}

std::vector<Tensor> split(const Tensor& x, nb::handle sizes, int64_t dim) {
  Ints list;
  if (!to_ints(sizes.ptr(), list)) throw nb::type_error("split() takes an int or a list of them");
  if (PyLong_Check(sizes.ptr())) return x.split(list[0], dim, CallSite());
  return x.split(std::vector<int64_t>(list.begin(), list.end()), dim, CallSite());
}

std::vector<Tensor> with_self(const Tensor& x, const nb::args& others) {
  std::vector<Tensor> all{x};
  for (nb::handle member : others) {
    const Tensor* t = tensor_in(member.ptr());
    if (!t) throw nb::type_error("Tensors are wanted");
    all.push_back(*t);
  }
  return all;
}

/// Tensor.cat([a, b]) and a.cat(b): the first argument is a list or a tensor.
template <Tensor (*join)(const std::vector<Tensor>&, int64_t, CallSite)>
Tensor joined(nb::handle first, const nb::args& others, int64_t dim) {
  if (const Tensor* x = tensor_in(first.ptr())) return join(with_self(*x, others), dim, CallSite());
  if (others.size() > 0) throw nb::value_error("tensors are one list, or one by one");
  return join(nb::cast<std::vector<Tensor>>(first), dim, CallSite());
}

std::vector<Tensor> grids(const Tensor& x, const nb::args& others, const std::string& indexing) {
  if (indexing != "ij" && indexing != "xy")
    fail("meshgrid", "indexing \"{}\": use \"ij\" or \"xy\"", indexing);
  return meshgrid(with_self(x, others), indexing == "xy", CallSite());
}

/// einsum("ij,jk->ik", a, b), or with a list.
Tensor einstein(const std::string& formula, const nb::args& operands, std::optional<DType> dtype) {
  const bool one = operands.size() == 1 && !tensor_in(nb::handle(operands[0]).ptr());
  const auto list =
      nb::cast<std::vector<Tensor>>(one ? nb::object(operands[0]) : nb::object(operands));
  return einsum(formula, list, dtype.value_or(DType::Void), CallSite());
}

Tensor rearranged(const Tensor& x, const std::string& formula, const nb::kwargs& sizes) {
  std::vector<std::string> names;
  AxisSizes given;
  for (const auto& [name, size] : sizes) names.push_back(nb::cast<std::string>(name));
  size_t i = 0;
  for (const auto& [name, size] : sizes) given.emplace_back(names[i++], nb::cast<int64_t>(size));
  return rearrange(x, formula, given, CallSite());
}

std::vector<int64_t> read(const Tensor& x) {
  const Released released;
  return x.to_vector<int64_t>(CallSite());
}

/// As many of each element as `counts`, which is read, says.
Tensor repeat_each(const Tensor& x, const Tensor& counts, std::optional<int64_t> dim) {
  if (!dim) return repeat_each(x.flatten(), counts, 0);
  if (!is_int(counts.dtype()) || counts.ndim() != 1 || counts.size(0) != x.size(*dim, CallSite()))
    fail("repeat_interleave",
         "counts are one integer for each of the {} elements: got {} of shape {}", x.size(*dim),
         name(counts.dtype()), counts.dims().text());
  std::vector<int64_t> places;
  const std::vector<int64_t> times = read(counts);
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] < 0) fail("repeat_interleave", "a count is {}: give at least 0", times[i]);
    require_table("repeat_interleave",
                  add_or_fail("repeat_interleave", times[i], static_cast<int64_t>(places.size())));
    places.insert(places.end(), static_cast<size_t>(times[i]), static_cast<int64_t>(i));
  }
  const Tensor at = Tensor::from(std::span<const int64_t>(places), {places.size()}, CallSite());
  return x.index_select(*dim, at, CallSite());
}

Tensor repeat_interleave(const Tensor& x, nb::handle repeats, std::optional<int64_t> dim) {
  if (const Tensor* counts = tensor_in(repeats.ptr())) return repeat_each(x, *counts, dim);
  const auto times = nb::cast<int64_t>(repeats);
  return dim ? x.repeat_interleave(times, *dim, CallSite())
             : x.flatten().repeat_interleave(times, 0, CallSite());
}

void bind_shapes(TensorClass& c) {
  for (const char* name : {"reshape", "view"})
    method(
        c, name,
        [](const Tensor& x, const nb::args& args, nb::handle shape) {
          return x.reshape(dims_or_kept("reshape", x, listed(args, shape)), CallSite());
        },
        "args"_a, "shape"_a = nb::none(),
        "The same elements in row-major order; one size may be -1, None keeps a size. "
        "reshape(2, 3) or reshape((2, 3)).");
  method(
      c, "expand",
      [](const Tensor& x, const nb::args& args, nb::handle shape) {
        return x.expand(dims_or_kept("expand", x, listed(args, shape)), CallSite());
      },
      "args"_a, "shape"_a = nb::none(),
      "Repeats axes of size 1 and adds axes in front; -1 and None keep a size.");
  method(
      c, "permute",
      [](const Tensor& x, const nb::args& args, nb::handle order) {
        return x.permute(ints_of_args(listed(args, order)), CallSite());
      },
      "args"_a, "order"_a = nb::none(), "Axis i of the result is axis order[i].");
}

void bind_axes(TensorClass& c) {
  method(c, "transpose", plain(&Tensor::transpose), "dim0"_a = 1, "dim1"_a = 0,
         "Exchanges two axes.");
  method(
      c, "flip",
      [](const Tensor& x, const nb::args& args, nb::handle axis) {
        const Ints axes = ints_of_args(listed(args, axis));
        return axes.empty() ? x : x.flip(axes, CallSite());
      },
      "args"_a, "axis"_a = nb::none(), "Reverses these axes; none for an empty list.");
  method(
      c, "squeeze",
      [](const Tensor& x, std::optional<int64_t> dim) {
        const bool of_number = x.ndim() == 0 && (dim == 0 || dim == -1);  // PyTorch's rule
        return dim && !of_number ? x.squeeze(*dim, CallSite()) : x.squeeze(CallSite());
      },
      "dim"_a = nb::none(), "Without axes of size 1, or without this one if it is.");
  method(c, "unsqueeze", plain(&Tensor::unsqueeze), "dim"_a, "With a new axis of size 1 there.");
  method(c, "flatten", plain(&Tensor::flatten), "start_dim"_a = 0, "end_dim"_a = -1,
         "Axes start_dim to end_dim merged into one.");
  method(c, "unflatten", plain(&Tensor::unflatten), "dim"_a, "sizes"_a,
         "One axis split into sizes, of which one may be -1.");
  method(
      c, "unfold",
      [](const Tensor& x, int64_t dim, int64_t size, int64_t step) {
        return x.unfold(dim, size, step, CallSite());
      },
      "dim"_a, "size"_a, "step"_a,
      "Sliding windows: dim becomes their number, a new last axis holds each.");
  method(c, "window", plain(&Tensor::window), "dim"_a, "size"_a, "stride"_a = 1, "dilation"_a = 1,
         "Sliding windows: dim becomes their number, a new last axis holds each.");
  method(c, "diagonal", plain(&Tensor::diagonal), "offset"_a = 0, "dim1"_a = 0, "dim2"_a = 1,
         "A diagonal of two axes, as a new last axis.");
  method(
      c, "diag", [](const Tensor& x, int64_t diagonal) { return diag(x, diagonal, CallSite()); },
      "diagonal"_a = 0, "A matrix with this on its diagonal; of a matrix, its diagonal.");
}

void bind_cuts(TensorClass& c) {
  method(c, "shrink", shrink, "arg"_a, "(start, stop) per axis, None for the whole axis.");
  method(c, "pad", padded, "padding"_a, "mode"_a = "constant", "value"_a = 0.0,
         "(before, after) per axis or None, or a flat list from the last axis as PyTorch takes it; "
         "negative amounts cut. mode: \"constant\", \"reflect\", \"replicate\", \"circular\".");
  method(
      c, "pad_to",
      [](const Tensor& x, const nb::args& args, const Scalar& value, nb::handle shape) {
        return pad_to(x, kept_or_sizes(listed(args, shape)), value, CallSite());
      },
      "args"_a, "value"_a = 0.0, "shape"_a = nb::none(),
      "Padded at the end of each axis to these sizes; None keeps one.");
  method(
      c, "shrink_to",
      [](const Tensor& x, const nb::args& args, nb::handle shape) {
        return shrink_to(x, kept_or_sizes(listed(args, shape)), CallSite());
      },
      "args"_a, "shape"_a = nb::none(),
      "Cut at the end of each axis to these sizes; None keeps one.");
  method(c, "split", split, "sizes"_a, "dim"_a = 0,
         "Pieces of one size (the last may be smaller), or of these sizes.");
  method(
      c, "chunk",
      [](const Tensor& x, int64_t chunks, int64_t dim) { return x.chunk(chunks, dim, CallSite()); },
      "chunks"_a, "dim"_a = 0, "At most so many pieces of equal size.");
  method(c, "tril", plain(&Tensor::tril), "diagonal"_a = 0, "0 above this diagonal.");
  method(c, "triu", plain(&Tensor::triu), "diagonal"_a = 0, "0 below this diagonal.");
}

void bind_joins(TensorClass& c) {
  // Both a.cat(b) and Tensor.cat([a, b]): an instance passes itself first.
  c.def("cat", joined<&Tensor::cat>, "args"_a, "dim"_a = 0, "Joined along an axis; dtypes promote.",
        nb::call_guard<PythonSite>());
  c.def("stack", joined<&Tensor::stack>, "args"_a, "dim"_a = 0, "Joined along a new axis.",
        nb::call_guard<PythonSite>());
  method(
      c, "repeat",
      [](const Tensor& x, const nb::args& args, nb::handle repeats) {
        return x.repeat(ints_of_args(listed(args, repeats)), CallSite());
      },
      "args"_a, "repeats"_a = nb::none(), "The whole tensor so often along each axis.");
  method(
      c, "repeat_interleave", repeat_interleave,
      nb::sig("def repeat_interleave(self, repeats: int | Tensor, dim: int | None = None) -> "
              "Tensor"),
      "repeats"_a, "dim"_a = nb::none(),
      "Each element so often, next to itself; with a tensor of counts, which is read, as often as "
      "its own count.");
  method(c, "roll", plain(&Tensor::roll), "shifts"_a, "dims"_a = nb::none(),
         "Elements move along axes; those past the end come in at the front.");
  method(c, "meshgrid", grids, "args"_a, "indexing"_a = "ij",
         "1-D tensors in the shape of them all, each varying along its own axis.");
  static_method(c, "einsum", einstein, "formula"_a, "operands"_a, "dtype"_a = nb::none(),
                "einsum(\"ij,jk->ik\", a, b): NumPy's.");
  method(c, "rearrange", rearranged, "formula"_a, "sizes"_a,
         "einops' rearrange (Rogozhnikov 2022): x.rearrange(\"b (h p) c -> b h (p c)\", p=2).");
}

Tensor one_hot(const Tensor& x, int64_t classes) {
  const bool counts = classes == -1 && !is_float(x.dtype()) && x.numel() > 0;
  return x.one_hot(counts ? read(x.max())[0] + 1 : classes, CallSite());
}

}  // namespace

void bind_movement(TensorClass& c) {
  bind_shapes(c);
  bind_axes(c);
  bind_cuts(c);
  bind_joins(c);
  c.def_prop_ro(
      "T",
      [](const Tensor& x) {
        const PythonSite site;
        return x.ndim() < 2 ? x : x.transpose(-2, -1, CallSite());
      },
      "The last two axes exchanged.");
  method(
      c, "one_hot", one_hot, "num_classes"_a = -1,
      "Integers (...) to (..., num_classes): 1 at the class, else 0. Without a number of classes "
      "the largest is read, as PyTorch does.");
}

}  // namespace weft::python
