#include "weft/viz/state.h"

#include <algorithm>

#include "weft/base/byte_writer.h"
#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/codegen/codegen.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"
#include "weft/isa/machine_binary.h"
#include "weft/isa/x86.h"

namespace weft::viz {

namespace {

// Deeper loops than any kernel's would only make long lines.
constexpr int kMostNested = 64;

size_t forms_of(std::string_view set) { return set == "x86" ? x86::kForms : 0; }

std::string machine_text(const StoredMachine& stored, Core core) {
  if (is_allocated(stored.program)) {
    Target target;
    target.name = stored.set;
    return back_end_of(target).list(stored.program, core);
  }
  std::string out;
  for (const Instruction& i : stored.program.code) (out += x86::print(i)) += '\n';
  return out;
}

bool nests_too_deep(const LinearProgram& p) {
  int depth = 0;
  for (NodeRef n : p.code) {
    if (n->op == Op::Range || n->op == Op::If) ++depth;
    if (n->op == Op::EndRange || n->op == Op::EndIf) --depth;
    if (depth > kMostNested) return true;
  }
  return false;
}

class StateReader {
 public:
  /// `with_nodes`: else their numbers are all that is read.
  StateReader(const Session::Data& data, Bytes bytes, NodeSource& nodes, bool with_nodes)
      : process_(nodes.process()), nodes_(nodes), with_nodes_(with_nodes), in_(bytes, data.path) {}

  StateView read() {
    StateView out;
    const uint8_t kind = in_.u8();
    if (kind > static_cast<uint8_t>(StateParts::Kind::Machine))
      fail("viz.damaged", "{}: there is no form of states {}", in_.what(), kind);
    out.kind = static_cast<StateParts::Kind>(kind);
    out.core = core_named_in(process_.machine);
    switch (out.kind) {
      case StateParts::Kind::Graph:
      case StateParts::Kind::Kernels: read_nodes(out); break;
      case StateParts::Kind::Program: read_program(out); break;
      default: out.bytes = in_.bytes(in_.remaining());
    }
    return out;
  }

 private:
  NodeRef node(uint64_t number) { return with_nodes_ ? nodes_.get(number) : nullptr; }
  NodeRef optional_node() {
    const uint64_t number = in_.varint();
    return number == 0 ? nullptr : node(number - 1);
  }

  void read_nodes(StateView& out) {
    for (size_t i = in_.count(in_.varint(), 1); i > 0; --i) {
      if (out.kind == StateParts::Kind::Kernels) {
        const std::string_view* name = process_.strings.find(in_.varint());
        out.names.push_back(name ? *name : std::string_view());
      }
      out.numbers.push_back(in_.varint());
      out.nodes.push_back(node(out.numbers.back()));
    }
  }

  void read_program(StateView& out) {
    LinearProgram& p = out.program;
    p.graph = nodes_.graph();
    p.name = in_.text(in_.varint());
    p.params.resize(in_.count(in_.varint(), 2));
    for (ProgramParam& param : p.params) {
      const auto dtype = dtype_from_id(in_.u8());
      if (!dtype) fail("viz.damaged", "{}: a parameter has no dtype", in_.what());
      const uint8_t use = in_.u8();
      param = {*dtype, (use & 1) != 0, (use & 2) != 0};
    }
    p.variables.resize(in_.count(in_.varint(), 1));
    for (NodeRef& v : p.variables) v = node(in_.varint());
    p.core_size = optional_node();
    p.launch.grouped = in_.u8() != 0;
    for (NodeRef& n : p.launch.grid) n = optional_node();
    for (int64_t& n : p.launch.group)
      n = static_cast<int64_t>(std::min<uint64_t>(in_.varint(), INT32_MAX));
    p.flops = in_.f64();
    p.bytes = in_.f64();
    p.code.resize(in_.count(in_.varint(), 1));
    uint64_t number = 0;
    for (NodeRef& n : p.code) {
      out.numbers.push_back(number += static_cast<uint64_t>(unzigzag(in_.varint())));
      n = node(number);
    }
  }

  const Process& process_;
  NodeSource& nodes_;
  const bool with_nodes_;
  ByteReader in_;
};

}  // namespace

NodeSource::NodeSource(const Session::Data& data, const PassRow& pass)
    : data_(data), process_(data.processes[pass.process]) {
  const auto at = process_.arenas.find(pass.arena);
  arena_ = at == process_.arenas.end() ? nullptr : &at->second;
}

void NodeSource::damaged(const std::string& what) const {
  fail("viz.damaged", "{}: {}; the graph cannot be shown", data_.path, what);
}

void NodeSource::read(uint64_t number, StoredNode& node, std::vector<uint64_t>& sources) const {
  const uint64_t* at = arena_ ? arena_->nodes.find(number) : nullptr;
  if (!at) damaged(strformat("node {} is not there", number));
  ByteReader in(data_.bytes.subspan(static_cast<size_t>(*at)), data_.path);
  read_stored_node(in, node);
  sources.clear();
  for (const uint64_t back : node.back) {
    if (back == 0 || back > number) damaged(strformat("a source lies {} nodes back", back));
    sources.push_back(number - back);
  }
}

NodeRef NodeSource::get(uint64_t wanted) {
  if (const NodeRef* known = nodes_.find(wanted + 1)) return *known;
  const Graph::Building building(*graph_);
  std::vector<uint64_t> needed = {wanted};
  std::vector<NodeRef> sources;
  while (!needed.empty()) {
    const uint64_t number = needed.back();
    if (nodes_.contains(number + 1)) {
      needed.pop_back();
      continue;
    }
    read(number, stored_, sources_);
    const size_t before = needed.size();
    sources.clear();
    for (const uint64_t s : sources_) {
      const NodeRef* known = nodes_.find(s + 1);
      known ? sources.push_back(*known) : needed.push_back(s);
    }
    if (needed.size() > before) continue;
    const NodeSpec spec = stored_.spec(sources);
    if (const char* problem = node_problem(spec))
      damaged(strformat("node {}, {}: {}", number, info(spec.op).mnemonic, problem));
    nodes_.set(number + 1, graph_->intern(spec));
    needed.pop_back();
  }
  return nodes_.at(wanted + 1);
}

std::string_view NodeSource::line(uint64_t number) const {
  if (!arena_) return {};
  const auto at = arena_->lines.find(number);
  return at == arena_->lines.end() ? std::string_view() : at->second;
}

const char* StateView::form() const {
  switch (kind) {
    case StateParts::Kind::None: return nullptr;
    case StateParts::Kind::Graph: return "graph";
    case StateParts::Kind::Program: return "program";
    case StateParts::Kind::Kernels: return "kernels";
    case StateParts::Kind::Machine: return "machine";
    default: return "text";
  }
}

namespace {
StateView read_state(const Session::Data& data, uint64_t state, NodeSource& nodes,
                     bool with_nodes) {
  if (state == 0) return {};
  const Arena* arena = nodes.arena();
  const auto at =
      arena ? arena->states.find(state) : std::unordered_map<uint64_t, Bytes>::const_iterator();
  if (!arena || at == arena->states.end())
    fail("viz.damaged", "{}: state {} is not there", data.path, state);
  return StateReader(data, at->second, nodes, with_nodes).read();
}
}  // namespace

StateView state_of(const Session::Data& data, uint64_t state, NodeSource& nodes) {
  return read_state(data, state, nodes, true);
}

StateView numbers_of(const Session::Data& data, uint64_t state, NodeSource& nodes) {
  return read_state(data, state, nodes, false);
}

bool is_allocated(const MachineProgram& p) {
  constexpr Reg kMachineRegisters = 32;
  const auto is_machines = [](Reg r) { return r == kNoReg || r < kMachineRegisters; };
  return std::ranges::all_of(p.code, [&](const Instruction& i) {
    return std::ranges::all_of(i.regs, is_machines) && is_machines(i.mask) &&
           is_machines(i.address.base) && is_machines(i.address.index);
  });
}

StoredMachine machine_of(const StateView& state, std::string_view what) {
  return read_machine(state.bytes, what, forms_of);
}

std::string text_of(const StateView& state, std::string_view what) {
  switch (state.kind) {
    case StateParts::Kind::None: return {};
    case StateParts::Kind::Graph: return state.nodes.empty() ? "" : print_graph(state.nodes);
    case StateParts::Kind::Program:
      if (nests_too_deep(state.program))
        fail("viz.damaged", "{}: a program nests more than {} loops", what, kMostNested);
      return print_program(state.program);
    case StateParts::Kind::Kernels: {
      std::string out;
      for (size_t i = 0; i < state.nodes.size(); ++i)
        append_format(out, "kernel {}\n{}", state.names[i], print_graph(state.nodes[i]));
      return out;
    }
    case StateParts::Kind::Machine: return machine_text(machine_of(state, what), state.core);
    default: return {reinterpret_cast<const char*>(state.bytes.data()), state.bytes.size()};
  }
}

std::string hex_text(Bytes bytes) {
  std::string out;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i % 16 == 0) append_format(out, "{}{:06x} ", i == 0 ? "" : "\n", i);
    append_format(out, " {:02x}", static_cast<unsigned>(bytes[i]));
  }
  if (!bytes.empty()) out += '\n';
  return out;
}

}  // namespace weft::viz
