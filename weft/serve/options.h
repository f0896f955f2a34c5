// ServeOptions: where the server listens, who may ask, and how much of everything it takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "weft/http/limits.h"

namespace weft::serve {

/// Of a server of language models, beside those of connections.
struct ServeLimits : http::HttpLimits {
  size_t choices = 64;            ///< answers to one request: n times the number of prompts
  size_t choices_at_once = 1024;  ///< of all requests, running and queued
  size_t embeddings = 2048;       ///< texts of one request
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
