#include "weft/onnx/call.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/io/tensors.h"
#include "weft/onnx/evaluator.h"

namespace weft::onnx {

namespace {

const char* kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::None: return "not given";
    case Value::Kind::Tensor: return "a tensor of numbers";
    case Value::Kind::Strings: return "a tensor of strings";
    case Value::Kind::Sequence: return "a sequence";
    case Value::Kind::Optional: return "an optional";
    case Value::Kind::Map: return "a map";
  }
  return "unknown";
}

const char* type_name(Attribute::Type type) {
  constexpr const char* kNames[] = {"undefined",      "a float", "an int", "a string",
                                    "a tensor",       "a graph", "floats", "ints",
                                    "strings",        "tensors", "graphs", "a sparse tensor",
                                    "sparse tensors", "a type",  "types"};
  const auto i = static_cast<size_t>(type);
  return i < std::size(kNames) ? kNames[i] : "of a type that does not exist";
}

template <class T, class F>
std::vector<T> elements_of(const HostArray& array, const F& get) {
  const size_t size = static_cast<size_t>(bits(array.dtype)) / 8;
  std::vector<T> all;
  for (size_t at = 0; at < array.bytes.size(); at += size)
    all.push_back(get(weft::Value::load(array.dtype, array.bytes.data() + at)));
  return all;
}

}  // namespace

NodeCall::NodeCall(const Node& node, int64_t opset, Values inputs, Evaluator& evaluator)
    : node_(node), opset_(opset), inputs_(std::move(inputs)), evaluator_(evaluator) {}

void NodeCall::refuse_text(const std::string& problem) const {
  throw Error(ErrorKind::Value, "onnx.node", problem);  // the evaluator says which node
}

// ---- inputs

bool NodeCall::has(size_t i) const { return i < inputs_.size() && inputs_[i]; }

const Value& NodeCall::input(size_t i) const {
  if (!has(i)) refuse("input {} is missing", i);
  return inputs_[i];
}

const Tensor& NodeCall::tensor(size_t i) const {
  const Value& value = input(i);
  if (value.kind() != Value::Kind::Tensor)
    refuse("input {} is {} where a tensor of numbers is expected", i, kind_name(value.kind()));
  return value.tensor();
}

Tensor NodeCall::tensor_or(size_t i, const Tensor& other) const {
  return has(i) ? tensor(i) : other;
}

std::vector<Tensor> NodeCall::tensors(size_t first) const {
  std::vector<Tensor> all;
  for (size_t i = first; i < inputs_.size(); ++i) all.push_back(tensor(i));
  return all;
}

HostArray NodeCall::array(size_t i) const {
  if (const auto constant = input(i).constant()) return *constant;
  evaluator_.note_read();
  return host_array_of(tensor(i));
}

std::vector<int64_t> NodeCall::ints(size_t i) const {
  if (const auto known = input(i).integers()) {
    std::vector<int64_t> all;
    for (const Dim& d : *known) {
      if (!d.is_static()) refuse("input {} has to be numbers and is {}", i, d.text());
      all.push_back(d.value());
    }
    return all;
  }
  return elements_of<int64_t>(array(i), [](const weft::Value& x) { return x.as_int(); });
}

int64_t NodeCall::integer(size_t i) const {
  const std::vector<int64_t> all = ints(i);
  if (all.size() != 1) refuse("input {} has {} elements where one is expected", i, all.size());
  return all[0];
}

Dims NodeCall::sizes(size_t i) const {
  if (const auto known = input(i).integers()) return {*known};
  return {ints(i)};
}

std::vector<double> NodeCall::numbers(size_t i) const {
  return elements_of<double>(array(i), [](const weft::Value& x) { return x.as_double(); });
}

double NodeCall::number(size_t i) const {
  const std::vector<double> all = numbers(i);
  if (all.size() != 1) refuse("input {} has {} elements where one is expected", i, all.size());
  return all[0];
}

const std::vector<std::string>& NodeCall::texts(size_t i) const {
  const Value& value = input(i);
  if (value.kind() != Value::Kind::Strings)
    refuse("input {} is {} where a tensor of strings is expected", i, kind_name(value.kind()));
  return value.texts();
}

const std::vector<Value>& NodeCall::sequence(size_t i) const {
  const Value& value = input(i);
  if (value.kind() != Value::Kind::Sequence)
    refuse("input {} is {} where a sequence is expected", i, kind_name(value.kind()));
  return value.elements();
}

// ---- attributes

namespace {

/// The attribute, which is of this type; null where it is missing.
const Attribute* typed(const NodeCall& call, std::string_view name, Attribute::Type type) {
  const Attribute* a = call.node().find(name);
  if (a && a->type != type)
    call.refuse("the attribute {} is {} where {} is expected", name, type_name(a->type),
                type_name(type));
  return a;
}

const Attribute& required(const NodeCall& call, std::string_view name, Attribute::Type type) {
  const Attribute* a = typed(call, name, type);
  if (!a) call.refuse("the attribute {} is missing; it is {}", name, type_name(type));
  return *a;
}

}  // namespace

bool NodeCall::has(std::string_view attribute) const { return node_.find(attribute) != nullptr; }

int64_t NodeCall::integer(std::string_view attribute, int64_t otherwise) const {
  const Attribute* a = typed(*this, attribute, Attribute::Type::Int);
  return a ? a->integer : otherwise;
}

int64_t NodeCall::integer(std::string_view attribute) const {
  return required(*this, attribute, Attribute::Type::Int).integer;
}

double NodeCall::number(std::string_view attribute, double otherwise) const {
  const Attribute* a = typed(*this, attribute, Attribute::Type::Float);
  return a ? a->number : otherwise;
}

double NodeCall::number(std::string_view attribute) const {
  return required(*this, attribute, Attribute::Type::Float).number;
}

std::string NodeCall::text(std::string_view attribute, std::string_view otherwise) const {
  const Attribute* a = typed(*this, attribute, Attribute::Type::String);
  return a ? a->text : std::string(otherwise);
}

std::vector<int64_t> NodeCall::ints(std::string_view attribute,
                                    std::vector<int64_t> otherwise) const {
  const Attribute* a = typed(*this, attribute, Attribute::Type::Ints);
  return a ? a->integers : otherwise;
}

std::vector<double> NodeCall::numbers(std::string_view attribute,
                                      std::vector<double> otherwise) const {
  const Attribute* a = typed(*this, attribute, Attribute::Type::Floats);
  return a ? a->numbers : otherwise;
}

std::vector<std::string> NodeCall::texts(std::string_view attribute) const {
  const Attribute* a = typed(*this, attribute, Attribute::Type::Strings);
  return a ? a->texts : std::vector<std::string>();
}

Value NodeCall::constant(std::string_view attribute) const {
  return Value(required(*this, attribute, Attribute::Type::Tensor).tensors[0]);
}

const Graph& NodeCall::graph(std::string_view attribute) const {
  return *required(*this, attribute, Attribute::Type::Graph).graphs[0];
}

std::vector<int64_t> NodeCall::ints_of(size_t i, std::string_view attribute, int64_t since) const {
  if (opset_ < since) return ints(attribute);
  return has(i) ? ints(i) : std::vector<int64_t>();
}

// ---- the rest

bool NodeCall::wants(size_t i) const {
  return i < node_.outputs.size() && !node_.outputs[i].empty();
}

std::shared_ptr<const void>& NodeCall::kept_slot(const void* type) const {
  return evaluator_.kept(type);
}

const Value& NodeCall::named(std::string_view name) const {
  const Value* value = evaluator_.find(name);
  if (!value) refuse("{} is no tensor that is made before it", quoted_name(name));
  return *value;
}

Values NodeCall::run(const Graph& graph, Values inputs) const {
  return evaluator_.run(graph, inputs);
}

int64_t NodeCall::axis(int64_t axis, size_t rank) const {
  const auto n = static_cast<int64_t>(rank);
  if (axis < -n || axis >= n)
    refuse("axis {} is out of range for a tensor of {} axes; use {} to {}", axis, n, -n, n - 1);
  return axis < 0 ? axis + n : axis;
}

}  // namespace weft::onnx
