// RuleSet<Ctx>: rules composed by concatenation and compiled into one matcher table.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/rewrite/rule.h"

namespace weft {

struct RuleTable;

/// A rule with its code's type erased; call is null for rules that are data.
struct RuleEntry {
  const Rule* rule;
  void (*fn)() = nullptr;
  NodeRef (*call)(void (*fn)(), const Match&, void* ctx) = nullptr;
  bool by_op = false;  ///< of an OpRules table: no matcher has it

  bool is_native() const { return call != nullptr || by_op; }
};

/// What a rule's context does for rules that are data.
struct ContextCalls {
  void* context = nullptr;
  /// pat::native_op: whether the machine that is rewritten for has this.
  bool (*native)(void* context, Op op, DType dtype) = nullptr;
  /// Makes the ops of right sides, in the place of Graph::make: of what the machine has.
  NodeRef (*make)(void* context, Op op, DType dtype, std::span<const NodeRef> src) = nullptr;
};

/// Rules to be compiled into a RuleSet<Ctx>; lists of rule tables add up with +. Earlier rules win.
template <class Ctx = NoContext>
class RuleList {
 public:
  RuleList() = default;
  template <size_t N>
  RuleList(const Rule (&table)[N]) {  // NOLINT: implicit, so that rules(kA, kB) takes tables
    for (const Rule& r : table) entries_.push_back({&r});
  }
  template <size_t N>
  RuleList(const NativeRule<NoContext> (&table)[N]) {  // NOLINT
    for (const auto& r : table)
      entries_.push_back({&r.rule, reinterpret_cast<void (*)()>(r.fn), &call_plain});
  }
  template <class C, size_t N>
    requires(std::same_as<C, Ctx> && !std::same_as<C, NoContext>)
  RuleList(const NativeRule<C> (&table)[N]) {  // NOLINT
    for (const auto& r : table)
      entries_.push_back({&r.rule, reinterpret_cast<void (*)()>(r.fn), &call_with});
  }
  /// Rules without context may join any list.
  template <class C>
    requires(std::same_as<C, NoContext> && !std::same_as<C, Ctx>)
  RuleList(const RuleList<C>& other)  // NOLINT
      : entries_(other.entries().begin(), other.entries().end()) {}

  RuleList& operator+=(const RuleList& other) {
    entries_.insert(entries_.end(), other.entries_.begin(), other.entries_.end());
    return *this;
  }
  friend RuleList operator+(RuleList a, const RuleList& b) { return a += b; }
  std::span<const RuleEntry> entries() const { return entries_; }

 private:
  static NodeRef call_plain(void (*fn)(), const Match& m, void*) {
    return reinterpret_cast<NodeRef (*)(const Match&)>(fn)(m);
  }
  static NodeRef call_with(void (*fn)(), const Match& m, void* ctx) {
    return reinterpret_cast<NodeRef (*)(const Match&, Ctx&)>(fn)(m, *static_cast<Ctx*>(ctx));
  }

  std::vector<RuleEntry> entries_;
};

/// rules(kIndexRules, kBoolRules, other_list)
template <class Ctx = NoContext, class... Tables>
RuleList<Ctx> rules(const Tables&... tables) {
  RuleList<Ctx> all;
  ((all += RuleList<Ctx>(tables)), ...);
  return all;
}

/// Bits of Node::normal: context-free sets whose normal forms are remembered in the nodes. A set
/// owns its bit for the life of a graph, so two sets must never share one.
enum class NormalBit : int8_t { None = -1, Simplify, SimplifyData, SimplifyUngated, TestA, TestB };

/// How a set is compiled.
struct RuleSetOptions {
  NormalBit normal = NormalBit::None;
  std::string_view switched_off = {};  ///< Options::rules: "div.of_mul,-max.*"
  bool keeps_type =
      true;  ///< a replacement must have the dtype (and gets the shape) of what it replaces
  bool real = false;  ///< the Real rules too: fast math was asked for
};

/// What one rule did: for `weft rules` and profiles.
struct RuleCounts {
  uint64_t tried = 0, fired = 0, ns = 0;
};

/// The untyped half of a RuleSet: immutable after construction, shared by threads.
class RuleMatcher {
 public:
  RuleMatcher(std::string name, std::span<const RuleEntry> entries, const RuleSetOptions& options);
  ~RuleMatcher();
  RuleMatcher(const RuleMatcher&) = delete;
  RuleMatcher& operator=(const RuleMatcher&) = delete;

  /// What one application needs besides the node. `fired` receives the rule's index.
  struct Call {
    Graph& graph;
    void* ctx = nullptr;
    ContextCalls context_calls = {};
    RuleCounts* counts = nullptr;  ///< one per rule, or null
    int fired = -1;
  };
  /// The replacement of `n` by the first rule that fires; null when none does.
  NodeRef apply(NodeRef n, Call& call) const;

  bool concerns(Op op) const;  ///< some rule may match at nodes of this op
  const std::string& name() const { return name_; }
  std::span<const RuleEntry> entries() const { return entries_; }
  NormalBit normal() const { return options_.normal; }
  size_t program_count() const;  ///< after expansion of commuted forms
  size_t capped_count() const;   ///< rules whose commuted forms were cut off at 8

 private:
  std::string name_;
  std::vector<RuleEntry> entries_;
  RuleSetOptions options_;
  std::unique_ptr<RuleTable> table_;
};

template <class Ctx = NoContext>
class RuleSet {
 public:
  RuleSet(std::string name, const RuleList<Ctx>& list, const RuleSetOptions& options = {})
      : matcher_(std::move(name), list.entries(), options) {}

  const RuleMatcher& matcher() const { return matcher_; }
  /// One step at `n`: null when no rule fires.
  NodeRef apply(Graph& g, NodeRef n, Ctx& ctx) const {
    RuleMatcher::Call call{g, &ctx, calls_of(ctx)};
    return matcher_.apply(n, call);
  }
  NodeRef apply(Graph& g, NodeRef n) const
    requires(std::same_as<Ctx, NoContext>)
  {
    RuleMatcher::Call call{g};
    return matcher_.apply(n, call);
  }

  /// What the context has of native(op, dtype) and make(op, dtype, sources).
  static ContextCalls calls_of(Ctx& ctx) {
    ContextCalls calls{&ctx};
    if constexpr (requires(const Ctx& c) {
                    { c.native(Op::Add, DType::F32) } -> std::convertible_to<bool>;
                  })
      calls.native = [](void* c, Op op, DType d) {
        return static_cast<bool>(static_cast<const Ctx*>(c)->native(op, d));
      };
    if constexpr (requires(Ctx& c, std::span<const NodeRef> src) {
                    { c.make(Op::Add, DType::F32, src) } -> std::same_as<NodeRef>;
                  })
      calls.make = [](void* c, Op op, DType d, std::span<const NodeRef> src) {
        return static_cast<Ctx*>(c)->make(op, d, src);
      };
    return calls;
  }

 private:
  RuleMatcher matcher_;
};

/// One row of the catalogue that `weft rules`, docs/rules.md and the generated tests read.
struct RuleSetRow {
  std::string name;
  std::vector<RuleEntry> entries;
  std::string note;  ///< what the set is for
};
template <class Ctx>
RuleSetRow catalogue_row(std::string name, const RuleList<Ctx>& list, std::string note) {
  return {std::move(name), {list.entries().begin(), list.entries().end()}, std::move(note)};
}

}  // namespace weft
