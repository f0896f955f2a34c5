// What the files of this room share: one function per family of methods, and how they are bound.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <tuple>
#include <utility>

#include "weft/base/fork.h"
#include "weft/python/casters.h"
#include "weft/python/gil.h"
#include "weft/python/site.h"
#include "weft/tensor/reductions.h"

namespace weft::python {

namespace nb = nanobind;
using namespace nb::literals;  // NOLINT: "axis"_a
using TensorClass = nb::class_<Tensor>;

/// self of methods that return it: the object, not only what it holds. Of another type the call is
/// a TypeError: `Tensor.realize(3)`.
using TensorObject = nb::handle_t<Tensor>;
inline Tensor& tensor_of(TensorObject x) { return nb::cast<Tensor&>(x); }

void bind_errors(nb::module_& m);
void bind_dtypes(nb::module_& m);
void bind_context(nb::module_& m);
void bind_dims(nb::module_& m);
void bind_creation(TensorClass& c);
void bind_random(TensorClass& c);
void bind_operators(TensorClass& c);
void bind_elementwise(TensorClass& c);
void bind_movement(TensorClass& c);
void bind_indexing(TensorClass& c);
void bind_reductions(TensorClass& c);
void bind_products(TensorClass& c);
void bind_contractions(TensorClass& c);
void bind_pieces(TensorClass& c);
void bind_selection(TensorClass& c);
void bind_statistics(TensorClass& c);
void bind_windows(TensorClass& c);
void bind_losses(TensorClass& c);
void bind_hashing(TensorClass& c);
void bind_autograd(TensorClass& c);
void bind_values(TensorClass& c);
void bind_dlpack(nb::module_& m, TensorClass& c);
void bind_linalg(nb::module_& m, TensorClass& c);
void bind_jit(nb::module_& m);
void bind_optim(nb::module_& m);
void bind_training(nb::module_& m);
void bind_data_sets(nb::module_& m);
void bind_transforms(nb::module_& m);
void bind_custom_kernel(nb::module_& m);
void bind_random_keys(nb::module_& m);
void bind_passes(nb::module_& m);
void bind_files(nb::module_& m);
void bind_onnx(nb::module_& m);
void bind_gguf(nb::module_& m);
void bind_text(nb::module_& m);
void bind_llm(nb::module_& m);
void bind_llm_training(nb::module_& m);
void bind_viz(nb::module_& m);

/// Every function is bound through this: it runs under its caller's line of Python.
template <class Class, class F, class... Extra>
void method(Class& c, const char* name, F&& f, const Extra&... extra) {
  c.def(name, std::forward<F>(f), extra..., nb::call_guard<PythonSite>());
}
template <class F, class... Extra>
void static_method(TensorClass& c, const char* name, F&& f, const Extra&... extra) {
  c.def_static(name, std::forward<F>(f), extra..., nb::call_guard<PythonSite>());
}
/// Without the GIL: other threads of Python run meanwhile, but a fork of theirs waits.
struct Released {
  GilReleased released;
  BusyScope busy;
};
/// For what computes and touches nothing of Python's.
struct SiteWithoutGil {
  PythonSite site;  // looks at frames, so it comes first
  Released released;
};
template <class Class, class F, class... Extra>
void computing_method(Class& c, const char* name, F&& f, const Extra&... extra) {
  c.def(name, std::forward<F>(f), extra..., nb::call_guard<SiteWithoutGil>());
}

namespace detail {
template <class R, class All, size_t... I>
auto without_site(R (Tensor::*m)(All) const, std::index_sequence<I...>);

template <class... A, class F, size_t... I>
auto taking_all_but_the_last(F call, std::index_sequence<I...>) {
  using All = std::tuple<A...>;
  return [call](const Tensor& x, std::tuple_element_t<I, All>... args) {
    return call(x, static_cast<std::tuple_element_t<I, All>>(args)...);
  };
}
}  // namespace detail

/// A result as Python has it.
template <class R>
R python_result(R x) {
  return x;
}
inline std::pair<Tensor, Tensor> python_result(ValuesAndPositions x) {
  return {std::move(x.values), std::move(x.positions)};
}

/// A method of Tensor, or a function of one, as a function of what comes before its call site.
template <class R, class... A>
auto plain(R (Tensor::*m)(A...) const) {
  const auto call = [m](const Tensor& x, auto&&... args) -> Tensor {
    return (x.*m)(std::forward<decltype(args)>(args)..., CallSite());
  };
  return detail::taking_all_but_the_last<A...>(call, std::make_index_sequence<sizeof...(A) - 1>());
}

template <class R, class... A>
auto plain(R (*f)(const Tensor&, A...)) {
  const auto call = [f](const Tensor& x, auto&&... args) {
    return python_result(f(x, std::forward<decltype(args)>(args)..., CallSite()));
  };
  return detail::taking_all_but_the_last<A...>(call, std::make_index_sequence<sizeof...(A) - 1>());
}

}  // namespace weft::python
