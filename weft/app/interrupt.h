// Ctrl-C as a flag that a loop looks at. Only the command does this: the library never would.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdint>

namespace weft {

// While it lives, the first Ctrl-C (or SIGTERM, where `Of` says so) sets the flag; a second one
// ends the process. A signal that the process was started to ignore stays ignored: a shell does
// that to what a script runs in the background, so that Ctrl-C ends the script alone.
class InterruptScope {
 public:
  enum class Of : uint8_t { CtrlC, AnyEnd };
  explicit InterruptScope(Of of = Of::AnyEnd);
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  static bool requested();

 private:
  static constexpr std::array kSignals{SIGINT, SIGTERM};
  size_t count_;  // of kSignals that are caught
  std::array<struct sigaction, kSignals.size()> old_;
};

}  // namespace weft
