// The table of operations behind weft_apply(): a row is a name, its parameters and a C++ function,
// whose types say the rest.
#pragma once

#include <functional>
#include <span>
#include <tuple>
#include <utility>

#include "weft/c/arguments.h"
#include "weft/tensor/reductions.h"

namespace weft::c {

using Results = std::vector<Tensor>;

struct Function {
  const char* name;
  const char* parameters;  // parse_parameters()
  const char* doc;
  std::vector<std::string_view> (*types)();
  std::string_view results;  // "tensor", "(tensor, tensor)", "tensors"
  Results (*call)(const std::vector<Argument>&);
};

/// One row with what its text says.
struct Operation {
  const Function* function;
  std::vector<Parameter> parameters;
  std::string signature;  // "softmax(x: tensor, axis: int = -1) -> tensor"
};
/// All of them, by name; made once.
const std::vector<Operation>& operations();
/// An Error that names a near one where there is none.
const Operation& find_operation(std::string_view name);

// ---- the families, one file each
std::span<const Function> elementwise_functions();
std::span<const Function> creation_functions();
std::span<const Function> movement_functions();
std::span<const Function> reduction_functions();
std::span<const Function> network_functions();
std::span<const Function> algebra_functions();

// ---- from a C++ function to a row

template <class F>
struct Signature : Signature<decltype(+std::declval<F>())> {};
template <class R, class... A>
struct Signature<R (*)(A...)> {
  using Result = R;
  using Types = std::tuple<A...>;
};
template <class R, class... A>
struct Signature<R (Tensor::*)(A...) const> {
  using Result = R;
  using Types = std::tuple<const Tensor&, A...>;
};

template <class T>
constexpr bool kIsSite = std::is_same_v<std::remove_cvref_t<T>, CallSite>;

template <class... A>
std::vector<std::string_view> type_names(std::tuple<A...>*) {
  std::vector<std::string_view> names;
  const auto add = [&]<class T>(std::type_identity<T>) {
    if constexpr (!kIsSite<T>) names.push_back(Taken<std::remove_cvref_t<T>>::kName);
  };
  (add(std::type_identity<A>()), ...);
  return names;
}

template <class T>
decltype(auto) taken(const std::vector<Argument>& in, size_t i) {
  if constexpr (kIsSite<T>) {
    return CallSite();  // weft_call_site()'s is in force
  } else {
    return Taken<std::remove_cvref_t<T>>::of(in[i]);
  }
}

/// What a function gives as a list.
template <class R>
struct Listed {
  static Results of(R x) { return x; }
};
template <>
struct Listed<Tensor> {
  static Results of(Tensor x) { return {std::move(x)}; }
};
template <>
struct Listed<std::pair<Tensor, Tensor>> {
  static Results of(std::pair<Tensor, Tensor> x) {
    return {std::move(x.first), std::move(x.second)};
  }
};
template <>
struct Listed<ValuesAndPositions> {
  static Results of(ValuesAndPositions x) { return {std::move(x.values), std::move(x.positions)}; }
};
template <class R>
constexpr std::string_view result_name() {
  if (std::is_same_v<R, Tensor>) return "tensor";
  return std::is_same_v<R, std::pair<Tensor, Tensor>> ? "(tensor, tensor)" : "tensors";
}

template <auto F, class... A, size_t... I>
Results call_with(const std::vector<Argument>& in, std::tuple<A...>*, std::index_sequence<I...>) {
  using R = decltype(std::invoke(F, taken<A>(in, I)...));
  return Listed<std::remove_cvref_t<R>>::of(std::invoke(F, taken<A>(in, I)...));
}

template <auto F>
constexpr Function row(const char* name, const char* parameters, const char* doc = "") {
  using S = Signature<decltype(F)>;
  using Types = typename S::Types;
  return {name,
          parameters,
          doc,
          [] { return type_names(static_cast<Types*>(nullptr)); },
          result_name<typename S::Result>(),
          [](const std::vector<Argument>& in) {
            return call_with<F>(in, static_cast<Types*>(nullptr),
                                std::make_index_sequence<std::tuple_size_v<Types>>());
          }};
}

/// One of several methods of a name: Method<Tensor, const Axes&, bool>(&Tensor::sum).
template <class R, class... A>
using Method = R (Tensor::*)(A..., CallSite) const;

}  // namespace weft::c
