#include "weft/c/functions.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"

namespace weft::c {

namespace {

std::string signature_of(const Function& f, const std::vector<Parameter>& parameters) {
  std::string text = strformat("{}(", f.name);
  for (const Parameter& p : parameters) {
    append_format(text, "{}{}: {}", &p == parameters.data() ? "" : ", ", p.name, p.type);
    if (p.has_default) append_format(text, " = {}", p.default_text);
  }
  append_format(text, ") -> {}", f.results);
  return text;
}

std::vector<Operation> make_operations() {
  std::vector<Operation> all;
  for (const auto family : {elementwise_functions(), creation_functions(), movement_functions(),
                            reduction_functions(), network_functions(), algebra_functions()}) {
    for (const Function& f : family) {
      std::vector<Parameter> parameters = parse_parameters(f.parameters, f.types());
      std::string signature = signature_of(f, parameters);
      all.push_back({&f, std::move(parameters), std::move(signature)});
    }
  }
  std::sort(all.begin(), all.end(), [](const Operation& a, const Operation& b) {
    return std::string_view(a.function->name) < b.function->name;
  });
  return all;
}

}  // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> all = make_operations();
  return all;
}

const Operation& find_operation(std::string_view name) {
  const std::vector<Operation>& all = operations();
  const auto at =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const Operation& o, std::string_view n) { return o.function->name < n; });
  if (at != all.end() && at->function->name == name) return *at;
  std::vector<std::string_view> names;
  for (const Operation& o : all) names.push_back(o.function->name);
  fail("apply.name", "there is no operation \"{}\"{}", name, did_you_mean(name, names));
}

}  // namespace weft::c
