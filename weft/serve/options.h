// ServeOptions: where the server listens, who may ask, and how much of everything it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace weft::serve {

/// Nothing that a client sends makes the server hold or do more than this.
struct ServeLimits {
  size_t head_bytes = size_t{16} << 10;   ///< of a request's line and fields
  size_t body_bytes = size_t{4} << 20;    ///< of a request's body
  size_t held_bytes = size_t{256} << 20;  ///< of all bodies at once
  size_t unsent_bytes = size_t{1} << 20;  ///< of a stream that its client does not read
  size_t connections = 512;
  size_t choices = 64;            ///< answers to one request: n times the number of prompts
  size_t choices_at_once = 1024;  ///< of all requests, running and queued
  size_t embeddings = 2048;       ///< texts of one request
  double head_seconds = 10;       ///< from a request's first byte (or the connection's start)
  double body_seconds = 60;       ///< from the end of its head
  double idle_seconds = 60;       ///< between two requests of a connection
  double write_seconds = 30;      ///< in which a client has to read something
  double answer_seconds = 1800;   ///< from the request to the end of its answer
  double stop_seconds = 10;       ///< in which answers may come to their end when the server stops
};

struct ServeOptions {
  std::string host = "127.0.0.1";  ///< an address, or localhost; not loopback: needs a key
  uint16_t port = 8080;            ///< 0: any that is free
  std::string api_key = {};        ///< asked for as "Authorization: Bearer KEY"; empty: none
  std::string model_name = {};     ///< what the model is called; empty: as it calls itself
  /// Names by which the machine is reached, beside addresses and localhost. Others are refused:
  /// a page elsewhere could have made its own name mean this machine (DNS rebinding).
  std::vector<std::string> allowed_hosts = {};
  /// Of pages elsewhere that may ask, as "https://example.org".
  std::vector<std::string> allowed_origins = {};
  bool page = true;  ///< the chat page at /
  ServeLimits limits = {};
};

}  // namespace weft::serve
