// HttpLimits: nothing that a client sends makes a server hold or wait for more than this.
#pragma once

#include <cstddef>

namespace weft::http {

struct HttpLimits {
  size_t head_bytes = size_t{16} << 10;   ///< of a request's line and fields
  size_t body_bytes = size_t{4} << 20;    ///< of a request's body
  size_t held_bytes = size_t{256} << 20;  ///< of all bodies at once
  size_t unsent_bytes = size_t{1} << 20;  ///< of a stream that its client does not read
  size_t connections = 512;
  double head_seconds = 10;   ///< from a request's first byte (or the connection's start)
  double body_seconds = 60;   ///< from the end of its head
  double idle_seconds = 60;   ///< between two requests of a connection
  double write_seconds = 30;  ///< in which a client has to read something
};

}  // namespace weft::http
