#include "weft/base/thread_pool.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <set>
#include <thread>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/cpu_count.h"
#include "weft/base/error.h"

namespace weft {
namespace {

using std::chrono::milliseconds;

void expect_each_once(ThreadPool& pool, int64_t n, int64_t grain) {
  std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
  pool.parallel_for(
      n,
      [&](int64_t begin, int64_t end, int worker) {
        ASSERT_TRUE(worker >= 0 && worker < pool.size());
        ASSERT_LT(begin, end);
        for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
      },
      grain);
  for (auto& hit : hits) ASSERT_EQ(hit.load(), 1);
}

TEST(ThreadPool, EveryItemExactlyOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.size(), threads);
    for (int64_t n : {1, 2, 3, 7, 64, 1000, 10007}) {
      for (int64_t grain : {1, 5, 64}) expect_each_once(pool, n, grain);
    }
    bool called = false;
    pool.parallel_for(0, [&](int64_t, int64_t, int) { called = true; });
    EXPECT_FALSE(called);
  }
}

TEST(ThreadPool, NoPieceIsSmallerThanAskedFor) {
  for (int threads : {2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t n : {100, 953, 1904, 1905, 4096, 65536, 1'000'000}) {
      for (int64_t grain : {7, 952, 1000}) {
        std::atomic<int64_t> least{n}, items{0};
        pool.parallel_for(
            n,
            [&](int64_t begin, int64_t end, int) {
              items += end - begin;
              for (int64_t seen = least; end - begin < seen;)
                if (least.compare_exchange_weak(seen, end - begin)) break;
            },
            grain);
        EXPECT_EQ(items, n);
        EXPECT_GE(least, std::min(n, grain)) << n << " " << grain;
      }
    }
  }
}

TEST(ThreadPool, EstimatedLoopsDoEveryItemOnce) {
  for (int threads : {1, 2, 8}) {
    ThreadPool pool(threads);
    for (double item_ns : {0.0, 1e-3, 1.0, 1e3, 1e6}) {
      for (int64_t n : {1, 2, 64, 10007})
        for (bool backwards : {false, true}) {
          std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
          pool.parallel_for(
              n,
              [&](int64_t begin, int64_t end, int) {
                for (int64_t i = begin; i < end; ++i) hits[static_cast<size_t>(i)].fetch_add(1);
              },
              ThreadPool::Estimate{item_ns, backwards});
          for (auto& hit : hits) ASSERT_EQ(hit.load(), 1);
        }
    }
  }
}

/// Nobody is woken, or started, for what takes less time than waking does.
TEST(ThreadPool, AShortLoopIsItsCallersAlone) {
  ThreadPool pool(2);
  int pieces = 0;
  const auto count = [&](int64_t, int64_t, int worker) { pieces += worker == 0 ? 1 : 1000; };
  pool.parallel_for(1000, count, ThreadPool::Estimate{10});
  EXPECT_EQ(pieces, 1);
}

/// Even where the others poll: what it reads lies in its caller's cache.
TEST(ThreadPool, AShortLoopAfterItsCallersOwnStaysThere) {
  ThreadPool pool(2);
  for (int turn = 0; turn < 20; ++turn) {
    pool.parallel_for(64, [](int64_t, int64_t, int) {});
    pool.parallel_for(1, [](int64_t, int64_t, int) {}, ThreadPool::Estimate{100'000});
    std::atomic<int> pieces = 0;
    pool.parallel_for(100, [&](int64_t, int64_t, int) { ++pieces; }, ThreadPool::Estimate{50});
    ASSERT_EQ(pieces, 1) << turn;
  }
}

/// Adversely, every worker does exactly its share, from the back, whatever grain was asked for.
TEST(ThreadPool, AdverseSharesAreEvenAndBackwards) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    pool.set_adverse(true);
    for (int64_t n : {1, 2, 3, 7, 64, 1000}) expect_each_once(pool, n, 64);
    std::vector<std::vector<int64_t>> begins(static_cast<size_t>(threads));
    std::vector<int64_t> done(static_cast<size_t>(threads));
    pool.parallel_for(
        720,
        [&](int64_t begin, int64_t end, int worker) {
          begins[static_cast<size_t>(worker)].push_back(begin);
          done[static_cast<size_t>(worker)] += end - begin;
        },
        1000);
    EXPECT_EQ(done, std::vector<int64_t>(static_cast<size_t>(threads), 720 / threads));
    for (const std::vector<int64_t>& b : begins) {
      EXPECT_TRUE(std::is_sorted(b.rbegin(), b.rend()));
      EXPECT_EQ(b.size() > 1, threads > 1);
    }
  }
}

TEST(ThreadPool, ManySmallLoops) {
  ThreadPool pool(4);
  std::atomic<int64_t> total{0};
  for (int round = 0; round < 3000; ++round) {
    pool.parallel_for(17, [&](int64_t begin, int64_t end, int) { total.fetch_add(end - begin); });
  }
  EXPECT_EQ(total.load(), 3000 * 17);
}

TEST(ThreadPool, HugeCountsAreSplitWithoutOverflow) {
  ThreadPool pool(2);
  const int64_t n = (int64_t{1} << 40) + 3;
  std::atomic<int64_t> total{0};
  pool.parallel_for(n, [&](int64_t begin, int64_t end, int) { total.fetch_add(end - begin); });
  EXPECT_EQ(total.load(), n);
}

TEST(ThreadPool, IdleWorkersStealFromABusyOne) {
  ThreadPool pool(2);
  // Worker 0's half is slow: worker 1 must end up doing some of it.
  std::atomic<int> stolen{0};
  pool.parallel_for(64, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      if (i >= 32) continue;
      std::this_thread::sleep_for(milliseconds(1));
      if (worker == 1) stolen.fetch_add(1);
    }
  });
  EXPECT_GT(stolen.load(), 0);
}

TEST(ThreadPool, FirstExceptionIsRethrownAndThePoolSurvives) {
  ThreadPool pool(3);
  for (int round = 0; round < 50; ++round) {
    try {
      pool.parallel_for(100, [&](int64_t begin, int64_t end, int) {
        if (begin <= 70 && 70 < end) fail("test", "item {}", 70);
      });
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), "item 70");
    }
  }
  expect_each_once(pool, 1000, 1);
}

TEST(ThreadPool, NestedLoopsRunInlineOnTheSameWorker) {
  ThreadPool pool(2);
  std::atomic<int> inner{0};
  pool.parallel_for(8, [&](int64_t begin, int64_t end, int worker) {
    for (int64_t i = begin; i < end; ++i) {
      const auto self = std::this_thread::get_id();
      pool.parallel_for(5, [&](int64_t b, int64_t e, int inner_worker) {
        EXPECT_EQ(std::this_thread::get_id(), self);
        EXPECT_EQ(inner_worker, worker);
        inner.fetch_add(static_cast<int>(e - b));
      });
    }
  });
  EXPECT_EQ(inner.load(), 40);
}

TEST(ThreadPool, SeveralThreadsMayShareIt) {
  ThreadPool pool(2);
  std::atomic<int64_t> total{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        pool.parallel_for(10, [&](int64_t b, int64_t e, int) { total.fetch_add(e - b); });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(total.load(), 4 * 200 * 10);
}

TEST(ThreadPool, BodiesSeeTheCallersContext) {
  Context context{Options()};
  ContextScope scope(context);
  context.thread_pool().parallel_for(
      64, [&](int64_t, int64_t, int) { EXPECT_EQ(&Context::current(), &context); });
}

TEST(ThreadPool, WorksInAForkedChild) {
  ThreadPool pool(3);
  expect_each_once(pool, 100, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    std::atomic<int64_t> total{0};
    pool.parallel_for(1000, [&](int64_t b, int64_t e, int) { total.fetch_add(e - b); });
    ::_exit(total.load() == 1000 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  expect_each_once(pool, 100, 1);
}

TEST(CpuCount, QuotasRoundUp) {
  EXPECT_EQ(cpus_of_quota("max 100000\n"), 0);
  EXPECT_EQ(cpus_of_quota("200000 100000\n"), 2);
  EXPECT_EQ(cpus_of_quota("150000 100000\n"), 2);
  EXPECT_EQ(cpus_of_quota("1000 100000"), 1);
  EXPECT_EQ(cpus_of_quota("-1 100000"), 0);
  EXPECT_EQ(cpus_of_quota(""), 0);
  EXPECT_GE(available_cpus(), 1);
}

TEST(CpuCount, RespectsTheAffinityMask) {
  const pid_t child = ::fork();
  if (child == 0) {
    cpu_set_t before, one;
    CPU_ZERO(&one);
    ::sched_getaffinity(0, sizeof(before), &before);
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before)) {
        CPU_SET(cpu, &one);
        break;
      }
    }
    ::sched_setaffinity(0, sizeof(one), &one);
    ::_exit(available_cpus() == 1 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

std::atomic<bool> g_held{false}, g_let_go{false};

/// Holds the thread that gets the signal, as a busy machine does that runs another one.
void hold(int) {
  g_held = true;
  for (int i = 0; i < 10'000 && !g_let_go; ++i) ::usleep(1000);
  g_held = false;
}

/// Where a thread may run.
cpu_set_t cpus_of(pthread_t thread) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  EXPECT_EQ(::pthread_getaffinity_np(thread, sizeof(cpus), &cpus), 0);
  return cpus;
}

TEST(CpuCount, ThreadsAreKeptOffOneCpu) {
  const cpu_set_t all = cpus_of(::pthread_self());
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "there is one CPU";
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) threads.emplace_back([&] { over.wait(false); });
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    cpu_set_t others = all;
    CPU_CLR(cpu, &others);
    for (const int of : {cpu, -1, 1 << 30}) {  // what is no CPU changes nothing
      keep_off(of, threads);
      for (std::thread& thread : threads) {
        const cpu_set_t now = cpus_of(thread.native_handle());
        EXPECT_TRUE(CPU_EQUAL(&now, &others)) << cpu << " " << of;
      }
    }
  }
  over = true;
  over.notify_all();
  for (std::thread& thread : threads) thread.join();
  const cpu_set_t now = cpus_of(::pthread_self());
  EXPECT_TRUE(CPU_EQUAL(&now, &all)) << "of another thread";
}

/// The kernel may wake a thread where its waker runs, and have it wait there.
TEST(ThreadPool, WorkersLeaveTheirCallersCpuToIt) {
  const cpu_set_t all = cpus_of(::pthread_self());
  if (available_cpus() < 2) GTEST_SKIP() << "there is one CPU";
  ThreadPool pool(2);
  pool.set_adverse(true);  // each worker has its share
  pool.parallel_for(2, [](int64_t, int64_t, int) {});
  std::thread([&] {  // another thread's CPUs are not the process's
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (!CPU_ISSET(cpu, &all)) continue;
      cpu_set_t one;
      CPU_ZERO(&one);
      CPU_SET(cpu, &one);
      ASSERT_EQ(::pthread_setaffinity_np(::pthread_self(), sizeof(one), &one), 0);
      std::atomic<int> seen{-1};
      pool.parallel_for(2, [&](int64_t, int64_t, int worker) {
        if (worker == 1) seen = ::sched_getcpu();
      });
      EXPECT_TRUE(seen >= 0 && seen != cpu) << seen << " beside " << cpu;
    }
  })
      .join();
}

TEST(ThreadPool, WhoComesLateIsNotWaitedFor) {
  g_let_go = false;
  ThreadPool pool(2);
  std::atomic<pthread_t> other{};
  pool.set_adverse(true);  // each worker has its share
  pool.parallel_for(2, [&](int64_t, int64_t, int worker) {
    if (worker == 1) other = ::pthread_self();
  });
  pool.set_adverse(false);
  struct sigaction action = {}, before;
  action.sa_handler = hold;
  ::sigaction(SIGUSR1, &action, &before);
  ASSERT_EQ(::pthread_kill(other, SIGUSR1), 0);
  while (!g_held) ::usleep(100);
  std::atomic<int64_t> items{0};
  pool.parallel_for(1000, [&](int64_t begin, int64_t end, int) { items += end - begin; });
  EXPECT_EQ(items, 1000);
  // Not even a remainder that would be left to it, were it here.
  pool.parallel_for(
      1000, [&](int64_t begin, int64_t end, int) { items += end - begin; },
      ThreadPool::Estimate{100});
  EXPECT_EQ(items, 2000);
  EXPECT_TRUE(g_held) << "the loops ended without the other thread";
  g_let_go = true;
  while (g_held) ::usleep(100);
  pool.parallel_for(1000, [&](int64_t begin, int64_t end, int) { items += end - begin; });
  EXPECT_EQ(items, 3000);
  ::sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace weft
