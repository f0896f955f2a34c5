// CWriter: walks a linear program and writes the body of its C function.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/render/body_text.h"
#include "weft/render/c_ops.h"
#include "weft/render/c_prelude.h"

namespace weft {

/// What a WorkId is called in the text: "group_x", "item_y".
std::string work_id_name(NodeRef id);

class CWriter {
 public:
  CWriter(const LinearProgram& program, const CDialect& dialect);

  void write();  // once

  CPrelude& prelude() { return prelude_; }
  /// What write() wrote: declarations of values used outside the block that computes them, then the
  /// statements.
  std::string body() const { return body_.text(); }

 private:
  struct Held {
    CType type;
    std::string text;  // a name, or a literal
  };

  void statement(std::string_view text) { body_.statement(text); }
  void open(std::string_view header) { body_.open(header); }
  void close() { body_.close(); }
  void declare_escaping(CType type, const std::string& name);
  void define(NodeRef n, CType type, const std::string& text);

  void write_node(NodeRef n);
  void write_range(NodeRef n);
  void write_load(NodeRef n);
  void write_store(NodeRef n);
  void write_acc(NodeRef n);
  void write_vec(NodeRef n);
  void write_lane(NodeRef n);
  void write_alu(NodeRef n);
  void write_cast(NodeRef n);

  const Held& held(NodeRef n);
  /// The value as text of this type: masks are widened or narrowed, scalars splatted.
  std::string operand(NodeRef n, CType want);
  std::string operand(NodeRef n) { return held(n).text; }
  std::string converted(const Held& value, CType want);
  CType type_of(NodeRef n);  // of a value, held or constant
  CType alu_type(NodeRef n);

  const CDialect& dialect() const { return prelude_.dialect(); }
  std::string literal(Value v);
  std::string integer_literal(Value v) const;
  /// `row`'s text for these operands; `subject` is what the operands are.
  std::string alu_text(Op op, DType dtype, CType result, CType subject,
                       std::span<const std::string> operands, NodeRef n = nullptr);
  std::string_view alu_row(Op op, DType dtype, CType result, CType subject, NodeRef n) const;
  bool applies(const COp& row, NodeRef n) const;
  std::string cast_text(const std::string& x, DType from, DType to, CType from_type, CType to_type);
  std::string cast_to_half(const std::string& x, DType from, DType to, CType from_type);
  std::string place(NodeRef param, NodeRef index, CType type);  // an lvalue in memory
  std::string from_memory(const std::string& lvalue, DType dtype, CType type);
  std::string to_memory(const std::string& value, DType dtype, CType type);

  const LinearProgram& program_;
  CPrelude prelude_;
  NodeMap<Held> values_;
  NodeMap<bool> escaping_;
  int next_value_ = 0;
  BodyText body_;
};

/// How elements lie in memory: bool as u8, f16 and bf16 as u16.
CType c_storage(DType dtype, int lanes);

}  // namespace weft
