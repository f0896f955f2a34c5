// What tensor.h says of threads: all may read a Tensor that is realized, and each may build and
// realize its own. With ThreadSanitizer this also watches the order in which locks are taken.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <thread>

#include "tests/support/device_here.h"
#include "weft/base/context.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr int kThreads = 4;

Options two_workers() {
  Options options = Options::from_environment();
  options.dev = testing::device_here("CPU:INTERP");
  options.threads = 2;
  return options;
}

template <class F>
void on_threads(Context& context, F each) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&context, &each, t] {
      const ContextScope scope(context);
      each(t);
    });
  for (std::thread& thread : threads) thread.join();
}

TEST(Threads, ReadOneTensorAndRealizeTheirOwn) {
  Context context(two_workers());
  const ContextScope scope(context);
  const Tensor shared = Tensor::arange(6, DType::I32).reshape({2, 3}).contiguous();
  realize({shared});
  on_threads(context, [&](int t) {
    for (int i = 0; i < 20; ++i) {
      Tensor mine = shared.T() * t + i;
      mine += shared.reshape({3, 2});
      std::vector<int32_t> expected;
      for (int row = 0; row < 3; ++row)
        for (int column = 0; column < 2; ++column)
          expected.push_back((column * 3 + row) * t + i + row * 2 + column);
      EXPECT_EQ(mine.to_vector<int32_t>(), expected);
    }
  });
  EXPECT_EQ(shared.to_vector<int32_t>(), (std::vector<int32_t>{0, 1, 2, 3, 4, 5}));
}

// The first to ask makes what a Context holds; the others ask for it meanwhile.
TEST(Threads, AreAllTheFirstInAContext) {
  for (int round = 0; round < 20; ++round) {
    Context context(two_workers());
    on_threads(context, [](int t) {
      if (t == 0) {
        Tensor::rand({4});
      } else {
        EXPECT_EQ((Tensor::ones({4}, DType::I32) * t).to_vector<int32_t>(),
                  std::vector<int32_t>(4, t));
      }
    });
  }
}

TEST(Threads, DrawDifferentNumbers) {
  constexpr int kDraws = 100;
  Context context(two_workers());
  std::vector<std::vector<float>> drawn(kThreads);
  on_threads(context, [&](int t) {
    for (int i = 0; i < kDraws; ++i)
      for (const float x : Tensor::rand({4}).to_vector<float>()) drawn[t].push_back(x);
  });
  // Quadruples: single numbers of 24 bits may meet by chance.
  std::set<std::vector<float>> distinct;
  for (const auto& all : drawn)
    for (size_t i = 0; i < all.size(); i += 4)
      distinct.insert(std::vector<float>(all.begin() + i, all.begin() + i + 4));
  EXPECT_EQ(distinct.size(), size_t{kThreads} * kDraws);
}

TEST(Threads, MakeContextsBesideForks) {
  const auto works = [](int i) {
    Context context(two_workers());
    const ContextScope scope(context);
    const Tensor x = Tensor::full({3}, i, DType::I32) + 1;
    return x.to_vector<int32_t>() == std::vector<int32_t>(3, i + 1);
  };
  ::alarm(120);  // threads that wait for each other would for ever
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (int i = 1; !stop; ++i) EXPECT_TRUE(works(i));
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(20);
      ::_exit(works(i) ? 0 : 1);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  other.join();
  ::alarm(0);
}

}  // namespace
}  // namespace weft
