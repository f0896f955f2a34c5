// PassRecord: what a step of the compiler did.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "weft/graph/program.h"

namespace weft {

/// What a stage's state is like at one moment, for records.
struct PassView {
  int64_t size = 0;      ///< nodes or instructions
  uint64_t content = 0;  ///< differs where the state does
};

/// What a stage's state is, for those who write it down: its parts, not a text of them.
struct StateParts {
  /// As recordings have it: the numbers never change.
  enum class Kind : uint8_t {
    None = 0,
    Graph = 1,    ///< `nodes`: its roots
    Program = 2,  ///< `program`
    Kernels = 3,  ///< `nodes`: a sink for each of `names`
    Text = 4,     ///< `bytes`
    Machine = 5,  ///< `bytes`: isa/machine_binary.h
  };
  Kind kind = Kind::None;
  std::vector<NodeRef> nodes = {};
  std::vector<std::string> names = {};
  const LinearProgram* program = nullptr;
  std::string bytes = {};

  static StateParts graph(std::vector<NodeRef> roots) { return {Kind::Graph, std::move(roots)}; }
  static StateParts of(const LinearProgram& program) { return {Kind::Program, {}, {}, &program}; }
  static StateParts text(std::string text) {
    return {Kind::Text, {}, {}, nullptr, std::move(text)};
  }
};

/// What one pass did to one kernel, or to whatever else was compiled.
struct PassRecord {
  const char* pass = "";
  std::string subject = {};
  uint64_t ns = 0;
  PassView before = {}, after = {};
  int64_t firings = 0;                            ///< of rules
  std::string text_before = {}, text_after = {};  ///< where they are asked for
  bool changed() const { return before.content != after.content; }
};

}  // namespace weft
