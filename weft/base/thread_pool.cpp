#include "weft/base/thread_pool.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/cpu_count.h"
#include "weft/base/spans.h"

namespace weft {

namespace {

constexpr int kMaxThreads = 1024;
// What it takes until a sleeping thread works, where its CPU slept, too: 20 to 50 us. Whoever waits
// polls for as long before it sleeps, so that it never costs more than twice what was needed.
constexpr uint64_t kWakeNs = 50'000;
// A piece worth the time of another thread that polls.
constexpr double kLeastPieceNs = 1'500;
// What takes less is not worth moving its operands from one core's cache to another's: eigenvalues
// and -vectors of 64 columns took 10.9 ms on two cores, and 8.5 on one.
constexpr double kShortNs = 6'000;
// Many of them after few others are shared nevertheless, and stay shared. Steps of a factorisation
// are four short loops for one of a few vectors (QR of 512 columns on Granite Rapids, where another
// core's cache is far: 14.8 ms by 1/2, 9.4 by 4).
constexpr double kTimesAlone = 4;
// So much later than its caller a worker that polls begins.
constexpr double kLateNs = 350;
// A remainder that its owner is as soon done with as another thread, whose cache has none of its
// data: rows that change hands take 7 us, not 1, when they are written next (16 KB, Zen 4). Who has
// nothing left to do waits for so long before it takes such a one from an owner that has begun: it
// may not be running.
constexpr double kWorthStealingNs = 5'000;
constexpr uint64_t kPatienceNs = 10'000;
constexpr uint32_t kAdversePieces = 8;

thread_local bool t_inside = false;  // in a body: nested calls run inline
thread_local int t_worker = 0;

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

template <class Done>
void poll_until(Done done, uint64_t most_ns) {
  for (const uint64_t start = now_ns(); !done() && now_ns() - start < most_ns;) pause_briefly();
}

// [begin, end) of a worker, as one word so that owner and thieves change it by one CAS.
struct alignas(64) WorkRange {
  std::atomic<uint64_t> packed{0};
  std::atomic<bool> begun{false};  // its owner is here

  static uint64_t pack(uint32_t begin, uint32_t end) { return uint64_t{begin} << 32 | end; }
  static uint32_t begin_of(uint64_t packed) { return static_cast<uint32_t>(packed >> 32); }
  static uint32_t end_of(uint64_t packed) { return static_cast<uint32_t>(packed); }
};

struct Piece {
  uint32_t begin = 0, end = 0;
  bool empty() const { return begin == end; }
};

/// 0 where what they take is not known.
int64_t items_in(double ns, ThreadPool::Estimate estimate) {
  return estimate.item_ns > 0 ? static_cast<int64_t>(std::min(ns / estimate.item_ns, 1e9)) : 0;
}

// A quarter of what remains of one's own at a time: the last quarters are what others can steal.
// What is taken and what remains is nothing or at least `least`.
Piece take_own(WorkRange& range, uint32_t least) {
  uint64_t seen = range.packed.load(std::memory_order_acquire);
  while (true) {
    const uint32_t begin = WorkRange::begin_of(seen), end = WorkRange::end_of(seen);
    if (begin >= end) return {};
    const uint32_t some = std::max((end - begin - 1) / 4 + 1, least);
    const uint32_t cut = end - begin - some < least ? end : begin + some;
    if (range.packed.compare_exchange_weak(seen, WorkRange::pack(cut, end),
                                           std::memory_order_acq_rel)) {
      return {begin, cut};
    }
  }
}

}  // namespace

struct ThreadPool::Job {
  Body body;
  int64_t n;
  int64_t unit = (n - 1) / UINT32_MAX + 1;  // items; ranges hold 32-bit numbers of units
  int64_t units = (n - 1) / unit + 1;
  uint32_t least;          // units of a piece
  int64_t worth_stealing;  // units
  bool adverse;
  bool backwards;  // units are counted from the last one
  Context* context;
  std::vector<WorkRange> ranges;  // in units, one per worker
  std::optional<Waiting> waiting;
  std::atomic<bool> stop{false};
  std::atomic<size_t> shares_done{0};
  std::mutex error_mutex;
  std::exception_ptr error;

  Job(Body body_in, int64_t n_in, int64_t grain, int workers, bool adverse_in, Estimate estimate)
      : body(body_in),
        n(n_in),
        least(static_cast<uint32_t>(std::min((grain - 1) / unit + 1, units))),
        worth_stealing(items_in(kWorthStealingNs, estimate) / unit),
        adverse(adverse_in),
        backwards(estimate.backwards),
        context(&Context::current()),
        ranges(static_cast<size_t>(workers)) {
    const int64_t shares = std::min<int64_t>(workers, units / least);
    const int64_t early = adverse ? 0 : items_in(kLateNs, estimate) / unit;
    const int64_t lead = std::min(early, units - shares * least), rest = units - lead;
    for (int64_t w = 0, begin = 0; w < shares; ++w) {
      const int64_t end = lead + rest / shares * (w + 1) + std::min(w + 1, rest % shares);
      const auto from = static_cast<uint32_t>(backwards ? units - end : begin);
      const auto to = static_cast<uint32_t>(backwards ? units - begin : end);
      ranges[static_cast<size_t>(w)].packed.store(WorkRange::pack(from, to),
                                                  std::memory_order_relaxed);
      begin = end;
    }
  }

  // Moves the upper half of the largest other range, or all of a small one, into this worker's;
  // false when all are empty.
  bool steal(size_t self) {
    for (uint64_t until = 0;;) {
      size_t victim = self;
      uint64_t seen = 0;
      uint32_t most = 0;
      for (size_t w = 0; w < ranges.size(); ++w) {
        const uint64_t packed = ranges[w].packed.load(std::memory_order_acquire);
        const uint32_t begin = WorkRange::begin_of(packed), end = WorkRange::end_of(packed);
        if (w != self && begin < end && end - begin > most)
          victim = w, seen = packed, most = end - begin;
      }
      if (most == 0) return false;
      if (most < worth_stealing && !stopped() &&
          ranges[victim].begun.load(std::memory_order_relaxed) &&
          (until == 0 || now_ns() < until)) {
        if (until == 0) until = now_ns() + kPatienceNs;
        for (int i = 0; i < 6; ++i) pause_briefly();  // the range's line is its owner's
        continue;
      }
      const uint32_t begin = WorkRange::begin_of(seen), end = WorkRange::end_of(seen);
      const uint32_t middle = most / 2 < least ? begin : begin + most / 2;
      if (ranges[victim].packed.compare_exchange_strong(seen, WorkRange::pack(begin, middle),
                                                        std::memory_order_acq_rel)) {
        ranges[self].packed.store(WorkRange::pack(middle, end), std::memory_order_release);
        return true;
      }
    }
  }

  void failed(std::exception_ptr why) {
    stop.store(true, std::memory_order_relaxed);
    std::lock_guard lock(error_mutex);
    if (!error) error = std::move(why);
  }

  bool stopped() const { return stop.load(std::memory_order_relaxed); }
  void run(Piece piece, int worker) {
    const int64_t begin = backwards ? units - piece.end : piece.begin;
    const int64_t end = backwards ? units - piece.begin : piece.end;
    body(begin * unit, std::min(n, end * unit), worker);
  }

  void share(int worker) {
    const auto self = static_cast<size_t>(worker);
    ranges[self].begun.store(true, std::memory_order_relaxed);
    do {
      for (Piece p = take_own(ranges[self], least); !p.empty(); p = take_own(ranges[self], least)) {
        if (stopped()) break;
        run(p, worker);
      }
    } while (!stopped() && steal(self));
  }

  // The worker's own part in a few pieces, the last one first.
  void share_adversely(int worker) {
    const uint64_t own = ranges[static_cast<size_t>(worker)].packed.load(std::memory_order_acquire);
    const uint32_t begin = WorkRange::begin_of(own);
    const uint32_t step = (WorkRange::end_of(own) - begin) / kAdversePieces + 1;
    for (uint32_t end = WorkRange::end_of(own); end > begin && !stopped();) {
      const uint32_t from = end - std::min(step, end - begin);
      run({from, end}, worker);
      end = from;
    }
  }

  void work(int worker) {
    t_inside = true, t_worker = worker;
    try {
      ContextScope scope(*context);
      if (adverse)
        share_adversely(worker);
      else
        share(worker);
    } catch (...) {
      failed(std::current_exception());
    }
    t_inside = false, t_worker = 0;
    shares_done.fetch_add(1, std::memory_order_acq_rel);
  }
};

namespace {

/// Who may work on a loop, in one word: how many workers are inside, whether it takes no more of
/// them, and its number. Whoever comes late, because the machine has other work to do, is not
/// waited for: the others have taken its share.
struct Gate {
  static constexpr uint32_t kClosed = 1u << 11, kInside = kClosed - 1, kNumber = 1u << 12;
  static_assert(kMaxThreads < static_cast<int>(kClosed));
  std::atomic<uint32_t> word{kClosed};
  std::atomic<int> asleep{0};

  static uint32_t number_of(uint32_t word) { return word / kNumber; }
  uint32_t load() const { return word.load(std::memory_order_acquire); }
  uint32_t number() const { return number_of(load()); }
  bool nobody_inside() const { return (load() & kInside) == 0; }

  /// A new loop; nobody is inside.
  void open() {
    word.store((number() + 1) * kNumber, std::memory_order_release);
    word.notify_all();
  }
  void close() { word.fetch_or(kClosed, std::memory_order_acq_rel); }
  /// Sleeps until a loop other than number `seen` is there.
  uint32_t wait(uint32_t seen, uint64_t poll_ns) {
    poll_until([&] { return number() != seen; }, poll_ns);
    if (number() != seen) return number();
    asleep.fetch_add(1, std::memory_order_relaxed);
    uint32_t now = load();
    for (; number_of(now) == seen; now = load()) word.wait(now, std::memory_order_acquire);
    asleep.fetch_sub(1, std::memory_order_relaxed);
    return number_of(now);
  }
  /// False when loop `number` takes no more.
  bool enter(uint32_t number) {
    uint32_t now = load();
    while ((now & kClosed) == 0 && number_of(now) == number)
      if (word.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) return true;
    return false;
  }
  /// Whether a closed gate's last one left.
  bool leave() {
    const uint32_t before = word.fetch_sub(1, std::memory_order_acq_rel);
    return (before & kClosed) != 0 && (before & kInside) == 1;
  }
};

}  // namespace

struct ThreadPool::State {
  Gate gate;
  bool crowded;                      // more threads than CPUs
  uint64_t poll_ns;                  // before sleeping
  int caller_cpu = -1;               // that threads are kept off
  std::atomic<uint32_t> left{0};     // changes when a closed gate's last worker has left
  Job* job = nullptr;                // nullptr: end
  std::vector<std::thread> threads;  // size - 1: the caller is worker 0

  // The kernel often wakes a thread where its waker runs, beside a CPU that is idle: there it waits
  // for the end of the waker's time slice, some milliseconds, or both stay, as each is as busy as
  // it can be.
  void part_from(int cpu) {
    if (crowded || cpu == caller_cpu) return;
    keep_off(cpu, threads);
    caller_cpu = cpu;
  }
};

ThreadPool::ThreadPool(int threads)
    : size_(std::clamp(threads > 0 ? threads : available_cpus(), 1, kMaxThreads)) {}

ThreadPool::~ThreadPool() {
  // In a forked child the threads are not there to be joined: their handles are left alone.
  if (state_ == nullptr || owner_ != ::getpid()) return;
  State* state = state_;
  state->job = nullptr;
  state->gate.open();
  for (std::thread& thread : state->threads) thread.join();
  delete state;
}

void ThreadPool::worker_main(State& state, int worker) {
  for (uint32_t seen = 0;;) {
    seen = state.gate.wait(seen, state.poll_ns);
    if (!state.gate.enter(seen)) continue;
    if (state.job == nullptr) return;
    state.job->work(worker);
    if (state.gate.leave()) {
      state.left.fetch_add(1, std::memory_order_acq_rel);
      state.left.notify_one();
    }
  }
}

ThreadPool::State& ThreadPool::state() {
  if (state_ != nullptr && owner_ == ::getpid()) return *state_.load();
  auto* state = new State();  // after a fork the parent's is abandoned: see the destructor
  // Where CPUs are fewer, who polls may keep from working whom it waits for.
  state->crowded = size_ > available_cpus();
  state->poll_ns = state->crowded ? kWakeNs / 10 : kWakeNs;
  state->threads.reserve(static_cast<size_t>(size_ - 1));
  for (int w = 1; w < size_; ++w) {
    try {
      state->threads.emplace_back([state, w] { worker_main(*state, w); });
    } catch (const std::system_error&) {
      break;  // a limit on threads was reached: go on with those there are
    }
  }
  state_ = state;
  owner_ = ::getpid();
  return *state;
}

void ThreadPool::run(Job& job) {
  State& shared = *state_.load();
  shared.job = &job;
  shared.part_from(::sched_getcpu());
  shared.gate.open();
  job.work(0);
  // Nobody takes a share that is another's.
  while (adverse_ && !job.stopped() && job.shares_done < job.ranges.size()) pause_briefly();
  shared.gate.close();
  poll_until([&] { return shared.gate.nobody_inside(); }, shared.poll_ns);
  if (job.waiting) wait_until_done(shared, job);
  for (uint32_t left = shared.left.load(std::memory_order_acquire); !shared.gate.nobody_inside();
       left = shared.left.load(std::memory_order_acquire))
    shared.left.wait(left, std::memory_order_acquire);
}

/// In naps that are short beside the time that has passed.
void ThreadPool::wait_until_done(State& shared, Job& job) {
  using Microseconds = std::chrono::microseconds;
  Microseconds nap(20);
  while (!shared.gate.nobody_inside()) {
    std::this_thread::sleep_for(nap);
    nap = std::min(nap + nap / 8, Microseconds(10'000));
    try {
      (*job.waiting)();
    } catch (...) {
      job.failed(std::current_exception());
    }
  }
}

void ThreadPool::parallel_for(int64_t n, Body body, int64_t grain) {
  loop(n, body, grain, std::nullopt, Estimate{0});
}

/// Whether workers poll, or a loop that takes `ns`, and those right before it, are worth a wake.
bool ThreadPool::awake_for(double ns) {
  const uint64_t now = now_ns();
  const bool close = now - asked_.exchange(now, std::memory_order_relaxed) < 2 * kWakeNs;
  const double unshared = ns + (close ? unshared_.load(std::memory_order_relaxed) : 0);
  const State* state = state_;
  const bool polls = state != nullptr && state->gate.asleep == 0;
  unshared_.store(polls ? 0 : unshared, std::memory_order_relaxed);
  return polls || unshared >= kWakeNs;
}

void ThreadPool::parallel_for(int64_t n, Body body, Estimate estimate) {
  if (estimate.item_ns <= 0 || size_ == 1) return loop(n, body, 1, std::nullopt, Estimate{0});
  const double ns = estimate.item_ns * static_cast<double>(n);
  const auto grain = static_cast<int64_t>(std::clamp(kLeastPieceNs / estimate.item_ns, 1.0, 1e9));
  if (stays_here(ns, n < 2 * grain) || !awake_for(ns))
    return loop(n, body, n, std::nullopt, estimate);
  loop(n, body, grain, std::nullopt, estimate);
}

/// Whether a loop is its caller's alone: one that cannot be divided, and short ones after those,
/// whose results lie in the caller's cache. Of these for kTimesAlone as long, so that where there
/// are many they are shared.
bool ThreadPool::stays_here(double ns, bool whole) {
  const double before = alone_.load(std::memory_order_relaxed);
  const bool short_after = ns < kShortNs && ns < kTimesAlone * before;
  const double after = whole ? before + ns : short_after ? before - ns / kTimesAlone : 0;
  alone_.store(after, std::memory_order_relaxed);
  return whole || short_after;
}

void ThreadPool::parallel_for(int64_t n, Body body, int64_t grain, Waiting waiting) {
  loop(n, body, grain, waiting, Estimate{0});
}

void ThreadPool::loop(int64_t n, Body body, int64_t grain, std::optional<Waiting> waiting,
                      Estimate estimate) {
  if (n <= 0) return;
  if (adverse_) grain = 1;
  std::unique_lock lock(mutex_, std::defer_lock);
  const bool alone = size_ == 1 || n < 2 * grain || t_inside || !lock.try_lock();
  if (alone) return body(0, n, t_worker);
  Job job(body, n, grain, static_cast<int>(state().threads.size()) + 1, adverse_, estimate);
  job.waiting = waiting;
  run(job);
  if (job.error) std::rethrow_exception(job.error);
}

}  // namespace weft
