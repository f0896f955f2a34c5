// weft.explain_passes(): what the compiler does with tensors.
#include "weft/tensor/passes.h"

#include "weft/python/bindings.h"

namespace weft::python {
namespace {

double micros(const PassRecord& p) { return static_cast<double>(p.ns) / 1e3; }

std::string shown(const PassRecord& p) {
  const nb::str text = nb::str("<{} of {}: {} -> {}, {} rules, {:.1f} us>");
  return nb::cast<std::string>(
      text.format(p.pass, p.subject, p.before.size, p.after.size, p.firings, micros(p)));
}

}  // namespace

void bind_passes(nb::module_& m) {
  nb::class_<PassRecord>(m, "PassRecord", "What one step of the compiler did to one thing.")
      .def_prop_ro(
          "name", [](const PassRecord& p) { return p.pass; }, "Stage and step.")
      .def_ro("subject", &PassRecord::subject, "The kernel, or what else was compiled.")
      .def_prop_ro("us", micros, "Microseconds.")
      .def_prop_ro(
          "size_before", [](const PassRecord& p) { return p.before.size; },
          "Nodes or instructions.")
      .def_prop_ro("size_after", [](const PassRecord& p) { return p.after.size; })
      .def_prop_ro("changed", &PassRecord::changed)
      .def_ro("rules", &PassRecord::firings, "How many rewrite rules fired.")
      .def_ro("before", &PassRecord::text_before, "The graph, where texts were asked for.")
      .def_ro("after", &PassRecord::text_after)
      .def("__repr__", shown);
  m.def(
      "explain_passes",
      [](const nb::args& given, bool texts) {
        std::vector<Tensor> tensors;
        for (nb::handle x : given) tensors.push_back(nb::cast<Tensor>(x));
        const SiteWithoutGil scope;
        return explain_passes(tensors, texts);
      },
      "tensors"_a, "texts"_a = false,
      nb::sig("def explain_passes(*tensors: Tensor, texts: bool = False) -> list[PassRecord]"),
      "Every step that realize() of these would take from values to code, with its time, sizes and "
      "fired rules, and the graphs before and after it where `texts` are asked for. Nothing is "
      "computed or cached; what is in memory already takes no step.");
}

}  // namespace weft::python
