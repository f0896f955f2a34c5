// Forks beside threads that make, hold and destroy what a fork takes.
#include "weft/base/fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <thread>

namespace weft {
namespace {

using Mutex = ForkableMutex<std::mutex>;
using Order = ForkLock::Order;

/// One that says when a fork begins to wait for it.
class Awaited final : ForkLock {
 public:
  explicit Awaited(Order order) : registration_(*this, order) {}
  std::mutex mutex;
  std::atomic<bool> wanted{false};
  int given_back = 0;

 private:
  void before_fork() override {
    wanted = true;
    wanted.notify_all();
    mutex.lock();
  }
  bool try_before_fork() override { return mutex.try_lock(); }
  void after_in_parent() override {
    ++given_back;
    mutex.unlock();
  }
  void after_in_child() override { new (&mutex) std::mutex; }

  Registration registration_;
};

/// Ends the process if threads wait for each other.
class Alarm {
 public:
  Alarm() { ::alarm(60); }
  ~Alarm() { ::alarm(0); }
};

/// A child that gets every lock, and ends.
void fork_and_wait(auto&& in_child) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    in_child();
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

/// Forks while another thread has `awaited`, which it gives back after `work`.
void fork_beside(Awaited& awaited, auto&& work, auto&& in_child) {
  const Alarm alarm;
  std::atomic<bool> has_it{false}, done{false};
  std::thread holder([&] {
    {
      std::lock_guard lock(awaited.mutex);
      has_it = true;
      has_it.notify_all();
      awaited.wanted.wait(false);
      work();
    }
    done.wait(false);  // ThreadSanitizer wants no child with threads that have ended
  });
  has_it.wait(false);
  fork_and_wait(in_child);
  done = true;
  done.notify_all();
  holder.join();
}

TEST(Fork, WaitsForOneWhoseHolderMakesAnother) {
  Awaited awaited(Order::Run);
  std::unique_ptr<Mutex> made;
  fork_beside(
      awaited, [&] { made = std::make_unique<Mutex>(Order::Threads); },
      [&] { std::scoped_lock both(awaited.mutex, *made); });
  EXPECT_EQ(awaited.given_back, 1);
}

// Its maker has the new one, which is before those that the fork has, and waits for one of them.
TEST(Fork, BeginsAnewWhenOneComesThatWouldHaveBeenTakenBefore) {
  Mutex early(Order::Threads);
  Awaited awaited(Order::Table);
  std::unique_ptr<Mutex> made;
  std::atomic<bool> is_held{false}, done{false};
  std::thread maker([&] {
    awaited.wanted.wait(false);
    made = std::make_unique<Mutex>(Order::Run);
    {
      std::lock_guard first(*made);
      is_held = true;
      is_held.notify_all();
      std::lock_guard second(early);
    }
    done.wait(false);
  });
  fork_beside(
      awaited, [&] { is_held.wait(false); },
      [&] { std::scoped_lock all(*made, early, awaited.mutex); });
  done = true;
  done.notify_all();
  maker.join();
}

TEST(Fork, DestroyingOneThatItHasWaitsForItsEnd) {
  Awaited awaited(Order::Table);
  auto taken = std::make_unique<Awaited>(Order::Run);
  std::atomic<int> given_back{0};
  std::thread other;
  fork_beside(
      awaited,
      [&] {
        other = std::thread([&] {
          taken.reset();
          ++given_back;
        });
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(given_back, 0);
      },
      [&] { std::scoped_lock one(awaited.mutex); });
  other.join();
  EXPECT_EQ(given_back, 1);
}

TEST(Fork, HooksOfOthersMayMakeAndDestroyThem) {
  const Alarm alarm;
  auto old = std::make_unique<Mutex>(Order::Run);
  ASSERT_TRUE(try_take_fork_locks());
  old.reset();
  Mutex made(Order::Run);
  fork_and_wait([&] {
    make_new_fork_locks_in_child();
    std::lock_guard lock(made);
  });
  give_back_fork_locks_in_parent();
  std::lock_guard lock(made);
}

}  // namespace
}  // namespace weft
