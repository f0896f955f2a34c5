// GeneratorLoop: the one thread that owns the Generator, and how others hand it requests.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "weft/llm/generator.h"

namespace weft::serve {

using Ticket = uint64_t;  ///< of a request, as who asks calls it

/// What has become of a ticket.
struct Outcome {
  enum class Kind : uint8_t { Started, Progress, Embeddings, Refused };
  Ticket ticket = 0;
  Kind kind = Kind::Progress;
  llm::Progress progress = {};
  std::vector<std::vector<float>> embeddings = {};
  std::string code = {}, error = {};  ///< of Refused: an Error's
};

class GeneratorLoop {
 public:
  using Deliver = std::function<void(std::vector<Outcome>)>;
  /// `deliver` is called in run()'s thread, once a step.
  GeneratorLoop(llm::Generator& generator, Deliver deliver);

  // From any thread.
  /// All start before any of them goes on.
  void submit(std::vector<std::pair<Ticket, llm::Request>> requests);
  void embed(Ticket ticket, std::vector<std::vector<llm::TokenId>> texts);
  /// Nothing is delivered for it but, at most, what was on its way. Its place is free before the
  /// next step.
  void cancel(Ticket ticket);
  void stop();  ///< run() returns; what runs is cancelled
  std::vector<std::pair<std::string, double>> counters() const;

  /// Serves until stop(). `watch` is called between two steps, and ten times a second where nothing
  /// is to do.
  void run(const std::function<void()>& watch);

 private:
  struct Embedding {
    Ticket ticket;
    std::vector<std::vector<llm::TokenId>> texts;
    std::vector<std::vector<float>> done;
  };
  using Command = std::function<void()>;

  void post(Command command);
  bool take_commands();
  void start(Ticket ticket, llm::Request request);
  void drop(Ticket ticket);
  void step();
  void fail_all(std::string_view code, std::string_view message);
  void embed_one();
  void report();
  bool idle() const { return running_.empty() && embeddings_.empty(); }

  llm::Generator& generator_;
  Deliver deliver_;
  // Of run()'s thread.
  std::unordered_map<llm::RequestId, Ticket> running_;
  std::unordered_map<Ticket, llm::RequestId> requests_;
  std::deque<Embedding> embeddings_;
  std::vector<Outcome> outcomes_;
  bool ahead_ = true;  // there may be work for when nobody waits
  // Shared.
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Command> commands_;
  std::vector<std::pair<std::string, double>> counters_;
  bool stopped_ = false;
};

}  // namespace weft::serve
