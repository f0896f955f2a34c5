#include "weft/base/fork.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <ranges>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace weft {

namespace {

/// The process forks, not a Context: besides C's handles the one list that is the process's.
struct Registry {
  // One fork at a time has it; shared by the threads with a BusyScope. Taken before the list.
  std::shared_mutex busy;
  // Of the list. Who forks has it from when all locks are taken, and never while it waits for one:
  // whoever holds that may be about to make another.
  std::recursive_mutex mutex;
  std::condition_variable_any given_back;
  struct Entry {
    ForkLock* lock;
    ForkLock::Order order;
    bool taken = false;  // by the thread that forks
  };
  std::vector<Entry> locks;  // by order

  static void take();
  std::vector<Entry>::iterator find(const ForkLock* lock) {
    return std::ranges::find(locks, lock, &Entry::lock);
  }
  bool try_take_all();
  void give_back();
  void let_go_of_busy();

  Registry() {
    ::pthread_atfork(&Registry::take, give_back_fork_locks_in_parent, make_new_fork_locks_in_child);
  }
};

Registry& registry() {
  static auto* all = new Registry;  // statics of others may still need it
  return *all;
}

// Made before there are threads: the child of a fork while one makes it would wait for that one.
[[maybe_unused]] const Registry& made_at_load = registry();

thread_local int t_taken = 0;  // how often this thread has them
thread_local int t_busy = 0;   // its BusyScopes

}  // namespace

ForkLock::Registration::Registration(ForkLock& lock, Order order) : lock_(lock) {
  Registry& r = registry();
  std::lock_guard guard(r.mutex);
  r.locks.insert(std::ranges::upper_bound(r.locks, order, {}, &Registry::Entry::order),
                 {&lock, order});
}

ForkLock::Registration::~Registration() {
  Registry& r = registry();
  std::unique_lock guard(r.mutex);
  if (t_taken == 0) r.given_back.wait(guard, [&] { return !r.find(&lock_)->taken; });
  r.locks.erase(r.find(&lock_));
}

BusyScope::BusyScope() {
  if (t_busy++ == 0) registry().busy.lock_shared();
}
BusyScope::~BusyScope() {
  if (--t_busy == 0) registry().busy.unlock_shared();
}

IdleScope::IdleScope() : depth_(std::exchange(t_busy, 0)) {
  if (depth_ > 0) registry().busy.unlock_shared();
}
IdleScope::~IdleScope() {
  if (depth_ > 0) registry().busy.lock_shared();
  t_busy = depth_;
}

void Registry::take() {
  if (t_taken++ > 0) return;
  Registry& r = registry();
  if (t_busy > 0) r.busy.unlock_shared();
  r.busy.lock();
  r.mutex.lock();
  for (ForkLock::Order last = {};;) {
    const auto next = std::ranges::find(r.locks, false, &Entry::taken);
    if (next == r.locks.end()) return;
    if (next->order < last) {
      // A new one: its maker may have it and wait for one of those that were taken.
      r.give_back();
      last = {};
      continue;
    }
    last = next->order;
    next->taken = true;
    ForkLock& lock = *next->lock;
    r.mutex.unlock();
    lock.before_fork();
    r.mutex.lock();
  }
}

void Registry::give_back() {
  for (Entry& e : std::views::reverse(locks))
    if (std::exchange(e.taken, false)) e.lock->after_in_parent();
  given_back.notify_all();
}

bool Registry::try_take_all() {
  for (Entry& e : locks) {
    e.taken = e.lock->try_before_fork();
    if (e.taken) continue;
    give_back();
    return false;
  }
  return true;
}

void Registry::let_go_of_busy() {
  busy.unlock();
  if (t_busy > 0) busy.lock_shared();
}

bool try_take_fork_locks() {
  if (t_taken > 0) {
    ++t_taken;
    return true;
  }
  Registry& r = registry();
  if (t_busy > 0) r.busy.unlock_shared();
  if (!r.busy.try_lock()) {
    if (t_busy > 0) r.busy.lock_shared();
    return false;
  }
  if (r.mutex.try_lock()) {
    if (r.try_take_all()) {
      ++t_taken;
      return true;
    }
    r.mutex.unlock();
  }
  r.let_go_of_busy();
  return false;
}

void give_back_fork_locks_in_parent() {
  if (--t_taken > 0) return;
  Registry& r = registry();
  r.give_back();
  r.mutex.unlock();
  r.let_go_of_busy();
}

void make_new_fork_locks_in_child() {
  if (--t_taken > 0) return;
  Registry& r = registry();
  for (Registry::Entry& e : std::views::reverse(r.locks))
    if (std::exchange(e.taken, false)) e.lock->after_in_child();
  new (&r.given_back) std::condition_variable_any;
  new (&r.mutex) std::recursive_mutex;
  new (&r.busy) std::shared_mutex;
  if (t_busy > 0) r.busy.lock_shared();
}

}  // namespace weft
