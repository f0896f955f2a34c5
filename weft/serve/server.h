// Server: a Generator behind OpenAI's API, on a socket.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "weft/llm/generator.h"
#include "weft/serve/options.h"

namespace weft::serve {

/// Listens from its construction on; run() answers.
///   serve::Server server(*generator, {.port = 8080});
///   server.run([] { return interrupted; });
/// Two threads: the caller's, to which the generator belongs, and one for all connections.
class Server {
 public:
  /// `generator` outlives it. Errors: serve.address (no address, or in use), serve.key (it can be
  /// reached from other machines and has no key).
  Server(llm::Generator& generator, ServeOptions options);
  ~Server();
  Server(const Server&) = delete;

  uint16_t port() const;
  /// "http://127.0.0.1:8080"
  std::string address() const;
  /// Until stop(), or until `interrupted` (asked ten times a second) is true: then takes nothing
  /// new, lets answers come to their end for limits.stop_seconds, and returns.
  void run(const std::function<bool()>& interrupted = {});
  /// From any thread.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::serve
