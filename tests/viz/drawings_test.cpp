// Drawings that are refined while others are answered.
#include "weft/viz/drawings.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>

#include "tests/viz/recorded.h"

namespace weft::viz {
namespace {

std::vector<int> niceness_of_threads() {
  std::vector<int> all;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    all.push_back(
        ::getpriority(PRIO_PROCESS, static_cast<id_t>(std::stoi(thread.path().filename()))));
  return all;
}

TEST(Drawings, TheThreadThatLaysOutGivesWayToAllOthers) {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  const int wanted = std::min(own + 10, 19);  // 19: nothing gives way more
  const size_t before = niceness_of_threads().size();
  const Drawings drawings;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::vector<int> now;
  do {
    now = niceness_of_threads();
  } while (std::ranges::count(now, wanted) != (wanted == own ? static_cast<int>(now.size()) : 1) &&
           std::chrono::steady_clock::now() < end);
  EXPECT_EQ(now.size(), before + 1);
  EXPECT_EQ(std::ranges::count(now, wanted), wanted == own ? static_cast<int>(now.size()) : 1);
  EXPECT_EQ(::getpriority(PRIO_PROCESS, 0), own);
}

/// Of a graph too large to be laid out at once.
class LargeDrawings : public RecordedTest {
 protected:
  static constexpr size_t kNodes = 40'000;

  void SetUp() override {
    RecordedTest::SetUp();
    record_a_large_pass(recording_to(file(), "NULL"), kNodes);
    session = Session::open(file());
  }

  /// The same graph again and again; `open` makes them drawings of their own.
  std::shared_ptr<const Drawing> ask(Drawings& of, const std::string& open = "") const {
    Parameters parameters;
    parameters.set("pass", "0");
    parameters.set("open", open);
    return of.get(session, parameters);
  }

  std::shared_ptr<const Session> session;
};

/// Which drawings are laid out, in order; the first of them only when it is let go.
class LaidOut {
 public:
  Drawings::Refine refine() {
    return [this](Drawing& drawing) {
      std::unique_lock lock(mutex_);
      order_.push_back(&drawing);
      changed_.notify_all();
      changed_.wait(lock, [this] { return let_go_; });
    };
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }
  std::vector<const Drawing*> first(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(60), [&] { return order_.size() >= count; });
    return order_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<const Drawing*> order_;
  bool let_go_ = false;
};

TEST_F(LargeDrawings, TheOneAskedForLastIsLaidOutFirst) {
  LaidOut laid_out;
  Drawings drawings(laid_out.refine());
  const auto one = ask(drawings);
  EXPECT_FALSE(one->fine());
  EXPECT_EQ(laid_out.first(1).size(), 1u);  // while it is, others are asked for
  const auto two = ask(drawings, "1"), three = ask(drawings, "2");
  laid_out.let_go();
  EXPECT_EQ(laid_out.first(3), (std::vector<const Drawing*>{one.get(), three.get(), two.get()}));
}

TEST_F(LargeDrawings, TheOneLookedAtLastIsLaidOutFirst) {
  LaidOut laid_out;
  Drawings drawings(laid_out.refine());
  const auto one = ask(drawings);
  EXPECT_EQ(laid_out.first(1).size(), 1u);
  const auto two = ask(drawings, "1"), three = ask(drawings, "2");
  EXPECT_EQ(ask(drawings, "1"), two);  // again: one of its tiles
  laid_out.let_go();
  EXPECT_EQ(laid_out.first(3), (std::vector<const Drawing*>{one.get(), two.get(), three.get()}));
}

TEST_F(LargeDrawings, ABoxDoesNotWaitForTexts) {
  Drawings drawings([](Drawing&) {});
  const auto drawing = ask(drawings);
  const auto box = [&](bool without_waiting) {
    return Json::parse(drawing->box_json(drawing->box_of(kNodes / 2), without_waiting));
  };
  const Json early = box(true), whole = box(false);
  EXPECT_FALSE(early["complete"]);
  EXPECT_EQ(early["text"], "");
  EXPECT_EQ(early["shape"], "");
  EXPECT_TRUE(whole["complete"]);
  EXPECT_NE(whole["text"], "");
  const std::string label = whole["label"];
  EXPECT_TRUE(label.starts_with(std::string(early["label"]))) << label << " " << early["label"];
  for (const char* same : {"box", "x", "y", "width", "line", "dtype", "left", "right", "nodes"})
    EXPECT_EQ(early[same], whole[same]) << same;
  ASSERT_EQ(early["sources"].size(), whole["sources"].size());
  for (size_t i = 0; i < whole["sources"].size(); ++i)
    EXPECT_EQ(early["sources"][i]["box"], whole["sources"][i]["box"]);
  std::const_pointer_cast<Drawing>(drawing)->refine();
  EXPECT_EQ(box(true), box(false));
  const Json fine = box(true);
  for (const Json& source : fine["sources"]) {
    const Json& route = source["route"];
    ASSERT_GE(route.size(), 4u);
    EXPECT_EQ(route[route.size() - 2], fine["x"]);
    EXPECT_EQ(route.back(), fine["y"]);
  }
  EXPECT_TRUE(box(true)["complete"]);
}

}  // namespace
}  // namespace weft::viz
