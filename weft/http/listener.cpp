#include "weft/http/listener.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::http {

namespace {

namespace asio = boost::asio;
using Failure = boost::system::error_code;
using asio::ip::tcp;

tcp::acceptor listen(asio::io_context& io, const std::string& host, uint16_t port) {
  try {
    return tcp::acceptor(io, {asio::ip::make_address(host), port});
  } catch (const boost::system::system_error& error) {
    fail_runtime("serve.address", "cannot listen on {}, port {}: {}; try another --port", host,
                 port, error.code().message());
  }
}

}  // namespace

Listener::Listener(asio::io_context& io, const std::string& host, uint16_t port,
                   ConnectionRoom& room)
    : room_(room), acceptor_(listen(io, host, port)), port_(acceptor_.local_endpoint().port()) {}

void Listener::accept() {
  if (accepting_) return;
  accepting_ = true;
  acceptor_.async_accept([this](Failure failure, tcp::socket socket) {
    accepting_ = false;
    if (failure) return;  // where no descriptors are left, say, the next sweep tries again
    add(std::move(socket));
    accept();
  });
}

// Whose request has not come for longest goes.
bool Listener::make_room() {
  std::erase_if(connections_, [](const auto& c) { return !c->is_open(); });
  if (connections_.size() < room_.limits.connections) return true;
  Connection* oldest = nullptr;
  for (const auto& c : connections_)
    if (c->is_waiting() && (oldest == nullptr || c->since() < oldest->since())) oldest = c.get();
  if (oldest != nullptr) oldest->close();
  return oldest != nullptr;
}

void Listener::add(tcp::socket socket) {
  ++accepted_;
  Failure ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  const bool fits = make_room();
  const auto connection = std::make_shared<Connection>(std::move(socket), room_);
  connections_.push_back(connection);
  fits ? connection->start() : connection->refuse();
}

void Listener::sweep(Clock::time_point now) {
  accept();
  for (const auto& c : std::vector(connections_)) c->check_time(now);
  std::erase_if(connections_, [](const auto& c) { return !c->is_open(); });
}

bool Listener::idle() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& c) { return c->is_waiting(); });
}

void Listener::close() {
  Failure ignored;
  acceptor_.close(ignored);
  for (const auto& c : std::vector(connections_)) c->close();
}

std::string address_text(const std::string& host, uint16_t port) {
  const bool six = host.find(':') != std::string::npos;
  return strformat("http://{}:{}", six ? "[" + host + "]" : host, port);
}

}  // namespace weft::http
