// Order statistics, counts, what leaves NaN out, covariances.
#include "weft/tensor/statistics.h"

#include "weft/base/error.h"
#include "weft/python/bindings.h"
#include "weft/python/data.h"
#include "weft/tensor/linalg.h"

namespace weft::python {

namespace {

using Chosen = ValuesAndPositions (*)(const Tensor&, int64_t, bool, CallSite);

/// f(dim) gives values and positions; f() the one of all elements.
void bind_chosen(TensorClass& c, const char* name, Chosen choose, const char* doc) {
  method(
      c, name, [choose](const Tensor& x) { return choose(x.flatten(), 0, false, {}).values; }, doc);
  method(
      c, name,
      [choose](const Tensor& x, int64_t dim, bool keepdim) {
        return python_result(choose(x, dim, keepdim, CallSite()));
      },
      "dim"_a, "keepdim"_a = false, doc);
}

Interpolation interpolation_of(const std::string& name) {
  constexpr std::pair<std::string_view, Interpolation> kNames[] = {
      {"linear", Interpolation::Linear},
      {"lower", Interpolation::Lower},
      {"higher", Interpolation::Higher},
      {"nearest", Interpolation::Nearest},
      {"midpoint", Interpolation::Midpoint}};
  for (const auto& [known, how] : kNames)
    if (known == name) return how;
  fail("quantile",
       "interpolation \"{}\": use \"linear\", \"lower\", \"higher\", \"nearest\" or "
       "\"midpoint\"",
       name);
}

double share_of(nb::handle x) {
  double share = 0;
  if (!nb::try_cast(x, share))
    throw nb::type_error("quantile(): q takes a number or a list of them");
  return share;
}

/// Python's numbers in q, which may be an array. Nothing is read back from a tensor: a function
/// that is being captured must not.
std::vector<double> numbers_in(nb::handle q) {
  const nb::object plain = nb::hasattr(q, "tolist") ? q.attr("tolist")() : nb::borrow(q);
  if (!nb::isinstance<nb::list>(plain) && !nb::isinstance<nb::tuple>(plain))
    return {share_of(plain)};
  std::vector<double> numbers;
  for (nb::handle x : plain) numbers.push_back(share_of(x));
  return numbers;
}

/// Numbers are looked at; of a tensor, those outside of [0, 1] give NaN.
Tensor shares(nb::handle q) {
  if (const Tensor* t = tensor_in(q.ptr())) return *t;
  for (const double share : numbers_in(q))
    if (!(share >= 0 && share <= 1)) fail("quantile", "q is {}: give shares from 0 to 1", share);
  return tensor_from_object(q.ptr(), DType::F64);
}

using Quantile = Tensor (*)(const Tensor&, const Tensor&, int64_t, bool, Interpolation, CallSite);

void bind_quantile(TensorClass& c, const char* name, Quantile quantile, const char* doc) {
  method(
      c, name,
      [quantile](const Tensor& x, const nb::object& q, std::optional<int64_t> dim, bool keepdim,
                 const std::string& interpolation) {
        const Interpolation how = interpolation_of(interpolation);
        if (dim) return quantile(x, shares(q), *dim, keepdim, how, CallSite());
        const Tensor y = quantile(x.flatten(), shares(q), 0, false, how, CallSite());
        Dims shape = y.dims();
        for (size_t i = 0; keepdim && i < x.ndim(); ++i) shape.push_back(1);
        return y.reshape(shape);
      },
      nb::sig(("def " + std::string(name) +
               "(self, q: float | Sequence[float] | Tensor, dim: int | None = None, "
               "keepdim: bool = False, interpolation: str = 'linear') -> Tensor")
                  .c_str()),
      "q"_a, "dim"_a = nb::none(), "keepdim"_a = false, "interpolation"_a = "linear", doc);
}

Tensor counts(const Tensor& x, const Tensor* weights, int64_t minlength) {
  const Released released;
  return bincount(x, weights ? *weights : Tensor(), minlength, {}, CallSite());
}

Tensor differences(const Tensor& x, int64_t n, int64_t dim, const Tensor* prepend,
                   const Tensor* append) {
  std::vector<Tensor> parts;
  if (prepend) parts.push_back(*prepend);
  parts.push_back(x);
  if (append) parts.push_back(*append);
  return diff(parts.size() > 1 ? Tensor::cat(parts, dim) : x, n, dim, CallSite());
}

/// "fro" of matrices is the 2-norm of all their elements; "nuc" the sum of singular values.
Tensor norm(const Tensor& x, const nb::object& p, const Axes& dim, bool keepdim,
            std::optional<DType> dtype) {
  const Tensor y = dtype ? x.cast(*dtype, CallSite()) : x;
  if (p.is_none()) return vector_norm(y, 2, dim, keepdim, CallSite());
  if (!nb::isinstance<nb::str>(p))
    return vector_norm(y, nb::cast<double>(p), dim, keepdim, CallSite());
  const auto kind = nb::cast<std::string>(p);
  if (kind == "fro") return vector_norm(y, 2, dim, keepdim, CallSite());
  if (kind != "nuc") fail("norm", "p \"{}\": use a number, \"fro\" or \"nuc\"", kind);
  if (y.ndim() != 2 || !dim.empty())
    fail("norm", "\"nuc\" is of a matrix: got {}", y.dims().text());
  const Tensor sum = linalg::svd(y).s.sum();
  return keepdim ? sum.reshape({1, 1}) : sum;
}

void bind_counts(TensorClass& c) {
  method(c, "nansum", plain(nansum), "axis"_a = nb::none(), "keepdim"_a = false,
         "The sum of what is no NaN.");
  method(c, "nanmean", plain(nanmean), "axis"_a = nb::none(), "keepdim"_a = false,
         "The mean of what is no NaN; NaN where there is nothing.");
  method(c, "count_nonzero", plain(count_nonzero), "dim"_a = nb::none(),
         "How many elements are not 0.");
  method(c, "bincount", counts, "weights"_a = nb::none(), "minlength"_a = 0,
         "How often each of 0, 1, ... occurs, int32, or the sums of weights of its places. The "
         "largest element is read.");
  method(c, "histc", plain(histc), "bins"_a = 100, "min"_a = 0.0, "max"_a = 0.0,
         "How many elements are in each of so many equal parts of [min, max], or of their own "
         "range where both are equal.");
  method(c, "cov", plain(cov), "correction"_a = 1,
         "Covariances (n, n) of variables (n, observations).");
  method(c, "corrcoef", plain(corrcoef), "Correlations (n, n) of variables (n, observations).");
  method(c, "trapezoid", plain(trapezoid), "dx"_a = 1.0, "dim"_a = -1,
         "The area under this by trapezoids, dx apart.");
  method(c, "diff", differences, "n"_a = 1, "dim"_a = -1, "prepend"_a = nb::none(),
         "append"_a = nb::none(), "Differences of neighbours along dim, n times.");
}

}  // namespace

void bind_statistics(TensorClass& c) {
  bind_chosen(c, "median", median,
              "The middle of the sorted elements, the lower one of two; NaN wins. With dim, values "
              "and int32 positions.");
  bind_chosen(c, "nanmedian", nanmedian, "median() of what is no NaN.");
  method(c, "mode", plain(mode), "dim"_a = -1, "keepdim"_a = false,
         "The most frequent values, the smallest of several, and their last int32 positions.");
  method(c, "kthvalue", plain(kthvalue), "k"_a, "dim"_a = -1, "keepdim"_a = false,
         "The k-th smallest, k from 1, and its int32 position; NaN counts as the largest.");
  bind_quantile(c, "quantile", quantile,
                "The value that a share q of the elements is below, at place q (n - 1) of them "
                "sorted. NaN where there is one, or where q is outside of [0, 1]. An axis of q "
                "comes first. interpolation: \"linear\", \"lower\", \"higher\", \"nearest\", "
                "\"midpoint\".");
  bind_quantile(c, "nanquantile", nanquantile, "quantile() of what is no NaN.");
  bind_counts(c);
  method(c, "norm", norm,
         nb::sig("def norm(self, p: float | str | None = 'fro', dim: int | Sequence[int] | None = "
                 "None, keepdim: bool = False, dtype: DType | str | type | None = None) -> Tensor"),
         "p"_a = "fro", "dim"_a = nb::none(), "keepdim"_a = false, "dtype"_a = nb::none(),
         "(sum |x|^p)^(1/p); p = 0 counts what is not 0, infinity is the largest.");
}

}  // namespace weft::python
