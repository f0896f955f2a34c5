// Repro files: a program that failed, as text that anybody can read, send and run again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "weft/base/exceptions.h"
#include "weft/graph/graph.h"

namespace weft {

class Context;
struct Options;

/// What a param holds; without it `weft repro` makes something up from the seed.
struct ReproData {
  DType dtype = DType::Void;
  std::vector<int64_t> shape;
  std::vector<std::byte> bytes;
};

/// A program in normal form and what it takes to run it again.
struct Repro {
  std::shared_ptr<Graph> graph = std::make_shared<Graph>();
  std::vector<NodeRef> roots;                                ///< over Params and Variables
  std::string failed;                                        ///< what was wrong, on one line
  std::string build, isa;                                    ///< of the weft, of the machine
  std::vector<std::pair<std::string, std::string>> options;  ///< WEFT_ names, those not by default
  uint64_t seed = 0;
  std::map<std::string, int64_t> variables;
  std::map<int64_t, ReproData> data = {};  ///< by slot
};

/// One line per fact, then the graph in the form of print_graph():
///   weft-repro 1
///   failed [lower.guard] ...
///   option WEFT_DEV=CPU:X86
///   bind n 3
///   data 0 i32 2 2 01000000020000000300000004000000
///   graph
///   %0 = param i32 2 2 slot=0
std::string print_repro(const Repro& repro);

/// Reads that form back. Damaged or hostile text is an Error (repro.format, or of the graph) that
/// names `what` and the line; sizes are checked before memory is taken.
Repro parse_repro(std::string_view text, std::string_view what);
Repro read_repro(const std::string& path);

/// The options that decide what code does and differ from their defaults.
std::vector<std::pair<std::string, std::string>> repro_options(const Options& options);
/// These options on top of `base`, of which none of those is kept.
Options options_of(const Repro& repro, const Options& base);

}  // namespace weft
