#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>

#include "weft/app/app.h"
#include "weft/app/commands.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/json_writer.h"
#include "weft/io/json_reader.h"
#include "weft/onnx/operators.h"
#include "weft/onnx/runner.h"
#include "weft/onnx/stored.h"

namespace weft {

namespace {

namespace fs = std::filesystem;

enum class Outcome : uint8_t { Passed, Wrong, Failed, Unsupported };
constexpr const char* kOutcomes[] = {"passed", "wrong", "failed", "unsupported"};

struct CheckedCase {
  std::string kind, name;
  Outcome outcome = Outcome::Passed;
  std::string reason;
};

struct Tolerances {
  double rtol = 1e-3, atol = 1e-7;  // those of onnx.backend.test
};

Tolerances read_tolerances(const fs::path& folder) {
  Tolerances t;
  const std::string path = folder / "data.json";
  if (!file_exists(path)) return t;
  const MappedFile file(path);
  JsonReader json(file.text(), path);
  std::string key;
  json.begin_object();
  while (json.next_key(key)) {
    if (key == "rtol")
      t.rtol = json.number();
    else if (key == "atol")
      t.atol = json.number();
    else
      json.skip();
  }
  return t;
}

/// Results of another generator are others: only their types and shapes are compared.
bool has_random_results(const onnx::Model& model) {
  return std::ranges::any_of(model.graph.nodes, [](const onnx::Node& n) {
    return onnx::is_random(n) && (n.op != "Dropout" || n.inputs.size() > 2);
  });
}

std::string stored_path(const fs::path& data, const char* prefix, size_t i) {
  return data / strformat("{}_{}.pb", prefix, i);
}

onnx::NamedValues read_inputs(const onnx::Model& model, const fs::path& data) {
  onnx::NamedValues inputs;
  for (size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const std::string path = stored_path(data, "input", i);
    if (!file_exists(path)) break;
    onnx::Value v = onnx::read_stored(path, model.graph.inputs[i].type);
    // As users give them: not known before something runs.
    if (v.kind() == onnx::Value::Kind::Tensor) v = onnx::Value(v.tensor(), v.type());
    inputs.emplace(model.graph.inputs[i].name, std::move(v));
  }
  return inputs;
}

/// Two ulps of bfloat16, as onnx.backend.test allows.
double rtol_for(const onnx::Value& wanted, double rtol) {
  const bool bf16 = wanted.kind() == onnx::Value::Kind::Tensor &&
                    wanted.type() == onnx::ElementType::Bfloat16;
  return bf16 ? std::max(rtol, 1.0 / 64) : rtol;
}

std::string check_outputs(const onnx::Model& model, const onnx::NamedValues& outputs,
                          const fs::path& data, const Tolerances& t) {
  const bool random = has_random_results(model);
  const double atol = random ? std::numeric_limits<double>::infinity() : t.atol;
  for (size_t i = 0; i < model.graph.outputs.size(); ++i) {
    const std::string path = stored_path(data, "output", i);
    if (!file_exists(path)) break;
    const onnx::DeclaredValue& declared = model.graph.outputs[i];
    const onnx::Value wanted = onnx::read_stored(path, declared.type);
    const std::string text =
        onnx::difference(outputs.at(declared.name), wanted, rtol_for(wanted, t.rtol), atol);
    if (!text.empty()) return strformat("output {}: {}", i, text);
  }
  return "";
}

/// Twice: captured, and replayed.
std::string check_data(onnx::OnnxRunner& runner, const fs::path& data, const Tolerances& t) {
  const onnx::NamedValues inputs = read_inputs(runner.model(), data);
  const std::string first = check_outputs(runner.model(), runner(inputs), data, t);
  if (!first.empty()) return first;
  const std::string second = check_outputs(runner.model(), runner(inputs), data, t);
  return second.empty() ? "" : "the second time: " + second;
}

CheckedCase check_case(const fs::path& folder) {
  CheckedCase c{folder.parent_path().filename(), folder.filename(), {}, {}};
  try {
    onnx::OnnxRunner runner(folder / "model.onnx");
    const Tolerances tolerances = read_tolerances(folder);
    for (size_t i = 0; fs::exists(folder / strformat("test_data_set_{}", i)); ++i) {
      c.reason = check_data(runner, folder / strformat("test_data_set_{}", i), tolerances);
      if (c.reason.empty()) continue;
      c.outcome = Outcome::Wrong;
      break;
    }
  } catch (const Error& e) {
    c.outcome = e.code() == "onnx.unsupported" || e.code() == "onnx.type" ? Outcome::Unsupported
                                                                          : Outcome::Failed;
    c.reason = strformat("[{}] {}", e.code(), e.message());
  }
  std::ranges::replace(c.reason, '\n', ' ');
  return c;
}

std::vector<fs::path> find_cases(const OnnxOptions& options) {
  std::vector<fs::path> found;
  for (const std::string& directory : options.cases) {
    if (!fs::is_directory(directory))
      fail_runtime("onnx", "{} is no directory; tools/onnx_cases writes one", directory);
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory))
      if (entry.path().filename() == "model.onnx" &&
          entry.path().parent_path().filename().string().find(options.which) != std::string::npos)
        found.push_back(entry.path().parent_path());
  }
  std::ranges::sort(found);
  return found;
}

void print_case(const Session& session, const CheckedCase& c) {
  JsonWriter json;
  json.begin_object().field("kind", c.kind).field("case", c.name);
  json.field("outcome", kOutcomes[static_cast<size_t>(c.outcome)]).field("reason", c.reason);
  session.print("{}\n", json.end_object().text());
}

void print_table(const Session& session, const std::vector<CheckedCase>& cases, int64_t most) {
  std::map<std::string, std::array<size_t, 4>> counts;
  int64_t listed = 0;
  for (const CheckedCase& c : cases) {
    ++counts[c.kind][static_cast<size_t>(c.outcome)];
    if (c.outcome == Outcome::Passed || (most != 0 && listed++ >= most)) continue;
    session.print("{:<11} {}: {}\n", kOutcomes[static_cast<size_t>(c.outcome)], c.name,
                  c.reason.substr(0, 300));
  }
  session.print("{:<20} {:>7} {:>7} {:>7} {:>11}\n", "", "passed", "wrong", "failed",
                "unsupported");
  for (const auto& [kind, n] : counts)
    session.print("{:<20} {:>7} {:>7} {:>7} {:>11}\n", kind, n[0], n[1], n[2], n[3]);
}

}  // namespace

int check_onnx(const Session& session, const OnnxOptions& options) {
  const std::vector<fs::path> folders = find_cases(options);
  if (folders.empty()) fail("onnx", "there is no case with '{}' in its name", options.which);
  std::vector<CheckedCase> cases;
  for (const fs::path& folder : folders) {
    cases.push_back(check_case(folder));
    if (session.json) print_case(session, cases.back());
  }
  if (!session.json) print_table(session, cases, options.most);
  const bool good =
      std::ranges::all_of(cases, [](const CheckedCase& c) { return c.outcome == Outcome::Passed; });
  return good ? kExitOk : kExitFailure;
}

}  // namespace weft
