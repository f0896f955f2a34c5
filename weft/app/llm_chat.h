// weft llm chat: a conversation with a model on a terminal, or line by line on pipes.
#pragma once

#include <string>

#include "weft/app/commands.h"
#include "weft/llm/request_options.h"

namespace weft {

struct LlmChatOptions {
  std::string system = {};
  llm::RequestPlan plan = {};
  std::string history = {};  // a file; empty: where XDG puts it
};

/// Reads questions and commands (/help lists them) from `in` until its end or /exit. On a terminal
/// with line editing, streaming, and Ctrl-C that ends the answer alone; on pipes a question is a
/// line, and nothing is written but answers, with what goes wrong on session.err.
int run_llm_chat(const Session& session, llm::Generator& generator, const LlmChatOptions& options,
                 int in = 0);

}  // namespace weft
