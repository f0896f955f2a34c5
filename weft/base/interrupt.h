// InterruptCheck: how somebody who waits for a long computation may end it.
#pragma once

#include <functional>

namespace weft {

class Context;

// A slot of the Context. A host device calls `ask` before every command, on the thread that
// realizes. What it throws leaves realize(), and every tensor is as it was before: while memory is
// updated in place nobody is asked.
struct InterruptCheck {
  explicit InterruptCheck(Context&) {}
  std::function<void()> ask;
  bool harmless = true;  // what runs could be given up
};

}  // namespace weft
