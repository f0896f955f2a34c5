// weft llm bench: tokens per second beside what the machine allows, and beside llama.cpp.
#include <chrono>
#include <optional>
#include <thread>

#include "weft/app/app.h"
#include "weft/app/bench.h"
#include "weft/app/bench_peer.h"
#include "weft/app/llm_options.h"
#include "weft/base/context.h"
#include "weft/base/json_writer.h"
#include "weft/base/resident_memory.h"
#include "weft/base/thread_pool.h"
#include "weft/llm/model.h"
#include "weft/llm/model_file.h"

namespace weft {

namespace {

using Clock = std::chrono::steady_clock;
constexpr double kMiB = 1 << 20;
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

/// What a token is multiplied with: of matrices that are looked up in a row, of experts those used.
struct PerToken {
  double bytes = 0, numbers = 0;
};
PerToken per_token(const llm::ModelFile& file) {
  const llm::Experts& experts = file.config.experts;
  const bool tied = file.weights.find("output.weight") == nullptr;
  PerToken all;
  for (const auto& [name, weight] : file.weights.all()) {
    if (weight.shape.size() < 2 || name == "position_embd.weight") continue;
    if (name == "token_embd.weight" && !tied) continue;
    const bool chosen = weight.shape.size() == 3 && experts.count > 0;
    double count = chosen ? double(experts.used) / double(experts.count) : 1;
    all.bytes += count * static_cast<double>(weight.bytes);
    for (const Dim& d : weight.shape) count *= static_cast<double>(d.value());
    all.numbers += count;
  }
  return all;
}

/// `rows` requests at once; others than before, since prompts that are known are not computed.
BenchPeer::Steps measure(llm::Model& model, int64_t prompt, int64_t rows, int64_t tokens) {
  static thread_local int64_t salt = 0;
  const auto start = Clock::now();
  for (int64_t i = 0; i < rows; ++i) {
    llm::Request request;
    request.prompt = some_tokens(model, prompt, ++salt);
    // The first has answered so often before the last one begins.
    request.max_tokens = tokens + rows - 1;
    request.ignore_end = true;
    request.sampling.temperature = 0;
    model.submit(std::move(request));
  }
  BenchPeer::Steps m;
  std::vector<double> steps;
  int64_t reported = 0;
  while (!model.idle()) {
    const auto before = Clock::now();
    const auto reports = static_cast<int64_t>(model.step().size());
    if (reported < rows && (reported += reports) >= rows)
      m.first = since(start);
    else if (reports == rows)
      steps.push_back(since(before));
  }
  if (steps.size() > 1) steps.erase(steps.begin());
  m.later = steps.empty() ? 0 : median(std::move(steps));
  return m;
}

/// What weft and a peer measured in turns.
class Comparison {
 public:
  Comparison(const Session& session, const LlmOptions& options)
      : session_(session),
        repeats_(options.repeats),
        start_(Clock::now()),
        file_(llm::read_model(options.model)),
        model_(file_, text::Tokenizer::from_file(options.model), model_options(options)),
        load_(since(start_)),
        read_(per_token(file_)) {
    measure(model_, 1, 1, 1);
    first_ = since(start_);
    while (model_.work_ahead()) {}
    all_ = since(start_);
    bandwidth_ = measured_read_bandwidth(session.context);
    flops_ = measured_f32_flops(session.context);
    if (options.against.empty()) return;
    peer_.emplace(options.against, options.python, session.context.thread_pool().size());
    peer_load_ =
        peer_->prepare_language_model(options.model, model_.context_length(), options.slots);
  }
  const llm::Model& model() const { return model_; }

  void print_head() const {
    if (session_.json) return;
    session_.print("{:<28} {:>10}", "", "weft");
    if (peer_) session_.print(" {:>10} {:>7}", "llama.cpp", "faster");
    session_.print("\n");
    if (peer_) session_.print("# llama.cpp {}\n", peer_->version());
  }
  void loading() const {
    Row load{"load", "s", load_}, first{"load and first token", "s", first_};
    if (peer_) load.peer = peer_load_.load, first.peer = peer_load_.first;
    print(load);
    print(first);
    print({"and everything copied", "s", all_});
  }
  void prompt(int64_t length) {
    const auto [mine, others] = turns(length, 1, 1, &BenchPeer::Steps::first);
    const auto n = static_cast<double>(length);
    Row row{strformat("prompt of {}", length), "tokens/s", n / mine};
    if (others) row.peer = n / *others;
    row.flops = 2 * n * read_.numbers / mine / flops_;
    print(row);
  }
  void tokens(int64_t rows, int64_t count) {
    const auto [mine, others] = turns(4, rows, count, &BenchPeer::Steps::later);
    const auto n = static_cast<double>(rows);
    Row row{strformat("{} at once", rows), "tokens/s", n / mine};
    if (others) row.peer = n / *others;
    row.bandwidth = read_.bytes / mine / bandwidth_;
    row.flops = 2 * n * read_.numbers / mine / flops_;
    print(row);
  }
  void memory() const {
    print({"weights", "MiB", static_cast<double>(model_.weight_bytes()) / kMiB});
    print({"cache", "MiB", static_cast<double>(model_.cache_bytes()) / kMiB});
    Row row{"resident memory", "MiB", static_cast<double>(resident_memory().now) / kMiB};
    if (peer_) row.peer = static_cast<double>(peer_->memory().now) / kMiB;
    print(row);
  }

 private:
  struct Row {
    std::string what;
    const char* unit;
    double value;
    std::optional<double> peer = {};
    double bandwidth = 0, flops = 0;  // shares of what the machine can do; 0: says nothing
  };
  using Part = double BenchPeer::Steps::*;

  /// Medians, the peer's where there is one.
  std::pair<double, std::optional<double>> turns(int64_t prompt, int64_t rows, int64_t count,
                                                 Part part) {
    std::vector<double> mine, others;
    for (int64_t i = 0; i < 2; ++i) measure(model_, prompt, rows, std::min<int64_t>(count, 4));
    if (peer_) peer_->language_steps(prompt, rows, std::min<int64_t>(count, 4));
    for (int64_t i = 0; i < repeats_; ++i) {
      std::this_thread::sleep_for(BenchPeer::kPause);
      mine.push_back(measure(model_, prompt, rows, count).*part);
      if (!peer_) continue;
      std::this_thread::sleep_for(BenchPeer::kPause);
      others.push_back(peer_->language_steps(prompt, rows, count).*part);
    }
    if (others.empty()) return {median(std::move(mine)), std::nullopt};
    return {median(std::move(mine)), median(std::move(others))};
  }

  void print(const Row& row) const {
    const bool rate = std::string_view(row.unit) == "tokens/s";
    const double ratio = row.peer ? (rate ? row.value / *row.peer : *row.peer / row.value) : 0;
    if (session_.json) {
      JsonWriter json;
      json.begin_object().field("what", row.what).field("value", row.value).field("unit", row.unit);
      if (row.bandwidth > 0) json.field("bandwidth_share", row.bandwidth);
      if (row.flops > 0) json.field("f32_flops_share", row.flops);
      if (row.peer) json.field("llama.cpp", *row.peer).field("ratio", ratio);
      return session_.print("{}\n", json.end_object().text());
    }
    session_.print("{:<28} {:>10.3f}", row.what, row.value);
    if (row.peer) session_.print(" {:>10.3f} {:>7.2f}", *row.peer, ratio);
    session_.print(" {}", row.unit);
    if (row.bandwidth > 0) session_.print(", {:.0f} % of the read bandwidth", 100 * row.bandwidth);
    if (row.flops > 0) session_.print(", {:.0f} % of f32 products", 100 * row.flops);
    session_.print("\n");
  }

  const Session& session_;
  int64_t repeats_;
  Clock::time_point start_;
  llm::ModelFile file_;
  llm::Model model_;
  double load_;
  PerToken read_;
  double first_ = 0, all_ = 0, bandwidth_ = 0, flops_ = 0;
  std::optional<BenchPeer> peer_;
  BenchPeer::Loaded peer_load_;
};

}  // namespace

int bench_llm(const Session& session, const LlmOptions& options) {
  Comparison comparison(session, options);
  comparison.print_head();
  comparison.loading();
  for (const int64_t prompt : {int64_t{256}, int64_t{1024}})
    if (prompt < comparison.model().context_length()) comparison.prompt(prompt);
  for (int64_t rows = 1; rows <= options.slots; rows *= 2) comparison.tokens(rows, options.tokens);
  comparison.memory();
  return kExitOk;
}

}  // namespace weft
