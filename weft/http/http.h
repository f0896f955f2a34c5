// HTTP as the rest of the server sees it: a whole request, a whole answer, a stream of events.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::http {

using HttpFields = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method, target;
  HttpFields fields;
  std::string body;
  bool keep_alive = true;  ///< the connection stays
  bool chunks = true;      ///< the client reads chunked answers: HTTP/1.1

  std::string_view path() const;   ///< of the target, before '?'
  std::string_view query() const;  ///< behind it
  /// Its first field of this name, in any case; empty: none.
  std::string_view field(std::string_view name) const;
  size_t count(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string body;
  std::string content_type = "application/json";
  HttpFields fields = {};
};

/// The reason phrase of RFC 9110.
std::string_view status_text(int status);
bool equal_ignoring_case(std::string_view a, std::string_view b);

/// One request's answer on its way: either respond(), or begin_events(), event().., end(). What
/// comes after the end or after the client has gone is dropped.
class Exchange {
 public:
  virtual ~Exchange() = default;
  virtual void respond(const HttpResponse& response) = 0;
  /// The head of a stream of server-sent events.
  virtual void begin_events() = 0;
  virtual void event(std::string_view data, std::string_view name) = 0;  ///< name: may be empty
  virtual void end_events() = 0;
  /// Called once if the client goes, or does not read, before the answer's end.
  virtual void when_abandoned(std::function<void()> then) = 0;
  /// Fields that the answer will have, whatever it is.
  virtual void add_field(std::string name, std::string value) = 0;
};

}  // namespace weft::http
