// Beam search over the plans of a kernel: the cost model proposes, measurements decide. Who can
// compile, time and check kernels stands behind an interface.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "weft/graph/program.h"
#include "weft/optimize/loop_plan.h"

namespace weft {

struct Target;

struct BeamResult;

/// What a search needs of a machine. Plans are numbered in the order in which they were compiled;
/// the first is the analytic one. Whatever throws ends the search.
class BeamTrials {
 public:
  virtual ~BeamTrials() = default;
  struct Made {
    bool works = false;   ///< false: it is no kernel of this machine's
    uint64_t code = 0;    ///< equal for equal code; 0: not known
    int64_t spilled = 0;  ///< values for which there was no register
  };
  virtual std::vector<Made> compile(std::span<const LoopPlan> plans) = 0;
  /// Of one run of a plan's kernel: a sample, which takes a while for short ones. What takes longer
  /// than `enough` in its first run needs no other.
  virtual double sample(size_t plan, double enough) = 0;
  /// Whether a plan's kernel computes what the first one's does.
  virtual bool verify(size_t plan) = 0;
  virtual double elapsed() = 0;  ///< seconds since the search began
  /// A round is over.
  virtual void tell(const BeamResult&) {}
};

struct BeamOptions {
  int64_t width = 4;                 ///< plans that each round goes on from
  double seconds = 10;               ///< after which no new round, race or duel begins
  std::vector<LoopPlan> known = {};  ///< plans found earlier, which are tried first
};

/// What a search has come to; right at any moment, also where it is ended by an exception.
struct BeamResult {
  LoopPlan analytic, best;      ///< the same where nothing is faster
  double analytic_seconds = 0;  ///< medians of the last duel between them, or lower quartiles of
                                ///< the final; 0: there was none
  double best_seconds = 0;
  double analytic_cycles = 0, best_cycles = 0;  ///< that the cost model predicts
  int64_t rounds = 0, compiled = 0, timed = 0;
  int64_t refused = 0;    ///< plans that computed something else
  bool searched = false;  ///< there was something to choose
  bool finished = false;  ///< no plan nearby is faster, or the time is over
};

/// Searches the plans of `kernel` for `target`. Leaves kernels alone that nothing can be chosen
/// about (bound to work groups, or in a fixed order). A plan replaces the analytic one, or the best
/// so far, only where it computes the same and wins a duel. In the end the fastest few are measured
/// in turns; of those that take the same, as far as can be told, the analytic plan wins, or the one
/// that the model likes best: two searches that find the same say the same.
void beam_search(const Kernel& kernel, const Target& target, const BeamOptions& options,
                 BeamTrials& trials, BeamResult& result);

}  // namespace weft
