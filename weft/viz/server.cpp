#include "weft/viz/server.h"

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <random>

#include "weft/base/format.h"
#include "weft/http/listener.h"
#include "weft/http/refusal.h"
#include "weft/viz/site.h"

namespace weft::viz {

namespace {

namespace asio = boost::asio;
using http::Clock, http::Exchange, http::HttpRequest, http::HttpResponse;

constexpr std::chrono::milliseconds kSweep(100);
constexpr size_t kThreads = 4;  // so that long answers do not hold up the others
constexpr const char* kHost = "127.0.0.1";

std::string random_token() {
  std::random_device random;
  std::string token;
  for (int i = 0; i < 4; ++i) token += strformat("{:08x}", random());
  return token;
}

ServerOptions with_token(ServerOptions options) {
  if (options.token.empty()) options.token = random_token();
  return options;
}

}  // namespace

struct Server::State {
  State(const std::string& file, ServerOptions given)
      : options(with_token(std::move(given))),
        site(file, options.token, options.history),
        timer(io),
        room{options.limits,
             [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
               handle(std::move(request), std::move(exchange));
             }},
        listener(io, kHost, options.port, room) {}

  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange);
  void sweep();

  const ServerOptions options;
  Site site;
  asio::io_context io{1};
  asio::steady_timer timer;
  http::ConnectionRoom room;
  http::Listener listener;
  asio::thread_pool workers{kThreads};
  size_t waiting = 0;  // requests with the workers
  std::function<bool()> interrupted;
  std::atomic<bool> stop_wanted{false};
};

// Exchanges belong to the thread of `io`, in which they end.
void Server::State::handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
  if (waiting == options.requests)
    return exchange->respond(
        http::error_response({503, "overloaded", "", "too many requests wait for an answer"}));
  ++waiting;
  asio::post(workers, [this, asked = std::move(request), exchange = std::move(exchange)]() mutable {
    HttpResponse response = site.answer(asked);
    asio::post(io, [this, made = std::move(response), exchange = std::move(exchange)] {
      --waiting;
      exchange->respond(made);
    });
  });
}

void Server::State::sweep() {
  if (stop_wanted || (interrupted && interrupted())) return io.stop();
  listener.sweep(Clock::now());
  timer.expires_after(kSweep);
  timer.async_wait([this](boost::system::error_code failure) {
    if (!failure) sweep();
  });
}

Server::Server(const std::string& file, ServerOptions options)
    : state_(std::make_unique<State>(file, std::move(options))) {}

Server::~Server() { state_->workers.join(); }

uint16_t Server::port() const { return state_->listener.port(); }
const std::string& Server::token() const { return state_->options.token; }

std::string Server::address() const {
  return strformat("{}/#token={}", http::address_text(kHost, port()), token());
}

void Server::stop() { state_->stop_wanted = true; }

void Server::run(const std::function<bool()>& interrupted) {
  State& s = *state_;
  s.interrupted = interrupted;
  asio::post(s.io, [&s] { s.sweep(); });
  while (!s.io.stopped()) {
    try {
      s.io.run();
    } catch (const std::exception&) {
      continue;  // for want of memory: time ends that connection
    }
  }
  s.workers.join();
  s.listener.close();
}

}  // namespace weft::viz
