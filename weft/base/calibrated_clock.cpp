#include "weft/base/calibrated_clock.h"

#include <sys/resource.h>

#include <algorithm>
#include <cmath>

#include "weft/base/spans.h"

namespace weft {

namespace {

// Multiplications, each of which waits for the one before: 3 cycles on every x86-64 since Nehalem
// and Zen (Agner Fog, "Instruction tables"), 3 or 4 on AArch64.
constexpr int kMultiplications = 15000;
constexpr double kCyclesEach = 3;
constexpr double kSteady = 0.02;  // by which brackets of one sample may differ

uint64_t multiply_in_a_row(uint64_t x) {
  // Squares: no compiler knows a shorter way to the last.
  for (int i = 0; i < kMultiplications; ++i) x = x * x + 0x9e3779b97f4a7c15u;
  return x;
}

int64_t times_preempted() {
  struct rusage usage = {};
  return ::getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_nivcsw : 0;
}

}  // namespace

double CalibratedClock::bracket() {
  volatile uint64_t start_value = 3, result = 0;  // so that the loop runs
  const uint64_t start = now_ns();
  result = multiply_in_a_row(start_value);
  static_cast<void>(result);
  const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
  fastest_ = fastest_ == 0 ? seconds : std::min(fastest_, seconds);
  return seconds;
}

CalibratedClock::Sample CalibratedClock::time(FunctionRef<void()> work) {
  const int64_t preempted = times_preempted();
  const double before = bracket();
  const uint64_t start = now_ns();
  work();
  const double seconds = static_cast<double>(now_ns() - start) * 1e-9;
  const double after = bracket();
  const double slower = std::min(before, after);
  // A bracket that something came between says nothing of the clock.
  const bool quiet = std::abs(before - after) <= kSteady * slower && times_preempted() == preempted;
  return {quiet ? seconds * fastest_ / slower : seconds, quiet};
}

double CalibratedClock::cycles_per_second() const {
  // The sum adds a cycle to each multiplication.
  return fastest_ > 0 ? kMultiplications * (kCyclesEach + 1) / fastest_ : 0;
}

}  // namespace weft
