// Models of one node, for tests of operators.
#pragma once

#include <string>
#include <vector>

#include "weft/onnx/evaluator.h"

namespace weft::onnx {

template <class T>
Attribute attr(std::string name, T value) {
  Attribute a;
  a.name = std::move(name);
  if constexpr (std::is_integral_v<T>) {
    a.type = Attribute::Type::Int;
    a.integer = value;
  } else if constexpr (std::is_floating_point_v<T>) {
    a.type = Attribute::Type::Float;
    a.number = value;
  } else if constexpr (std::is_convertible_v<T, std::string>) {
    a.type = Attribute::Type::String;
    a.text = value;
  } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
    a.type = Attribute::Type::Ints;
    a.integers = std::move(value);
  } else if constexpr (std::is_same_v<T, std::vector<double>>) {
    a.type = Attribute::Type::Floats;
    a.numbers = std::move(value);
  } else {
    static_assert(std::is_same_v<T, std::vector<std::string>>);
    a.type = Attribute::Type::Strings;
    a.texts = std::move(value);
  }
  return a;
}
using ints = std::vector<int64_t>;
using doubles = std::vector<double>;
using texts = std::vector<std::string>;

/// Element i is ((37 i + 11 + seed) mod 23 - 11) / 8, cast.
Value ramp(const Dims& shape, DType dtype = DType::F32, int64_t seed = 0);
/// Constants, as of an initialiser; i64 (n), and f32 of any shape.
Value known(const std::vector<int64_t>& elements);
Value scalar(int64_t element);
Value known(const Dims& shape, const std::vector<double>& elements, DType dtype = DType::F32);

/// What a node gives; a None among the inputs is one that is left out.
Values run_node(const std::string& op, int64_t opset, std::vector<Attribute> attributes,
                const Values& inputs, size_t outputs = 1, const std::string& domain = "");

struct Wanted {
  std::vector<int64_t> shape;
  std::vector<double> elements;
};
struct NodeCase {
  std::string op;
  int64_t opset;
  std::vector<Attribute> attributes;
  Values inputs;
  std::vector<Wanted> outputs;
};
/// Shapes equal, elements within 2e-5 of (1 + |wanted|), or of one step of an integer type.
void expect_node(const NodeCase& c, double tolerance = 2e-5);
/// The text of the Error that a node throws.
std::string refusal(const std::string& op, int64_t opset, std::vector<Attribute> attributes,
                    const Values& inputs, size_t outputs = 1);

}  // namespace weft::onnx
