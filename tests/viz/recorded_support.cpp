#include "tests/viz/recorded.h"

#include <random>

#include "weft/base/context.h"
#include "weft/nn/layers.h"
#include "weft/nn/optim.h"
#include "weft/run/recorder.h"
#include "weft/run/run_state.h"
#include "weft/tensor/tensor.h"
#include "weft/tensor/training.h"

namespace weft::viz {

Options recording_to(const std::string& file, const std::string& device) {
  Options options = Options::from_environment();
  options.viz = 1;
  options.viz_file = file;
  options.dev = device;
  options.cache = false;
  return options;
}

void train_a_step(const Options& options) {
  Context context(options);
  const ContextScope scope(context);
  const TrainingScope training;
  const nn::Conv2d conv(1, 8, 3);
  const nn::Linear linear(8 * 13 * 13, 10);
  std::vector<Tensor> parameters = {conv.weight, conv.bias, linear.weight, linear.bias};
  nn::Adam adam(parameters);
  const Tensor images = Tensor::zeros({16, 1, 28, 28}).contiguous();
  const Tensor labels = Tensor::zeros({16}, DType::I32).contiguous();
  const Tensor hidden = conv(images).relu().max_pool2d(2).flatten(1);
  const Tensor loss = linear(hidden).sparse_categorical_crossentropy(labels);
  loss.backward();
  std::vector<Tensor> changed = adam.schedule_step();
  changed.push_back(loss);
  realize(changed);
}

void record_a_large_pass(const Options& options, size_t nodes) {
  Context context(options);
  Graph graph;
  const std::vector<NodeRef> dims = {graph.index(8), graph.index(64)};
  std::vector<NodeRef> all = {graph.param(0, DType::F32, dims), graph.param(1, DType::F32, dims)};
  std::vector<bool> read(nodes);
  std::mt19937 random(1);
  const auto source = [&] {
    const size_t at = all.size() - 1 - random() % std::min<size_t>(all.size(), 1000);
    read[at] = true;
    return all[at];
  };
  while (all.size() < nodes) {
    NodeRef a = source(), b = source();
    all.push_back(graph.alu(random() % 2 ? Op::Add : Op::Mul, {a, b}));
  }
  std::vector<NodeRef> roots;
  for (size_t i = 0; i < nodes; ++i)
    if (!read[i]) roots.push_back(all[i]);
  Recorder& recorder = *context.get<RunState>().recorder;
  recorder.begin_run(RunKind::Realize, "large.cpp:1");
  recorder.compiling();
  const StateParts parts = StateParts::graph(std::move(roots));
  PassWatcher& passes = recorder.run_passes();
  passes.end(passes.begin("normalise", "large", &parts), 1, {}, parts);
  recorder.end_run(nullptr, false);
}

namespace {

Json asked(const Session& session, const char* view, const Parameters& parameters) {
  return Json::parse(view_json(session, view, parameters));
}

/// The first changed pass over a kernel whose state is a graph.
std::string a_pass(const Session& session) {
  const Json all = asked(session, "passes", {{"changed", "1"}});
  for (const Json& p : all["passes"]) {
    const std::string id = p["pass"].dump();
    if (p["kernel"].is_null() || p["size_before"] < 5) continue;
    if (asked(session, "pass", {{"pass", id}})["form"] == "graph") return id;
  }
  return "none";
}

std::string a_pass_with_rules(const Session& session) {
  const Json all = asked(session, "passes", {});
  for (const Json& p : all["passes"])
    if (p["firings"] > 0) return p["pass"].dump();
  return "none";
}

}  // namespace

Parameters sample_of(const View& view, const Session& session) {
  const std::string name = view.name;
  const Json runs = asked(session, "realizations", {})["realizations"];
  const bool rewrites = name == "firings" || name == "firing";
  Parameters out;
  for (const ViewParameter& p : view.parameters) {
    const std::string of = p.name;
    if (of == "pass" && name != "passes")
      out.set(of, rewrites ? a_pass_with_rules(session) : a_pass(session));
    else if (of == "realization" && name != "passes" && name != "graph")
      out.set(of, runs.back()["realization"].dump());
    else if (of == "other")
      out.set(of, runs.front()["realization"].dump());
    else if (of == "kernel" && name != "passes")
      out.set(of, "0");
    else if (of == "step")
      out.set(of, "0");
    else if (of == "text")
      out.set(of, "add");
    else if (of == "rules")
      out.set(of, "add.zero");
    else if (of == "context")
      out.set(of, "2");
    else if (of == "fired" || of == "changed")
      out.set(of, "1");
    else if (of == "side")
      out.set(of, "both");
  }
  return out;
}

void compute_little(const Options& options) {
  Context context(options);
  const ContextScope scope(context);
  const Tensor x = Tensor::arange(64).cast(DType::F32).reshape({8, 8});
  const Tensor y = (x * 2 + 1).exp2().sum(1);
  (y / y.max()).realize();
}

}  // namespace weft::viz
