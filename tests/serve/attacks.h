// What attackers send to a server, for tests and for tests/serve/soak.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/serve/client.h"
#include "weft/trust/random.h"

namespace weft::serve {

/// What is no request, or two at once.
struct HttpAttack {
  const char* what;
  std::string bytes;
  int status;  // of the answer
};
const std::vector<HttpAttack>& http_attacks();

/// A parameter that is wrong in its own way; `message` is in the answer.
struct BodyAttack {
  std::string bytes;
  const char* message;
};
const std::vector<BodyAttack>& body_attacks();

/// A request of any kind with some of its bytes changed, cut off, sent twice.
std::string changed_request(Random& random);

/// POST /tokenize with these chunks, and with this Content-Length.
std::string chunked(std::string_view chunks, std::string_view more = "");
std::string with_length(std::string_view length);
/// A good chat and more members.
std::string chat_with(std::string_view more);
std::string repeated(std::string_view text, size_t times);

}  // namespace weft::serve
