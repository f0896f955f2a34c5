#include "weft/base/context.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/log.h"

namespace weft {
namespace {

std::vector<std::string>* t_events = nullptr;

struct Lower {
  Lower() { t_events->push_back("+lower"); }
  ~Lower() { t_events->push_back("-lower"); }
  int number = 7;
};

struct Upper {
  explicit Upper(Context& context) : lower(context.get<Lower>()) { t_events->push_back("+upper"); }
  ~Upper() { t_events->push_back("-upper" + std::to_string(lower.number)); }
  Lower& lower;
};

TEST(Context, SlotsAreMadeOnceAndDestroyedInReverse) {
  std::vector<std::string> events;
  t_events = &events;
  {
    Context context{Options()};
    EXPECT_EQ(context.get_if<Upper>(), nullptr);
    Upper& upper = context.get<Upper>();
    EXPECT_EQ(&context.get<Upper>(), &upper);
    EXPECT_EQ(&context.get<Lower>(), &upper.lower);
    EXPECT_EQ(context.get_if<Upper>(), &upper);
  }
  EXPECT_EQ(events, (std::vector<std::string>{"+lower", "+upper", "-upper7", "-lower"}));
}

struct Counted {
  static inline std::atomic<int> made{0};
  Counted() { made.fetch_add(1); }
};

TEST(Context, ManyThreadsGetTheSameSlot) {
  Counted::made = 0;
  Context context{Options()};
  std::vector<std::thread> threads;
  std::vector<Counted*> seen(8);
  for (size_t i = 0; i < seen.size(); ++i) {
    threads.emplace_back([&, i] { seen[i] = &context.get<Counted>(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (Counted* counted : seen) EXPECT_EQ(counted, seen[0]);
  EXPECT_EQ(Counted::made.load(), 1);
}

struct Throws {
  Throws() { fail("test", "cannot be made"); }
};

TEST(Context, SlotThatThrowsIsNotKept) {
  Context context{Options()};
  EXPECT_THROW(context.get<Throws>(), Error);
  EXPECT_EQ(context.get_if<Throws>(), nullptr);
  EXPECT_THROW(context.get<Throws>(), Error);
}

TEST(Context, ScopesNestAndArePerThread) {
  Context& outer = Context::current();
  Context inner{Options()};
  {
    ContextScope scope(inner);
    EXPECT_EQ(&Context::current(), &inner);
    std::thread([&] { EXPECT_EQ(&Context::current(), &outer); }).join();
  }
  EXPECT_EQ(&Context::current(), &outer);
}

TEST(Context, LogGoesToTheSinkAtItsLevel) {
  Options options;
  options.debug = 2;
  Context context(options);
  std::string lines;
  context.log_sink() = {[](void* user, std::string_view line) {
                          static_cast<std::string*>(user)->append(line).append("|");
                        },
                        &lines};
  log_at(context, 2, "kernel {}", 1);
  log_at(context, 3, "hidden");
  EXPECT_EQ(lines, "kernel 1|");
}

TEST(Context, LogThatCannotBeWrittenSaysSoOnceAndGoesToStderr) {
  Options options;
  options.debug = 1;
  options.log = "/nowhere/weft.log";
  Context context(options);
  ::testing::internal::CaptureStderr();
  log_at(context, 1, "first");
  log_at(context, 1, "second");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "weft: WEFT_LOG: /nowhere/weft.log: No such file or directory; log lines go to "
            "stderr\nfirst\nsecond\n");
}

}  // namespace
}  // namespace weft
