// How Python's objects become C++ arguments: dtypes, sizes, axes, operands.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <string>

#include "weft/tensor/tensor.h"

namespace weft::python {

/// What Python sees of a DType: one object per dtype, compared by identity.
struct DTypeObject {
  DType dtype;
};
/// What Python sees of a size that is not a number.
struct DimObject {
  Dim dim;
};

/// Where a tensor goes: the name of a device. Of several, which must share memory, the first: a
/// tensor is kept whole.
struct DeviceName {
  std::string text;
};

// All of these return false, with no exception set, for what they cannot take; they throw nothing.
bool to_dtype(PyObject* from, DType& to);  ///< a DType, "float32", float, numpy.float32 ...
PyObject* from_dtype(DType d);             ///< a new reference
[[noreturn]] void fail_dtype(nanobind::handle name);  ///< no dtype is called so
bool to_dim(PyObject* from, Dim& to);
PyObject* from_dim(const Dim& d);
bool to_device(PyObject* from, DeviceName& to);  ///< a name, or a tuple or list of them
bool to_dims(PyObject* from, Dims& to);          ///< a size or a sequence of them
PyObject* from_dims(const Dims& dims);           ///< a tuple
bool to_ints(PyObject* from, Ints& to);          ///< None gives none
/// bool, int and float; also what is larger than int64 but fits uint64.
bool to_scalar(PyObject* from, std::optional<Scalar>& to);
/// The Tensor in an object that is one, else null.
Tensor* tensor_in(PyObject* from);
/// a / b, of integers in the default float.
Tensor quotient(const Operand& a, const Operand& b);
/// A size as a number of default_int.
Tensor tensor_of_size(const Dim& size);
/// An operand; `own` holds the tensor where one was made, of a NumPy array for instance.
bool to_operand(PyObject* from, Tensor& own, std::optional<Operand>& to);

/// An operand with what it refers to; nothing for None. Python's TypeError for what is none.
struct HeldOperand {
  explicit HeldOperand(nanobind::handle from);
  HeldOperand(const HeldOperand&) = delete;
  HeldOperand& operator=(const HeldOperand&) = delete;

  Tensor own;
  std::optional<Operand> operand;
};

}  // namespace weft::python

namespace nanobind::detail {

/// The form that all casters here have.
#define WEFT_CASTER(Type, python_name, to, from)                                     \
  template <>                                                                        \
  struct type_caster<weft::Type> {                                                   \
    NB_TYPE_CASTER(weft::Type, python_name)                                          \
    bool from_python(handle src, uint32_t, cleanup_list*) noexcept {                 \
      return weft::python::to(src.ptr(), value);                                     \
    }                                                                                \
    static handle from_cpp(const weft::Type& x, rv_policy, cleanup_list*) noexcept { \
      return weft::python::from(x);                                                  \
    }                                                                                \
  }

template <>
struct type_caster<weft::python::DeviceName> {
  NB_TYPE_CASTER(weft::python::DeviceName, const_name("str | Sequence[str]"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return weft::python::to_device(src.ptr(), value);
  }
};

/// A name that no dtype has is taken, and is an error where the argument is used: as Python says of
/// dtypes.typo, and not that the function was called wrongly.
template <class Given>
struct dtype_caster {
  using Value = Given;
  template <typename T_>
  using Cast = movable_cast_t<T_>;
  template <typename T_>
  static constexpr bool can_cast() {
    return true;
  }
  explicit operator Value*() { return &known(); }
  explicit operator Value&() { return known(); }
  explicit operator Value&&() { return std::move(known()); }
  Value& known() {
    if (unknown.is_valid()) weft::python::fail_dtype(unknown);
    return value;
  }
  bool take(handle src) noexcept {
    weft::DType found;
    if (weft::python::to_dtype(src.ptr(), found)) return value = found, true;
    if (!PyUnicode_Check(src.ptr()) && !PyTuple_Check(src.ptr())) return false;
    return unknown = src, true;
  }
  Value value{};
  handle unknown;
};

template <>
struct type_caster<weft::DType> : dtype_caster<weft::DType> {
  static constexpr auto Name = io_name("DType | str | type", "DType");
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept { return take(src); }
  static handle from_cpp(const weft::DType& x, rv_policy, cleanup_list*) noexcept {
    return weft::python::from_dtype(x);
  }
};

template <>
struct type_caster<std::optional<weft::DType>> : dtype_caster<std::optional<weft::DType>> {
  static constexpr auto Name = io_name("DType | str | type | None", "DType | None");
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return src.is_none() || take(src);
  }
};

WEFT_CASTER(Dim, const_name("int | Dim"), to_dim, from_dim);
WEFT_CASTER(Dims, io_name("int | Dim | Sequence[int | Dim]", "tuple[int | Dim, ...]"), to_dims,
            from_dims);
#undef WEFT_CASTER

template <>
struct type_caster<weft::Ints> {
  NB_TYPE_CASTER(weft::Ints, const_name("int | Sequence[int] | None"))
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return weft::python::to_ints(src.ptr(), value);
  }
};

/// What has no default value of its own is kept in an optional.
#define WEFT_HELD(Type)                                     \
  using Value = weft::Type;                                 \
  template <typename T_>                                    \
  using Cast = movable_cast_t<T_>;                          \
  template <typename T_>                                    \
  static constexpr bool can_cast() {                        \
    return true;                                            \
  }                                                         \
  explicit operator Value*() { return &*value; }            \
  explicit operator Value&() { return *value; }             \
  explicit operator Value&&() { return std::move(*value); } \
  std::optional<Value> value

template <>
struct type_caster<weft::Scalar> {
  static constexpr auto Name = const_name("float | int | bool");
  WEFT_HELD(Scalar);
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return weft::python::to_scalar(src.ptr(), value);
  }
};

template <>
struct type_caster<weft::Operand> {
  static constexpr auto Name = const_name("Tensor | float | int | bool");
  WEFT_HELD(Operand);
  weft::Tensor own;
  bool from_python(handle src, uint32_t, cleanup_list*) noexcept {
    return weft::python::to_operand(src.ptr(), own, value);
  }
};
#undef WEFT_HELD

}  // namespace nanobind::detail
