// `weft llm` as users meet it.
#pragma once

#include "tests/app/command.h"

namespace weft {

class LlmCommand : public CommandGroupTest {
 protected:
  LlmCommand() : CommandGroupTest("llm") {}
};

}  // namespace weft
