#include "weft/optimize/beam.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

#include "weft/optimize/passes.h"
#include "weft/optimize/plan_space.h"

namespace weft {
namespace {

using namespace optimize;

constexpr int64_t kPerRound = 6;  // plans compiled in a round, per place in the beam
constexpr int64_t kMostRounds = 24;
constexpr int kMostMisses = 3;         // rounds in a row that find nothing faster
constexpr double kHopeless = 3;        // times the best prediction: not worth compiling
constexpr double kMayWin = 1.3;        // times the best sample: worth another
constexpr int64_t kMoreSpilled = 4;    // values beyond the analytic kernel's: not worth timing
constexpr int kSamples[] = {1, 2, 4};  // of a race's heats
// A duel: of this many pairs the challenger has to win so many (a sign test at p < 0.1, Dixon and
// Mood, "The statistical sign test", 1946), and by so much in the median.
// Where all are won, fewer do.
constexpr int kPairs = 12, kWins = 9, kFewPairs = 4;
constexpr double kFaster = 0.99;
// The final: of so many plans at most, no slower than this beside the fastest, in so many rounds at
// most; its share of the time. What differs by less than kSame is the same.
constexpr size_t kFinalists = 10;
constexpr double kMayBeFirst = 1.1, kNearFirst = 1.03, kSame = 0.02, kFinalShare = 0.25;
constexpr int kRounds = 16, kFewRounds = 5;
constexpr double kNotInRace = 2;  // times the fastest, in its first run

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// What a machine takes that nobody else uses: other work only ever adds.
double lower_quartile(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 4];
}

/// Decisions in which two plans of the same loops differ.
int differences(const LoopPlan& a, const LoopPlan& b) {
  int n = (a.innermost != b.innermost) + (a.stream != b.stream) + (a.borders != b.borders);
  for (size_t r = 0; r < std::min(a.ranges.size(), b.ranges.size()); ++r)
    n += (a.ranges[r].lanes != b.ranges[r].lanes) + (a.ranges[r].unroll != b.ranges[r].unroll);
  return n;
}

/// A kernel whose ranges are as they will be cut, with its borders peeled or not.
struct Opened {
  Opened(const Kernel& kernel, const Target& target, bool borders)
      : options{true, nullptr, borders ? nullptr : &without},
        state(open_kernel(kernel, target, options)) {
    if (state && prepare_choice(*state)) space.emplace(state->info, target);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;

  const LoopPlan without{.borders = false};
  const OptimizeOptions options;
  std::optional<State> state;
  std::optional<PlanSpace> space;
};

/// The plans of both forms of a kernel.
class Plans {
 public:
  Plans(const Kernel& kernel, const Target& target)
      : peeled_(kernel, target, true), whole_(kernel, target, false) {}

  bool any() const { return peeled_.space.has_value(); }
  LoopPlan analytic() const { return peeled_.space->analytic(); }
  const PlanSpace& of(const LoopPlan& plan) const {
    return *(plan.borders ? peeled_ : whole_).space;
  }
  std::vector<LoopPlan> starts() const {
    std::vector<LoopPlan> all = peeled_.space->starts();
    if (same_loops()) return all;
    for (LoopPlan plan : whole_.space->starts()) {
      plan.borders = false;
      all.push_back(std::move(plan));
    }
    return all;
  }
  bool legal(const LoopPlan& plan) const {
    return (plan.borders || !same_loops()) && of(plan).legal(plan);
  }

 private:
  bool same_loops() const {
    return peeled_.state->info.sink->hash == whole_.state->info.sink->hash;
  }
  Opened peeled_, whole_;
};

class BeamSearch {
 public:
  BeamSearch(const Plans& plans, const BeamOptions& options, BeamTrials& trials, BeamResult& result)
      : plans_(plans), options_(options), trials_(trials), result_(result) {}

  void run() {
    open(plans_.analytic());
    if (!result_.searched) return;
    for (int misses = 0; misses < kMostMisses && result_.rounds < kMostRounds && may_explore();) {
      const std::vector<size_t> fresh = compile(best_proposals());
      if (fresh.empty()) {
        if (proposed_.empty()) break;
        continue;
      }
      ++result_.rounds;
      const std::vector<size_t> beam = race(fresh);
      misses = challenge(beam) ? 0 : misses + 1;
      trials_.tell(result_);
      for (const size_t i : beam) propose_near(i);
    }
    hold_final();
    last_duel();
    result_.finished = true;
  }

 private:
  struct Seen {
    LoopPlan plan;
    BeamTrials::Made made = {};
    double cycles = 0;       // predicted
    double best = INFINITY;  // of all samples
    bool beaten = false;     // by the incumbent, in a duel
    std::optional<bool> right = {};
  };

  bool in_time() { return trials_.elapsed() < options_.seconds; }
  bool may_explore() { return trials_.elapsed() < options_.seconds * (1 - kFinalShare); }

  void open(const LoopPlan& analytic) {
    result_.analytic = result_.best = analytic;
    result_.analytic_cycles = result_.best_cycles = plans_.of(analytic).cycles(analytic);
    compile({analytic});
    result_.searched = seen_[0].made.works;
    if (!result_.searched) return;
    sample(0);
    for (const LoopPlan& plan : options_.known)
      if (plans_.legal(plan)) propose(plan, 0);
    for (const LoopPlan& plan : plans_.starts()) propose(plan, estimate(plan, 0));
    propose_near(0);
  }

  // ---- what may be compiled

  struct Proposal {
    double seconds;  // estimated
    size_t order;    // decides between equal ones
    LoopPlan plan;
  };

  /// What the model says of the difference to a plan that was measured.
  double estimate(const LoopPlan& plan, size_t measured) const {
    const Seen& from = seen_[measured];
    const double cycles = plans_.of(plan).cycles(plan);
    return from.cycles > 0 ? cycles / from.cycles * from.best : cycles > 0 ? from.best : 0;
  }

  void propose(const LoopPlan& plan, double seconds) {
    const auto same = [&](const auto& other) { return other.plan == plan; };
    if (std::ranges::any_of(seen_, same)) return;
    const auto known = std::ranges::find_if(proposed_, same);
    if (known != proposed_.end())
      known->seconds = std::min(known->seconds, seconds);
    else
      proposed_.push_back({seconds, order_++, plan});
  }

  void propose_near(size_t i) {
    const LoopPlan plan = seen_[i].plan;
    for (const LoopPlan& near : plans_.of(plan).neighbours(plan)) propose(near, estimate(near, i));
  }

  /// As many as a round takes; the others wait for the next one, unless they are hopeless.
  std::vector<LoopPlan> best_proposals() {
    const double hopeless = kHopeless * least();
    std::erase_if(proposed_, [&](const Proposal& p) { return p.seconds > hopeless; });
    std::ranges::sort(proposed_, {},
                      [](const Proposal& p) { return std::pair(p.seconds, p.order); });
    const size_t count =
        std::min(proposed_.size(), static_cast<size_t>(kPerRound * options_.width));
    std::vector<LoopPlan> out;
    for (size_t i = 0; i < count; ++i) out.push_back(proposed_[i].plan);
    proposed_.erase(proposed_.begin(), proposed_.begin() + static_cast<ptrdiff_t>(count));
    return out;
  }

  /// Which of them are worth timing: what has too few registers, or is a kernel that is there
  /// already, is not.
  std::vector<size_t> compile(const std::vector<LoopPlan>& chosen) {
    std::vector<size_t> fresh;
    if (chosen.empty()) return fresh;
    const std::vector<BeamTrials::Made> made = trials_.compile(chosen);
    result_.compiled += static_cast<int64_t>(chosen.size());
    for (size_t i = 0; i < chosen.size(); ++i) {
      const bool copy = made[i].code != 0 && std::ranges::any_of(seen_, [&](const Seen& s) {
                          return s.made.code == made[i].code;
                        });
      seen_.push_back({chosen[i], made[i], plans_.of(chosen[i]).cycles(chosen[i])});
      if (made[i].works && !copy && made[i].spilled <= seen_[0].made.spilled + kMoreSpilled)
        fresh.push_back(seen_.size() - 1);
    }
    return fresh;
  }

  // ---- timing

  double least() const {
    double least = INFINITY;
    for (const Seen& s : seen_)
      if (s.right.value_or(true)) least = std::min(least, s.best);
    return least;
  }

  double sample(size_t i, double enough = INFINITY) {
    const double seconds = trials_.sample(i, enough);
    seen_[i].best = std::min(seen_[i].best, seconds);
    ++result_.timed;
    return seconds;
  }

  /// Successive halving; the fastest first.
  std::vector<size_t> race(std::vector<size_t> runners) {
    const auto width = static_cast<size_t>(options_.width);
    for (const int samples : kSamples) {
      for (int k = 0; k < samples; ++k)
        for (const size_t i : runners)
          if (may_explore()) sample(i, kNotInRace * least());
      std::ranges::sort(runners, {}, [&](size_t i) { return std::pair(seen_[i].best, i); });
      const double least = seen_[runners[0]].best;
      std::erase_if(runners, [&](size_t i) { return seen_[i].best > kMayWin * least; });
      runners.resize(std::min(runners.size(), std::max(width, (runners.size() + 1) / 2)));
    }
    runners.resize(std::min(runners.size(), width));
    return runners;
  }

  struct Duel {
    double first, second;  // medians
    bool won;              // by the second
  };
  /// In the order A B B A, so that a drift hits both alike. Ends when it is lost, or when there is
  /// no time for all of it.
  Duel duel(size_t a, size_t b) {
    std::vector<double> as, bs, ratios;
    int wins = 0;
    for (int pair = 0; pair < kPairs && pair - wins <= kPairs - kWins; ++pair) {
      if (pair >= kFewPairs && !in_time()) break;
      const bool turned = pair % 2 != 0;
      const double first = sample(turned ? b : a), second = sample(turned ? a : b);
      as.push_back(turned ? second : first);
      bs.push_back(turned ? first : second);
      ratios.push_back(bs.back() / as.back());
      wins += ratios.back() < 1 ? 1 : 0;
    }
    const bool all = wins == static_cast<int>(ratios.size()) && wins >= kFewPairs;
    return {median(as), median(bs), (wins >= kWins || all) && median(ratios) < kFaster};
  }

  /// The fastest of the beam against the best so far; whether it has taken its place.
  bool challenge(const std::vector<size_t>& beam) {
    for (const size_t i : beam) {
      if (i == best_ || seen_[i].beaten || !may_explore()) continue;
      if (std::isfinite(seen_[best_].best) && seen_[i].best > kMayWin * seen_[best_].best) break;
      seen_[i].beaten = !duel(best_, i).won;
      if (seen_[i].beaten) break;  // the others are slower
      if (!is_right(i)) continue;
      take(i);
      return true;
    }
    return false;
  }

  bool is_right(size_t i) {
    if (i == 0) return true;
    if (!seen_[i].right) {
      seen_[i].right = trials_.verify(i);
      result_.refused += *seen_[i].right ? 0 : 1;
    }
    return *seen_[i].right;
  }

  void take(size_t i) {
    best_ = i;
    result_.best = seen_[simplest(i)].plan;
    result_.best_cycles = seen_[i].cycles;
  }

  /// Of the plans that are one kernel, the one that is nearest to the analytic plan.
  size_t simplest(size_t i) const {
    const auto order = [&](size_t k) {
      return std::pair(differences(seen_[k].plan, seen_[0].plan), text(seen_[k].plan));
    };
    for (size_t k = 0; k < seen_.size(); ++k)
      if (seen_[k].made.code != 0 && seen_[k].made.code == seen_[i].made.code &&
          order(k) < order(i))
        i = k;
    return i;
  }

  // ---- the end

  /// The analytic plan, the best so far, those that the model likes best of the fastest, and the
  /// fastest of the others; as many as there is time for.
  std::vector<size_t> finalists() {
    std::vector<size_t> first, others;
    const double fastest = least();
    for (size_t i = 1; i < seen_.size(); ++i) {
      if (i == best_ || seen_[i].best > kMayBeFirst * fastest) continue;
      (seen_[i].best <= kNearFirst * fastest ? first : others).push_back(i);
    }
    std::ranges::sort(first, [&](size_t a, size_t b) { return preferred(a, b); });
    std::ranges::sort(others, {}, [&](size_t i) { return std::pair(seen_[i].best, i); });
    first.insert(first.end(), others.begin(), others.end());
    const double left = options_.seconds - trials_.elapsed();
    const auto most = static_cast<size_t>(std::max(0.0, left / (kFewRounds * fastest)));
    std::vector<size_t> out = {0};
    if (best_ != 0) out.push_back(best_);
    for (const size_t i : first)
      if (out.size() < std::min(most, kFinalists) && is_right(i)) out.push_back(i);
    return out;
  }

  void hold_final() {
    const std::vector<size_t> runners = finalists();
    if (runners.size() < 2) return;
    std::vector<std::vector<double>> seconds(runners.size());
    for (int round = 0; round < kRounds && (round < kFewRounds || in_time()); ++round)
      for (size_t k = 0; k < runners.size(); ++k) {
        const size_t turn = round % 2 == 0 ? k : runners.size() - 1 - k;
        seconds[turn].push_back(sample(runners[turn]));
      }
    std::vector<double> typical;
    for (std::vector<double>& each : seconds) typical.push_back(lower_quartile(std::move(each)));
    const double limit = *std::ranges::min_element(typical) * (1 + kSame);
    std::optional<size_t> first;
    for (size_t k = 0; k < runners.size(); ++k)
      if (typical[k] <= limit && (!first || preferred(runners[k], *first))) first = runners[k];
    take(*first);
  }

  /// Of two that are equally fast; an order that no measurement is part of.
  bool preferred(size_t a, size_t b) const {
    const auto order = [&](size_t i) {
      const LoopPlan& plan = seen_[simplest(i)].plan;
      return std::tuple(i != 0, seen_[i].cycles, differences(plan, seen_[0].plan), text(plan));
    };
    return order(a) < order(b);
  }

  /// What won against what won against the analytic plan need not win against that.
  void last_duel() {
    if (best_ == 0) {
      sample(0);
      result_.analytic_seconds = result_.best_seconds = seen_[0].best;
      return;
    }
    // The fastest of many was lucky, too: it has to win twice.
    Duel last = duel(0, best_);
    if (last.won) last = duel(0, best_);
    result_.analytic_seconds = last.first;
    result_.best_seconds = last.second;
    if (last.won) return;
    result_.best = result_.analytic;
    result_.best_cycles = result_.analytic_cycles;
    result_.best_seconds = last.first;
  }

  const Plans& plans_;
  const BeamOptions& options_;
  BeamTrials& trials_;
  BeamResult& result_;
  std::vector<Seen> seen_;  // by number
  std::vector<Proposal> proposed_;
  size_t order_ = 0;
  size_t best_ = 0;
};

}  // namespace

void beam_search(const Kernel& kernel, const Target& target, const BeamOptions& options,
                 BeamTrials& trials, BeamResult& result) {
  const Plans plans(kernel, target);
  if (plans.any()) BeamSearch(plans, options, trials, result).run();
}

}  // namespace weft
