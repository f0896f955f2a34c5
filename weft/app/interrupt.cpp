#include "weft/app/interrupt.h"

namespace weft {

namespace {

// A signal handler can reach nothing but a global; it belongs to the process as signals do.
volatile std::sig_atomic_t interrupted = 0;

void note_signal(int) { interrupted = 1; }

}  // namespace

InterruptScope::InterruptScope(Of of) : count_(of == Of::CtrlC ? 1 : kSignals.size()) {
  interrupted = 0;
  struct sigaction action = {};
  action.sa_handler = note_signal;
  action.sa_flags = SA_RESTART | static_cast<int>(SA_RESETHAND);
  for (size_t i = 0; i < count_; ++i) {
    ::sigaction(kSignals[i], nullptr, &old_[i]);
    if (old_[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &action, nullptr);
  }
}

InterruptScope::~InterruptScope() {
  for (size_t i = 0; i < count_; ++i) ::sigaction(kSignals[i], &old_[i], nullptr);
}

bool InterruptScope::requested() { return interrupted != 0; }

}  // namespace weft
