// The C interface from several threads, as the top of weft.h allows.
#include <mutex>
#include <thread>

#include "tests/c/c_test.h"

namespace weft::c {
namespace {

template <class Body>
void in_threads(int count, const Body& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { body(i); });
  for (std::thread& t : threads) t.join();
}

TEST_F(CTest, ThreadsShareTensorsAndRealizeUnderALock) {
  const Tensor x = context.of<float>({1, 2, 3}, {3});
  std::mutex lock;
  in_threads(4, [&](int i) {
    for (int round = 0; round < 20; ++round) {
      const Tensor y = x * i + round;  // building needs no lock
      const std::lock_guard held(lock);
      EXPECT_EQ(floats(y)[2], static_cast<float>(3 * i + round));
    }
  });
}

TEST(CThreads, ContextsOfTheirOwnNeedNoLock) {
  in_threads(3, [](int i) {
    const Context own({"WEFT_DEV=CPU:INTERP", "WEFT_THREADS=1"});
    for (int round = 0; round < 5; ++round)
      EXPECT_EQ(floats(own.full({2}, 1.0 * i) + round)[1], static_cast<float>(i + round));
  });
}

TEST_F(CTest, ReleasingIsAllowedWhileOthersLook) {
  for (int round = 0; round < 50; ++round) {
    Tensor x = context.ones({2});
    const weft_tensor handle = x.get();
    in_threads(3, [&](int i) {
      weft_dtype d = 0;
      if (i == 0) return weft_tensor_release(handle);
      const weft_status status = weft_tensor_dtype(handle, &d);
      EXPECT_TRUE(status == WEFT_OK || status == WEFT_ERROR_ARGUMENT);
    });
  }
}

}  // namespace
}  // namespace weft::c
