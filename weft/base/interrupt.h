// InterruptCheck: how somebody who waits for a long computation may end it.
#pragma once

#include <functional>

namespace weft {

class Context;

// A slot of the Context. A host device calls `ask` before every command, on the thread that
// realizes. What it throws leaves realize() as a kernel's failure would: every tensor stays valid,
// those that were being updated in place excepted, which say so.
struct InterruptCheck {
  explicit InterruptCheck(Context&) {}
  std::function<void()> ask;
};

}  // namespace weft
