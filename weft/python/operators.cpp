// The operators of Python: arithmetic, comparison, in place.
#include <cmath>
#include <functional>

#include "weft/python/bindings.h"
#include "weft/python/data.h"

namespace weft::python {

namespace {

using Binary = Tensor (*)(const Operand&, const Operand&);

/// The C++ operator, of which one operand is a tensor.
template <class Op>
Tensor apply(const Operand& a, const Operand& b) {
  return a.tensor() ? Op()(*a.tensor(), b) : Op()(a, *b.tensor());
}
using ShiftLeft = decltype([](const auto& a, const auto& b) { return a << b; });
using ShiftRight = decltype([](const auto& a, const auto& b) { return a >> b; });

/// A number on the left takes the tensor's dtype where its kind allows.
Tensor weak_left(const Operand& a, const Tensor& b) {
  if (a.tensor()) return *a.tensor();
  const DType dtype = promote_weak(b.dtype(), a.scalar());
  return Tensor::full({}, a.scalar(), dtype, CallSite());
}

}  // namespace

Tensor quotient(const Operand& a, const Operand& b) {
  const auto whole = [](const Operand& x) {
    return x.tensor() ? !is_float(x.tensor()->dtype()) : !x.scalar().is_float();
  };
  const DType floats = default_dtypes().floats;
  if (floats == kDefaultFloat || !whole(a) || !whole(b)) return apply<std::divides<>>(a, b);
  return a.tensor() ? a.tensor()->cast(floats, CallSite()) / b
                    : a / b.tensor()->cast(floats, CallSite());
}

namespace {

Tensor floor_divide(const Operand& a, const Operand& b) {
  return a.tensor() ? a.tensor()->floor_div(b, CallSite())
                    : weak_left(a, *b.tensor()).floor_div(b, CallSite());
}
Tensor power(const Operand& a, const Operand& b) {
  return a.tensor() ? a.tensor()->pow(b, CallSite()) : weak_left(a, *b.tensor()).pow(b, CallSite());
}
Tensor matrix_product(const Operand& a, const Operand& b) {
  if (!a.tensor() || !b.tensor()) throw nb::type_error("@ takes two tensors: use * for numbers");
  return a.tensor()->matmul(*b.tensor(), CallSite());
}

struct Operator {
  const char *name, *reflected, *in_place;
  Binary call;
};
constexpr Operator kArithmetic[] = {
    {"__add__", "__radd__", "__iadd__", apply<std::plus<>>},
    {"__sub__", "__rsub__", "__isub__", apply<std::minus<>>},
    {"__mul__", "__rmul__", "__imul__", apply<std::multiplies<>>},
    {"__truediv__", "__rtruediv__", "__itruediv__", quotient},
    {"__mod__", "__rmod__", "__imod__", apply<std::modulus<>>},
    {"__and__", "__rand__", "__iand__", apply<std::bit_and<>>},
    {"__or__", "__ror__", "__ior__", apply<std::bit_or<>>},
    {"__xor__", "__rxor__", "__ixor__", apply<std::bit_xor<>>},
    {"__lshift__", "__rlshift__", "__ilshift__", apply<ShiftLeft>},
    {"__rshift__", "__rrshift__", "__irshift__", apply<ShiftRight>},
    {"__floordiv__", "__rfloordiv__", "__ifloordiv__", floor_divide},
    {"__pow__", "__rpow__", "__ipow__", power},
    {"__matmul__", "__rmatmul__", "__imatmul__", matrix_product},
};

struct Comparison {
  const char* name;
  const char* alias;  // the method
  Binary call;
};
constexpr Comparison kComparisons[] = {
    {"__lt__", "lt", apply<std::less<>>},     {"__le__", "le", apply<std::less_equal<>>},
    {"__gt__", "gt", apply<std::greater<>>},  {"__ge__", "ge", apply<std::greater_equal<>>},
    {"__eq__", "eq", apply<std::equal_to<>>}, {"__ne__", "ne", apply<std::not_equal_to<>>},
};

struct Named {
  const char* name;
  Binary call;
  const char* doc;
};
constexpr Named kNamed[] = {
    {"add", kArithmetic[0].call, "x + other"},
    {"sub", kArithmetic[1].call, "x - other"},
    {"mul", kArithmetic[2].call, "x * other"},
    {"mod", kArithmetic[4].call, "x % other: the sign of other"},
    {"bitwise_and", kArithmetic[5].call, "x & other"},
    {"bitwise_or", kArithmetic[6].call, "x | other"},
    {"bitwise_xor", kArithmetic[7].call, "x ^ other"},
    {"lshift", kArithmetic[8].call, "x << other"},
    {"rshift", kArithmetic[9].call, "x >> other"},
    {"pow", power, "x ** other; integers give integers, rounded"},
};

void bind_arithmetic(TensorClass& c) {
  for (const Operator& op : kArithmetic) {
    const Binary call = op.call;
    const auto forward = [call](const Tensor& a, const Operand& b) {
      return call(Operand(a, CallSite()), b);
    };
    const auto backward = [call](const Tensor& a, const Operand& b) {
      return call(b, Operand(a, CallSite()));
    };
    const auto in_place = [call](TensorObject self, const Operand& b) {
      Tensor& a = tensor_of(self);
      a.assign(Operand(call(Operand(a, CallSite()), b), CallSite()), CallSite());
      return nb::borrow(self);
    };
    method(c, op.name, forward, nb::is_operator());
    method(c, op.reflected, backward, nb::is_operator());
    method(c, op.in_place, in_place, nb::is_operator());
  }
}

void bind_divmod(TensorClass& c) {
  method(
      c, "__divmod__",
      [](const Tensor& x, const Operand& y) {
        const Operand self(x, CallSite());
        return std::pair(floor_divide(self, y), apply<std::modulus<>>(self, y));
      },
      nb::is_operator());
  method(
      c, "__rdivmod__",
      [](const Tensor& x, const Operand& y) {
        const Operand self(x, CallSite());
        return std::pair(floor_divide(y, self), apply<std::modulus<>>(y, self));
      },
      nb::is_operator());
  method(
      c, "__round__",
      [](const Tensor& x, int64_t digits) {
        if (digits == 0 || (!is_float(x.dtype()) && digits > 0)) return x.round(CallSite());
        const double unit = std::pow(10.0, static_cast<double>(digits));
        return ((x * unit).round(CallSite()) / unit).cast(x.dtype());
      },
      "ndigits"_a = 0);
}

}  // namespace

void bind_operators(TensorClass& c) {
  bind_arithmetic(c);
  for (const Comparison& op : kComparisons) {
    const Binary call = op.call;
    const auto compare = [call](const Tensor& a, const Operand& b) {
      return call(Operand(a, CallSite()), b);
    };
    method(c, op.name, compare, nb::is_operator());
    method(c, op.alias, compare, "x"_a,
           "Element by element, as a bool Tensor; False with NaN (ne: True).");
  }
  for (const Named& op : kNamed) {
    const Binary call = op.call;
    method(
        c, op.name,
        [call](const Tensor& a, const Operand& b, bool reverse) {
          return reverse ? call(b, Operand(a, CallSite())) : call(Operand(a, CallSite()), b);
        },
        "x"_a, "reverse"_a = false, op.doc);
  }
  method(c, "__neg__", [](const Tensor& x) { return -x; });
  method(c, "__pos__", [](const Tensor& x) { return x; });
  method(c, "__invert__", [](const Tensor& x) { return ~x; });
  method(c, "__abs__", [](const Tensor& x) { return x.abs(CallSite()); });
  bind_divmod(c);
  c.def("__hash__", [](nb::handle self) { return reinterpret_cast<Py_ssize_t>(self.ptr()) >> 4; });
}

}  // namespace weft::python
