// Kernels of the user's own, written in Python: KernelWriter and its numbers.
#include "weft/tensor/custom_kernel.h"

#include <nanobind/operators.h>

#include "weft/base/error.h"
#include "weft/python/gradient.h"

namespace weft::python {

namespace {

/// A number of the kernel, or one of Python's.
KernelOperand operand(nb::handle x) {
  if (nb::isinstance<KernelNumber>(x)) return nb::cast<KernelNumber&>(x);
  if (nb::isinstance<nb::bool_>(x)) return nb::cast<bool>(x);
  if (nb::isinstance<nb::int_>(x)) return nb::cast<int64_t>(x);
  if (nb::isinstance<nb::float_>(x)) return nb::cast<double>(x);
  fail_type("custom_kernel", "a number of the kernel or of Python is needed, not {}",
            nb::cast<std::string>(nb::repr(x.type())));
}

std::vector<KernelOperand> operands(nb::handle list) {
  std::vector<KernelOperand> out;
  if (!nb::isinstance<nb::tuple>(list) && !nb::isinstance<nb::list>(list)) return {operand(list)};
  for (nb::handle x : list) out.push_back(operand(x));
  return out;
}

Fold fold_named(const std::string& name) {
  for (const Fold f : {Fold::Set, Fold::Add, Fold::Mul, Fold::Max, Fold::Min, Fold::And, Fold::Or})
    if (fold_name(f) == name) return f;
  fail("custom_kernel", "there is no fold \"{}\": use set, add, mul, max, min, and, or", name);
}

Op op_named(const std::string& name) {
  for (const OpInfo& row : kOps)
    if (row.mnemonic == name) return row.op;
  fail("custom_kernel", "there is no op \"{}\": docs/ops.md lists them", name);
}

void bind_number(nb::module_& m) {
  nb::class_<KernelNumber> c(m, "KernelNumber", "A number of a kernel that is being written.");
  const auto binary = [&c](const char* name, const char* reflected, auto f) {
    c.def(name, [f](const KernelNumber& a, nb::handle b) { return f(a, operand(b)); });
    if (reflected)
      c.def(reflected, [f](const KernelNumber& a, nb::handle b) { return f(operand(b), a); });
  };
  using Operand = const KernelOperand&;
  binary("__add__", "__radd__", [](Operand a, Operand b) { return a + b; });
  binary("__sub__", "__rsub__", [](Operand a, Operand b) { return a - b; });
  binary("__mul__", "__rmul__", [](Operand a, Operand b) { return a * b; });
  binary("__truediv__", "__rtruediv__", [](Operand a, Operand b) { return a / b; });
  binary("__floordiv__", "__rfloordiv__", [](Operand a, Operand b) { return a / b; });
  binary("__mod__", "__rmod__", [](Operand a, Operand b) { return a % b; });
  binary("__and__", "__rand__", [](Operand a, Operand b) { return a & b; });
  binary("__or__", "__ror__", [](Operand a, Operand b) { return a | b; });
  binary("__xor__", "__rxor__", [](Operand a, Operand b) { return a ^ b; });
  binary("__lt__", nullptr, [](Operand a, Operand b) { return a < b; });
  binary("__le__", nullptr, [](Operand a, Operand b) { return a <= b; });
  binary("__gt__", nullptr, [](Operand a, Operand b) { return a > b; });
  binary("__ge__", nullptr, [](Operand a, Operand b) { return a >= b; });
  binary("__eq__", nullptr, [](Operand a, Operand b) { return a == b; });
  binary("__ne__", nullptr, [](Operand a, Operand b) { return a != b; });
  binary("maximum", nullptr, [](Operand a, Operand b) { return maximum(a, b); });
  binary("minimum", nullptr, [](Operand a, Operand b) { return minimum(a, b); });
  c.def("__neg__", [](const KernelNumber& x) { return -x; });
  c.def("__invert__", [](const KernelNumber& x) { return ~x; });
  c.def("exp", [](const KernelNumber& x) { return exp(x); });
  c.def("log", [](const KernelNumber& x) { return log(x); });
  c.def("sin", [](const KernelNumber& x) { return sin(x); });
  c.def("sqrt", [](const KernelNumber& x) { return sqrt(x); });
  c.def("cast", &KernelNumber::cast, "dtype"_a);
  c.def_prop_ro("dtype", &KernelNumber::dtype);
  c.def("__bool__", [](const KernelNumber&) -> bool {
    fail_type("custom_kernel", "a kernel's number has no value while it is written: use where()");
  });
}

void bind_writer(nb::module_& m) {
  nb::class_<KernelWriter> c(m, "KernelWriter", "Writes one kernel: loops, loads, folds, stores.");
  c.def("range", &KernelWriter::range, "size"_a,
        "0, 1, ... size - 1; loops nest as they are made.");
  c.def(
      "load",
      [](KernelWriter& k, size_t input, nb::handle position) {
        return k.load(input, operands(position));
      },
      "input"_a, "position"_a, "The element at a position for every axis; outside of it 0.");
  c.def(
      "store",
      [](KernelWriter& k, size_t output, nb::handle position, nb::handle value,
         const std::string& combine, nb::handle when) {
        if (when.is_none())
          return k.store(output, operands(position), operand(value), fold_named(combine));
        k.store_if(nb::cast<KernelNumber&>(when), output, operands(position), operand(value),
                   fold_named(combine));
      },
      "output"_a, "position"_a, "value"_a, "combine"_a = "set", "when"_a = nb::none(),
      "Writes an element, or folds it into what is there; nothing where `when` is false.");
  c.def(
      "reduce",
      [](KernelWriter& k, const std::string& fold, nb::handle value,
         const std::vector<KernelNumber>& ranges) {
        return k.reduce(fold_named(fold), nb::cast<KernelNumber&>(value), ranges);
      },
      "fold"_a, "value"_a, "ranges"_a, "value folded over these ranges.");
  c.def(
      "sum",
      [](KernelWriter& k, const KernelNumber& value, const std::vector<KernelNumber>& ranges) {
        return k.sum(value, ranges);
      },
      "value"_a, "ranges"_a);
  c.def("position", &KernelWriter::position, "value"_a, "size"_a,
        "A loaded integer as a position in [0, size).");
  c.def(
      "where",
      [](KernelWriter& k, const KernelNumber& condition, nb::handle a, nb::handle b) {
        return k.where(condition, operand(a), operand(b));
      },
      "condition"_a, "a"_a, "b"_a);
  c.def(
      "op",
      [](KernelWriter& k, const std::string& name, nb::args args) {
        return k.op(op_named(name), operands(args));
      },
      "Any elementwise op, by its name in docs/ops.md.");
  c.def("input_shape", &KernelWriter::input_shape, "input"_a);
  c.def("output_shape", &KernelWriter::output_shape, "output"_a);
}

}  // namespace

void bind_custom_kernel(nb::module_& m) {
  bind_number(m);
  bind_writer(m);
  method(
      m, "custom_kernel",
      [](const std::string& name, const Tensors& inputs,
         const std::vector<std::pair<Dims, DType>>& outputs,
         const std::function<void(nb::object)>& write,
         const std::optional<PythonGradient>& gradient) {
        std::vector<CustomOutput> made;
        for (const auto& [shape, dtype] : outputs) made.push_back({shape, dtype});
        const auto body = [&write](KernelWriter& k) {
          write(nb::cast(&k, nb::rv_policy::reference));
        };
        return custom_kernel(name, inputs, made, body,
                             gradient ? gradient_of(*gradient) : GradientFunction(), CallSite());
      },
      "name"_a, "inputs"_a, "outputs"_a, "write"_a, "gradient"_a = nb::none());
}

}  // namespace weft::python
