// What rewriting did: a recorder of single steps and per-rule counts, both off by default.
#pragma once
#include <mutex>
#include <string>
#include <unordered_map>

#include "weft/base/context.h"
#include "weft/rewrite/rule_set.h"

namespace weft {

struct RewriteStep {
  const Rule* rule;
  NodeRef before, after;
};

/// The steps of this thread's rewrites while it lives. Nodes stay valid as long as their graph does
/// not sweep.
class RewriteTrace {
 public:
  RewriteTrace();
  ~RewriteTrace();
  RewriteTrace(const RewriteTrace&) = delete;
  RewriteTrace& operator=(const RewriteTrace&) = delete;

  std::vector<RewriteStep> steps;

  /// This thread's innermost recorder, or null.
  static RewriteTrace* current();

 private:
  RewriteTrace* outer_;
};

/// Per-rule counts of one Context, over all its threads. Off until enable().
class RewriteCounts {
 public:
  void enable() { enabled_.store(true, std::memory_order_relaxed); }
  bool enabled() const { return enabled_.load(std::memory_order_relaxed); }
  void add(const RuleMatcher& set, std::span<const RuleCounts> counts);
  RuleCounts of(std::string_view rule) const;

 private:
  std::atomic<bool> enabled_ = false;
  mutable std::mutex mutex_;
  std::unordered_map<std::string_view, RuleCounts> by_rule_;
};

}  // namespace weft
