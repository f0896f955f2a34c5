// Connection: one client, its requests one after the other, their answers. All in the io thread.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "weft/http/http.h"
#include "weft/http/http_parser.h"
#include "weft/http/limits.h"

namespace weft::http {

using Clock = std::chrono::steady_clock;

/// What connections share.
struct ConnectionRoom {
  const HttpLimits& limits;
  /// Answers through the exchange, at once or later.
  std::function<void(HttpRequest, std::shared_ptr<Exchange>)> handle;
  size_t held_bytes = 0;  ///< of bodies that are being read
  bool stopping = false;  ///< answers are the last of their connection
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  /// `room` outlives it.
  Connection(boost::asio::ip::tcp::socket socket, ConnectionRoom& room);
  ~Connection();
  void start();
  /// The server takes no more: answers "503", in place of reading a request.
  void refuse();
  /// Ends it where it waits too long. Called now and then.
  void check_time(Clock::time_point now);
  void close();
  bool is_open() const { return state_ != State::Closed; }
  /// Nothing of it is being answered: it can be closed to make room.
  bool is_waiting() const { return state_ == State::Reading || state_ == State::Lingering; }
  Clock::time_point since() const { return since_; }

 private:
  class Answer;
  enum class State : uint8_t { Reading, Answering, Lingering, Closed };

  void read();
  void on_read(size_t count);
  void on_end();
  void parse();
  void fail(int status, const std::string& problem);
  void request_done();
  void hold(size_t bytes);
  void send(std::string_view bytes);
  void write();
  void on_written();
  void answered(bool keep);
  void next_request();
  void linger();
  void give_up();
  Clock::time_point deadline() const;

  boost::asio::ip::tcp::socket socket_;
  ConnectionRoom& room_;
  State state_ = State::Reading;
  HttpParser parser_;
  std::shared_ptr<Answer> answer_;
  std::string in_, out_, writing_;
  size_t held_ = 0;
  bool reading_ = false, keep_ = false, first_ = true, continued_ = false;
  Clock::time_point since_;                 // of the part of a request that is being read
  Clock::time_point head_at_, written_at_;  // when the head was there, when something was written
  char bytes_[16 << 10];
};

}  // namespace weft::http
