#include "weft/serve/server.h"

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>

#include "weft/base/error.h"
#include "weft/serve/connection.h"
#include "weft/serve/gate.h"
#include "weft/serve/service.h"

namespace weft::serve {

namespace {

namespace asio = boost::asio;
using Failure = boost::system::error_code;
using asio::ip::tcp;

constexpr std::chrono::milliseconds kSweep(100);

ServeOptions checked(ServeOptions options) {
  if (options.host == "localhost") options.host = "127.0.0.1";
  if (!is_address(options.host))
    fail("serve.address", "the host is '{}'; it has to be an address, such as 127.0.0.1 or 0.0.0.0",
         options.host);
  if (!is_loopback(options.host) && options.api_key.empty())
    fail("serve.key",
         "{} can be reached from other machines and there is no API key; give one with --api-key "
         "or --api-key-file, or listen on 127.0.0.1",
         options.host);
  return options;
}

tcp::acceptor listen(asio::io_context& io, const ServeOptions& options) {
  try {
    return tcp::acceptor(io, {asio::ip::make_address(options.host), options.port});
  } catch (const boost::system::system_error& error) {
    fail_runtime("serve.address", "cannot listen on {}, port {}: {}; try another --port",
                 options.host, options.port, error.code().message());
  }
}

}  // namespace

struct Server::State {
  State(llm::Generator& generator, ServeOptions given)
      : options(checked(std::move(given))),
        acceptor(listen(io, options)),
        port(acceptor.local_endpoint().port()),
        timer(io),
        loop(generator,
             [this](std::vector<Outcome> outcomes) {
               asio::post(io, [this, all = std::move(outcomes)]() mutable {
                 service.deliver(std::move(all));
               });
             }),
        service(options,
                {generator.tokenizer(),
                 options.model_name.empty() ? generator.model_name() : options.model_name,
                 generator.context_length()},
                loop),
        room{options.limits, [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
               service.handle(std::move(request), exchange);
             }} {}

  void accept();
  void add(tcp::socket socket);
  bool make_room();
  void sweep();
  void watch(const std::function<bool()>& interrupted);
  void begin_stop();
  void serve_connections();
  void close();

  const ServeOptions options;
  asio::io_context io{1};
  tcp::acceptor acceptor;
  const uint16_t port;
  asio::steady_timer timer;
  GeneratorLoop loop;
  Service service;
  ConnectionRoom room;
  std::vector<std::shared_ptr<Connection>> connections;
  Clock::time_point stop_at = Clock::time_point::max();
  bool accepting = false;
  bool stopping = false;  // of the generator's thread
  std::atomic<bool> stop_wanted{false};
};

void Server::State::accept() {
  if (accepting) return;
  accepting = true;
  acceptor.async_accept([this](Failure failure, tcp::socket socket) {
    accepting = false;
    if (failure) return;  // where no descriptors are left, say, the next sweep tries again
    add(std::move(socket));
    accept();
  });
}

// Whose request has not come for longest goes.
bool Server::State::make_room() {
  std::erase_if(connections, [](const auto& c) { return !c->is_open(); });
  if (connections.size() < options.limits.connections) return true;
  Connection* oldest = nullptr;
  for (const auto& c : connections)
    if (c->is_waiting() && (oldest == nullptr || c->since() < oldest->since())) oldest = c.get();
  if (oldest != nullptr) oldest->close();
  return oldest != nullptr;
}

void Server::State::add(tcp::socket socket) {
  ++service.metrics().connections_total;
  Failure ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const bool fits = make_room();
  const auto connection = std::make_shared<Connection>(std::move(socket), room);
  connections.push_back(connection);
  fits ? connection->start() : connection->refuse();
}

void Server::State::sweep() {
  timer.expires_after(kSweep);
  timer.async_wait([this](Failure failure) {
    if (!failure) sweep();
  });
  accept();
  const Clock::time_point now = Clock::now();
  service.check_time(now);
  for (const auto& c : std::vector(connections)) c->check_time(now);
  std::erase_if(connections, [](const auto& c) { return !c->is_open(); });
  service.metrics().connections = connections.size();
  if (now > stop_at) service.fail_all({503, "overloaded", "", "the server has stopped"});
  const bool answered =
      service.idle() && std::all_of(connections.begin(), connections.end(),
                                    [](const auto& c) { return c->is_waiting(); });
  if (room.stopping && (answered || now > stop_at + kSweep)) loop.stop();
}

// In the generator's thread.
void Server::State::watch(const std::function<bool()>& interrupted) {
  if (stopping || !(stop_wanted || (interrupted && interrupted()))) return;
  stopping = true;
  asio::post(io, [this] { begin_stop(); });
}

void Server::State::begin_stop() {
  room.stopping = true;
  service.begin_stop();
  stop_at = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(options.limits.stop_seconds));
}

// What a handler throws, for want of memory, ends that handler alone: time ends its connection.
void Server::State::serve_connections() {
  asio::post(io, [this] { sweep(); });
  while (!io.stopped()) {
    try {
      io.run();
    } catch (const std::exception&) {
      continue;
    }
  }
}

void Server::State::close() {
  Failure ignored;
  acceptor.close(ignored);
  for (const auto& c : std::vector(connections)) c->close();
  timer.cancel();
  io.stop();
}

Server::Server(llm::Generator& generator, ServeOptions options)
    : state_(std::make_unique<State>(generator, std::move(options))) {}

Server::~Server() = default;

uint16_t Server::port() const { return state_->port; }

std::string Server::address() const {
  const bool six = state_->options.host.find(':') != std::string::npos;
  const std::string& host = state_->options.host;
  return strformat("http://{}:{}", six ? "[" + host + "]" : host, port());
}

void Server::stop() { state_->stop_wanted = true; }

void Server::run(const std::function<bool()>& interrupted) {
  State& s = *state_;
  // Joined whatever is thrown.
  struct IoThread {
    explicit IoThread(State& state) : s(state), thread([this] { s.serve_connections(); }) {}
    ~IoThread() {
      asio::post(s.io, [this] { s.close(); });
      thread.join();
    }
    State& s;
    std::thread thread;
  } io(s);
  s.loop.run([&] { s.watch(interrupted); });
}

}  // namespace weft::serve
