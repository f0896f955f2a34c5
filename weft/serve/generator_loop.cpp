#include "weft/serve/generator_loop.h"

#include <algorithm>
#include <chrono>
#include <new>

#include "weft/base/exceptions.h"

namespace weft::serve {

namespace {

// Calls `action`; what it throws goes to `refuse` as a code and a message.
template <class Action, class Refuse>
void guarded(const Action& action, const Refuse& refuse) {
  try {
    action();
  } catch (const Error& error) {
    refuse(error.code(), error.message());
  } catch (const std::bad_alloc&) {
    refuse("memory", "the system has no more memory to give");
  } catch (const std::exception& error) {
    refuse("internal", error.what());
  }
}

}  // namespace

GeneratorLoop::GeneratorLoop(llm::Generator& generator, Deliver deliver)
    : generator_(generator), deliver_(std::move(deliver)), counters_(generator.counters()) {}

void GeneratorLoop::post(Command command) {
  {
    const std::lock_guard lock(mutex_);
    commands_.push_back(std::move(command));
  }
  changed_.notify_one();
}

void GeneratorLoop::submit(std::vector<std::pair<Ticket, llm::Request>> requests) {
  post([this, requests = std::move(requests)]() mutable {
    for (auto& [ticket, request] : requests) start(ticket, std::move(request));
  });
}

void GeneratorLoop::embed(Ticket ticket, std::vector<std::vector<llm::TokenId>> texts) {
  post([this, ticket, texts = std::move(texts)]() mutable {
    embeddings_.push_back({ticket, std::move(texts), {}});
  });
}

void GeneratorLoop::cancel(Ticket ticket) {
  post([this, ticket] { drop(ticket); });
}

void GeneratorLoop::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_one();
}

std::vector<std::pair<std::string, double>> GeneratorLoop::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

// False: stop() was called.
bool GeneratorLoop::take_commands() {
  constexpr std::chrono::milliseconds kWatch(100);
  std::vector<Command> commands;
  {
    std::unique_lock lock(mutex_);
    if (idle() && !ahead_)
      changed_.wait_for(lock, kWatch, [&] { return stopped_ || !commands_.empty(); });
    if (stopped_) return false;
    commands.swap(commands_);
  }
  for (Command& command : commands) command();
  return true;
}

void GeneratorLoop::start(Ticket ticket, llm::Request request) {
  guarded(
      [&] {
        const llm::RequestId id = generator_.submit(std::move(request));
        running_[id] = ticket;
        requests_[ticket] = id;
        outcomes_.push_back({.ticket = ticket, .kind = Outcome::Kind::Started});
      },
      [&](std::string_view code, std::string_view message) {
        outcomes_.push_back({.ticket = ticket,
                             .kind = Outcome::Kind::Refused,
                             .code = std::string(code),
                             .error = std::string(message)});
      });
}

void GeneratorLoop::drop(Ticket ticket) {
  std::erase_if(embeddings_, [&](const Embedding& e) { return e.ticket == ticket; });
  const auto found = requests_.find(ticket);
  if (found == requests_.end()) return;
  generator_.cancel(found->second);
  running_.erase(found->second);
  requests_.erase(found);
}

void GeneratorLoop::step() {
  for (llm::Progress& progress : generator_.step()) {
    const auto found = running_.find(progress.request);
    if (found == running_.end()) continue;  // cancelled
    const Ticket ticket = found->second;
    if (progress.finish != llm::Finish::None) {
      requests_.erase(ticket);
      running_.erase(found);
    }
    outcomes_.push_back({.ticket = ticket, .progress = std::move(progress)});
  }
}

void GeneratorLoop::fail_all(std::string_view code, std::string_view message) {
  for (const auto& [id, ticket] : running_) {
    generator_.cancel(id);
    outcomes_.push_back({.ticket = ticket,
                         .kind = Outcome::Kind::Refused,
                         .code = std::string(code),
                         .error = std::string(message)});
  }
  running_.clear();
  requests_.clear();
}

// One text a turn, of the requests in turns: they wait for one another as streams do.
void GeneratorLoop::embed_one() {
  if (embeddings_.empty()) return;
  Embedding e = std::move(embeddings_.front());
  embeddings_.pop_front();
  Outcome outcome{.ticket = e.ticket, .kind = Outcome::Kind::Embeddings};
  guarded([&] { e.done.push_back(generator_.embedding(e.texts[e.done.size()])); },
          [&](std::string_view code, std::string_view message) {
            outcome.kind = Outcome::Kind::Refused;
            outcome.code = code;
            outcome.error = message;
          });
  // All places are taken: the next that is free is its own, as requests get theirs in step(). One
  // of a client that went is free after the next, where nothing runs any more.
  if (outcome.code == "llm.queue" && !generator_.idle())
    return embeddings_.push_front(std::move(e));
  if (outcome.kind == Outcome::Kind::Embeddings && e.done.size() < e.texts.size())
    return embeddings_.push_back(std::move(e));
  outcome.embeddings = std::move(e.done);
  outcomes_.push_back(std::move(outcome));
}

void GeneratorLoop::report() {
  {
    const std::lock_guard lock(mutex_);
    counters_ = generator_.counters();
  }
  if (!outcomes_.empty()) deliver_(std::exchange(outcomes_, {}));
}

void GeneratorLoop::run(const std::function<void()>& watch) {
  while (take_commands()) {
    watch();
    embed_one();
    // Also where all were cancelled: the generator notes it in a step.
    if (!generator_.idle())
      guarded([&] { step(); },
              [&](std::string_view code, std::string_view message) { fail_all(code, message); });
    else if (ahead_)
      guarded([&] { ahead_ = generator_.work_ahead(); },
              [&](std::string_view, std::string_view) { ahead_ = false; });
    report();
  }
  for (const auto& [id, ticket] : running_) generator_.cancel(id);
  running_.clear();
  requests_.clear();
  embeddings_.clear();
}

}  // namespace weft::serve
