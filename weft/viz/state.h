// States of passes, taken from a recording's bytes: their nodes, and their texts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/graph/binary.h"
#include "weft/graph/graph.h"
#include "weft/graph/node_map.h"
#include "weft/graph/program.h"
#include "weft/isa/machine_binary.h"
#include "weft/rewrite/pass_record.h"
#include "weft/target/core.h"
#include "weft/viz/session_data.h"

namespace weft::viz {

/// Nodes of a process, interned again in a graph of their own as they are asked for. What is
/// damaged is an Error (viz.damaged).
class NodeSource {
 public:
  /// Of the pass's states and firings.
  NodeSource(const Session::Data& data, const PassRow& pass);

  NodeRef get(uint64_t number);
  /// The user's line of a node; empty where it is not known.
  std::string_view line(uint64_t number) const;
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  const Process& process() const { return process_; }
  const Arena* arena() const { return arena_; }

 private:
  friend class StoredOrder;
  [[noreturn]] void damaged(const std::string& what) const;
  /// A node, and the numbers of its sources.
  void read(uint64_t number, StoredNode& node, std::vector<uint64_t>& sources) const;

  const Session::Data& data_;
  const Process& process_;
  const Arena* arena_;  // null where none is recorded
  std::shared_ptr<Graph> graph_ = std::make_shared<Graph>();
  FlatMap<uint64_t, NodeRef> nodes_;  // by number + 1
  // of the node that is being read
  StoredNode stored_;
  std::vector<uint64_t> sources_;
};

/// One state, decoded.
struct StateView {
  StateParts::Kind kind = StateParts::Kind::None;
  std::vector<uint64_t> numbers = {};  ///< of roots, of sinks of kernels, of a program's code
  std::vector<NodeRef> nodes = {};     ///< roots, or sinks of kernels
  std::vector<std::string_view> names = {};
  LinearProgram program = {};
  Bytes bytes = {};
  Core core = Core::Unknown;  ///< that it was made on

  const char* form() const;  ///< as JSON has it: "graph", ...; null for none
};

/// The state of that number; none (0) is an empty one.
StateView state_of(const Session::Data& data, uint64_t state, NodeSource& nodes);

/// The machine program of a state of that form.
StoredMachine machine_of(const StateView& state, std::string_view what);
/// Whether registers are the machine's: then there is a frame to list.
bool is_allocated(const MachineProgram& p);
/// The same without its nodes: only their numbers.
StateView numbers_of(const Session::Data& data, uint64_t state, NodeSource& nodes);

/// For people: lines.
std::string text_of(const StateView& state, std::string_view what);
/// A function's bytes as hexadecimal, 16 a line after their offset.
std::string hex_text(Bytes bytes);

}  // namespace weft::viz
