// PtxWriter: walks a linear program and writes the body of its PTX entry point.
#pragma once

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/render/body_text.h"
#include "weft/render/ptx_ops.h"
#include "weft/render/render.h"

namespace weft {

/// "5", "0f3F800000".
std::string ptx_literal(Value v);

class PtxWriter {
 public:
  PtxWriter(const LinearProgram& program, const RenderOptions& options);

  void write();  // once

  /// Of all registers.
  std::string declarations() const;
  std::string body() const { return body_.text(); }

 private:
  struct Held {
    DType dtype;
    std::string text;  // a register, or a literal
  };
  /// Where an element lies without the constant of its index, by array and the rest of the index:
  /// in which register.
  using Addresses = std::map<std::pair<std::string, NodeRef>, std::string>;
  /// A loop or guard that is open.
  struct Block {
    std::string top, end;  // labels; no top: it does not repeat
    std::string counter, limit;
    DType dtype = DType::Void;
    Addresses outside;  // known where it began
  };

  void statement(std::string_view text) { body_.statement(strformat("{};", text)); }
  void label(const std::string& name) { body_.statement(name + ":"); }
  std::string fresh(PtxBank bank);
  std::string fresh(DType dtype);
  std::string fresh_label() { return strformat("$L{}", next_label_++); }
  /// The value's own register.
  std::string result(NodeRef n, DType dtype);

  void write_arguments();
  void write_item();
  void write_node(NodeRef n);
  void write_work_id(NodeRef n);
  void write_range(NodeRef n);
  void write_if(NodeRef n);
  void open(Block block);
  void close();
  void write_load(NodeRef n);
  void write_store(NodeRef n);
  void write_shuffle(NodeRef n);
  void write_acc(NodeRef n);
  void write_alu(NodeRef n);

  const Held& held(NodeRef n);
  std::string operand(NodeRef n) { return held(n).text; }
  /// Its value in a register: not every instruction takes a literal.
  std::string in_register(NodeRef n);
  void move(const std::string& to, const std::string& from, DType dtype);

  /// The row's statements for a value of `to` in register `d` from operands of `from`.
  void expand(std::string_view text, const std::string& d, std::span<const std::string> operands,
              DType from, DType to);
  void cast(const std::string& d, const std::string& x, DType from, DType to);
  bool cast_by(std::span<const PtxCast> rows, const std::string& d, const std::string& x,
               DType from, DType to);
  void bitcast(const std::string& d, const std::string& x, DType from, DType to);
  void clamp(const std::string& d, DType dtype);

  /// An index as the part of it that is in a register, none for constants, and a constant, in bytes
  /// for elements of `size`.
  struct Place {
    NodeRef rest;
    int64_t offset;
  };
  Place place(NodeRef index, int64_t size) const;
  void find_needed();
  std::string place_address(NodeRef array, NodeRef rest, int64_t size);
  /// "[%d3+16]" of an element.
  std::string address(NodeRef array, NodeRef index);
  std::string_view store_space(NodeRef array) const;
  std::string_view load_space(NodeRef array) const;

  const LinearProgram& program_;
  const RenderOptions& options_;
  NodeMap<Held> values_;
  NodeMap<bool> escaping_;
  NodeMap<bool> needed_;                   // in a register
  std::vector<std::string> params_;        // by slot: the register that holds the pointer
  std::map<int64_t, std::string> locals_;  // by id: the register that holds where it begins
  std::string item_;                       // of programs that are not grouped
  std::vector<Block> blocks_;
  Addresses addresses_;
  std::array<int, 4> registers_{};
  int next_label_ = 0;
  BodyText body_;
};

}  // namespace weft
