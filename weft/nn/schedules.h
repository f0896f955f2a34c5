// Learning rates over time: a schedule is a function of the first rate and the steps taken so far,
// a LrScheduler applies it to optimizers.
//
//   nn::LrScheduler scheduler(adam, nn::warmup(500, nn::cosine(10000)));
//   adam.step();
//   scheduler.step();
#pragma once

#include <functional>
#include <vector>

#include "weft/nn/optimizer.h"

namespace weft::nn {

// The rate after `steps` steps, 0 at first, of an optimizer that was made with rate `first`.
// Numbers of steps below 1 and factors below 0 are Errors of the functions that make schedules.
using Schedule = std::function<double(double first, int64_t steps)>;

Schedule constant();
Schedule step_decay(int64_t every, double gamma = 0.1);  // times gamma every so many steps
Schedule multi_step(std::vector<int64_t> at,
                    double gamma = 0.1);  // times gamma at these, ascending
Schedule exponential(double gamma);       // times gamma each step
// From first * start to first * end over `steps`, then constant.
Schedule linear(int64_t steps, double start, double end = 1);
// Falls to 0 over `steps` as (1 - t / steps)^power.
Schedule polynomial(int64_t steps, double power = 1);
// Falls to `least` over `steps` as half a cosine, then stays (Loshchilov and Hutter 2017); with
// restarts it begins anew, each cycle `factor` times as long as the one before.
Schedule cosine(int64_t steps, double least = 0);
Schedule cosine_restarts(int64_t cycle, int64_t factor = 1, double least = 0);

struct OneCycleOptions {
  double rise = 0.3;          // share of the steps until the peak
  double start_divisor = 25;  // peak / the first rate
  double end_divisor = 1e4;   // the first rate / the last one
  bool cosine = true;         // else linear
};
// Up to `peak` and down again within `steps` (Smith and Topin 2019). Takes no notice of the
// optimizer's first rate.
Schedule one_cycle(double peak, int64_t steps, const OneCycleOptions& options = {});

// Rises linearly from first * start over `steps`, after which `then` begins at its step 0.
Schedule warmup(int64_t steps, Schedule then, double start = 0);
// Each schedule until its milestone, from its own step 0; one more schedule than milestones.
Schedule in_sequence(std::vector<Schedule> schedules, std::vector<int64_t> milestones);

// What sets the rates of optimizers. Each keeps the ratio to its own first rate. visit() makes it a
// part of checkpoints. The optimizers must outlive it.
class LrController {
 public:
  explicit LrController(Optimizer& optimizer);
  explicit LrController(OptimizerGroup& group);
  // The rate of each optimizer now.
  std::vector<double> rates() const;

 protected:
  std::vector<Optimizer*> optimizers_;
  std::vector<double> first_;
};

class LrScheduler : public LrController {
 public:
  // Sets the rate of step 0.
  template <class Optimizers>
  LrScheduler(Optimizers& optimizers, Schedule schedule, CallSite at = CallSite::here())
      : LrController(optimizers), schedule_(std::move(schedule)) {
    begin(at);
  }
  // After each step of the optimizers (or each epoch, if that is what the schedule counts).
  void step(CallSite at = CallSite::here());
  int64_t steps() const { return steps_.item<int64_t>(); }
  void visit(StateVisitor& v);

 private:
  void begin(CallSite at);
  void apply(int64_t steps, CallSite at);

  Schedule schedule_;
  Tensor steps_;  // i64 ()
};

struct PlateauOptions {
  double factor = 0.1;      // what rates are multiplied by
  int64_t patience = 10;    // steps without progress that are borne
  double threshold = 1e-4;  // progress is to be better than the best by this share of it
  bool larger_is_better = false;
  int64_t cooldown = 0;  // steps after a change in which nothing is counted
  double least = 0;      // rates stay above it
};

// Lowers the rates when a measure stops getting better.
class ReduceOnPlateau : public LrController {
 public:
  template <class Optimizers>
  explicit ReduceOnPlateau(Optimizers& optimizers, const PlateauOptions& options = {},
                           CallSite at = CallSite::here())
      : LrController(optimizers), options_(options) {
    begin(at);
  }
  void step(double measure, CallSite at = CallSite::here());
  void visit(StateVisitor& v);

 private:
  void begin(CallSite at);
  bool is_better(double measure, double best) const;

  PlateauOptions options_;
  Tensor state_;  // f64 (3): the best measure, steps without progress, steps of cooldown left
};

}  // namespace weft::nn
