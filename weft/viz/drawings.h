// Drawings: those that are being looked at, by what was asked for.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "weft/viz/drawing.h"
#include "weft/viz/session.h"
#include "weft/viz/views.h"

namespace weft::viz {

/// Refines coarse drawings in a thread of its own, which gives way to all others: the one that was
/// asked for last first.
class Drawings {
 public:
  using Refine = std::function<void(Drawing&)>;

  explicit Drawings(Refine refine = &Drawing::refine);
  ~Drawings();
  Drawings(const Drawings&) = delete;

  /// Of the parameters of the view `graph`, with `group` = "line", "kernel" or nothing, and `open`:
  /// the numbers of groups, "0,3". Errors: viz.parameter and those of graph_data() and Drawing.
  /// Kept are the last few; from any thread.
  std::shared_ptr<const Drawing> get(std::shared_ptr<const Session> session,
                                     const Parameters& parameters);

 private:
  struct Entry {
    const Session* session;     // which the drawing keeps
    std::string graph, groups;  // what was asked for
    std::shared_ptr<Drawing> drawing;
    bool refining = false;  ///< or refined, or it was tried
  };

  std::shared_ptr<Drawing> find(const Session* session, const std::string& graph,
                                const std::string& groups);
  std::shared_ptr<Drawing> next_to_refine();
  void refine_in_turn();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Entry> entries_;  // the last one used first
  bool ending_ = false;
  const Refine refine_;
  std::thread refiner_;
};

}  // namespace weft::viz
