// Server: a session and its page, for a browser of this machine.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "weft/http/limits.h"

namespace weft::viz {

struct ServerOptions {
  uint16_t port = 0;         ///< of 127.0.0.1; 0: any that is free
  std::string token = {};    ///< that requests have to bring; empty: a random one
  std::string history = {};  ///< a file of benchmarks, as bench/history.jsonl
  http::HttpLimits limits = {
      .head_bytes = 16384, .body_bytes = 1024, .held_bytes = 65536, .connections = 64};
  size_t requests = 256;  ///< that wait at once
};

/// Listens from its construction on; run() answers.
///   viz::Server server("step.weftviz");
///   open_browser(server.address());
///   server.run([] { return interrupted; });
/// Other users of the machine reach the port, too: what is in the session is for those who know the
/// token, which is in the address behind '#', where browsers keep it to themselves.
class Server {
 public:
  /// Errors: viz.file and serve.address.
  explicit Server(const std::string& file, ServerOptions options = {});
  ~Server();
  Server(const Server&) = delete;

  uint16_t port() const;
  const std::string& token() const;
  /// "http://127.0.0.1:40123/#token=..."
  std::string address() const;
  /// Until stop(), or until `interrupted` (asked ten times a second) is true.
  void run(const std::function<bool()>& interrupted = {});
  /// From any thread.
  void stop();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::viz
