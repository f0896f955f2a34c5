#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>

#include "tests/serve/client.h"
#include "weft/base/format.h"

namespace weft::serve {

namespace {

size_t number_after(const std::string& head, const std::string& name, int base) {
  const size_t at = head.find(name);
  return at == std::string::npos ? 0 : std::stoul(head.substr(at + name.size()), nullptr, base);
}

}  // namespace

std::string Answer::message() const {
  const Json j = json();
  return j.is_object() && j.contains("error") ? j["error"].value("message", "") : "";
}

std::vector<std::string> Answer::events() const {
  std::vector<std::string> all;
  for (size_t at = 0; at < body.size();) {
    const size_t end = body.find("\n\n", at);
    if (body.compare(at, 7, "event: ") == 0) at = body.find('\n', at) + 1;
    if (end == std::string::npos || body.compare(at, 6, "data: ") != 0) break;
    all.push_back(body.substr(at + 6, end - at - 6));
    at = end + 2;
  }
  return all;
}

Client::Client(uint16_t port) {
  socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) close();
  const int one = 1;
  ::setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

Client::~Client() { close(); }

void Client::finish_sending() { ::shutdown(socket_, SHUT_WR); }

void Client::close() {
  if (socket_ >= 0) ::close(socket_);
  socket_ = -1;
}

void Client::reset() {
  const linger now{1, 0};
  ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close();
}

bool Client::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool Client::receive(int milliseconds) {
  pollfd ready{socket_, POLLIN, 0};
  if (ended_ || ::poll(&ready, 1, milliseconds) <= 0) return false;
  char part[65536];
  const ssize_t n = ::recv(socket_, part, sizeof(part), 0);
  if (n > 0) bytes_.append(part, static_cast<size_t>(n));
  ended_ = n <= 0;
  return n > 0;
}

std::string Client::read_until(std::string_view text, int seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (text.empty() || bytes_.find(text) == std::string::npos) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    if (left.count() <= 0 || (!receive(static_cast<int>(left.count())) && ended_)) break;
  }
  const size_t at = text.empty() ? std::string::npos : bytes_.find(text);
  const size_t size = at == std::string::npos ? bytes_.size() : at + text.size();
  std::string found = bytes_.substr(0, size);
  bytes_.erase(0, size);
  return found;
}

bool Client::closed(int seconds) {
  read_until("", seconds);
  return ended_;
}

Answer Client::read_answer(int seconds) {
  Answer answer;
  do answer.head = read_until("\r\n\r\n", seconds);
  while (answer.head.starts_with("HTTP/1.1 100"));
  if (answer.head.size() < 12) return answer;
  answer.status = std::stoi(answer.head.substr(9));
  if (answer.head.find("Transfer-Encoding: chunked") != std::string::npos) {
    while (const size_t size = number_after("=" + read_until("\r\n", seconds), "=", 16)) {
      while (bytes_.size() < size + 2 && !ended_ && receive(seconds * 1000)) {}
      answer.body += bytes_.substr(0, size);
      bytes_.erase(0, size + 2);
    }
    read_until("\r\n", seconds);
  } else if (answer.head.find("Content-Length: ") != std::string::npos) {
    const size_t size = number_after(answer.head, "Content-Length: ", 10);
    while (bytes_.size() < size && !ended_ && receive(seconds * 1000)) {}
    answer.body = bytes_.substr(0, size);
    bytes_.erase(0, size);
  } else if (answer.status != 204) {
    answer.body = read_all(seconds);
  }
  return answer;
}

std::string get(std::string_view path, std::string_view more) {
  return strformat("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, more);
}

std::string post(std::string_view path, std::string_view body, std::string_view more) {
  return strformat(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n{}\r\n{}",
      path, body.size(), more, body);
}

ServerHere::ServerHere(FakeOptions fake, ServeOptions options) : generator(fake) {
  options.port = 0;
  server = std::make_unique<Server>(generator, std::move(options));
  thread_ = std::thread([this] { server->run(); });
}

ServerHere::~ServerHere() {
  server->stop();
  thread_.join();
}

Answer ServerHere::ask(std::string_view bytes, int seconds) const {
  Client client(port());
  client.send(bytes);
  return client.read_answer(seconds);
}

Json chat_body(std::string_view text, const Json& more) {
  Json body = {{"messages", Json::array({{{"role", "user"}, {"content", text}}})}};
  body.update(more);
  return body;
}

}  // namespace weft::serve
