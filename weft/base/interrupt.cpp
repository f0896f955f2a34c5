#include "weft/base/interrupt.h"

namespace weft {

namespace {

// Ends work on threads other than the one that asks.
struct Interrupted {};

}  // namespace

InterruptibleScope::InterruptibleScope(Context& context)
    : current_(context), check_(context.get_if<InterruptCheck>()) {
  if (!check_) return;
  check_->ended = false;
  check_->thread = std::this_thread::get_id();
}

InterruptibleScope::~InterruptibleScope() {
  if (!check_) return;
  check_->thread = std::thread::id();
  check_->why = nullptr;
}

void InterruptibleScope::run(FunctionRef<void()> work) {
  try {
    work();
  } catch (const Interrupted&) {
    std::rethrow_exception(check_->why);
  }
}

void ask_interrupt() {
  auto* check = Context::current().get_if<InterruptCheck>();
  if (!check || check->thread.load() == std::thread::id()) return;
  if (check->ended) throw Interrupted();
  if (check->thread.load() != std::this_thread::get_id()) return;
  try {
    check->ask();
  } catch (...) {
    check->why = std::current_exception();
    check->ended = true;
    throw;
  }
}

void poll_walk(size_t step) {
  if (step % 1024 != 1023) return;
  const auto* check = Context::current().get_if<InterruptCheck>();
  if (check && check->ask) check->ask();
}

}  // namespace weft
