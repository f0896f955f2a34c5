// What a valid tensor graph, kernel and linear program is (docs/design/ir.md), checked.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "weft/graph/program.h"

namespace weft {

enum class Dialect : uint8_t { Tensor = 1, Kernel = 2, Linear = 4 };
constexpr uint8_t kAnyDialect = 7;

struct Problem {
  NodeRef node = nullptr;
  std::string what;
};

/// Why Graph::intern must not be given this node: wrong number of sources or integers, an axis out
/// of range, operands that do not fit. Null where it is sound in one of `dialects` (bits of
/// Dialect). Readers of untrusted graphs ask this before they intern.
const char* node_problem(const NodeSpec& spec, uint8_t dialects = kAnyDialect);

/// The first thing wrong with a graph, if anything. Iterative and safe on any graph that
/// node_problem let through.
std::optional<Problem> find_tensor_problem(std::span<const NodeRef> roots);
std::optional<Problem> find_kernel_problem(NodeRef sink);
std::optional<Problem> find_program_problem(const LinearProgram& program);

/// For graphs weft made: throws InternalError naming `step` and the node.
void verify_tensor_graph(std::span<const NodeRef> roots, std::string_view step);
void verify_kernel(const Kernel& kernel, std::string_view step);
void verify_program(const LinearProgram& program, std::string_view step);

/// For graphs from outside: throws Error naming `what` (a file) and the node.
void check_tensor_graph(std::span<const NodeRef> roots, std::string_view what);
void check_kernel(NodeRef sink, std::string_view what);

}  // namespace weft
