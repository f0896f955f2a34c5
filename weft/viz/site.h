// Site: what the server of a session answers, apart from sockets.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "weft/http/gate.h"
#include "weft/http/http.h"
#include "weft/viz/drawings.h"
#include "weft/viz/session.h"

namespace weft::viz {

/// GET /api/NAME?a=b is the view of that name, /api/drawing, /api/tile and /api/box are a drawing,
/// a square of it and one of its boxes; all of these need the token. Everything else is a file of
/// the page. From any thread.
class Site {
 public:
  /// Follows the file: what a program has written since is there the next time somebody asks.
  /// `history`: what the view `statistics` reads; requests name no files.
  Site(std::string file, std::string token, std::string history = "");

  http::HttpResponse answer(const http::HttpRequest& request);

 private:
  using Clock = std::chrono::steady_clock;

  std::shared_ptr<const Session> session();
  http::HttpResponse dispatch(const http::HttpRequest& request);
  std::string api(std::string_view name, Parameters parameters);

  const std::string file_, history_;
  const http::GateOptions gate_;
  std::mutex mutex_;
  std::shared_ptr<const Session> session_;
  Clock::time_point looked_;  // whether the file has grown
  Drawings drawings_;
};

/// "a=1&b=%20" as names and values. A Refusal where it is none, or too long a list.
Parameters query_parameters(std::string_view query);

}  // namespace weft::viz
