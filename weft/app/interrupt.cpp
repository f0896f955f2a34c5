#include "weft/app/interrupt.h"

namespace weft {

namespace {

// A signal handler can reach nothing but a global; it belongs to the process as signals do.
volatile std::sig_atomic_t interrupted = 0;

void note_signal(int) { interrupted = 1; }

}  // namespace

InterruptScope::InterruptScope() {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, &old_int_);
  ::sigaction(SIGTERM, &action, &old_term_);
}

InterruptScope::~InterruptScope() {
  ::sigaction(SIGINT, &old_int_, nullptr);
  ::sigaction(SIGTERM, &old_term_, nullptr);
}

bool InterruptScope::requested() { return interrupted != 0; }

}  // namespace weft
