// The passes that a Recorder hears of.
#pragma once

#include <optional>

#include "weft/run/recorder_state.h"

namespace weft {

/// A pass that has begun.
struct OpenPass {
  const char* pass;
  std::string subject;
  bool follows;  // its state is as the last pass at this depth left it
  uint64_t start = 0, before = 0;
  StateParts kept = {};  // of a run that may have nothing to compile
};
/// One that has ended before anybody knew whether it is to be written.
struct KeptPass {
  OpenPass open;
  uint64_t ns;
  size_t depth;
  std::vector<RewriteStep> rules;
  StateParts after;
};

/// The passes of a kernel, or of a run. Those of a run are kept until it compiles; a kernel's are
/// put together without the lock, so that kernels that are compiled side by side do not wait.
class Recorder::State::Watcher final : public PassWatcher {
 public:
  /// Of a kernel.
  Watcher(State& state, RecordedAs kernel)
      : state_(state), kernel_(kernel), own_(std::in_place, state.out, kernel.number + 1) {
    const Lock lock(state_);
    run_ = state_.run();
  }
  /// Of runs.
  explicit Watcher(State& state) : state_(state) {}
  ~Watcher() override {
    drop_from(0);
    hand_over();
  }

  size_t begin(const char* pass, std::string_view subject, const StateParts* before) override {
    OpenPass open{pass, std::string(subject), before == nullptr};
    if (own_ && before)
      open.before = own_->state(*before);
    else if (before)
      open.kept = *before;
    open.start = now_ns();
    open_.push_back(std::move(open));
    return open_.size() - 1;
  }

  void end(size_t pass, uint64_t ns, std::span<const RewriteStep> rules,
           const StateParts& after) override {
    if (pass >= open_.size()) return;
    drop_from(pass + 1);
    add(std::move(open_[pass]), pass, ns, rules, after);
    open_.resize(pass);
    if (own_ && own_->records().size() > kHandOver) hand_over();
  }

  /// The state is locked.
  void write_kept() {
    for (const KeptPass& p : kept_) write_shared(p.open, p.depth, p.ns, p.rules, p.after);
    kept_.clear();
  }
  void forget() { kept_.clear(), open_.clear(); }

 private:
  static constexpr size_t kHandOver = size_t{1} << 16;

  /// `ns`: none for one that threw.
  void add(OpenPass&& open, size_t depth, std::optional<uint64_t> ns,
           std::span<const RewriteStep> rules, const StateParts& after) {
    if (own_) {
      const auto locked = [this](auto&& ask) { return Lock(state_), ask(); };
      return write(*own_, open, depth, ns, rules, after, nullptr, locked);
    }
    const Lock lock(state_);
    if (state_.compiles())
      write_shared(open, depth, ns, rules, after);
    else if (ns)
      kept_.push_back({std::move(open), *ns, depth, {rules.begin(), rules.end()}, after});
  }

  void write_shared(const OpenPass& open, size_t depth, std::optional<uint64_t> ns,
                    std::span<const RewriteStep> rules, const StateParts& after) {
    const auto locked = [](auto&& ask) { return ask(); };
    rules_.clear(), names_.clear(), subject_number_ = 0;  // the stream may be another one
    write(state_.shared, open, depth, ns, rules, after, state_.context.get_if<Provenance>(),
          locked);
    state_.out.add(state_.shared);
  }

  template <class Locked>
  void write(StateWriter& states, const OpenPass& p, size_t depth, std::optional<uint64_t> ns,
             std::span<const RewriteStep> rules, const StateParts& after, const Provenance* lines,
             Locked&& locked) {
    if (left_.size() <= depth) left_.resize(depth + 1);
    const bool kept = p.kept.kind != StateParts::Kind::None;
    const uint64_t before = p.follows ? left_[depth]
                            : kept    ? states.state(p.kept, lines)
                                      : p.before;
    const uint64_t then = left_[depth] = states.state(after, lines);
    record_.clear();
    record_.varint(string(p.pass, locked));
    if (p.subject != subject_ || subject_number_ == 0) {
      subject_ = p.subject;
      subject_number_ = locked([&] { return state_.out.string(p.subject); });
    }
    record_.varint(subject_number_);
    record_.varint(own_ ? run_ : state_.run());
    record_.varint(own_ ? kernel_.number + 1 : 0);
    record_.varint(depth);
    record_.u64(p.start);
    record_.varint(ns.value_or(0));
    record_.u8(ns.has_value());
    record_.varint(before);
    record_.varint(then);
    record_.varint(rules.size());
    for (const RewriteStep& step : rules) {
      record_.varint(rule(*step.rule, locked));
      record_.varint(states.node(step.before));
      record_.varint(states.node(step.after));
    }
    states.add(recording::Kind::Pass, record_.data());
  }

  template <class Locked>
  uint64_t string(const char* name, Locked&& locked) {
    if (const uint64_t* known = names_.find(name)) return *known;
    return names_.set(name, locked([&] { return state_.out.string(name); }));
  }
  template <class Locked>
  uint64_t rule(const Rule& rule, Locked&& locked) {
    if (const uint64_t* known = rules_.find(&rule)) return *known;
    return rules_.set(&rule, locked([&] { return state_.out.rule(rule); }));
  }

  /// To the stream; not to that of a fork, which knows nothing of the kernel.
  void hand_over() {
    if (!own_) return;
    const Lock lock(state_);
    if (kernel_.stream == state_.out.stream())
      state_.out.add(*own_);
    else
      own_->clear_records();
  }
  /// Those that threw.
  void drop_from(size_t first) {
    while (open_.size() > first) {
      OpenPass open = std::move(open_.back());
      open_.pop_back();
      add(std::move(open), open_.size(), {}, {}, {});
    }
  }

  State& state_;
  RecordedAs kernel_;
  std::optional<StateWriter> own_;  // a kernel's arena
  std::vector<OpenPass> open_;
  std::vector<KeptPass> kept_;
  std::vector<uint64_t> left_;  // the state after the last pass at each depth
  uint64_t run_ = 0;            // of a kernel
  std::string subject_;         // of the last pass
  uint64_t subject_number_ = 0;
  FlatMap<const Rule*, uint64_t> rules_;
  FlatMap<const char*, uint64_t> names_;
  ByteWriter record_;
};

}  // namespace weft
