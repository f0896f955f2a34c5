// The text form of graphs (parse.h reads it back) and index expressions on one line.
#pragma once
#include <span>
#include <string>

#include "weft/graph/node.h"

namespace weft {

struct LinearProgram;

/// One line per node, sources first:
///   %0 = param f32 8 n slot=0  # (8, n)
///   %1 = reduce.add f32 %0 axes=1  # (8)
/// Constants of rank 0 stand where they are used: `8` is an index, `0.5:f32` anything else. Several
/// roots, or a root that is no line's last, end with `return %1 %0`. Comments are not part of the
/// form. parse_graph() gives back the same nodes, bit for bit.
std::string print_graph(std::span<const NodeRef> roots);
std::string print_graph(NodeRef root);

/// The same lines for a linear program, in execution order and indented by its brackets, after its
/// name and parameters.
std::string print_program(const LinearProgram& program);

/// An expression on one line: `r0*8 + r1 - 1`, `max(n, 4)`, `(p0[r0] < 3:i32)`. Cut to "..." past
/// a few hundred operators.
std::string expression(NodeRef n);
/// `(8, n + 1)`.
std::string shape_text(const Shape* shape);
/// A node for error messages: `reduce.add f32 (8)`.
std::string summary(NodeRef n);

}  // namespace weft
