#include "weft/serve/server.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <thread>

#include "weft/base/error.h"
#include "weft/http/gate.h"
#include "weft/http/listener.h"
#include "weft/serve/service.h"

namespace weft::serve {

namespace {

namespace asio = boost::asio;
using http::Clock;
using Failure = boost::system::error_code;

constexpr std::chrono::milliseconds kSweep(100);

ServeOptions checked(ServeOptions options) {
  if (options.host == "localhost") options.host = "127.0.0.1";
  if (!http::is_address(options.host))
    fail("serve.address", "the host is '{}'; it has to be an address, such as 127.0.0.1 or 0.0.0.0",
         options.host);
  if (!http::is_loopback(options.host) && options.api_key.empty())
    fail("serve.key",
         "{} can be reached from other machines and there is no API key; give one with --api-key "
         "or --api-key-file, or listen on 127.0.0.1",
         options.host);
  return options;
}

}  // namespace

struct Server::State {
  State(llm::Generator& generator, ServeOptions given)
      : options(checked(std::move(given))),
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
        room{options.limits,
             [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
               service.handle(std::move(request), exchange);
             }},
        listener(io, options.host, options.port, room) {}

  void sweep();
  void watch(const std::function<bool()>& interrupted);
  void begin_stop();
  void serve_connections();
  void close();

  const ServeOptions options;
  asio::io_context io{1};
  asio::steady_timer timer;
  GeneratorLoop loop;
  Service service;
  http::ConnectionRoom room;
  http::Listener listener;
  Clock::time_point stop_at = Clock::time_point::max();
  bool stopping = false;  // of the generator's thread
  std::atomic<bool> stop_wanted{false};
};

void Server::State::sweep() {
  timer.expires_after(kSweep);
  timer.async_wait([this](Failure failure) {
    if (!failure) sweep();
  });
  const Clock::time_point now = Clock::now();
  service.check_time(now);
  listener.sweep(now);
  service.metrics().connections = listener.connections();
  service.metrics().connections_total = listener.accepted();
  if (now > stop_at) service.fail_all({503, "overloaded", "", "the server has stopped"});
  const bool answered = service.idle() && listener.idle();
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
  listener.close();
  timer.cancel();
  io.stop();
}

Server::Server(llm::Generator& generator, ServeOptions options)
    : state_(std::make_unique<State>(generator, std::move(options))) {}

Server::~Server() = default;

uint16_t Server::port() const { return state_->listener.port(); }

std::string Server::address() const { return http::address_text(state_->options.host, port()); }

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
