#include <algorithm>

#include "weft/base/error.h"
#include "weft/onnx/read_parts.h"

namespace weft::onnx {

namespace {

Graph read_graph(WireReader m, Source& source);

std::string domain_name(std::string_view domain) {
  return domain == "ai.onnx" ? "" : std::string(domain);
}

std::string bytes_text(const WireReader& m) {
  const std::span<const std::byte> bytes = m.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// ---- attributes

using AttributeType = Attribute::Type;

/// What a file before IR version 2 does not say: the type of the field that is there.
AttributeType type_of_field(uint32_t field) {
  switch (field) {
    case 2: return AttributeType::Float;
    case 3: return AttributeType::Int;
    case 4: return AttributeType::String;
    case 5: return AttributeType::Tensor;
    case 6: return AttributeType::Graph;
    case 7: return AttributeType::Floats;
    case 8: return AttributeType::Ints;
    case 9: return AttributeType::Strings;
    case 10: return AttributeType::Tensors;
    case 11: return AttributeType::Graphs;
    case 14: return AttributeType::Type;
    case 22: return AttributeType::SparseTensor;
    default: return AttributeType::Undefined;
  }
}

void read_attribute_field(const WireReader& m, Attribute& a, Source& source) {
  switch (m.field()) {
    case 1: a.name = m.text(); break;
    case 2: a.number = m.number(); break;
    case 3: a.integer = m.integer(); break;
    case 4: a.text = bytes_text(m); break;
    case 5: a.tensors.assign(1, read_tensor(m.message(), source)); break;
    case 6: a.graphs.assign(1, std::make_shared<Graph>(read_graph(m.message(), source))); break;
    case 7:
      m.each_fixed32([&](uint32_t x) { a.numbers.push_back(std::bit_cast<float>(x)); });
      break;
    case 8: m.each_integer([&](int64_t x) { a.integers.push_back(x); }); break;
    case 9: a.texts.push_back(bytes_text(m)); break;
    case 10: a.tensors.push_back(read_tensor(m.message(), source)); break;
    case 11: a.graphs.push_back(std::make_shared<Graph>(read_graph(m.message(), source))); break;
    case 14: a.declared = read_type(m.message()); break;
    case 20: a.type = static_cast<AttributeType>(m.integer()); break;
    case 21: a.refers_to = m.text(); break;
    case 22: a.sparse.assign(1, read_sparse(m.message(), source)); break;
    case 23: a.sparse.push_back(read_sparse(m.message(), source)); break;
    default: break;
  }
}

/// An attribute holds what its type says, so that nobody has to ask later.
void check_attribute(const WireReader& m, const Attribute& a) {
  if (a.name.empty()) m.refuse("an attribute without a name");
  if (!a.refers_to.empty()) return;
  const bool empty = (a.type == AttributeType::Tensor && a.tensors.empty()) ||
                     (a.type == AttributeType::Graph && a.graphs.empty()) ||
                     (a.type == AttributeType::SparseTensor && a.sparse.empty()) ||
                     (a.type == AttributeType::Type && !a.declared);
  if (empty)
    m.refuse("the attribute {} is of type {} and holds none", quoted_name(a.name),
             static_cast<int>(a.type));
}

Attribute read_attribute(WireReader m, Source& source) {
  Attribute a;
  AttributeType guess = AttributeType::Undefined;
  while (m.next()) {
    read_attribute_field(m, a, source);
    if (const AttributeType t = type_of_field(m.field()); t != AttributeType::Undefined) guess = t;
  }
  if (a.type == AttributeType::Undefined) a.type = guess;
  check_attribute(m, a);
  return a;
}

// ---- nodes and graphs

Node read_node(WireReader m, Source& source) {
  Node node;
  while (m.next()) switch (m.field()) {
      case 1: node.inputs.emplace_back(m.text()); break;
      case 2: node.outputs.emplace_back(m.text()); break;
      case 3: node.name = m.text(); break;
      case 4: node.op = m.text(); break;
      case 5: node.attributes.push_back(read_attribute(m.message(), source)); break;
      case 7: node.domain = domain_name(m.text()); break;
      case 8: node.overload = m.text(); break;
      default: break;
    }
  if (node.op.empty()) m.refuse("a node that does not say which operator it is");
  return node;
}

std::pair<std::string, std::string> read_entry(WireReader m) {
  std::pair<std::string, std::string> entry;
  while (m.next()) {
    if (m.field() == 1) entry.first = m.text();
    if (m.field() == 2) entry.second = m.text();
  }
  return entry;
}

DeclaredDim read_dim(WireReader m) {
  DeclaredDim dim;
  while (m.next()) {
    if (m.field() == 1) dim = {m.integer(), ""};
    if (m.field() == 2) dim = {std::nullopt, std::string(m.text())};
  }
  // Some exporters write what they do not know as -1 or 0 beside a name.
  if (dim.size && *dim.size < 0) dim.size.reset();
  return dim;
}

std::vector<DeclaredDim> read_shape(WireReader m) {
  std::vector<DeclaredDim> shape;
  while (m.next())
    if (m.field() == 1) shape.push_back(read_dim(m.message()));
  return shape;
}

/// Tensor, SparseTensor: an element type and a shape.
DeclaredType read_tensor_type(WireReader m, DeclaredType::Kind kind) {
  DeclaredType type;
  type.kind = kind;
  while (m.next()) {
    if (m.field() == 1) type.element = static_cast<ElementType>(m.integer());
    if (m.field() == 2) type.shape = read_shape(m.message());
  }
  return type;
}

/// Sequence, Optional: what they are of; Map: its keys too.
DeclaredType read_outer_type(WireReader m, DeclaredType::Kind kind) {
  DeclaredType type;
  type.kind = kind;
  const uint32_t inner = kind == DeclaredType::Kind::Map ? 2 : 1;
  while (m.next()) {
    if (m.field() == inner)
      type.of = std::make_shared<const DeclaredType>(read_type(m.message()));
    else if (m.field() == 1)
      type.element = static_cast<ElementType>(m.integer());
  }
  return type;
}

DeclaredValue read_declared(WireReader m) {
  DeclaredValue value;
  while (m.next()) {
    if (m.field() == 1) value.name = m.text();
    if (m.field() == 2) value.type = read_type(m.message());
  }
  return value;
}

Graph read_graph(WireReader m, Source& source) {
  Graph graph;
  while (m.next()) switch (m.field()) {
      case 1: graph.nodes.push_back(read_node(m.message(), source)); break;
      case 2: graph.name = m.text(); break;
      case 5: graph.initialisers.push_back(read_tensor(m.message(), source)); break;
      case 11: graph.inputs.push_back(read_declared(m.message())); break;
      case 12: graph.outputs.push_back(read_declared(m.message())); break;
      case 13: graph.values.push_back(read_declared(m.message())); break;
      case 15: {
        SparseData sparse = read_sparse(m.message(), source);
        std::string name = sparse.values.name;
        graph.sparse_initialisers.emplace_back(std::move(name), std::move(sparse));
        break;
      }
      default: break;
    }
  order_graph(graph, source.what);
  return graph;
}

// ---- models

std::pair<std::string, int64_t> read_opset(WireReader m) {
  std::pair<std::string, int64_t> opset;
  while (m.next()) {
    if (m.field() == 1) opset.first = domain_name(m.text());
    if (m.field() == 2) opset.second = m.integer();
  }
  return opset;
}

Function read_function(WireReader m, Source& source) {
  Function f;
  while (m.next()) switch (m.field()) {
      case 1: f.name = m.text(); break;
      case 4: f.inputs.emplace_back(m.text()); break;
      case 5: f.outputs.emplace_back(m.text()); break;
      case 6: f.attributes.emplace_back(m.text()); break;
      case 7: f.nodes.push_back(read_node(m.message(), source)); break;
      case 9: f.opsets.insert(read_opset(m.message())); break;
      case 10: f.domain = domain_name(m.text()); break;
      case 11: f.defaults.push_back(read_attribute(m.message(), source)); break;
      case 13: f.overload = m.text(); break;
      default: break;
    }
  const std::vector<std::string_view> names(f.inputs.begin(), f.inputs.end());
  require_closed(f.nodes, order_nodes(f.nodes, names, source.what), source.what);
  return f;
}

Model read_model(WireReader m, Source& source) {
  Model model;
  bool has_graph = false;
  while (m.next()) switch (m.field()) {
      case 1: model.ir_version = m.integer(); break;
      case 2: model.producer = m.text(); break;
      case 3: model.producer_version = m.text(); break;
      case 4: model.domain = m.text(); break;
      case 5: model.version = m.integer(); break;
      case 6: model.documentation = m.text(); break;
      case 7:
        model.graph = read_graph(m.message(), source);
        has_graph = true;
        break;
      case 8: model.opsets.insert(read_opset(m.message())); break;
      case 14: model.metadata.push_back(read_entry(m.message())); break;
      case 25: model.functions.push_back(read_function(m.message(), source)); break;
      default: break;
    }
  if (!has_graph) m.refuse("there is no graph: this is no ONNX model, or it is cut");
  require_closed(model.graph.nodes, model.graph.captures, source.what);
  return model;
}

}  // namespace

DeclaredType read_type(WireReader m) {
  using Kind = DeclaredType::Kind;
  DeclaredType type;
  while (m.next()) switch (m.field()) {
      case 1: type = read_tensor_type(m.message(), Kind::Tensor); break;
      case 4: type = read_outer_type(m.message(), Kind::Sequence); break;
      case 5: type = read_outer_type(m.message(), Kind::Map); break;
      case 8: type = read_tensor_type(m.message(), Kind::SparseTensor); break;
      case 9: type = read_outer_type(m.message(), Kind::Optional); break;
      default: break;
    }
  return type;
}

const Attribute* Node::find(std::string_view attribute) const {
  const auto found = std::ranges::find(attributes, attribute, &Attribute::name);
  return found == attributes.end() ? nullptr : &*found;
}

std::string Node::label() const {
  std::string text = domain.empty() ? op : domain + "." + op;
  text = quoted_name(text);
  text = text.substr(1, text.size() - 2) + " node";
  if (!name.empty()) return text + " " + quoted_name(name);
  for (const std::string& output : outputs)
    if (!output.empty()) return text + " that makes " + quoted_name(output);
  return text;
}

Model parse_onnx(std::span<const std::byte> data, std::string_view what,
                 std::shared_ptr<const void> owner, std::string_view directory) {
  Source source{what, std::move(owner), ExternalData::in(directory)};
  return read_model(WireReader(data, what), source);
}

Model read_onnx(const std::string& path) {
  const auto file = MappedFile::open(path);
  Source source{path, file, ExternalData::beside(path)};
  return read_model(WireReader(file->bytes(), path), source);
}

}  // namespace weft::onnx
