// Refusal: what a client did wrong, in the form that OpenAI's clients read.
#pragma once

#include <string>
#include <string_view>

#include "weft/http/http.h"

namespace weft::http {

/// Thrown where a request is read; its client gets it.
struct Refusal {
  int status = 400;
  std::string code;   ///< stable: "context_length_exceeded"
  std::string param;  ///< the parameter that is wrong; empty: none
  std::string message;
};

/// {"error": {"message", "type", "param", "code"}}
std::string error_json(const Refusal& refusal);
HttpResponse error_response(const Refusal& refusal);

/// The beginning of what a client sent, as messages quote it: valid, and not long.
std::string valid_start(std::string_view text);

}  // namespace weft::http
