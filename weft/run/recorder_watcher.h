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
  Watcher(State& state, RecordedAs kernel) : state_(state), kernel_(kernel) {
    const Lock lock(state_);
    run_ = state_.run();
    own_ = state_.pass_writer();
    own_->states.begin_arena(kernel.number + 1);
    own_->of_stream(kernel.stream);
  }
  /// Of runs.
  explicit Watcher(State& state) : state_(state) {}
  ~Watcher() override {
    drop_from(0);
    if (!own_) return;
    hand_over();
    const Lock lock(state_);
    state_.spare.push_back(std::move(own_));
  }

  size_t begin(const char* pass, std::string_view subject, const StateParts* before) override {
    OpenPass open{pass, std::string(subject), before == nullptr};
    if (own_ && before)
      open.before = own_->states.state(*before);
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
    if (own_ && own_->states.records().size() > kHandOver) hand_over();
  }

  /// The state is locked.
  void write_kept() {
    for (const KeptPass& p : kept_) write_shared(p.open, p.depth, p.ns, p.rules, p.after);
    kept_.clear();
  }
  void forget() { kept_.clear(), open_.clear(); }

 private:
  static constexpr size_t kHandOver = size_t{1} << 15;

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
    state_.shared.of_stream(state_.out.stream());
    subject_number_ = 0;  // the stream may be another one
    write(state_.shared, open, depth, ns, rules, after, state_.context.get_if<Provenance>(),
          locked);
    state_.out.add(state_.shared.states);
  }

  template <class Locked>
  void write(PassWriter& to, const OpenPass& p, size_t depth, std::optional<uint64_t> ns,
             std::span<const RewriteStep> rules, const StateParts& after, const Provenance* lines,
             Locked&& locked) {
    if (left_.size() <= depth) left_.resize(depth + 1);
    const bool kept = p.kept.kind != StateParts::Kind::None;
    const uint64_t before = p.follows ? left_[depth]
                            : kept    ? to.states.state(p.kept, lines)
                                      : p.before;
    const uint64_t then = left_[depth] = to.states.state(after, lines);
    to.record.clear();
    to.record.varint(string(to, p.pass, locked));
    if (p.subject != subject_ || subject_number_ == 0) {
      subject_ = p.subject;
      subject_number_ = locked([&] { return state_.out.string(p.subject); });
    }
    to.record.varint(subject_number_);
    to.record.varint(own_ ? run_ : state_.run());
    to.record.varint(own_ ? kernel_.number + 1 : 0);
    to.record.varint(depth);
    to.record.u64(p.start);
    to.record.varint(ns.value_or(0));
    to.record.u8(ns.has_value());
    to.record.varint(before);
    to.record.varint(then);
    to.record.varint(rules.size());
    for (const RewriteStep& step : rules) {
      to.record.varint(rule(to, *step.rule, locked));
      to.record.varint(to.states.node(step.before));
      to.record.varint(to.states.node(step.after));
    }
    to.states.add(recording::Kind::Pass, to.record.data());
  }

  template <class Locked>
  uint64_t string(PassWriter& to, const char* name, Locked&& locked) {
    if (const uint64_t* number = to.names.find(name)) return *number;
    return to.names.set(name, locked([&] { return state_.out.string(name); }));
  }
  template <class Locked>
  uint64_t rule(PassWriter& to, const Rule& rule, Locked&& locked) {
    if (const uint64_t* number = to.rules.find(&rule)) return *number;
    return to.rules.set(&rule, locked([&] { return state_.out.rule(rule); }));
  }

  /// To the stream; not to that of a fork, which knows nothing of the kernel.
  void hand_over() {
    const Lock lock(state_);
    if (kernel_.stream == state_.out.stream())
      state_.out.add(own_->states);
    else
      own_->states.clear_records();
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
  std::unique_ptr<PassWriter> own_;  // of a kernel
  std::vector<OpenPass> open_;
  std::vector<KeptPass> kept_;
  std::vector<uint64_t> left_;  // the state after the last pass at each depth
  uint64_t run_ = 0;            // of a kernel
  std::string subject_;         // of the last pass
  uint64_t subject_number_ = 0;
};

}  // namespace weft
