// ONNX files made by hand, right or wrong. Field numbers: onnx/onnx.proto of the onnx project.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft::onnx::bytes {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string part(int field, std::string_view content) {
  return varint((static_cast<uint64_t>(field) << 3) | 2) + varint(content.size()) +
         std::string(content);
}

inline std::string tensor(std::string_view name, const std::vector<int64_t>& shape, int type,
                          const std::string& elements) {
  std::string out;
  for (const int64_t size : shape) out += number(1, size);
  return out + number(2, type) + part(8, name) + elements;
}
inline std::string raw(std::string_view content) { return part(9, content); }
template <class T>
std::string raw(const std::vector<T>& elements) {
  return raw({reinterpret_cast<const char*>(elements.data()), elements.size() * sizeof(T)});
}
/// external_data and data_location.
inline std::string external(std::string_view location, std::string_view offset = "",
                            std::string_view length = "") {
  const auto entry = [](std::string_view key, std::string_view value) {
    return value.empty() ? "" : part(13, part(1, key) + part(2, value));
  };
  return part(13, part(1, "location") + part(2, location)) + entry("offset", offset) +
         entry("length", length) + number(14, 1);
}

inline std::string int_attribute(std::string_view name, int64_t value) {
  return part(1, name) + number(3, value) + number(20, 2);
}
inline std::string ints_attribute(std::string_view name, const std::vector<int64_t>& values) {
  std::string out = part(1, name) + number(20, 7);
  for (const int64_t v : values) out += number(8, v);
  return out;
}
inline std::string graph_attribute(std::string_view name, std::string_view graph) {
  return part(1, name) + part(6, graph) + number(20, 5);
}
inline std::string reference(std::string_view name, std::string_view of, int type) {
  return part(1, name) + part(21, of) + number(20, type);
}

inline std::string node(std::string_view op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes = {},
                        std::string_view domain = "") {
  std::string out;
  for (const std::string& name : inputs) out += part(1, name);
  for (const std::string& name : outputs) out += part(2, name);
  out += part(4, op);
  if (!domain.empty()) out += part(7, domain);
  for (const std::string& a : attributes) out += part(5, a);
  return out;
}

/// A ValueInfoProto; a size below 0 is the name "n".
inline std::string declared(std::string_view name, const std::vector<int64_t>& shape,
                            int type = 1) {
  std::string sizes;
  for (const int64_t size : shape) sizes += part(1, size < 0 ? part(2, "n") : number(1, size));
  return part(1, name) + part(2, part(1, number(1, type) + part(2, sizes)));
}

struct GraphParts {
  std::vector<std::string> nodes, inputs, outputs, initialisers;
};
inline std::string graph(const GraphParts& parts) {
  std::string out = part(2, "g");
  for (const std::string& p : parts.nodes) out += part(1, p);
  for (const std::string& p : parts.initialisers) out += part(5, p);
  for (const std::string& p : parts.inputs) out += part(11, p);
  for (const std::string& p : parts.outputs) out += part(12, p);
  return out;
}
inline std::string model(std::string_view graph, int64_t opset = 18, std::string_view more = "") {
  return number(1, 9) + part(8, number(2, opset)) + std::string(more) + part(7, graph);
}
/// A model of a tensor that is its own output.
inline std::string model_of(std::string_view tensor) {
  return model(graph({{}, {}, {declared("w", {})}, {std::string(tensor)}}));
}

}  // namespace weft::onnx::bytes
