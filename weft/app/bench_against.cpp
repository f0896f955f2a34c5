// Cases measured in turns with peers: bench cases, bench sweep.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <thread>

#include "weft/app/app.h"
#include "weft/app/bench.h"
#include "weft/app/bench_busy.h"
#include "weft/app/bench_cases.h"
#include "weft/app/bench_peer.h"
#include "weft/app/interrupt.h"
#include "weft/app/progress.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/json_writer.h"
#include "weft/base/spans.h"
#include "weft/base/thread_pool.h"
#include "weft/device/device.h"

namespace weft {
namespace {

constexpr double kShortest = 2e-3;  // seconds that a measurement takes at least
constexpr int64_t kMostRuns = 200;

using Peers = std::vector<std::unique_ptr<BenchPeer>>;

struct Measured {
  std::string group, name;
  double seconds = 0, limit = 0;  // limit: what the machine needs; 0: not known
  double spread = 0;              // of the turns: between their quartiles, over the median
  std::vector<std::optional<double>> peers;
  double busy = 0;  // beside a busy process: how many times as long; 0: not measured
  std::vector<double> peers_busy;
  std::string failed;  // what weft said

  /// The best peer's time by weft's: how many times as fast weft is. 0 without a peer.
  double ratio() const {
    double best = 0;
    for (const auto& peer : peers)
      if (peer && (best == 0 || *peer < best)) best = *peer;
    return seconds > 0 ? best / seconds : 0;
  }
};

double bytes_of(const BenchValues& operands, const BenchValues& results) {
  double total = 0;
  for (const BenchValues* values : {&operands, &results})
    for (const Tensor& x : *values) total += static_cast<double>(x.numel()) * bits(x.dtype()) / 8;
  return total;
}

/// Between the quartiles.
double spread_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() * 3 / 4] - values[values.size() / 4];
}

class Comparison {
 public:
  Comparison(const Session& session, const BenchOptions& options) : options_(options) {
    Device& device = session.context.get<DeviceTable>().default_device();
    if (device.allocator().addressable()) limits_.emplace(session.context);
    for (const std::string& library : options.against)
      peers_.push_back(std::make_unique<BenchPeer>(library, options.python,
                                                   session.context.thread_pool().size()));
  }
  const Peers& peers() const { return peers_; }
  bool knows(const SizedCase& one) const {
    return std::ranges::any_of(peers_, [&](const auto& peer) { return peer->has(one.which); });
  }

  Measured measure(const SizedCase& one) {
    Measured m;
    m.group = one.which.group, m.name = one.name();
    m.peers.resize(peers_.size()), m.peers_busy.resize(peers_.size());
    try {
      compare(one, m);
    } catch (const Error& error) {
      m.failed = error.what();
    }
    return m;
  }

 private:
  void compare(const SizedCase& one, Measured& m) {
    const BenchValues operands = one.operands();
    const auto compute = one.computation();
    const auto run = [&] {
      BenchValues results = compute(operands);
      realize(results);
      return results;
    };
    if (one.which.network) run(), run();  // the second call captures
    const double bytes = bytes_of(operands, run());
    if (limits_)
      m.limit = limits_->seconds(one.which.flops ? one.which.flops(one.size) : 0,
                                 operands[0].dtype(), bytes, one.which.reads);
    std::vector<bool> able;
    for (const auto& peer : peers_) able.push_back(peer->prepare(one.which, one.size));
    const int64_t runs = runs_of(run);
    const auto turn = [&](Turns& turns) {
      for (size_t i = 0; i < turns.size(); ++i) {
        if (i > 0 && !able[i - 1]) continue;
        std::this_thread::sleep_for(BenchPeer::kPause);
        turns[i].push_back(i == 0 ? seconds_of(run, runs) : peers_[i - 1]->seconds(runs));
      }
    };
    Turns quiet(peers_.size() + 1), busy(peers_.size() + 1);
    for (int64_t repeat = 0; repeat < options_.repeats; ++repeat) {
      turn(quiet);
      if (options_.busy < 0) continue;
      const BusyProcess other(static_cast<int>(options_.busy));
      turn(busy);
    }
    note(quiet, busy, m);
  }

  /// Seconds of weft's turns, then of each peer's; none where it cannot.
  using Turns = std::vector<std::vector<double>>;
  static void note(const Turns& quiet, const Turns& busy, Measured& m) {
    m.seconds = median(quiet[0]);
    m.spread = spread_of(quiet[0]) / m.seconds;
    m.busy = median(busy[0]) / m.seconds;
    for (size_t i = 0; i < m.peers.size(); ++i) {
      if (!quiet[i + 1].empty()) m.peers[i] = median(quiet[i + 1]);
      m.peers_busy[i] = m.peers[i] ? median(busy[i + 1]) / *m.peers[i] : 0;
    }
  }

  /// The first run of a turn is not counted: the caches held another's data. So do the peers.
  template <class Run>
  static double seconds_of(Run run, int64_t runs) {
    run();
    const uint64_t start = now_ns();
    for (int64_t i = 0; i < runs; ++i) run();
    return static_cast<double>(now_ns() - start) * 1e-9 / static_cast<double>(runs);
  }
  template <class Run>
  static int64_t runs_of(Run run) {
    const double one = seconds_of(run, 1);
    return std::clamp(static_cast<int64_t>(kShortest / one), int64_t{1}, kMostRuns);
  }

  const BenchOptions& options_;
  std::optional<MachineLimits> limits_;  // of devices on the host: the others' are not known
  Peers peers_;
};

void print_row(const Session& session, const Peers& peers, const Measured& m) {
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("group", m.group).field("name", m.name);
    if (!m.failed.empty()) {
      session.print("{}\n", json.field("failed", m.failed).end_object().text());
      return;
    }
    json.field("seconds", m.seconds).field("spread", m.spread);
    if (m.limit > 0) json.field("limit", m.limit).field("share", m.limit / m.seconds);
    for (size_t i = 0; i < peers.size(); ++i)
      if (m.peers[i]) json.field(peers[i]->library(), *m.peers[i]);
    if (m.ratio() > 0) json.field("ratio", m.ratio());
    if (m.busy > 0) json.field("busy", m.busy);
    for (size_t i = 0; i < peers.size(); ++i)
      if (m.peers_busy[i] > 0) json.field(peers[i]->library() + "_busy", m.peers_busy[i]);
    session.print("{}\n", json.end_object().text());
    return;
  }
  session.print("{:<52}", m.name);
  if (!m.failed.empty()) return session.print(" {}\n", m.failed);
  session.print(" {:>10} {:>6}", time_text(m.seconds),
                m.limit > 0 ? strformat("{:.0f} %", 100 * m.limit / m.seconds) : "");
  for (const auto& peer : m.peers) session.print(" {:>10}", peer ? time_text(*peer) : "-");
  if (m.ratio() > 0) {
    const std::string ratio = strformat(" {:>7.2f}", m.ratio());
    session.write(m.ratio() < 1 ? session.yellow(ratio) : ratio);
  }
  if (m.busy > 0) session.print("  beside a busy process {:.2f} times", m.busy);
  for (size_t i = 0; i < peers.size(); ++i)
    if (m.peers_busy[i] > 0) session.print(", {} {:.2f}", peers[i]->library(), m.peers_busy[i]);
  session.print("\n");
}

void print_head(const Session& session, const Peers& peers) {
  if (session.json) return;
  session.print("{:<52} {:>10} {:>6}", "", "weft", "limit");
  for (const auto& peer : peers) session.print(" {:>10}", peer->library());
  session.print("{}\n", peers.empty() ? "" : "  faster");
  for (const auto& peer : peers) session.print("# {} {}\n", peer->library(), peer->version());
}

void print_summary(const Session& session, const std::vector<Measured>& rows) {
  double logs = 0;
  int64_t compared = 0, slower = 0, cliffs = 0;
  for (const Measured& m : rows) {
    const double ratio = m.ratio();
    if (ratio == 0) continue;
    logs += std::log(ratio), ++compared;
    slower += ratio < 1, cliffs += ratio < 0.2;
  }
  if (compared == 0) return;
  const double mean = std::exp(logs / static_cast<double>(compared));
  if (session.json) {
    JsonWriter json;
    json.begin_object().field("compared", compared).field("geometric_mean", mean);
    json.field("slower", slower).field("five_times_slower", cliffs).end_object();
    session.print("{}\n", json.text());
    return;
  }
  session.print(
      "{} cases compared: {:.2f} times as fast as the best peer in geometric mean; {} slower, {} "
      "more than five times\n",
      compared, mean, slower, cliffs);
}

}  // namespace

int run_bench_cases(const Session& session, const BenchOptions& options) {
  const bool sweep = options.what == "sweep";
  const bool sorted = sweep && !session.json;  // the worst first; what failed before all
  if (sweep && options.against.empty())
    fail("bench", "a sweep compares with others; say with whom, of {}: --against torch",
         BenchPeer::kLibraries);
  std::vector<SizedCase> todo = chosen_cases(options.which, options.size);
  const InterruptScope interrupt;
  Comparison comparison(session, options);
  if (sweep) std::erase_if(todo, [&](const SizedCase& one) { return !comparison.knows(one); });
  std::vector<Measured> rows;
  print_head(session, comparison.peers());
  {
    ProgressBar progress("measuring", static_cast<int64_t>(todo.size()), "cases",
                         session.context.options(), sweep ? session.err : nullptr);
    for (const SizedCase& one : todo) {
      if (InterruptScope::requested()) break;
      rows.push_back(comparison.measure(one));
      if (!sorted) print_row(session, comparison.peers(), rows.back());
      std::fflush(session.out);
      progress.update(static_cast<int64_t>(rows.size()), rows.back().name);
    }
  }
  if (sorted) {
    std::ranges::sort(rows, {}, [](const Measured& m) { return std::pair(m.ratio(), m.name); });
    for (const Measured& m : rows) print_row(session, comparison.peers(), m);
  }
  print_summary(session, rows);
  if (rows.size() < todo.size()) return kExitInterrupted;
  const bool failed =
      std::ranges::any_of(rows, [](const Measured& m) { return !m.failed.empty(); });
  return failed ? kExitFailure : kExitOk;
}

}  // namespace weft
