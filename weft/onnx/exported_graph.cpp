#include "weft/onnx/exported_graph.h"

#include <cstring>

#include "weft/base/format.h"
#include "weft/dtype/value.h"

namespace weft::onnx {

namespace {

constexpr size_t kSharedBytes = 4096;  // of constants that are compared with others

Attribute attribute_of(std::string name, Attribute::Type type) {
  Attribute a;
  a.name = std::move(name);
  a.type = type;
  return a;
}

/// One element as it lies in memory.
std::vector<std::byte> bytes_of(weft::Value value) {
  std::vector<std::byte> bytes(static_cast<size_t>(bits(value.dtype()) + 7) / 8);
  value.store(bytes.data());
  return bytes;
}

std::string key_of(const HostArray& array) {
  std::string key = strformat("{} {}:", static_cast<int>(array.dtype), shape_text(array.shape));
  return key.append(reinterpret_cast<const char*>(array.bytes.data()), array.bytes.size());
}

/// "ReduceMean" as "reduce_mean".
std::string lower(std::string_view op) {
  std::string out;
  for (const char c : op) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper && !out.empty() && out.back() >= 'a' && out.back() <= 'z') out += '_';
    out += upper ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

Attribute attribute(std::string name, int64_t value) {
  Attribute a = attribute_of(std::move(name), Attribute::Type::Int);
  a.integer = value;
  return a;
}
Attribute attribute(std::string name, double value) {
  Attribute a = attribute_of(std::move(name), Attribute::Type::Float);
  a.number = value;
  return a;
}
Attribute attribute(std::string name, const char* value) {
  Attribute a = attribute_of(std::move(name), Attribute::Type::String);
  a.text = value;
  return a;
}
Attribute attribute(std::string name, std::vector<int64_t> values) {
  Attribute a = attribute_of(std::move(name), Attribute::Type::Ints);
  a.integers = std::move(values);
  return a;
}
Attribute attribute(std::string name, Graph value) {
  Attribute a = attribute_of(std::move(name), Attribute::Type::Graph);
  a.graphs.push_back(std::make_shared<const Graph>(std::move(value)));
  return a;
}

struct ExportedGraph::Shared {
  std::unordered_map<std::string, size_t> names;         // how often each was asked for
  std::unordered_map<std::string, size_t> places;        // of constants in the outermost graph
  std::unordered_map<std::string, std::string> numbers;  // small constants by what they are
};

ExportedGraph::ExportedGraph() : shared_(std::make_shared<Shared>()) {}
ExportedGraph::ExportedGraph(ExportedGraph& outer) : outer_(&outer), shared_(outer.shared_) {}

std::string ExportedGraph::fresh(std::string name) {
  while (true) {
    const size_t before = shared_->names[name]++;
    if (before == 0) return name;
    name += strformat("_{}", before);
  }
}

Names ExportedGraph::nodes(const std::string& op, Names inputs, size_t outputs,
                           std::vector<Attribute> attributes) {
  Node n;
  n.op = op;
  n.inputs = std::move(inputs);
  n.attributes = std::move(attributes);
  for (size_t i = 0; i < outputs; ++i) n.outputs.push_back(fresh(lower(op)));
  n.name = n.outputs[0];
  graph_.nodes.push_back(std::move(n));
  return graph_.nodes.back().outputs;
}

std::string ExportedGraph::constant(HostArray array, std::string name) {
  const bool shared = array.bytes.size() <= kSharedBytes && name == "constant";
  std::string* known = shared ? &shared_->numbers[key_of(array)] : nullptr;
  if (known && !known->empty()) return *known;
  const std::string own = unfilled(std::move(name), array.dtype);
  if (known) *known = own;
  fill(own, std::move(array));
  return own;
}

std::string ExportedGraph::unfilled(std::string name, DType dtype) {
  ConstantData data;
  data.name = fresh(std::move(name));
  data.type = element_type_of(dtype);
  std::vector<ConstantData>& all = outermost().graph_.initialisers;
  shared_->places[data.name] = all.size();
  all.push_back(std::move(data));
  return all.back().name;
}

void ExportedGraph::fill(const std::string& name, HostArray array) {
  ConstantData& data = outermost().graph_.initialisers[shared_->places.at(name)];
  data.shape = array.shape;
  data.array = std::move(array);
}

std::string ExportedGraph::number(weft::Value value) {
  return constant(HostArray::owned(value.dtype(), {}, bytes_of(value)));
}

std::string ExportedGraph::ones(DType dtype, const std::vector<int64_t>& shape) {
  const std::vector<std::byte> one = bytes_of(weft::Value::of(dtype, 1.0));
  std::vector<std::byte> bytes;
  const HostArray about{dtype, shape, {}, nullptr};
  for (int64_t i = 0; i < about.numel(); ++i) bytes.insert(bytes.end(), one.begin(), one.end());
  return constant(HostArray::owned(dtype, shape, std::move(bytes)));
}

std::string ExportedGraph::integers(const std::vector<int64_t>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return constant(HostArray::owned(DType::I64, {static_cast<int64_t>(values.size())},
                                   {bytes.begin(), bytes.end()}));
}

}  // namespace weft::onnx
