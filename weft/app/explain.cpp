#include <algorithm>
#include <vector>

#include "weft/app/app.h"
#include "weft/app/bench_models.h"
#include "weft/app/commands.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/base/names.h"
#include "weft/base/options.h"
#include "weft/base/version.h"
#include "weft/run/run_state.h"

namespace weft {

namespace {

// Something that `weft explain` can explain: an error code or an environment variable.
struct Topic {
  std::string_view name;
  std::string text;
};

std::vector<Topic> all_topics() {
  std::vector<Topic> topics;
  for (const ErrorCode& row : error_codes())
    for (const std::string_view code : codes_of(row))
      topics.push_back({code, std::string(row.explanation)});
  std::sort(topics.begin(), topics.end(),
            [](const Topic& a, const Topic& b) { return a.name < b.name; });
  size_t count = 0;
  const OptionRow* options = option_rows(count);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view type = options[i].type;
    std::string text = options[i].doc;
    if (type != "SYSTEM") append_format(text, " ({}, default '{}')", type, options[i].initial);
    topics.push_back({options[i].name, std::move(text)});
  }
  return topics;
}

// Broken at spaces to lines of at most `width` bytes.
std::string wrapped(std::string_view text, size_t width, std::string_view indent) {
  std::string out;
  while (!text.empty()) {
    size_t cut = text.size();
    if (cut > width) {
      cut = text.rfind(' ', width);
      if (cut == std::string_view::npos) cut = std::min(text.find(' '), text.size());
    }
    append_format(out, "{}{}\n", indent, text.substr(0, cut));
    text.remove_prefix(std::min(text.size(), cut + 1));
  }
  return out;
}

void list_topics(const Session& session, const std::vector<Topic>& topics) {
  if (!session.json) {
    for (const Topic& topic : topics) session.print("{}\n", topic.name);
    return;
  }
  JsonWriter json;
  json.begin_array();
  for (const Topic& topic : topics) {
    json.begin_object().field("code", topic.name).field("text", topic.text).end_object();
  }
  session.print("{}\n", json.end_array().text());
}

void print_topic(const Session& session, const Topic& topic) {
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("code", topic.name).field("text", topic.text).end_object();
    session.print("{}\n", json.text());
  } else {
    session.print("{}\n{}", session.bold(topic.name), wrapped(topic.text, 88, "  "));
  }
}

// The topic itself, else what it belongs to: `op` of `op.reason`.
const Topic* find_topic(std::string_view code, const std::vector<Topic>& topics) {
  for (const Topic& topic : topics)
    if (topic.name == code) return &topic;
  const size_t dot = code.rfind('.');
  return dot == std::string_view::npos ? nullptr : find_topic(code.substr(0, dot), topics);
}

[[noreturn]] void unknown_topic(const std::string& code, const std::vector<Topic>& topics) {
  std::vector<std::string_view> names;
  for (const Topic& topic : topics) names.push_back(topic.name);
  fail("explain", "'{}' is neither an error code nor an option{}; `weft explain` lists them all",
       code, did_you_mean(code, names));
}

void print_report(const Session& session, const CompileReport& report) {
  if (!session.json) {
    for (const DecisionReport& d : report.decisions) session.print("{}\n", text(d));
    for (const KernelReport& k : report.kernels) session.print("{}\n", text(k));
    return;
  }
  for (const DecisionReport& d : report.decisions) {
    JsonWriter json;
    json.begin_object().field("kind", "decision").field("value", d.value).field("staged", d.staged);
    json.field("reason", d.reason).field("lines", d.lines).end_object();
    session.print("{}\n", json.text());
  }
  for (const KernelReport& k : report.kernels) {
    JsonWriter json;
    json.begin_object().field("kind", "kernel").field("name", k.name).field("device", k.device);
    json.field("lines", k.lines).field("flops", k.flops).field("bytes", k.bytes).key("applied");
    json.begin_array();
    for (const std::string& line : k.applied) json.value(line);
    session.print("{}\n", json.end_array().end_object().text());
  }
}

void print_plan(const Session& session, const PlannedMemory& plan) {
  if (!session.json) return session.print("{}", plan_text(plan));
  const PlanTotals sum = totals(plan);
  JsonWriter json;
  json.begin_object().field("kind", "plan").field("steps", plan.schedule.steps.size());
  json.field("inputs", sum.inputs).field("outputs", sum.outputs);
  json.field("intermediates", sum.intermediates).end_object();
  session.print("{}\n", json.text());
}

// One training step, compiled without running it (on GPUs it runs, too): what is computed together
// and why, the kernels, the lines of the model's source they are for, and the memory plan.
int explain_model(const Session& session, const std::string& model_name) {
  Options options = session.context.options();
  options.dev = null_device(session.context, options.dev);
  Context context(std::move(options));
  const ContextScope scope(context);
  const std::unique_ptr<BenchModel> model = make_bench_model(model_name);
  const std::vector<Tensor> changed = model->step();
  CompileObserver& observer = context.get<RunState>().observer;
  observer.compiled = [&session](const CompileReport& report) { print_report(session, report); };
  observer.planned = [&session](const PlannedMemory& plan) { print_plan(session, plan); };
  realize(changed);
  return kExitOk;
}

}  // namespace

int run_explain(const Session& session, const ExplainOptions& options) {
  if (options.passes) return explain_passes(session, options);
  const std::string& code = options.code;
  if (is_bench_model(code)) return explain_model(session, code);
  const std::vector<Topic> topics = all_topics();
  if (code.empty()) {
    list_topics(session, topics);
    return kExitOk;
  }
  const Topic* topic = find_topic(code, topics);
  if (!topic) unknown_topic(code, topics);
  print_topic(session, *topic);
  return kExitOk;
}

std::string version_text() { return strformat("weft {} (build {:016x})", kVersion, build_id()); }

int run_version(const Session& session) {
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("version", kVersion);
    json.field("build", strformat("{:016x}", build_id())).end_object();
    session.print("{}\n", json.text());
  } else {
    session.print("{}\n", version_text());
  }
  return kExitOk;
}

}  // namespace weft
