// weft llm serve: a model behind OpenAI's API and a chat page, until Ctrl-C.
#pragma once

#include "weft/app/llm_options.h"
#include "weft/llm/generator.h"

namespace weft {

/// Serves in the calling thread. Errors: serve.*.
int serve_generator(const Session& session, llm::Generator& generator,
                    const LlmServeOptions& options);

}  // namespace weft
