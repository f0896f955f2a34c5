// HttpParser: bytes of a connection to requests. Nothing is taken that two readers could read in
// two ways.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "weft/http/http.h"
#include "weft/http/limits.h"

namespace weft::http {

/// Reads one request of HTTP/1.0 or 1.1 (RFC 9112). Refused are, beside what breaks the grammar:
/// a length and chunks together, two lengths, encodings other than chunked, upgrades. Fields behind
/// a body are dropped. A target "http://HOST/PATH" is PATH, with HOST in the field of that name.
///   HttpParser parser(limits);
///   bytes.erase(0, parser.feed(bytes));
///   if (parser.done()) use(parser.take());
class HttpParser {
 public:
  explicit HttpParser(const HttpLimits& limits);
  ~HttpParser();
  HttpParser(HttpParser&&) noexcept;
  HttpParser& operator=(HttpParser&&) noexcept;

  /// How many of the bytes were used; what was not has to be given again, with more behind it.
  size_t feed(std::string_view bytes);
  bool started() const;    ///< some of a request was there
  bool head_done() const;  ///< its line and fields were
  bool done() const;       ///< all of it was
  /// The client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;
  int failed() const;  ///< the status to answer with; 0: nothing is wrong
  const std::string& problem() const;
  size_t body_size() const;
  HttpRequest take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft::http
