// fork(): locks that a child must not find held by a thread it does not have.
#pragma once

#include <cstdint>
#include <new>

namespace weft {

/// Something with locks that are held for longer than a moment. Before the process forks it is
/// asked to take them, so that no other thread is in the middle of something; afterwards to give
/// them back, in the child to make new ones: a lock knows the thread that took it by a number that
/// the child's has not.
class ForkLock {
 public:
  /// In which they are taken: that of what takes longest, and may take the others meanwhile, first.
  enum class Order : uint8_t { Run, Threads, Collecting, Building, Table, Memory, Recording };

  /// While it lives, forks take the lock. The last member of it, as it may be taken at once; the
  /// destructor waits for a fork that has it.
  class Registration {
   public:
    Registration(ForkLock& lock, Order order);
    ~Registration();
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;

   private:
    ForkLock& lock_;
  };

  virtual void before_fork() = 0;
  virtual bool try_before_fork() = 0;  ///< false: somebody has one of them
  virtual void after_in_parent() = 0;
  virtual void after_in_child() = 0;

 protected:
  ~ForkLock() = default;
};

/// A ForkLock for a lock that its holder gives back soon and never takes twice.
template <class Mutex>
class ForkableMutex final : ForkLock {
 public:
  explicit ForkableMutex(Order order) : registration_(*this, order) {}
  void lock() { mutex_.lock(); }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  void before_fork() override { mutex_.lock(); }
  bool try_before_fork() override { return mutex_.try_lock(); }
  void after_in_parent() override { mutex_.unlock(); }
  void after_in_child() override { new (&mutex_) Mutex; }

  Mutex mutex_;
  Registration registration_;
};

/// While it lives, this thread is in the middle of something, with whatever locks that takes: a
/// fork by another thread waits for its end. Scopes nest; the thread's own forks do not wait.
class BusyScope {
 public:
  BusyScope();
  ~BusyScope();
  BusyScope(const BusyScope&) = delete;
  BusyScope& operator=(const BusyScope&) = delete;
};

/// For a wait within such scopes: nothing is half-made, and a thread that forks need not wait for
/// one that may be waiting for it.
class IdleScope {
 public:
  IdleScope();
  ~IdleScope();
  IdleScope(const IdleScope&) = delete;
  IdleScope& operator=(const IdleScope&) = delete;

 private:
  int depth_;
};

/// What fork() does by itself, for callers with a lock that others may wait for meanwhile: the
/// three of them around fork(), on one thread. False: not all of them were free, and none is taken.
bool try_take_fork_locks();
void give_back_fork_locks_in_parent();
void make_new_fork_locks_in_child();

}  // namespace weft
