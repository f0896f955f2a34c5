// Raw bytes over a loopback socket: what servers are attacked with, and what they answer.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/llm/fake_generator.h"
#include "weft/serve/server.h"

namespace weft::serve {

using Json = nlohmann::json;
using llm::FakeGenerator, llm::FakeOptions;

struct Answer {
  int status = 0;  ///< 0: none came
  std::string head, body;
  Json json() const { return Json::parse(body, nullptr, false); }
  std::string message() const;              ///< of an error in OpenAI's form
  std::vector<std::string> events() const;  ///< the data of a stream's
};

class Client {
 public:
  explicit Client(uint16_t port);
  ~Client();
  Client(const Client&) = delete;
  bool send(std::string_view bytes);  ///< false: the other side has closed
  /// One answer; what comes behind it is kept.
  Answer read_answer(int seconds = 10);
  /// What comes until `text` is there, or the end, or the time is over.
  std::string read_until(std::string_view text, int seconds = 10);
  std::string read_all(int seconds = 10) { return read_until("", seconds); }
  bool closed(int seconds = 5);  ///< by the other side, in that time
  void close();
  void finish_sending();  ///< and goes on reading
  void reset();           ///< closes without goodbye

 private:
  bool receive(int milliseconds);
  int socket_ = -1;
  std::string bytes_;
  bool ended_ = false;
};

std::string get(std::string_view path, std::string_view more = "");
std::string post(std::string_view path, std::string_view body, std::string_view more = "");

/// A server of a FakeGenerator in a thread of its own.
class ServerHere {
 public:
  explicit ServerHere(FakeOptions fake = {}, ServeOptions options = {});
  ~ServerHere();
  Answer ask(std::string_view bytes, int seconds = 10) const;
  Answer chat(const Json& body) const { return ask(post("/v1/chat/completions", body.dump())); }
  bool healthy() const { return ask(get("/health")).status == 200; }
  uint16_t port() const { return server->port(); }

  FakeGenerator generator;
  std::unique_ptr<Server> server;

 private:
  std::thread thread_;
};

/// {"messages": [{"role": "user", "content": text}]} and more.
Json chat_body(std::string_view text, const Json& more = Json::object());
/// Whether it becomes true within so many seconds.
template <class Condition>
bool comes_true(const Condition& condition, double seconds = 5) {
  for (int i = 0; i < static_cast<int>(seconds * 1000); ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return condition();
}

}  // namespace weft::serve
