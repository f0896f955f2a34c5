// What an ONNX file says, as data. Field names and numbers: onnx/onnx.proto3 of the onnx project.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "weft/io/host_array.h"

namespace weft::onnx {

/// TensorProto.DataType.
enum class ElementType : int32_t {
  Undefined = 0,
  Float = 1,
  Uint8 = 2,
  Int8 = 3,
  Uint16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Double = 11,
  Uint32 = 12,
  Uint64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  Bfloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  Uint4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  Uint2 = 25,
  Int2 = 26,
  Float6E2M3 = 27,
  Float6E3M2 = 28,
};
/// "float16"; "type 99" for what is none.
std::string name(ElementType type);
/// What tensors of this type are made of in weft. Types that weft has no dtype for lie one element
/// after the other in a wider one, which holds each of their values exactly: int4, int2 in i8,
/// uint4, uint2 in u8, float4, float6 and the exponents of float8e8m0 in f32. Void: strings,
/// complex numbers and what is no type.
DType dtype_of(ElementType type);
/// Of a dtype; the type that stands for itself.
ElementType element_type_of(DType dtype);
/// In files, where elements of less than 8 bits lie packed, the first in the low bits. 0: strings
/// and what is no type.
int stored_bits(ElementType type);
/// Elements as they lie in files, as dtype_of(type) has them.
HostArray unpacked(ElementType type, std::vector<int64_t> shape, std::span<const std::byte> stored);

/// A constant: an initialiser or the value of an attribute.
struct ConstantData {
  std::string name;
  ElementType type = ElementType::Undefined;
  std::vector<int64_t> shape;
  HostArray array;                   ///< of dtype_of(type); a view of the file where it can be
  std::vector<std::string> strings;  ///< instead, where the type is String
};
/// Elements that are 0 except at some places; becomes a dense one when it is used.
struct SparseData {
  ConstantData values, indices;  ///< indices: (n) into the flat array, or (n, rank)
  std::vector<int64_t> shape;
};

/// A size in a declared type: a number, a name, or neither.
struct DeclaredDim {
  std::optional<int64_t> size;
  std::string name;
};
/// TypeProto.
struct DeclaredType {
  enum class Kind : uint8_t { Unknown, Tensor, SparseTensor, Sequence, Map, Optional };
  Kind kind = Kind::Unknown;
  ElementType element = ElementType::Undefined;   ///< of tensors; of a map, of its keys
  std::optional<std::vector<DeclaredDim>> shape;  ///< nothing: of any rank
  std::shared_ptr<const DeclaredType> of;         ///< of what it is a sequence, map or optional
};
struct DeclaredValue {
  std::string name;
  DeclaredType type;
};

struct Graph;

/// AttributeProto: one of these by its type.
struct Attribute {
  enum class Type : int32_t {
    Undefined = 0,
    Float = 1,
    Int = 2,
    String = 3,
    Tensor = 4,
    Graph = 5,
    Floats = 6,
    Ints = 7,
    Strings = 8,
    Tensors = 9,
    Graphs = 10,
    SparseTensor = 11,
    SparseTensors = 12,
    Type = 13,
    Types = 14,
  };
  std::string name;
  Type type = Type::Undefined;
  std::string refers_to;  ///< in a function: the attribute of the call whose value this has
  double number = 0;
  int64_t integer = 0;
  std::string text;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<std::string> texts;
  std::vector<ConstantData> tensors;  ///< Tensor: one
  std::vector<SparseData> sparse;     ///< SparseTensor: one
  std::vector<std::shared_ptr<const Graph>> graphs;
  std::optional<DeclaredType> declared;
};

struct Node {
  std::string name, op, domain, overload;    ///< domain "" is ai.onnx
  std::vector<std::string> inputs, outputs;  ///< "" where an optional one is left out
  std::vector<Attribute> attributes;

  const Attribute* find(std::string_view attribute) const;
  /// "Conv node 'layer1.0'", "Conv node that makes 'y'": for errors.
  std::string label() const;
};

struct Graph {
  std::string name;
  std::vector<Node> nodes;  ///< in an order in which everything is made before it is used
  std::vector<ConstantData> initialisers;
  std::vector<std::pair<std::string, SparseData>> sparse_initialisers;
  std::vector<DeclaredValue> inputs, outputs, values;
  std::vector<std::string> captures;  ///< names that it, or a graph inside it, has from around it
};

/// A function of the model's own: a node whose op it is stands for its nodes.
struct Function {
  std::string domain, name, overload;
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<Attribute> defaults;
  std::vector<Node> nodes;
  std::map<std::string, int64_t> opsets;  ///< by domain
};

struct Model {
  int64_t ir_version = 0;
  std::string producer, producer_version, domain, documentation;
  int64_t version = 0;
  std::map<std::string, int64_t> opsets;  ///< by domain
  Graph graph;
  std::vector<Function> functions;
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Initialisers are views of the mapped file, which lives as long as any of them; external data is
/// mapped from files inside the model's own directory, links resolved. Throws an Error with the
/// file, the byte offset and both values for anything that is not a valid model.
Model read_onnx(const std::string& path);
/// The same from bytes. `what` names them in errors; external data lies in `directory`, and is an
/// Error where there is none.
Model parse_onnx(std::span<const std::byte> data, std::string_view what,
                 std::shared_ptr<const void> owner = nullptr, std::string_view directory = {});

}  // namespace weft::onnx
