// WgslWriter: walks a linear program and writes the body of its WGSL entry point.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/render/body_text.h"
#include "weft/render/wgsl_ops.h"
#include "weft/render/wgsl_prelude.h"

namespace weft {

WgslKind wgsl_kind(DType dtype);
/// The type of values: "f32", "vec2<u32>".
std::string_view wgsl_type(DType dtype);
/// Whether elements are parts of a 32-bit word in memory.
constexpr bool is_part_of_word(DType dtype) { return is_bool(dtype) || bits(dtype) < 32; }

class WgslWriter {
 public:
  explicit WgslWriter(const LinearProgram& program);

  void write();  // once

  const WgslPrelude& prelude() const { return prelude_; }
  std::string body() const { return body_.text(); }

 private:
  struct Held {
    DType dtype;
    std::string text;  // a name, or a literal
  };

  void statement(std::string_view text) { body_.statement(text); }
  void open(std::string_view header) { body_.open(header); }
  void close() { body_.close(); }
  /// A name of its own for the value, declared here or, where it escapes, before everything.
  std::string declared(NodeRef n, DType dtype, std::string_view keyword, std::string_view text);
  void define(NodeRef n, DType dtype, std::string_view text);

  void write_variable(size_t i);
  void write_node(NodeRef n);
  void write_work_id(NodeRef n);
  void write_range(NodeRef n);
  void write_core(NodeRef n);
  void write_load(NodeRef n);
  void write_store(NodeRef n);
  void write_acc(NodeRef n);
  void write_alu(NodeRef n);

  const Held& held(NodeRef n);
  std::string operand(NodeRef n) { return held(n).text; }
  std::string literal(Value v);
  std::string zero(DType dtype) { return literal(Value::of(dtype, 0)); }
  std::string alu_text(Op op, DType dtype, std::span<const std::string> operands);
  std::string cast_text(const std::string& x, DType from, DType to);
  std::string cast_to_half(const std::string& x, DType from, DType to);
  std::string bitcast_text(const std::string& x, DType from, DType to);
  std::string to_bool(const std::string& x, DType from);
  std::string from_bool(const std::string& x, DType to);

  /// The element of an array that the group shares, whose elements are values.
  std::string local_element(NodeRef array, NodeRef index);
  /// The element's number in its binding, as u32.
  std::string element(NodeRef param, NodeRef index);
  std::string loaded(NodeRef param, NodeRef index, DType dtype);
  void store(NodeRef param, NodeRef index, NodeRef value);

  const LinearProgram& program_;
  WgslPrelude prelude_;
  NodeMap<Held> values_;
  NodeMap<bool> escaping_;
  int next_value_ = 0;
  BodyText body_;
};

}  // namespace weft
