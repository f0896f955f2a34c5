// KernelTrials: what a search needs of a device: a kernel's plans compiled, timed and compared, in
// memory of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "weft/base/calibrated_clock.h"
#include "weft/device/device.h"
#include "weft/optimize/beam.h"
#include "weft/run/compiled_schedule.h"
#include "weft/run/trial_data.h"

namespace weft {

/// A kernel of static sizes, and the bytes of each buffer it is given.
struct TrialSubject {
  const Kernel* kernel;
  Device* device;
  bool distinct;  ///< no buffer is bound to two slots
  std::vector<int64_t> bytes;
};

class KernelTrials final : public BeamTrials {
 public:
  explicit KernelTrials(TrialSubject subject);

  std::vector<Made> compile(std::span<const LoopPlan> plans) override;
  double sample(size_t plan, double enough) override;
  bool verify(size_t plan) override;
  double elapsed() override;

  const CalibratedClock& clock() const { return clock_; }

 private:
  using Memory = std::vector<std::shared_ptr<Buffer>>;  // by slot
  struct Trial {
    std::shared_ptr<const CompiledKernel> kernel;  // null: it does not work
    double seconds = 0;                            // about, of one run; 0: it never ran
  };

  Memory make_memory();
  void make_sets();
  void fill(const Memory& memory, TrialData data, bool all) const;
  bool written(size_t slot) const;
  bool in_place(size_t slot) const;
  Command command(const Trial& trial, size_t set) const;
  double time(const Trial& trial, int64_t runs);
  std::vector<std::vector<std::byte>> outputs_of(const Trial& trial, TrialData data);

  TrialSubject subject_;
  CalibratedClock clock_;
  uint64_t start_ns_;
  TrialTolerance tolerance_;
  std::vector<Trial> trials_;
  std::vector<Memory> sets_;                      // taken in turns
  std::vector<std::vector<BufferSlice>> slices_;  // of each set
  bool changes_ = false;  // it reads what it writes: each run changes what the next one finds
};

}  // namespace weft
