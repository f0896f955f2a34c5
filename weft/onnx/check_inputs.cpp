#include "weft/onnx/check_inputs.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/base/names.h"
#include "weft/onnx/summary.h"

namespace weft::onnx {

namespace {

/// Sizes by their names, so that equal names are equal sizes.
struct NamedSize {
  Dim size;
  std::string input;
};
using NamedSizes = std::map<std::string, NamedSize>;

void check_shape(const DeclaredValue& declared, const Value& given, NamedSizes& sizes) {
  const std::vector<DeclaredDim>& shape = *declared.type.shape;
  const Dims dims = given.dims();
  bool fits = dims.size() == shape.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = !shape[i].size || !dims[i].is_static() || dims[i].value() == *shape[i].size;
  if (!fits)
    fail("onnx.input", "the input {} has shape {} and the model declares {}",
         quoted_name(declared.name), dims.text(), text(declared.type));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i].size || shape[i].name.empty()) continue;
    const auto [known, added] = sizes.emplace(shape[i].name, NamedSize{dims[i], declared.name});
    const Dim& other = known->second.size;
    if (!added && other.is_static() && dims[i].is_static() && !(other == dims[i]))
      fail("onnx.input", "the size {} is {} in the input {} and {} in the input {}",
           quoted_name(shape[i].name), other.text(), quoted_name(known->second.input),
           dims[i].text(), quoted_name(declared.name));
  }
}

void check_input(const DeclaredValue& declared, const Value& given, NamedSizes& sizes) {
  using Kind = DeclaredType::Kind;
  if (declared.type.kind != Kind::Tensor) return;  // operators look
  const bool elements = given.kind() == Value::Kind::Tensor || given.kind() == Value::Kind::Strings;
  if (!elements)
    fail("onnx.input", "the input {} is no tensor and the model declares {}",
         quoted_name(declared.name), text(declared.type));
  const ElementType type = declared.type.element;
  if (type != ElementType::Undefined && given.type() != type)
    fail_type("onnx.input", "the input {} is {} and the model declares {}; cast it",
              quoted_name(declared.name), name(given.type()), text(declared.type));
  if (declared.type.shape) check_shape(declared, given, sizes);
}

[[noreturn]] void unknown_input(const Graph& graph, const std::string& given) {
  std::vector<std::string_view> names;
  std::string all;
  for (const DeclaredValue& v : graph.inputs) {
    names.push_back(v.name);
    if (names.size() <= 20) all += (all.empty() ? "" : ", ") + quoted_name(v.name);
  }
  fail("onnx.input", "the model has no input {}{}; it has {}", quoted_name(given),
       did_you_mean(given, names), all.empty() ? "none" : all);
}

}  // namespace

bool has_initialiser(const Graph& graph, std::string_view name) {
  const auto same = [name](const auto& entry) { return entry.first == name; };
  return std::ranges::find(graph.initialisers, name, &ConstantData::name) !=
             graph.initialisers.end() ||
         std::ranges::any_of(graph.sparse_initialisers, same);
}

Values checked_inputs(const Graph& graph, const NamedValues& inputs) {
  for (const auto& [name, value] : inputs)
    if (std::ranges::find(graph.inputs, name, &DeclaredValue::name) == graph.inputs.end())
      unknown_input(graph, name);
  Values values;
  NamedSizes sizes;
  for (const DeclaredValue& declared : graph.inputs) {
    const auto given = inputs.find(declared.name);
    const bool missing = given == inputs.end() || !given->second;
    const bool optional = declared.type.kind == DeclaredType::Kind::Optional;
    if (missing && !optional && !has_initialiser(graph, declared.name))
      fail("onnx.input", "the input {} is missing; the model declares {}",
           quoted_name(declared.name), text(declared.type));
    if (missing) {
      values.push_back(optional ? Value::optional({}) : Value());
      continue;
    }
    check_input(declared, given->second, sizes);
    values.push_back(given->second);
  }
  return values;
}

}  // namespace weft::onnx
