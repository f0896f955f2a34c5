// Text cases (tests/cases/*.wt): a graph, inputs, and what must come out.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "weft/eval/evaluate.h"
#include "weft/graph/graph.h"

namespace weft {

/// One case of a file:
///
///   == sum of rows
///   graph
///     %0 = param f32 2 3 slot=0
///     %1 = reduce.add f32 %0 axes=1
///   run
///     p0 = f32 (2, 3) [1, 2, 3, 4, 5, 6]
///     n = 4
///   expect
///     f32 (2) [6, 15]
///   rules
///     mul.one
///
/// `run` binds params and variables; `expect` has one array per root. `error` in place of `expect`
/// holds a part of the message that reading, checking or evaluating the graph gives. `rules`, when
/// there, lists exactly the rules that simplifying the graph fires, by name, in any order.
struct TextCase {
  std::string file, name;
  int line = 0;
  std::string graph;
  eval::Inputs inputs;
  std::vector<eval::Array> expected;
  std::string error;
  bool has_rules = false;
  std::vector<std::string> rules;
};

/// The cases of a file; mistakes in it are Errors with file and line.
std::vector<TextCase> read_cases(const std::string& path);
/// `f32 (2, 3) [1, 2, 3, 4, 5, 6]`: what eval::Array::text prints.
eval::Array parse_array(std::string_view text);

}  // namespace weft
