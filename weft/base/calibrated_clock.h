// CalibratedClock: times work against a loop of known length, on machines whose clock rate drifts
// and whose cores have other tasks.
#pragma once

#include "weft/base/function_ref.h"

namespace weft {

class CalibratedClock {
 public:
  struct Sample {
    double seconds;  // that it would have taken at the highest clock rate seen so far, where quiet
    bool quiet;      // nothing came between, as far as can be told
  };
  // A loop of some 10 us runs before and after the work. The sample is not quiet where these differ
  // by over 2 %, or the process was made to give up a core meanwhile.
  Sample time(FunctionRef<void()> work);
  // Cycles in a second, at the highest rate seen so far; 0 before the first sample.
  double cycles_per_second() const;

 private:
  double bracket();

  double fastest_ = 0;  // seconds of the loop
};

}  // namespace weft
