// weft llm serve: a model behind OpenAI's API and a chat page, until Ctrl-C.
#pragma once

#include <string>
#include <vector>

#include "weft/app/commands.h"
#include "weft/llm/generator.h"

namespace weft {

struct LlmServeOptions {
  std::string host = "127.0.0.1";
  int64_t port = 8080;
  std::string api_key;
  std::string api_key_file;  // its first line is the key: command lines are seen by others
  std::string alias;         // what the model is called
  std::vector<std::string> allow_hosts, allow_origins;
  bool no_page = false;
  int64_t max_body_mb = 4;
  int64_t max_connections = 512;
};

/// Serves in the calling thread. Errors: serve.*.
int serve_generator(const Session& session, llm::Generator& generator,
                    const LlmServeOptions& options);

}  // namespace weft
