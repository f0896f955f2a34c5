#include "weft/app/app.h"
#include "weft/app/onnx_inputs.h"
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/onnx/check_inputs.h"
#include "weft/onnx/summary.h"

namespace weft {

namespace {

struct Inspected {
  onnx::Model model;
  onnx::ModelSummary summary;
  std::vector<onnx::DeclaredValue> inputs;
  std::optional<int64_t> flops;
  std::string why;  // there are none
};

Inspected inspect(const OnnxOptions& options) {
  Inspected all;
  all.model = onnx::read_onnx(options.model);
  all.summary = onnx::summarise(all.model);
  for (const onnx::DeclaredValue& v : all.model.graph.inputs)
    if (!onnx::has_initialiser(all.model.graph, v.name)) all.inputs.push_back(v);
  if (!all.summary.unsupported.empty()) {
    all.why = "some operators are not supported";
    return all;
  }
  try {
    const onnx::OnnxRunner runner(all.model);
    all.flops = onnx::product_flops(all.model, runner.empty_inputs(named_sizes(options)));
  } catch (const Error& e) {
    all.why = e.message();
  }
  return all;
}

void print_values(const Session& session, const char* title,
                  const std::vector<onnx::DeclaredValue>& values) {
  session.print("{}\n", session.bold(title));
  for (const onnx::DeclaredValue& v : values)
    session.print("  {:<28} {}\n", v.name, onnx::text(v.type));
}

void print_text(const Session& session, const Inspected& i) {
  const onnx::Model& m = i.model;
  session.print("{}: ONNX IR {}, of {} {}\n", quoted_name(m.graph.name), m.ir_version,
                m.producer.empty() ? "an unnamed producer" : m.producer, m.producer_version);
  std::string opsets;
  for (const auto& [domain, version] : m.opsets)
    opsets += strformat("{}{} {}", opsets.empty() ? "" : ", ",
                        domain.empty() ? "ai.onnx" : domain, version);
  session.print("opsets     {}\n", opsets);
  session.print("parameters {} in {}\n", i.summary.parameters, human_bytes(i.summary.bytes));
  if (i.flops)
    session.print("products   {:.3f} GFLOP a run\n", static_cast<double>(*i.flops) * 1e-9);
  else
    session.print("products   not counted: {}\n", i.why);
  print_values(session, "inputs", i.inputs);
  print_values(session, "outputs", m.graph.outputs);
  session.print("{}\n", session.bold(strformat("operators of {} nodes", i.summary.nodes)));
  for (const auto& [name, count] : i.summary.operators)
    session.print("  {:<28} {}\n", name, count);
  if (i.summary.unsupported.empty()) return;
  session.print("{}\n", session.yellow("not supported"));
  for (const std::string& text : i.summary.unsupported) session.print("  {}\n", text);
}

void write_values(JsonWriter& json, const char* key, const std::vector<onnx::DeclaredValue>& values) {
  json.key(key).begin_array();
  for (const onnx::DeclaredValue& v : values)
    json.begin_object().field("name", v.name).field("type", onnx::text(v.type)).end_object();
  json.end_array();
}

void print_json(const Session& session, const Inspected& i) {
  JsonWriter json;
  json.begin_object().field("name", i.model.graph.name).field("ir_version", i.model.ir_version);
  json.field("producer", i.model.producer).key("opsets").begin_object();
  for (const auto& [domain, version] : i.model.opsets)
    json.field(domain.empty() ? "ai.onnx" : domain, version);
  json.end_object();
  json.field("parameters", i.summary.parameters).field("bytes", i.summary.bytes);
  json.key("flops");
  i.flops ? json.value(*i.flops) : json.null();
  write_values(json, "inputs", i.inputs);
  write_values(json, "outputs", i.model.graph.outputs);
  json.key("operators").begin_object();
  for (const auto& [name, count] : i.summary.operators) json.field(name, count);
  json.end_object().key("unsupported").begin_array();
  for (const std::string& text : i.summary.unsupported) json.value(text);
  session.print("{}\n", json.end_array().end_object().text());
}

}  // namespace

int inspect_onnx(const Session& session, const OnnxOptions& options) {
  const Inspected inspected = inspect(options);
  session.json ? print_json(session, inspected) : print_text(session, inspected);
  return inspected.summary.unsupported.empty() ? kExitOk : kExitFailure;
}

}  // namespace weft
