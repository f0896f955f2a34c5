// ThreadPool: one loop over many threads. Static split, then stealing half of the largest
// remainder. A thread that the machine does not let run is not waited for, unless it has begun.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "weft/base/fork.h"
#include "weft/base/function_ref.h"

namespace weft {

class ThreadPool {
 public:
  // fn(begin, end, worker): the items of one piece; 0 <= worker < size().
  using Body = FunctionRef<void(int64_t, int64_t, int)>;

  explicit ThreadPool(int threads = 0);  // 0: available_cpus()
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return size_; }

  // For tests: from here on even the shortest loop is shared evenly between all workers, nobody
  // steals, and each does its share from the last piece to the first. What depends on who does what
  // in which order shows.
  void set_adverse(bool adverse) { adverse_ = adverse; }

  // Runs body over every item of [0, n) exactly once, in pieces of at least `grain` items, and
  // returns when all are done. The caller works too, as worker 0. Calls from inside a body, or
  // while another thread is using the pool, run inline. The first exception stops the rest and is
  // rethrown. Bodies see the caller's current Context. Works in a forked child.
  void parallel_for(int64_t n, Body body, int64_t grain = 1);
  // The same for items of about that many nanoseconds each: short loops are shared where the
  // workers still poll for the next one, since waking them takes as long as a hundred short pieces.
  /// Backwards, every worker has the same items as forwards, and does the last pieces first.
  struct Estimate {
    double item_ns;
    bool backwards = false;
  };
  void parallel_for(int64_t n, Body body, Estimate estimate);
  // For long items: while the caller waits for others it calls `waiting` now and then. What that
  // throws is like an exception of the body's.
  using Waiting = FunctionRef<void()>;
  void parallel_for(int64_t n, Body body, int64_t grain, Waiting waiting);

 private:
  struct Job;
  struct State;

  State& state();  // starts the threads; again after a fork
  bool stays_here(double ns, bool whole);
  bool awake_for(double ns);
  void loop(int64_t n, Body body, int64_t grain, std::optional<Waiting> waiting, Estimate estimate);
  void run(Job& job);
  static void wait_until_done(State& shared, Job& job);
  static void worker_main(State& state, int worker);

  int size_;
  bool adverse_ = false;
  std::atomic<State*> state_ = nullptr;
  pid_t owner_ = 0;  // the process whose threads state_ holds
  ForkableMutex<std::mutex> mutex_{ForkLock::Order::Threads};  // of the loop that runs
  std::atomic<double> alone_{0};  // nanoseconds of loops that only the caller ran, since others did
  std::atomic<uint64_t> asked_{0};  // when a loop was last estimated
  std::atomic<double> unshared_{
      0};  // nanoseconds of loops close together that nobody was woken for
};

}  // namespace weft
