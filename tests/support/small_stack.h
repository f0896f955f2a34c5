// Runs a function on a thread with a small stack: deep graphs must not need a large one.
#pragma once
#include <functional>

namespace weft {

/// Runs `body` on a stack of `bytes` and rethrows what it throws.
void on_small_stack(const std::function<void()>& body, size_t bytes = 256 * 1024);

}  // namespace weft
