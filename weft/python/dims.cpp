// Variable and Dim: sizes that are chosen per run.
#include <nanobind/operators.h>

#include <functional>

#include "weft/base/error.h"
#include "weft/graph/index_value.h"
#include "weft/python/bindings.h"

namespace weft::python {

namespace {

const Dim& size_of(const DimObject& d) { return d.dim; }
Dim size_of(const Variable& v) { return v.unbound(); }

/// The arithmetic of sizes; a result that is a number is an int.
template <class T, class F>
void operation(nb::class_<T>& c, const char* name, const char* reflected, F f) {
  const auto forward = [f](const T& a, const Dim& b) { return f(size_of(a), b); };
  const auto backward = [f](const T& a, const Dim& b) { return f(b, size_of(a)); };
  c.def(name, forward, nb::is_operator());
  c.def(reflected, backward, nb::is_operator());
}

template <class T>
void arithmetic(nb::class_<T>& c) {
  operation(c, "__add__", "__radd__", [](const Dim& a, const Dim& b) { return a + b; });
  operation(c, "__sub__", "__rsub__", [](const Dim& a, const Dim& b) { return a - b; });
  operation(c, "__mul__", "__rmul__", [](const Dim& a, const Dim& b) { return a * b; });
  operation(c, "__floordiv__", "__rfloordiv__", [](const Dim& a, const Dim& b) { return a / b; });
  operation(c, "__mod__", "__rmod__", [](const Dim& a, const Dim& b) { return a % b; });
  c.def("__neg__", [](const T& a) { return Dim(0) - size_of(a); });
  c.def_prop_ro("vmin", [](const T& a) { return size_of(a).min(); });
  c.def_prop_ro("vmax", [](const T& a) { return size_of(a).max(); });
  c.def("__repr__", [](const T& a) { return size_of(a).text(); });
}

/// The number behind a size; an error where a Variable has none.
int64_t number_of(const Dim& d) { return bound_value(d.node()); }

/// True or false where that is known for all values, else for those the Variables have now.
template <class Compare>
void comparison(nb::class_<DimObject>& c, const char* name, Compare compare) {
  c.def(
      name,
      [compare](const DimObject& a, const Dim& b) {
        const Dim difference = a.dim - b;
        const bool least = compare(difference.min(), 0), most = compare(difference.max(), 0);
        return least == most ? least : compare(number_of(a.dim), number_of(b));
      },
      nb::is_operator());
}

/// (variable, value) of a Variable that has one.
nb::tuple unbind(const DimObject& d) {
  NodeRef n = d.dim.node();
  if (n->op != Op::Bind) fail("variable.unbind", "{} is no bound Variable", d.dim.text());
  return nb::make_tuple(Variable(n->src(0)), n->src(1)->vmin);
}

void bind_variable(nb::module_& m) {
  nb::class_<Variable> v(m, "Variable",
                         "A named size that is chosen per run: n = Variable(\"n\", 1, 10); "
                         "x.shrink(((0, n.bind(3)),)).\n"
                         "Kernels are compiled once for all values from min to max.");
  v.def(
      "__init__",
      [](Variable* self, const std::string& name, int64_t min, int64_t max, nb::handle,
         int64_t multiple_of) {
        new (self) Variable(name, min, max, multiple_of, python_call_site());
      },
      "name"_a, "min"_a, "max"_a, "dtype"_a = nb::none(), "multiple_of"_a = 1,
      "dtype, which tinygrad takes, has no effect: sizes are integers of any width.");
  arithmetic(v);
  v.def_prop_ro("expr", [](const Variable& x) { return x.unbound().text(); }, "Its name.");
  method(
      v, "bind", [](const Variable& x, int64_t value) { return x.bind(value, CallSite()); },
      "value"_a, "This size with its value; a ValueError outside of [min, max].");
  // Variables of one name and range are one, wherever they were made.
  v.def(
      "__reduce__",
      [](nb::handle self) {
        const Dim size = nb::inst_ptr<Variable>(self)->unbound();
        NodeRef n = size.node();
        return nb::make_tuple(self.type(),
                              nb::make_tuple(std::string(n->text()), n->int_arg(0), n->int_arg(1),
                                             nb::none(), n->int_arg(2)));
      },
      "Its name and range.");
}

}  // namespace

void bind_dims(nb::module_& m) {
  nb::class_<DimObject> d(m, "Dim", "A size that is an expression of bound Variables.");
  arithmetic(d);
  d.def(
      "__eq__", [](const DimObject& a, const Dim& b) { return a.dim == b; }, nb::is_operator(),
      "Provably equal.");
  d.def("__hash__", [](const DimObject& a) { return std::hash<const void*>()(a.dim.node()); });
  comparison(d, "__lt__", std::less<>());
  comparison(d, "__le__", std::less_equal<>());
  comparison(d, "__gt__", std::greater<>());
  comparison(d, "__ge__", std::greater_equal<>());
  d.def(
      "__int__", [](const DimObject& a) { return number_of(a.dim); },
      "The number that its Variables are bound to.");
  d.def_prop_ro("val", [](const DimObject& a) { return number_of(a.dim); });
  d.def("unbind", unbind, "(variable, value) of a Variable that has one.");
  bind_variable(m);
}

}  // namespace weft::python
