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

namespace weft {

namespace {

// Something that `weft explain` can explain: an error code or an environment variable.
struct Topic {
  std::string_view name;
  std::string text;
};

std::vector<Topic> all_topics() {
  std::vector<Topic> topics;
  size_t count = 0;
  const ErrorCode* codes = error_codes(count);
  for (size_t i = 0; i < count; ++i) topics.push_back({codes[i].code, codes[i].explanation});
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

[[noreturn]] void unknown_topic(const std::string& code, const std::vector<Topic>& topics) {
  std::vector<std::string_view> names;
  for (const Topic& topic : topics) names.push_back(topic.name);
  fail("explain", "'{}' is neither an error code nor an option{}; `weft explain` lists them all",
       code, did_you_mean(code, names));
}

// What WEFT_DEBUG=3 says of one training step, without running it: the memory plan, what is
// computed together and why, the kernels, and the lines of the model's source they are for.
int explain_model(const Session& session, const std::string& model_name) {
  Options options = session.context.options();
  options.dev = null_device(options.dev);
  Context context(std::move(options));
  const ContextScope scope(context);
  const std::unique_ptr<BenchModel> model = make_bench_model(model_name);
  const std::vector<Tensor> changed = model->step();
  context.log_sink() = {[](void* user, std::string_view line) {
                          const auto& to = *static_cast<const Session*>(user);
                          if (!to.json) return to.print("{}\n", line);
                          JsonWriter json;
                          json.begin_object().field("line", line).end_object();
                          to.print("{}\n", json.text());
                        },
                        const_cast<Session*>(&session)};
  context.mutable_options().debug = 3;
  realize(changed);
  return kExitOk;
}

}  // namespace

int run_explain(const Session& session, const std::string& code) {
  if (code == "mnist" || code == "gpt2") return explain_model(session, code);
  const std::vector<Topic> topics = all_topics();
  if (code.empty()) {
    list_topics(session, topics);
    return kExitOk;
  }
  for (const Topic& topic : topics) {
    if (topic.name != code) continue;
    if (session.json) {
      JsonWriter json;
      json.begin_object().field("code", topic.name).field("text", topic.text).end_object();
      session.print("{}\n", json.text());
    } else {
      session.print("{}\n{}", session.bold(topic.name), wrapped(topic.text, 88, "  "));
    }
    return kExitOk;
  }
  unknown_topic(code, topics);
}

int run_version(const Session& session) {
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("version", kVersion);
    json.field("build", strformat("{:016x}", build_id())).end_object();
    session.print("{}\n", json.text());
  } else {
    session.print("weft {} (build {:016x})\n", kVersion, build_id());
  }
  return kExitOk;
}

}  // namespace weft
