// Capture and replay: a function's realizations recorded once, then run again with other arguments.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weft/base/function_ref.h"
#include "weft/run/storage.h"

namespace weft {

struct ReplayPlan;

/// One tensor argument. The name is for messages: "x", "batch[1].labels".
struct ReplayArgument {
  std::string name;
  std::shared_ptr<Storage> storage;
};

/// A bound size of a call: a Variable node of the tensor graph and its value. One variable may be
/// there with several values, each of which is a size of its own: a replay tells them apart by
/// their places among those that were given to the capture.
struct ReplayVariable {
  NodeRef variable;
  int64_t value;
  bool operator==(const ReplayVariable&) const = default;
};

/// What a captured function does, ready to run again.
class Replay {
 public:
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Runs it. Arguments must be as when captured in number, shape, dtype and device, and variables
  /// the same ones, in their ranges; otherwise an Error says which one differs and nothing has run.
  /// Storages that the function wrote (parameters, the random counter, written arguments) are
  /// written again, in place where nobody else can still read the old contents. Returns the
  /// function's results, in memory of their own: results of two calls never alias.
  std::vector<std::shared_ptr<Storage>> run(std::span<const ReplayArgument> arguments,
                                            std::span<const ReplayVariable> variables = {});
  /// The same for callers with their own kind of storage: `take` is called for each result with its
  /// Buffer node, to be rooted before it returns, or with the argument or state that the function
  /// returned itself.
  using Take = FunctionRef<void(NodeRef node, const std::shared_ptr<Storage>& itself)>;
  void run(std::span<const ReplayArgument> arguments, std::span<const ReplayVariable> variables,
           Take take);

  size_t kernels() const;       ///< that a call runs, besides those of constants
  bool writes() const;          ///< whether arguments or state have other values afterwards
  int64_t arena_bytes() const;  ///< memory held for intermediates, at the captured sizes
  int64_t kept_bytes() const;   ///< memory held for what was computed of constants
  std::string plan_text() const;
  /// What a call needs, at the captured sizes: inputs, with constants and what is kept of them,
  /// outputs and intermediates.
  int64_t planned_bytes() const;
  const ReplayPlan& plan() const;  ///< for those who write it down

 private:
  friend class CaptureScope;
  struct State;
  explicit Replay(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Records every realization of this thread from its construction to finish(). Realizes the
/// arguments first (so that constants have memory). An Error when another capture is in progress in
/// the context or when the same memory is passed twice. While it lives, reading data on the host is
/// an Error naming the tensor. Destroyed without finish(), it forgets what it recorded.
class CaptureScope {
 public:
  CaptureScope(Context& context, std::span<const ReplayArgument> arguments,
               std::span<const ReplayVariable> variables = {});
  ~CaptureScope();
  CaptureScope(const CaptureScope&) = delete;
  CaptureScope& operator=(const CaptureScope&) = delete;

  /// Realizes `results` and every storage that was written and is still alive, then checks that the
  /// recording can be replayed: whatever it reads must be an argument or belong to a storage that
  /// existed before (state), and every variable must have been given. Otherwise an Error names the
  /// buffer or variable.
  std::unique_ptr<Replay> finish(std::span<const std::shared_ptr<Storage>> results);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace weft
