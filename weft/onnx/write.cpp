#include "weft/onnx/write.h"

#include <cstring>
#include <deque>

#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/onnx/wire_writer.h"

namespace weft::onnx {

namespace {

using Type = Attribute::Type;
using Bytes = std::vector<std::byte>;

constexpr uint64_t kLargestMessage = (uint64_t{1} << 31) - 1;  // of protobuf's own libraries
constexpr size_t kSmallest = 1024;  // of external data: shapes are wanted inside
constexpr uint64_t kAlignment = 64;

/// Elements that lie one after the other as files have them: the inverse of unpacked().
Bytes packed(ElementType type, const HostArray& array) {
  const auto width = static_cast<size_t>(stored_bits(type)), each = 8 / width;
  const size_t codes = size_t{1} << width, size = static_cast<size_t>(bits(array.dtype)) / 8;
  Bytes numbered((codes + each - 1) / each);
  for (size_t code = 0; code < codes; ++code)
    numbered[code / each] |= static_cast<std::byte>(code << width * (code % each));
  const HostArray known = unpacked(type, {static_cast<int64_t>(codes)}, numbered);
  const auto count = static_cast<size_t>(array.numel());
  Bytes out((count + each - 1) / each);
  for (size_t i = 0; i < count; ++i) {
    size_t code = 0;
    while (code + 1 < codes &&
           std::memcmp(known.bytes.data() + code * size, array.bytes.data() + i * size, size) != 0)
      ++code;
    out[i / each] |= static_cast<std::byte>(code << width * (i % each));
  }
  return out;
}

/// Messages of a model; large bytes are lent from it.
class ModelWriter {
 public:
  /// Initialisers go to `data`, which may be null, whose file has this name.
  ModelWriter(std::vector<std::span<const std::byte>>* data, std::string location)
      : data_(data), location_(std::move(location)) {}

  WireWriter model(const Model& m) {
    WireWriter out;
    out.integer(1, m.ir_version);
    text(out, 2, m.producer), text(out, 3, m.producer_version), text(out, 4, m.domain);
    if (m.version != 0) out.integer(5, m.version);
    text(out, 6, m.documentation);
    out.message(7, graph(m.graph));
    for (const auto& opset : m.opsets) out.message(8, opset_id(opset));
    for (const auto& [key, value] : m.metadata) out.message(14, entry(key, value));
    for (const Function& f : m.functions) out.message(25, function(f));
    return out;
  }

 private:
  static void text(WireWriter& out, uint32_t field, const std::string& value) {
    if (!value.empty()) out.text(field, value);
  }
  static void texts(WireWriter& out, uint32_t field, const std::vector<std::string>& values) {
    for (const std::string& value : values) out.text(field, value);
  }
  static WireWriter entry(const std::string& key, const std::string& value) {
    WireWriter out;
    out.text(1, key);
    out.text(2, value);
    return out;
  }
  static WireWriter opset_id(const std::pair<const std::string, int64_t>& opset) {
    WireWriter out;
    text(out, 1, opset.first);
    out.integer(2, opset.second);
    return out;
  }

  WireWriter graph(const Graph& g) {
    WireWriter out;
    for (const Node& n : g.nodes) out.message(1, node(n));
    out.text(2, g.name.empty() ? "graph" : g.name);
    for (const ConstantData& t : g.initialisers) out.message(5, tensor(t, data_ != nullptr));
    for (const DeclaredValue& v : g.inputs) out.message(11, declared(v));
    for (const DeclaredValue& v : g.outputs) out.message(12, declared(v));
    for (const DeclaredValue& v : g.values) out.message(13, declared(v));
    for (const auto& [name, s] : g.sparse_initialisers) out.message(15, sparse(s, name));
    return out;
  }

  WireWriter function(const Function& f) {
    WireWriter out;
    out.text(1, f.name);
    texts(out, 4, f.inputs), texts(out, 5, f.outputs), texts(out, 6, f.attributes);
    for (const Node& n : f.nodes) out.message(7, node(n));
    for (const auto& opset : f.opsets) out.message(9, opset_id(opset));
    text(out, 10, f.domain);
    for (const Attribute& a : f.defaults) out.message(11, attribute(a));
    text(out, 13, f.overload);
    return out;
  }

  WireWriter node(const Node& n) {
    WireWriter out;
    texts(out, 1, n.inputs), texts(out, 2, n.outputs);
    text(out, 3, n.name);
    out.text(4, n.op);
    for (const Attribute& a : n.attributes) out.message(5, attribute(a));
    text(out, 7, n.domain), text(out, 8, n.overload);
    return out;
  }

  WireWriter attribute(const Attribute& a) {
    WireWriter out;
    out.text(1, a.name);
    if (a.refers_to.empty())
      value(out, a);
    else
      out.text(21, a.refers_to);
    out.integer(20, static_cast<int64_t>(a.type));
    return out;
  }

  void value(WireWriter& out, const Attribute& a) {
    const bool one = a.type == Type::Tensor || a.type == Type::Graph;
    switch (a.type) {
      case Type::Float: return out.number(2, static_cast<float>(a.number));
      case Type::Int: return out.integer(3, a.integer);
      case Type::String: return out.text(4, a.text);
      case Type::Floats: return out.numbers(7, a.numbers);
      case Type::Ints: return out.integers(8, a.integers);
      case Type::Strings: return texts(out, 9, a.texts);
      case Type::Type:
        if (a.declared) out.message(14, type(*a.declared));
        return;
      default: break;
    }
    for (const ConstantData& t : a.tensors) out.message(one ? 5 : 10, tensor(t, false));
    for (const auto& g : a.graphs) out.message(one ? 6 : 11, graph(*g));
    for (const SparseData& s : a.sparse)
      out.message(a.type == Type::SparseTensor ? 22 : 23, sparse(s, s.values.name));
  }

  WireWriter tensor(const ConstantData& t, bool outside) {
    WireWriter out;
    if (!t.shape.empty()) out.integers(1, t.shape);
    out.integer(2, static_cast<int64_t>(t.type));
    texts(out, 6, t.strings);
    text(out, 8, t.name);
    if (t.type == ElementType::String) return out;
    const std::span<const std::byte> bytes = stored(t);
    if (outside && bytes.size() >= kSmallest)
      external(out, bytes);
    else
      out.bytes(9, bytes);
    return out;
  }

  std::span<const std::byte> stored(const ConstantData& t) {
    if (element_type_of(t.array.dtype) == t.type) return t.array.bytes;
    packed_.push_back(packed(t.type, t.array));
    return packed_.back();
  }

  void external(WireWriter& out, std::span<const std::byte> bytes) {
    end_ = (end_ + kAlignment - 1) / kAlignment * kAlignment;
    out.message(13, entry("location", location_));
    out.message(13, entry("offset", std::to_string(end_)));
    out.message(13, entry("length", std::to_string(bytes.size())));
    out.integer(14, 1);
    data_->push_back(bytes);
    end_ += bytes.size();
  }

  WireWriter sparse(const SparseData& s, const std::string& name) {
    WireWriter out;
    ConstantData values = s.values;
    values.name = name;
    out.message(1, tensor(values, false));
    out.message(2, tensor(s.indices, false));
    out.integers(3, s.shape);
    return out;
  }

  static WireWriter declared(const DeclaredValue& v) {
    WireWriter out;
    out.text(1, v.name);
    out.message(2, type(v.type));
    return out;
  }

  static WireWriter shape(const std::vector<DeclaredDim>& dims) {
    WireWriter out;
    for (const DeclaredDim& d : dims) {
      WireWriter dim;
      if (d.size) dim.integer(1, *d.size);
      if (!d.size && !d.name.empty()) dim.text(2, d.name);
      out.message(1, std::move(dim));
    }
    return out;
  }

  static WireWriter type(const DeclaredType& t) {
    using Kind = DeclaredType::Kind;
    WireWriter inner, out;
    const bool tensor = t.kind == Kind::Tensor || t.kind == Kind::SparseTensor;
    if (tensor || t.kind == Kind::Map) inner.integer(1, static_cast<int64_t>(t.element));
    if (tensor && t.shape) inner.message(2, shape(*t.shape));
    if (t.of) inner.message(t.kind == Kind::Map ? 2 : 1, type(*t.of));
    constexpr uint32_t kFields[] = {0, 1, 8, 4, 5, 9};  // by Kind
    if (t.kind != Kind::Unknown)
      out.message(kFields[static_cast<size_t>(t.kind)], std::move(inner));
    return out;
  }

  std::vector<std::span<const std::byte>>* data_;
  std::string location_;
  uint64_t end_ = 0;          // of the external data
  std::deque<Bytes> packed_;  // what is lent and lies otherwise in memory
};

uint64_t bytes_of(const Model& model) {
  uint64_t bytes = 0;
  for (const ConstantData& t : model.graph.initialisers) bytes += t.array.bytes.size();
  return bytes;
}

void save_data(const std::string& path, const std::vector<std::span<const std::byte>>& data) {
  atomic_write_file(path, [&](FileWriter& file) {
    const Bytes zeros(kAlignment);
    for (const std::span<const std::byte> bytes : data) {
      file.write(std::span(zeros).first((kAlignment - file.position() % kAlignment) % kAlignment));
      file.write(bytes);
    }
  });
}

}  // namespace

void save_onnx(const std::string& path, const Model& model, const SaveOptions& options) {
  const std::string data_path = path + ".data";
  std::vector<std::span<const std::byte>> data;
  const bool outside = options.external_data || bytes_of(model) > kLargestMessage / 2;
  ModelWriter writer(outside ? &data : nullptr, data_path.substr(data_path.rfind('/') + 1));
  const WireWriter out = writer.model(model);
  if (!data.empty()) save_data(data_path, data);
  atomic_write_file(path, [&](FileWriter& file) {
    out.write([&](std::span<const std::byte> part) { file.write(part); });
  });
}

std::vector<std::byte> onnx_bytes(const Model& model) {
  ModelWriter writer(nullptr, "");
  const WireWriter out = writer.model(model);
  if (out.size() > kLargestMessage)
    fail("onnx.size", "the model has {} bytes and a protocol buffer at most {}: save it to a file",
         out.size(), kLargestMessage);
  Bytes bytes;
  bytes.reserve(static_cast<size_t>(out.size()));
  out.write([&](std::span<const std::byte> part) {
    bytes.insert(bytes.end(), part.begin(), part.end());
  });
  return bytes;
}

}  // namespace weft::onnx
