// From tagged values to the arguments of a C++ function: parameters by order and name, their
// defaults, and one conversion per C++ type.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/c/handles.h"

namespace weft::c {

/// A constant of a table of functions, with what it points to.
struct Constant {
  weft_value value{};  // WEFT_NONE: missing
  std::vector<int64_t> ints;
  std::vector<double> floats;
  std::string text;
};

struct Parameter {
  std::string name;
  std::string_view type;  // "tensor", "none|mean|sum"
  bool has_default = false;
  std::string default_text;
  std::unique_ptr<Constant> initial;  // the default
};

/// "x, axes = [], reduction = mean": names and defaults as C++ or we write them; types[i] is what
/// the i-th takes. A mistake in it is an InternalError.
std::vector<Parameter> parse_parameters(std::string_view text,
                                        const std::vector<std::string_view>& types);

/// The value of one parameter in one call.
class Argument {
 public:
  Argument(const char* function, const Parameter& parameter)
      : function_(function), parameter_(&parameter), value_(parameter.initial->value) {}

  void give(const weft_value& value, std::shared_ptr<ContextObject>& owner);
  bool given() const { return given_; }
  bool is_none() const { return value_.kind == WEFT_NONE; }
  bool is_number() const;

  const Tensor& tensor() const;  // an empty one where there is none, if that is the default
  const std::vector<Tensor>& tensors() const;
  bool boolean() const;
  int64_t integer() const;
  double number() const;
  Scalar scalar() const;
  DType dtype() const;
  std::string_view text() const;
  std::vector<int64_t> ints() const;  // one number is a list of one
  std::vector<double> floats() const;
  /// The place of the text in "none|mean|sum".
  size_t choice() const;

 private:
  [[noreturn]] void refuse_kind() const;

  const char* function_;
  const Parameter* parameter_;
  weft_value value_;
  bool given_ = false;
  Tensor tensor_;
  std::vector<Tensor> tensors_;
};

/// Values in the order of the parameters; Errors for those that are missing, too many, unknown or
/// given twice, with the function's signature.
std::vector<Argument> bind_arguments(const char* function, const std::string& signature,
                                     const std::vector<Parameter>& parameters,
                                     const weft_value* values, size_t count,
                                     std::shared_ptr<ContextObject>& owner);

// ---- one row per C++ type: what it is called, and how an Argument becomes it

template <class T>
struct Taken;

#define WEFT_TAKEN(T, name, expression)                                \
  template <>                                                          \
  struct Taken<T> {                                                    \
    static constexpr std::string_view kName = name;                    \
    static decltype(auto) of(const Argument& a) { return expression; } \
  };
WEFT_TAKEN(Tensor, "tensor", (a.tensor()))
WEFT_TAKEN(std::vector<Tensor>, "tensors", (a.tensors()))
WEFT_TAKEN(Operand, "tensor or number",
           (a.is_number() ? Operand(a.scalar(), CallSite()) : Operand(a.tensor(), CallSite())))
WEFT_TAKEN(bool, "bool", a.boolean())
WEFT_TAKEN(int64_t, "int", a.integer())
WEFT_TAKEN(double, "float", a.number())
WEFT_TAKEN(Scalar, "number", a.scalar())
WEFT_TAKEN(DType, "dtype", a.dtype())
WEFT_TAKEN(std::string_view, "text", a.text())
WEFT_TAKEN(Dim, "int", Dim(a.integer()))
WEFT_TAKEN(Dims, "ints", Dims(a.ints()))
WEFT_TAKEN(Ints, "ints", Ints(a.ints()))
WEFT_TAKEN(std::vector<int64_t>, "ints", a.ints())
WEFT_TAKEN(std::vector<double>, "floats", a.floats())
#undef WEFT_TAKEN

template <class T>
struct Taken<std::optional<T>> {
  static constexpr std::string_view kName = Taken<T>::kName;
  static std::optional<T> of(const Argument& a) {
    if (a.is_none()) return std::nullopt;
    return Taken<T>::of(a);
  }
};
/// (before, after) of every axis as one list.
template <>
struct Taken<std::vector<DimPair>> {
  static constexpr std::string_view kName = "ints";
  static std::vector<DimPair> of(const Argument& a);
};

/// The names of an enum's values, in order.
#define WEFT_CHOICE(Enum, names)                                                \
  template <>                                                                   \
  struct Taken<Enum> {                                                          \
    static constexpr std::string_view kName = names;                            \
    static Enum of(const Argument& a) { return static_cast<Enum>(a.choice()); } \
  };
WEFT_CHOICE(Reduction, "none|mean|sum")
WEFT_CHOICE(Rounding, "none|trunc|floor")
WEFT_CHOICE(Fold, "set|add|mul|max|min|and|or")

}  // namespace weft::c
