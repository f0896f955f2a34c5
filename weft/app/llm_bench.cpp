#include <chrono>

#include "weft/app/app.h"
#include "weft/app/bench.h"
#include "weft/app/commands.h"
#include "weft/base/json_writer.h"
#include "weft/base/resident_memory.h"
#include "weft/llm/model.h"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;
double since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<llm::TokenId> some_tokens(const llm::Model& model, int64_t count, int64_t salt) {
  std::vector<llm::TokenId> all;
  for (int64_t i = 0; i < count; ++i)
    all.push_back(
        static_cast<llm::TokenId>((i * 7919 + salt * 104729 + 11) % model.config().vocabulary));
  return all;
}

/// Seconds until the first token, and of every token after it.
struct Measured {
  double first = 0, later = 0;
};

Measured measure(llm::Model& model, int64_t prompt, int64_t tokens, int64_t rows, int64_t salt) {
  const auto start = Clock::now();
  for (int64_t i = 0; i < rows; ++i) {
    llm::Request request;
    request.prompt = some_tokens(model, prompt, salt + i);
    request.max_tokens = tokens;
    request.ignore_end = true;
    request.sampling.temperature = 0;
    model.submit(std::move(request));
  }
  Measured m;
  int64_t begun = 0;
  std::vector<double> steps;
  while (!model.idle()) {
    const auto before = Clock::now();
    const size_t reports = model.step().size();
    if (m.first == 0 && reports != 0) m.first = since(start);
    if (begun < rows) begun = static_cast<int64_t>(reports);
    if (begun >= rows && reports == static_cast<size_t>(rows)) steps.push_back(since(before));
  }
  if (steps.size() > 1) steps.erase(steps.begin());
  m.later = steps.empty() ? 0 : median(std::move(steps)) / static_cast<double>(rows);
  return m;
}

}  // namespace

int bench_llm(const Session& session, const LlmOptions& options) {
  const auto start = Clock::now();
  llm::Model model(options.model, model_options(options));
  const double load = since(start);
  const Measured cold = measure(model, 1, 2, 1, 0);
  const auto weights = static_cast<double>(model.weight_bytes());
  const double bandwidth = measured_read_bandwidth(session.context);
  const auto report = [&](const std::string& what, double value, const char* unit) {
    if (!session.json) return session.print("{:<28} {:>10.3f} {}\n", what, value, unit);
    JsonWriter json;
    json.begin_object().field("what", what).field("value", value).field("unit", unit);
    session.print("{}\n", json.end_object().text());
  };
  report("load", load, "s");
  report("first token after loading", cold.first, "s");
  for (const int64_t prompt : {int64_t{256}, int64_t{1024}}) {
    if (prompt >= model.context_length()) continue;
    for (int64_t i = 0; i < 2; ++i) measure(model, prompt, 1, 1, 10 * prompt + i);  // compiles
    const Measured m = measure(model, prompt, 1, 1, 11 * prompt);
    report(strformat("prompt of {}", prompt), static_cast<double>(prompt) / m.first, "tokens/s");
  }
  for (int64_t rows = 1; rows <= options.slots; rows *= 2) {
    measure(model, 4, 4, rows, 7);
    const Measured m = measure(model, 4, options.tokens > 0 ? options.tokens : 32, rows, 3);
    report(strformat("{} at once", rows), 1 / m.later, "tokens/s");
    if (rows == 1) report("share of read bandwidth", 100 * weights / m.later / bandwidth, "%");
  }
  constexpr double kMiB = 1 << 20;
  report("weights", weights / kMiB, "MiB");
  report("cache", static_cast<double>(model.cache_bytes()) / kMiB, "MiB");
  report("resident memory", static_cast<double>(resident_memory().now) / kMiB, "MiB");
  return kExitOk;
}

}  // namespace weft
