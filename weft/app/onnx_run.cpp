#include <algorithm>
#include <chrono>
#include <thread>

#include "weft/app/app.h"
#include "weft/app/bench.h"
#include "weft/app/bench_peer.h"
#include "weft/app/onnx_inputs.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/base/resident_memory.h"
#include "weft/io/npy.h"
#include "weft/io/tensors.h"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// A name of a value as that of a file: nothing in it leads elsewhere.
std::string file_name(std::string name) {
  for (char& c : name) {
    const auto code = static_cast<unsigned char>(c);
    const bool plain = (code >= '0' && code <= '9') || (code >= 'A' && code <= 'Z') ||
                       (code >= 'a' && code <= 'z') || c == '-' || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  while (!name.empty() && name[0] == '.') name.erase(0, 1);
  return (name.empty() ? "output" : name.substr(0, 200)) + ".npy";
}

/// NumPy has no narrow floats but f16.
HostArray array_of(const onnx::Value& x) {
  const DType d = x.dtype();
  const bool narrow = is_float(d) && bits(d) < 32 && d != DType::F16;
  return host_array_of(narrow ? x.tensor().cast(DType::F32) : x.tensor());
}

void write_output(const Session& session, const std::string& name, const onnx::Value& value,
                  const OnnxOptions& options) {
  const bool tensor = value.kind() == onnx::Value::Kind::Tensor;
  std::string file;
  if (tensor && !options.output.empty()) {
    file = options.output + "/" + file_name(name);
    save_npy(file, array_of(value));
  }
  const std::string shape = tensor ? value.dims().text() : "";
  const std::string type = tensor ? onnx::name(value.type()) : "no tensor";
  if (!session.json)
    return session.print("{:<28} {} {} {}\n", name, type, shape,
                         file.empty() && tensor ? value.tensor().text() : file);
  JsonWriter json;
  json.begin_object().field("name", name).field("type", type).field("shape", shape);
  session.print("{}\n", json.field("file", file).end_object().text());
}

/// Of a library: seconds until the model is there, until a result, of a later run; and memory of
/// its process before there was a model, and in the end.
struct Measured {
  double load = 0, first = 0, run = 0;
  ResidentMemory before, after;
};

void print_measured(const Session& session, const std::string& who, const Measured& m) {
  constexpr double kMiB = 1 << 20;
  const auto mib = [](int64_t bytes) { return static_cast<double>(bytes) / kMiB; };
  if (!session.json)
    return session.print(
        "{:<20} load {:>10}  first result {:>10}  run {:>10}  memory {:.0f} MiB, at most {:.0f} "
        "({:.0f} without the model)\n",
        who, time_text(m.load), time_text(m.first), time_text(m.run), mib(m.after.now),
        mib(m.after.peak), mib(m.before.now));
  JsonWriter json;
  json.begin_object().field("who", who).field("load_s", m.load).field("first_s", m.first);
  json.field("run_s", m.run).field("resident_bytes", m.after.now);
  json.field("peak_bytes", m.after.peak).field("resident_before_bytes", m.before.now);
  session.print("{}\n", json.end_object().text());
}

}  // namespace

int run_onnx_model(const Session& session, const OnnxOptions& options) {
  onnx::OnnxRunner runner(options.model);
  const onnx::NamedValues inputs = named_inputs(runner, options);
  if (!options.output.empty()) make_directories(options.output);
  for (const auto& [name, value] : runner(inputs)) write_output(session, name, value, options);
  return kExitOk;
}

int bench_onnx(const Session& session, const OnnxOptions& options) {
  Measured ours, theirs;
  ours.before = resident_memory();
  const auto start = Clock::now();
  onnx::OnnxRunner runner(options.model);
  ours.load = since(start);
  const onnx::NamedValues inputs = named_inputs(runner, options);
  const auto loaded = Clock::now();
  runner(inputs);
  ours.first = ours.load + since(loaded);
  std::optional<BenchPeer> peer;
  if (!options.against.empty()) {
    peer.emplace(options.against, options.python,
                 static_cast<int>(session.context.options().threads));
    std::map<std::string, std::vector<int64_t>> shapes;
    for (const auto& [name, value] : inputs) shapes[name] = value.tensor().shape();
    theirs.before = peer->memory();
    const BenchPeer::Loaded there = peer->prepare_model(options.model, shapes);
    theirs.load = there.load;
    theirs.first = there.first;
  }
  std::vector<double> mine, other;
  for (int64_t i = 0; i < options.repeats; ++i) {
    if (peer) std::this_thread::sleep_for(BenchPeer::kPause);
    runner(inputs);  // not counted, as the peer's first one: the caches held another's data
    const auto before = Clock::now();
    runner(inputs);
    mine.push_back(since(before));
    if (!peer) continue;
    std::this_thread::sleep_for(BenchPeer::kPause);
    other.push_back(peer->seconds(1));
  }
  ours.run = median(std::move(mine));
  ours.after = resident_memory();
  print_measured(session, "weft", ours);
  if (!peer) return kExitOk;
  theirs.run = median(std::move(other));
  theirs.after = peer->memory();
  print_measured(session, peer->library() + " " + peer->version(), theirs);
  if (!session.json) session.print("ratio of runs: {:.2f}\n", theirs.run / ours.run);
  return kExitOk;
}

}  // namespace weft
