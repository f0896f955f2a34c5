#include "weft/rewrite/driver.h"

#include <algorithm>

#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/graph/walks.h"
#include "weft/rewrite/print.h"
#include "weft/rewrite/trace.h"

namespace weft {
namespace {

/// One application of a set, recorded where asked for.
class Applier {
 public:
  Applier(const RuleMatcher& set, RuleMatcher::Call& call)
      : set_(set), call_(call), trace_(RewriteTrace::current()) {
    shared_ = Context::current().get_if<RewriteCounts>();
    if (!shared_ || !shared_->enabled()) return;
    counts_.resize(set.entries().size());
    call_.counts = counts_.data();
  }
  ~Applier() {
    if (!counts_.empty()) shared_->add(set_, counts_);
  }
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;

  NodeRef operator()(NodeRef n) {
    NodeRef out = set_.apply(n, call_);
    if (out && trace_) trace_->steps.push_back({fired(), n, out});
    return out;
  }
  const Rule* fired() const { return set_.entries()[static_cast<size_t>(call_.fired)].rule; }

 private:
  const RuleMatcher& set_;
  RuleMatcher::Call& call_;
  RewriteTrace* trace_;
  RewriteCounts* shared_;
  std::vector<RuleCounts> counts_;
};

class Fixpoint {
 public:
  Fixpoint(const RuleMatcher& set, RuleMatcher::Call& call, const RewriteLimits& limits)
      : set_(set), graph_(call.graph), apply_(set, call), limits_(limits) {
    if (set.normal() != NormalBit::None) bit_ = uint64_t{1} << static_cast<int>(set.normal());
  }

  NodeRef run(NodeRef root) {
    if (NodeRef done = image(root)) return done;
    push(root, true);
    while (!stack_.empty()) step(stack_.size() - 1);
    return image(root);
  }

 private:
  struct Frame {
    NodeRef key, current;  // what is asked for; how far it has been rewritten
    uint32_t next = 0;     // sources before this one are in normal form
    uint32_t firings = 0;
    size_t passed = 0;  // where this frame's part of passed_ begins
    bool original;      // a node of the graph as given, not one a rule made
  };

  /// The normal form of a node that has been dealt with, else null.
  NodeRef image(NodeRef n) const {
    if (n->normal.load(std::memory_order_relaxed) & bit_) return n;
    if (n->nsrc == 0 && !set_.concerns(n->op)) return n;
    const NodeRef* found = images_.find(n);
    return found ? *found : nullptr;
  }

  void push(NodeRef n, bool original) {
    enter(n);
    originals_ += original;
    stack_.push_back({n, n, 0, 0, passed_.size(), original});
  }

  /// Marks a node as being worked on; meeting it again means that it is rewritten into a term that
  /// holds itself.
  void enter(NodeRef n) {
    const size_t before = images_.size();
    images_[n];  // null until it is finished
    if (images_.size() == before) cycle(n, "is rewritten into itself");
  }

  void step(size_t at) {
    Frame& f = stack_[at];
    for (; f.next < f.current->nsrc; ++f.next) {
      NodeRef s = f.current->src(f.next);
      if (image(s)) continue;
      return push(s, f.original && f.current == f.key);
    }
    if (NodeRef rebuilt = with_images(f.current); rebuilt != f.current) return move(f, rebuilt);
    if (NodeRef out = apply_(f.current)) {
      count(f);
      return move(f, out);
    }
    finish(f, f.current);
  }

  NodeRef with_images(NodeRef n) {
    bool changed = false;
    sources_.clear();
    for (NodeRef s : n->src()) {
      sources_.push_back(image(s));
      changed |= sources_.back() != s;
    }
    return changed ? graph_.with_sources(n, sources_) : n;
  }

  void move(Frame& f, NodeRef to) {
    if (NodeRef done = image(to)) return finish(f, done);
    enter(to);
    passed_.push_back(f.current);
    f.current = to;
    f.next = 0;
  }

  /// `normal` is the node the frame has come to, or one that is known to be normal already.
  void finish(Frame& f, NodeRef normal) {
    if (bit_) normal->normal.fetch_or(bit_, std::memory_order_relaxed);
    if (!bit_ || normal != f.current) images_[f.current] = normal;
    for (size_t i = f.passed; i < passed_.size(); ++i) images_[passed_[i]] = normal;
    passed_.resize(f.passed);
    stack_.pop_back();
  }

  void count(Frame& f) {
    recent_[fired_++ % recent_.size()] = apply_.fired();
    if (++f.firings > limits_.per_node) cycle(f.key, "does not come to rest");
    if (fired_ > 1024 + limits_.per_graph * originals_) cycle(f.key, "grows without end");
  }

  [[noreturn]] void cycle(NodeRef n, const char* what) const {
    std::vector<std::string_view> names;
    for (size_t i = 0; i < std::min<uint64_t>(fired_, recent_.size()); ++i) {
      const std::string_view name = recent_[i]->name;
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    std::string list;
    for (std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
    internal_error("rewrite.cycle",
                   "set {}: {} {} (after {} firings, the last of {}); switch one off with "
                   "WEFT_RULES=-<rule> to go on",
                   set_.name(), expression(n), what, fired_, list);
  }

  const RuleMatcher& set_;
  Graph& graph_;
  Applier apply_;
  RewriteLimits limits_;
  uint64_t bit_ = 0;
  NodeMap<NodeRef> images_;  // null while being worked on
  std::vector<Frame> stack_;
  std::vector<NodeRef> sources_;
  std::vector<NodeRef> passed_;  // what the frames' nodes were between key and current; a stack
  std::array<const Rule*, 16> recent_{};
  uint64_t fired_ = 0, originals_ = 0;
};

}  // namespace

NodeRef detail::fixpoint(NodeRef root, const RuleMatcher& set, RuleMatcher::Call call,
                         const RewriteLimits& limits) {
  return Fixpoint(set, call, limits).run(root);
}

NodeRef detail::walk(NodeRef root, const RuleMatcher& set, RuleMatcher::Call call) {
  Applier apply(set, call);
  return rebuild(root, [&](NodeRef n, std::span<const NodeRef> src) {
    NodeRef now = call.graph.with_sources(n, src);
    NodeRef out = apply(now);
    return out ? out : now;
  });
}

NodeRef rebuild(NodeRef root, FunctionRef<NodeRef(NodeRef, std::span<const NodeRef>)> fn) {
  return rebuild_all({&root, 1}, fn)[0];
}

NodeRef substitute(Graph& g, NodeRef root, const NodeMap<NodeRef>& replacement) {
  return rebuild(root, [&](NodeRef n, std::span<const NodeRef> src) {
    if (const NodeRef* r = replacement.find(n)) return *r;
    return g.with_sources(n, src);
  });
}

}  // namespace weft
