#include "weft/http/connection.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "weft/http/answer.h"
#include "weft/http/refusal.h"

namespace weft::http {

namespace {

using Failure = boost::system::error_code;

constexpr size_t kReadAhead = size_t{64} << 10;  // of requests behind the one being answered
constexpr double kLingerSeconds = 2;

Clock::duration seconds(double count) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(count));
}

}  // namespace

// The exchange that a request's handler holds; it outlives the connection where the handler does.
class Connection::Answer final : public Exchange {
 public:
  Answer(std::shared_ptr<Connection> connection, const HttpRequest& request)
      : connection_(std::move(connection)),
        keep_(request.keep_alive && !connection_->room_.stopping),
        chunks_(request.chunks),
        head_only_(request.method == "HEAD") {}

  void respond(const HttpResponse& response) override {
    if (!connection_) return;
    HttpFields fields = fields_;
    fields.insert(fields.end(), response.fields.begin(), response.fields.end());
    const bool has_body = response.status != 204;
    connection_->send(answer_head(response.status, has_body ? response.content_type : "", fields,
                                  has_body ? static_cast<int64_t>(response.body.size()) : -1,
                                  keep_));
    if (!head_only_ && has_body) connection_->send(response.body);
    end(keep_);
  }

  void begin_events() override {
    if (!connection_) return;
    HttpFields fields = fields_;
    if (chunks_) fields.emplace_back("Transfer-Encoding", "chunked");
    connection_->send(
        answer_head(200, "text/event-stream; charset=utf-8", fields, -1, chunks_ && keep_));
  }

  void event(std::string_view data, std::string_view name) override {
    if (!connection_) return;
    const std::string text = event_text(data, name);
    connection_->send(chunks_ ? chunk(text) : text);
    if (connection_->out_.size() > connection_->room_.limits.unsent_bytes) connection_->give_up();
  }

  void end_events() override {
    if (!connection_) return;
    if (chunks_) connection_->send("0\r\n\r\n");
    end(chunks_ && keep_);
  }

  void when_abandoned(std::function<void()> then) override {
    if (connection_) abandoned_ = std::move(then);
  }
  void add_field(std::string name, std::string value) override {
    fields_.emplace_back(std::move(name), std::move(value));
  }

  void abandon() {
    connection_ = nullptr;
    if (const auto then = std::move(abandoned_)) then();
  }

 private:
  void end(bool keep) {
    abandoned_ = nullptr;
    const auto connection = std::move(connection_);
    connection_ = nullptr;
    connection->answered(keep);
  }

  std::shared_ptr<Connection> connection_;
  bool keep_, chunks_, head_only_;
  HttpFields fields_;
  std::function<void()> abandoned_;
};

Connection::Connection(boost::asio::ip::tcp::socket socket, ConnectionRoom& room)
    : socket_(std::move(socket)), room_(room), parser_(room.limits), since_(Clock::now()) {}

Connection::~Connection() { hold(0); }

void Connection::start() { read(); }

void Connection::refuse() {
  state_ = State::Answering;
  fail(503, "the server has as many connections as it takes");
}

void Connection::hold(size_t bytes) {
  room_.held_bytes += bytes - held_;
  held_ = bytes;
}

void Connection::read() {
  const bool full = state_ == State::Answering && in_.size() >= kReadAhead;
  if (reading_ || full || state_ == State::Closed) return;
  reading_ = true;
  socket_.async_read_some(boost::asio::buffer(bytes_),
                          [self = shared_from_this()](Failure failure, size_t count) {
                            self->reading_ = false;
                            if (failure)
                              self->on_end();
                            else
                              self->on_read(count);
                          });
}

void Connection::on_read(size_t count) {
  if (state_ == State::Closed) return;
  if (state_ != State::Lingering) in_.append(bytes_, count);
  if (state_ == State::Reading) parse();
  read();
}

// Nothing more comes. A client that waits for an answer has gone, or cannot be told from one; one
// whose answer is on its way may only have said that it has no more to ask.
void Connection::on_end() {
  if (state_ == State::Answering && !answer_)
    keep_ = false;
  else
    close();
}

void Connection::parse() {
  if (!parser_.started() && !in_.empty() && !first_) since_ = Clock::now();
  const bool head = parser_.head_done();
  in_.erase(0, parser_.feed(in_));
  if (!head && parser_.head_done()) head_at_ = Clock::now();
  hold(parser_.body_size());
  if (parser_.failed() != 0) return fail(parser_.failed(), parser_.problem());
  if (parser_.done()) return request_done();
  if (room_.held_bytes > room_.limits.held_bytes)
    return fail(503, "the server holds as many bytes of requests as it takes");
  if (parser_.expects_continue() && parser_.head_done() && !continued_) {
    continued_ = true;
    send("HTTP/1.1 100 Continue\r\n\r\n");
  }
}

// Without the handler: what was sent cannot be told from what comes behind it.
void Connection::fail(int status, const std::string& problem) {
  state_ = State::Answering;
  const HttpResponse response =
      error_response({status, status == 503 ? "overloaded" : "invalid_http", "", problem});
  send(answer_head(status, response.content_type, response.fields,
                   static_cast<int64_t>(response.body.size()), false));
  send(response.body);
  answered(false);
}

void Connection::request_done() {
  state_ = State::Answering;
  HttpRequest request = parser_.take();
  const auto answer = std::make_shared<Answer>(shared_from_this(), request);
  answer_ = answer;
  room_.handle(std::move(request), answer);
}

void Connection::send(std::string_view bytes) {
  if (state_ == State::Closed) return;
  out_ += bytes;
  if (writing_.empty()) write();
}

void Connection::write() {
  if (out_.empty() || state_ == State::Closed) return;
  writing_.swap(out_);
  written_at_ = Clock::now();
  boost::asio::async_write(
      socket_, boost::asio::buffer(writing_),
      [this](const Failure& failure, size_t count) -> size_t {
        if (count > 0) written_at_ = Clock::now();
        return boost::asio::transfer_all()(failure, count);
      },
      [self = shared_from_this()](Failure failure, size_t) {
        self->writing_.clear();
        if (failure)
          self->close();
        else
          self->on_written();
      });
}

void Connection::on_written() {
  if (!out_.empty()) return write();
  if (state_ == State::Answering && !answer_) keep_ ? next_request() : linger();
}

// All of an answer is on its way.
void Connection::answered(bool keep) {
  answer_ = nullptr;
  keep_ = keep;
  hold(0);
  if (writing_.empty() && out_.empty()) on_written();
}

void Connection::next_request() {
  if (state_ == State::Closed) return;
  state_ = State::Reading;
  parser_ = HttpParser(room_.limits);
  continued_ = first_ = false;
  since_ = Clock::now();
  if (!in_.empty()) parse();
  read();
}

// A socket that is closed with bytes unread may take the answer back that is on its way.
void Connection::linger() {
  state_ = State::Lingering;
  since_ = Clock::now();
  in_.clear();
  Failure ignored;
  socket_.shutdown(boost::asio::ip::tcp::socket::shutdown_send, ignored);
  read();
}

void Connection::close() {
  if (state_ == State::Closed) return;
  state_ = State::Closed;
  Failure ignored;
  socket_.close(ignored);
  hold(0);
  if (const auto answer = std::move(answer_)) answer->abandon();
}

// Its client does not read.
void Connection::give_up() { close(); }

Clock::time_point Connection::deadline() const {
  const HttpLimits& limits = room_.limits;
  if (!writing_.empty()) return written_at_ + seconds(limits.write_seconds);
  if (state_ == State::Lingering) return since_ + seconds(kLingerSeconds);
  if (state_ != State::Reading) return Clock::time_point::max();  // the handler has its own
  if (parser_.head_done()) return head_at_ + seconds(limits.body_seconds);
  const bool idle = !parser_.started() && !first_;
  return since_ + seconds(idle ? limits.idle_seconds : limits.head_seconds);
}

void Connection::check_time(Clock::time_point now) {
  if (state_ == State::Closed || now < deadline()) return;
  if (state_ == State::Reading && parser_.started() && writing_.empty())
    return fail(408, "the request did not come to its end in time");
  close();
}

}  // namespace weft::http
