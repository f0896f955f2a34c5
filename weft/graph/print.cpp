#include "weft/graph/print.h"

#include <algorithm>
#include <vector>

#include "weft/base/format.h"
#include "weft/graph/expression.h"
#include "weft/graph/node_map.h"
#include "weft/graph/print_nodes.h"
#include "weft/graph/program.h"
#include "weft/graph/schema.h"

namespace weft {
namespace {

bool is_inline(NodeRef n) { return n->op == Op::Const && n->lanes == 1; }

/// What would end a line, or not show, as \xHH.
void append_printable(std::string& out, char c) {
  const auto byte = static_cast<unsigned char>(c);
  if (byte < 32 || byte > 126)
    append_format(out, "\\x{:02x}", byte);
  else
    out += c;
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    append_printable(out, c);
  }
  out += '"';
}

/// Names of variables, which a comment shows as they are, may hold anything.
void append_comment(std::string& out, std::string_view text) {
  out += "# ";
  for (const char c : text) append_printable(out, c);
}

bool has_name(FieldKind kind, int64_t v) {
  return v >= 0 && v < (kind == FieldKind::Fold ? kFoldCount : kBindingCount);
}

void append_field(std::string& out, const Field& field, std::span<const int64_t> values) {
  append_format(out, " {}=", field.name);
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t v = values[i];
    if (i > 0) out += ',';
    if (field.kind == FieldKind::Fold && has_name(field.kind, v))
      out += fold_name(static_cast<Fold>(v));
    else if (field.kind == FieldKind::Binding && has_name(field.kind, v))
      out += binding_name(static_cast<Binding>(v));
    else
      append_format(out, "{}", v);
  }
}

/// The fold of reduce and scan is part of the op's name: `reduce.add`.
bool fold_is_suffix(const Schema& s) { return s.count > 0 && s.fields[0].name == "kind"; }

void append_head(std::string& out, NodeRef n) {
  out += info(n->op).mnemonic;
  if (fold_is_suffix(schema(n->op)) && n->nints > 0 && has_name(FieldKind::Fold, n->int_arg(0)))
    append_format(out, ".{}", fold_name(fold_of(n)));
  (out += ' ') += name(n->dtype);
  if (n->lanes > 1) append_format(out, "x{}", n->lanes);
}

void append_ints(std::string& out, NodeRef n) {
  const Schema& s = schema(n->op);
  const auto ints = n->ints();
  for (size_t i = 0; i < s.count && i < ints.size(); ++i) {
    const Field& field = s.fields[i];
    if (field.kind == FieldKind::Bits) continue;
    if (i == 0 && fold_is_suffix(s) && has_name(FieldKind::Fold, ints[0])) continue;
    append_field(out, field, field.kind == FieldKind::List ? ints.subspan(i) : ints.subspan(i, 1));
  }
}

/// Names and prints the nodes of one text.
class Lines {
 public:
  void add(NodeRef n, int indent = 0) {
    const size_t number = numbers_.size();
    numbers_[n] = number;
    append_format(out_, "{:{}}%{} = ", "", indent, number);
    append_head(out_, n);
    if (n->op == Op::Const) append_format(out_, " {}", const_value(n).text());
    if (!n->text().empty() || schema(n->op).text) {
      out_ += ' ';
      append_quoted(out_, n->text());
    }
    for (NodeRef s : n->src()) append_operand(s);
    append_ints(out_, n);
    append_remark(n);
    out_ += '\n';
  }
  void append_operand(NodeRef n) {
    out_ += ' ';
    if (const size_t* number = numbers_.find(n))
      append_format(out_, "%{}", *number);
    else
      append_constant(out_, n);
  }
  void append_text(std::string_view text) { out_ += text; }
  void add_comment(std::string_view text) {
    append_comment(out_, text);
    out_ += '\n';
  }
  bool has(NodeRef n) const { return numbers_.contains(n); }
  std::string take() { return std::move(out_); }

 private:
  /// What the node is, for people: its shape, or the expression that ends in it.
  void append_remark(NodeRef n) {
    const bool is_expression =
        is_alu(n->op) && (n->dtype == DType::Index || n->dtype == DType::Bool);
    if (n->rank() == 0 && !is_expression) return;
    out_ += "  ";
    append_comment(out_, n->rank() > 0 ? shape_text(n->shape) : short_expression(n, 24));
  }

  NodeMap<size_t> numbers_;
  std::string out_;
};

std::string launch_text(const Launch& launch) {
  std::string grid, group;
  for (size_t axis = 0; axis < launch.grid.size(); ++axis) {
    NodeRef size = launch.grid[axis];
    append_format(grid, "{}{}", axis ? " x " : "", size ? expression(size) : "1");
    append_format(group, "{}{}", axis ? " x " : "", launch.group[axis]);
  }
  return strformat("grid: {} groups of {} items", grid, group);
}

}  // namespace

std::string print_graph(std::span<const NodeRef> roots) {
  Lines lines;
  const Toposort order(roots);
  for (NodeRef n : order)
    if (!is_inline(n) || contains(roots, n)) lines.add(n);
  if (roots.size() != 1) {
    lines.append_text("return");
    for (NodeRef n : roots) lines.append_operand(n);
    lines.append_text("\n");
  }
  return lines.take();
}

std::string print_graph(NodeRef root) { return print_graph({&root, 1}); }

std::string print_nodes(std::span<const NodeRef> nodes) {
  Lines lines;
  for (NodeRef n : nodes)
    if (!is_inline(n)) lines.add(n);
  return lines.take();
}

std::string print_program(const LinearProgram& program) {
  Lines lines;
  lines.add_comment(strformat("program {}", program.name));
  for (size_t i = 0; i < program.params.size(); ++i) {
    const ProgramParam& p = program.params[i];
    lines.add_comment(strformat("param {}: {}{}{}", i, name(p.dtype), p.read ? " read" : "",
                                p.written ? " written" : ""));
  }
  int depth = 0;
  for (NodeRef n : program.code) {
    if (n->op == Op::EndRange || n->op == Op::EndIf) depth = std::max(0, depth - 1);
    for (NodeRef s : n->src())
      if (!lines.has(s) && !is_inline(s)) lines.add(s, 2 * depth);
    lines.add(n, 2 * depth);
    if (n->op == Op::Range || n->op == Op::If) ++depth;
  }
  if (program.core_size)
    lines.add_comment(strformat("core items: {}", expression(program.core_size)));
  if (program.launch.grouped) lines.add_comment(launch_text(program.launch));
  return lines.take();
}

std::string summary(NodeRef n) {
  std::string out;
  append_head(out, n);
  if (n->op == Op::Const) append_format(out, " {}", const_value(n).text());
  if (n->rank() > 0) (out += ' ') += shape_text(n->shape);
  return out;
}

}  // namespace weft
