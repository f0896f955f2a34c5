#include "weft/base/fork.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

namespace weft {

namespace {

/// The process forks, not a Context: besides C's handles the one list that is the process's.
struct Registry {
  std::recursive_mutex mutex;
  std::vector<ForkLock*> locks;  // by order
  std::shared_mutex busy;        // shared by the threads with a BusyScope

  static void take();

  Registry() {
    ::pthread_atfork(&Registry::take, give_back_fork_locks_in_parent, make_new_fork_locks_in_child);
  }
};

Registry& registry() {
  static auto* all = new Registry;  // statics of others may still need it
  return *all;
}

thread_local int t_taken = 0;  // how often this thread has them
thread_local int t_busy = 0;   // its BusyScopes

}  // namespace

ForkLock::ForkLock(Order order) : order_(order) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  r.locks.insert(std::ranges::upper_bound(r.locks, order, {}, &ForkLock::order), this);
}

ForkLock::~ForkLock() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::erase(r.locks, this);
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
  r.mutex.lock();
  if (t_busy > 0) r.busy.unlock_shared();
  r.busy.lock();
  for (ForkLock* l : r.locks) l->before_fork();
}

namespace {
void let_go_of_busy(Registry& r) {
  r.busy.unlock();
  if (t_busy > 0) r.busy.lock_shared();
}
}  // namespace

bool try_take_fork_locks() {
  Registry& r = registry();
  if (!r.mutex.try_lock()) return false;
  if (t_busy > 0) r.busy.unlock_shared();
  if (!r.busy.try_lock()) {
    if (t_busy > 0) r.busy.lock_shared();
    r.mutex.unlock();
    return false;
  }
  for (size_t i = 0; i < r.locks.size(); ++i) {
    if (r.locks[i]->try_before_fork()) continue;
    while (i-- > 0) r.locks[i]->after_in_parent();
    let_go_of_busy(r);
    r.mutex.unlock();
    return false;
  }
  ++t_taken;
  return true;
}

void give_back_fork_locks_in_parent() {
  if (--t_taken > 0) return;
  Registry& r = registry();
  std::ranges::for_each(r.locks.rbegin(), r.locks.rend(), &ForkLock::after_in_parent);
  let_go_of_busy(r);
  r.mutex.unlock();
}

void make_new_fork_locks_in_child() {
  if (--t_taken > 0) return;
  Registry& r = registry();
  std::ranges::for_each(r.locks.rbegin(), r.locks.rend(), &ForkLock::after_in_child);
  new (&r.busy) std::shared_mutex;
  if (t_busy > 0) r.busy.lock_shared();
  new (&r.mutex) std::recursive_mutex;
}

}  // namespace weft
