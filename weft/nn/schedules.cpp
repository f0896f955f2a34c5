#include "weft/nn/schedules.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include "weft/base/error.h"

namespace weft::nn {

namespace {

void check_steps(const char* schedule, int64_t steps) {
  if (steps < 1) fail(schedule, "the number of steps must be at least 1, not {}", steps);
}
void check_factor(const char* schedule, double factor) {
  if (!(factor >= 0)) fail(schedule, "factors must not be below 0, got {}", factor);
}

double share(int64_t steps, int64_t all) {
  return std::clamp(static_cast<double>(steps) / static_cast<double>(all), 0.0, 1.0);
}
double between(double from, double to, double share) { return from + (to - from) * share; }
double half_cosine(double from, double to, double share) {
  return between(from, to, (1 - std::cos(std::numbers::pi * share)) / 2);
}

}  // namespace

Schedule constant() {
  return [](double first, int64_t) { return first; };
}

Schedule step_decay(int64_t every, double gamma) {
  check_steps("step_decay", every);
  check_factor("step_decay", gamma);
  return [=](double first, int64_t steps) {
    return first * std::pow(gamma, static_cast<double>(steps / every));
  };
}

Schedule multi_step(std::vector<int64_t> at, double gamma) {
  check_factor("multi_step", gamma);
  if (!std::ranges::is_sorted(at)) fail("multi_step", "the steps must ascend");
  return [=](double first, int64_t steps) {
    const auto passed = std::ranges::upper_bound(at, steps) - at.begin();
    return first * std::pow(gamma, static_cast<double>(passed));
  };
}

Schedule exponential(double gamma) { return step_decay(1, gamma); }

Schedule linear(int64_t all, double start, double end) {
  check_steps("linear", all);
  check_factor("linear", std::min(start, end));
  return
      [=](double first, int64_t steps) { return first * between(start, end, share(steps, all)); };
}

Schedule polynomial(int64_t all, double power) {
  check_steps("polynomial", all);
  check_factor("polynomial", power);
  return
      [=](double first, int64_t steps) { return first * std::pow(1 - share(steps, all), power); };
}

Schedule cosine(int64_t all, double least) {
  check_steps("cosine", all);
  check_factor("cosine", least);
  return [=](double first, int64_t steps) { return half_cosine(first, least, share(steps, all)); };
}

Schedule cosine_restarts(int64_t cycle, int64_t factor, double least) {
  check_steps("cosine_restarts", cycle);
  check_steps("cosine_restarts", factor);
  check_factor("cosine_restarts", least);
  return [=](double first, int64_t steps) {
    int64_t length = cycle, place = factor == 1 ? steps % cycle : steps;
    while (place >= length) {
      place -= length;
      length *= factor;
    }
    return half_cosine(first, least, share(place, length));
  };
}

Schedule one_cycle(double peak, int64_t steps, const OneCycleOptions& options) {
  if (steps < 2) fail("one_cycle", "a cycle must be of 2 steps at least, not {}", steps);
  if (!(options.rise > 0 && options.rise < 1)) {
    fail("one_cycle", "the share of rising must be within (0, 1), not {}", options.rise);
  }
  const double start = peak / options.start_divisor;
  const auto last = static_cast<double>(steps - 1);
  const double top = options.rise * static_cast<double>(steps) - 1;
  return [=, form = options.cosine ? half_cosine : between, end = start / options.end_divisor](
             double, int64_t now) {
    const auto at = std::min(static_cast<double>(now), last);
    if (at < top) return form(start, peak, at / top);
    return form(peak, end, (at - top) / (last - top));
  };
}

Schedule warmup(int64_t steps, Schedule then, double start) {
  return in_sequence({linear(steps, start), std::move(then)}, {steps});
}

Schedule in_sequence(std::vector<Schedule> schedules, std::vector<int64_t> milestones) {
  if (schedules.size() != milestones.size() + 1) {
    fail("in_sequence", "{} schedules need {} milestones, got {}", schedules.size(),
         static_cast<int64_t>(schedules.size()) - 1, milestones.size());
  }
  if (!std::ranges::is_sorted(milestones)) fail("in_sequence", "the milestones must ascend");
  return [=](double first, int64_t steps) {
    const auto next = std::ranges::upper_bound(milestones, steps);
    const auto begun = next == milestones.begin() ? 0 : *std::prev(next);
    return schedules[static_cast<size_t>(next - milestones.begin())](first, steps - begun);
  };
}

LrController::LrController(Optimizer& optimizer) : optimizers_{&optimizer} { first_ = rates(); }

LrController::LrController(OptimizerGroup& group) {
  for (size_t i = 0; i < group.size(); ++i) optimizers_.push_back(&group[i]);
  first_ = rates();
}

std::vector<double> LrController::rates() const {
  std::vector<double> rates;
  for (const Optimizer* optimizer : optimizers_) rates.push_back(optimizer->lr());
  return rates;
}

void LrScheduler::begin(CallSite at) {
  steps_ = own_constant({}, 0, DType::I64, at);
  apply(0, at);
}

void LrScheduler::apply(int64_t steps, CallSite at) {
  for (size_t i = 0; i < optimizers_.size(); ++i) {
    optimizers_[i]->set_lr(schedule_(first_[i], steps), at);
  }
}

void LrScheduler::step(CallSite at) {
  const int64_t now = steps() + 1;
  steps_.copy_from(std::as_bytes(std::span(&now, 1)));
  apply(now, at);
}

void LrScheduler::visit(StateVisitor& v) { v("steps", steps_); }

void ReduceOnPlateau::begin(CallSite at) {
  const CallSiteScope site(at);
  check_factor("ReduceOnPlateau", options_.factor);
  const double none = options_.larger_is_better ? -std::numeric_limits<double>::infinity()
                                                : std::numeric_limits<double>::infinity();
  state_ = Tensor::from(std::vector<double>{none, 0, 0});
}

bool ReduceOnPlateau::is_better(double measure, double best) const {
  if (std::isinf(best)) return measure == measure;
  const double margin = std::abs(best) * options_.threshold;
  return options_.larger_is_better ? measure > best + margin : measure < best - margin;
}

void ReduceOnPlateau::step(double measure, CallSite at) {
  const CallSiteScope site(at);
  std::vector<double> state = state_.to_vector<double>();
  double &best = state[0], &idle = state[1], &cooldown = state[2];
  idle = is_better(measure, best) ? 0 : idle + 1;
  if (idle == 0) best = measure;
  if (cooldown > 0) {
    --cooldown;
    idle = 0;
  }
  if (idle > static_cast<double>(options_.patience)) {
    for (Optimizer* optimizer : optimizers_) {
      optimizer->set_lr(std::max(optimizer->lr() * options_.factor, options_.least));
    }
    cooldown = static_cast<double>(options_.cooldown);
    idle = 0;
  }
  state_.copy_from(std::as_bytes(std::span(state)));
}

void ReduceOnPlateau::visit(StateVisitor& v) { v("plateau", state_); }

}  // namespace weft::nn
