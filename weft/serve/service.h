// Service: which request is answered how. All in the io thread.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "weft/http/gate.h"
#include "weft/serve/chat_prompt.h"
#include "weft/serve/generator_loop.h"
#include "weft/serve/http.h"
#include "weft/serve/metrics.h"
#include "weft/serve/options.h"
#include "weft/serve/refusal.h"

namespace weft::serve {

/// One request that waits for the generator, with a ticket for each of its answers.
class Task {
 public:
  virtual ~Task() = default;
  virtual void on_outcome(Outcome& outcome) = 0;
  virtual void fail(const Refusal& refusal) = 0;  ///< ends it
};

/// What does not change of a Generator, as other threads may read it.
struct ModelFacts {
  const text::Tokenizer& tokenizer;
  std::string name;
  int64_t context_length;
};

class Service {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// All outlive it.
  Service(const ServeOptions& options, ModelFacts model, GeneratorLoop& loop);

  void handle(HttpRequest request, const std::shared_ptr<Exchange>& exchange);
  void deliver(std::vector<Outcome> outcomes);
  /// Ends what has taken too long.
  void check_time(Time now);
  void begin_stop() { stopping_ = true; }  ///< /health says so, and nothing new is begun
  void fail_all(const Refusal& refusal);
  bool idle() const { return tasks_.empty(); }

  // For tasks.
  /// Fails with 503 where more would be too many.
  void require_room(size_t tickets) const;
  Ticket open(std::shared_ptr<Task> task);
  void close(Ticket ticket) { tasks_.erase(ticket); }
  void require_model(const std::string& name) const;
  /// By the model's own template; ChatML where it brings none.
  std::vector<PromptPiece> prompt_of(const CompletionRequest& request) const;
  void count(std::string_view route, int status) {
    ++metrics_.requests[{std::string(route), status}];
  }
  std::string new_id(std::string_view prefix);
  uint64_t new_seed() { return random_(); }
  int64_t created() const { return created_; }
  const ServeOptions& options() const { return options_; }
  const ModelFacts& model() const { return model_; }
  GeneratorLoop& loop() { return loop_; }
  Metrics& metrics() { return metrics_; }

 private:
  struct Call;
  struct Route;
  struct Entry {
    std::shared_ptr<Task> task;
    Time since;
  };

  static const std::vector<Route>& routes();
  void preflight(Call& call);
  void dispatch(Call& call);
  void health(Call& call);
  void write_metrics(Call& call);
  void models(Call& call);
  void one_model(Call& call);
  void chat(Call& call);
  void completions(Call& call);
  void responses(Call& call);
  void embeddings(Call& call);
  void tokenize(Call& call);
  void detokenize(Call& call);
  void page(Call& call);

  const ServeOptions& options_;
  const http::GateOptions gate_;
  const ModelFacts model_;
  std::optional<text::ChatTemplate> template_;
  std::string template_error_;  ///< why chats cannot be answered; texts can
  GeneratorLoop& loop_;
  Metrics metrics_;
  std::map<Ticket, Entry> tasks_;
  Ticket last_ticket_ = 0;
  std::mt19937_64 random_;
  const int64_t created_;  // seconds since 1970
  bool stopping_ = false;
};

}  // namespace weft::serve
