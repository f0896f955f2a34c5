// Listener: a port of this machine and the connections to it. All in the thread of one io_context.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <string>
#include <vector>

#include "weft/http/connection.h"

namespace weft::http {

class Listener {
 public:
  /// All outlive it. `host` is an address; `port` 0: any that is free. Error: serve.address.
  Listener(boost::asio::io_context& io, const std::string& host, uint16_t port,
           ConnectionRoom& room);

  uint16_t port() const { return port_; }
  size_t connections() const { return connections_.size(); }
  size_t accepted() const { return accepted_; }  ///< since it was made
  /// Nothing is being answered.
  bool idle() const;
  /// Takes new connections and ends those that wait too long. Called some ten times a second.
  void sweep(Clock::time_point now);
  void close();

 private:
  void accept();
  void add(boost::asio::ip::tcp::socket socket);
  bool make_room();

  ConnectionRoom& room_;
  boost::asio::ip::tcp::acceptor acceptor_;
  const uint16_t port_;
  std::vector<std::shared_ptr<Connection>> connections_;
  size_t accepted_ = 0;
  bool accepting_ = false;
};

/// "http://127.0.0.1:8080"
std::string address_text(const std::string& host, uint16_t port);

}  // namespace weft::http
