// Hand-written linear programs and a way to run them, for the tests of render/ and device/.
#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/compiler/kernel_code.h"
#include "tests/support/compiler/ptx_machine.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/device.h"
#include "weft/graph/program.h"

namespace weft::testing {

/// Writes instructions in order, exactly as given: of two calls inside one call, C++ does not say
/// which comes first.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(std::string name) {
    program_.graph = std::make_shared<Graph>();
    program_.name = std::move(name);
  }

  Graph& graph() { return *program_.graph; }
  NodeRef node(Op op, DType dtype, std::vector<NodeRef> src, std::vector<int64_t> ints = {},
               int lanes = 1) {
    return graph().intern({op, dtype, src, ints, {}, static_cast<uint16_t>(lanes)});
  }
  NodeRef push(NodeRef n) {
    program_.code.push_back(n);
    return n;
  }
  NodeRef emit(Op op, DType dtype, std::vector<NodeRef> src, std::vector<int64_t> ints = {},
               int lanes = 1) {
    return push(node(op, dtype, std::move(src), std::move(ints), lanes));
  }
  /// Elementwise: dtype of the first operand (of the second for where), lanes too.
  NodeRef alu(Op op, std::vector<NodeRef> src) {
    const NodeRef like = src[op == Op::Where ? 1 : 0];
    const DType dtype = has_trait(op, kBoolResult) ? DType::Bool : like->dtype;
    return emit(op, dtype, src, {}, like->lanes);
  }

  NodeRef constant(DType dtype, double x) { return push(graph().constant(Value::of(dtype, x))); }
  NodeRef i32(int64_t x) { return constant(DType::I32, static_cast<double>(x)); }
  NodeRef constant(Value v) { return push(graph().constant(v)); }

  NodeRef param(DType dtype, bool written = false) {
    program_.params.push_back({dtype, !written, written});
    NodeRef size = graph().index(1 << 20);
    return push(graph().param(static_cast<int64_t>(program_.params.size()) - 1, dtype,
                              std::span(&size, 1)));
  }
  NodeRef variable(const char* name, int64_t min, int64_t max) {
    program_.variables.push_back(push(graph().variable(name, min, max)));
    return program_.variables.back();
  }
  NodeRef open(NodeRef size, Binding binding = Binding::Loop) {
    if (binding == Binding::Core) program_.core_size = size;
    return emit(Op::Range, size->dtype, {size}, {next_range_++, static_cast<int64_t>(binding)});
  }
  void close(NodeRef range) { emit(Op::EndRange, DType::Void, {range}); }
  NodeRef load(NodeRef p, NodeRef index, int lanes = 1, NodeRef valid = nullptr) {
    std::vector<NodeRef> src{p, index};
    if (valid) src.push_back(valid);
    return emit(Op::Load, p->dtype, src, {}, lanes);
  }
  void store(NodeRef p, NodeRef index, NodeRef value, NodeRef valid = nullptr) {
    std::vector<NodeRef> src{p, index, value};
    if (valid) src.push_back(valid);
    emit(Op::Store, DType::Void, src, {static_cast<int64_t>(Fold::Set), 1});
  }

  LinearProgram build() { return program_; }

 private:
  LinearProgram program_;
  int64_t next_range_ = 0;
};

/// A context that leaves no trace on the machine.
inline Options quiet_options() {
  Options options = Options::from_environment();
  options.cache = false;
  options.threads = 2;
  return options;
}

/// Why this device cannot be opened here; empty where it can.
inline std::string missing(const char* device) {
  Context context(quiet_options());
  try {
    OpenedDevice(context, device);
  } catch (const DeviceError& error) {
    return error.what();
  }
  return {};
}

/// Programs loaded together on one device.
class Loaded {
 public:
  Loaded(Device& device, const std::vector<LinearProgram>& programs) : device_(device) {
    std::vector<std::string> texts(programs.size());
    std::vector<ProgramSource> sources;
    for (size_t i = 0; i < programs.size(); ++i) {
      const std::string entry = entry_name(i, programs[i].name);
      texts[i] = kernel_code(programs[i], device.target(), entry);
      sources.push_back({&programs[i], texts[i], entry});
    }
    executables_ = device.load(sources);
  }

  void run(size_t i, const std::vector<BufferSlice>& buffers, const std::vector<int64_t>& vars = {},
           int64_t items = 1, std::array<int64_t, 3> grid = {1, 1, 1}) {
    Command command = Command::launch(*executables_[i], buffers, vars, items);
    command.grid = grid;
    device_.wait(device_.submit(0, {&command, 1}));
  }

 private:
  Device& device_;
  std::vector<std::unique_ptr<Executable>> executables_;
};

}  // namespace weft::testing
