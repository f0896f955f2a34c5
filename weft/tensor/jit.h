// jit: a function of tensors whose kernels are captured once and then replayed.
#pragma once

#include <any>
#include <array>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "weft/tensor/captured_function.h"

namespace weft {

/// What a visit of arguments or results finds. A struct is visited when it has
///   template <class V> void visit_tensors(V&& v) { v("weight", weight); v("bias", bias); }
class TensorVisitor {
 public:
  virtual void tensor(const std::string& name, Tensor& x) = 0;
  virtual void size(const std::string& name, const Dim& x) = 0;
  /// Anything else a function may be given: part of what was captured.
  virtual void constant(const std::string& name, std::string text) = 0;

 protected:
  ~TensorVisitor() = default;
};

namespace detail {

template <class T>
struct IsSequence : std::false_type {};
template <class T>
struct IsSequence<std::vector<T>> : std::true_type {};
template <class T, size_t N>
struct IsSequence<std::array<T, N>> : std::true_type {};
/// std::map and its like: keys with values.
template <class T>
concept IsMap = requires(const T& x) {
  typename T::key_type;
  typename T::mapped_type;
  x.begin()->second;
};
template <class T>
struct IsTuple : std::false_type {};
template <class... T>
struct IsTuple<std::tuple<T...>> : std::true_type {};
template <class A, class B>
struct IsTuple<std::pair<A, B>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};

struct AnyMember {
  template <class T>
  void operator()(const char*, T&&) const {}
};

std::string constant_text(double x);
inline std::string key_text(const std::string& key) { return key; }
template <class K>
  requires std::is_arithmetic_v<K>
std::string key_text(K key) {
  return std::to_string(key);
}

template <class T>
void visit(const std::string& name, T& x, TensorVisitor& v) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Tensor>) {
    v.tensor(name, const_cast<Tensor&>(x));  // visitors of arguments only read
  } else if constexpr (std::is_same_v<Plain, Dim>) {
    v.size(name, x);
  } else if constexpr (IsSequence<Plain>::value) {
    for (size_t i = 0; i < x.size(); ++i) visit(name + "[" + std::to_string(i) + "]", x[i], v);
  } else if constexpr (IsMap<Plain>) {
    for (auto& [key, member] : x) visit(name + "." + key_text(key), member, v);
  } else if constexpr (IsTuple<Plain>::value) {
    size_t i = 0;
    std::apply([&](auto&... m) { (visit(name + "[" + std::to_string(i++) + "]", m, v), ...); }, x);
  } else if constexpr (IsOptional<Plain>::value) {
    v.constant(name, x ? "given" : "missing");
    if (x) visit(name, *x, v);
  } else if constexpr (requires(Plain& p) { p.visit_tensors(AnyMember()); }) {
    const_cast<Plain&>(x).visit_tensors(
        [&](const char* member, auto& m) { visit(name + "." + member, m, v); });
  } else if constexpr (std::is_arithmetic_v<Plain> || std::is_enum_v<Plain>) {
    v.constant(name, constant_text(static_cast<double>(x)));
  } else if constexpr (std::is_convertible_v<Plain, std::string>) {
    v.constant(name, x);
  } else {
    static_assert(std::is_void_v<T>,
                  "jit: give this type a visit_tensors() (see TensorVisitor), or capture it in the "
                  "function");
  }
}

}  // namespace detail

/// The part of a jitted function that does not depend on its type. One call at a time.
class JitState {
 public:
  JitState(std::string name, CallSite at);
  ~JitState();
  JitState(JitState&&) noexcept;
  JitState& operator=(JitState&&) noexcept;

  TensorVisitor& arguments();  ///< takes those of a new call
  TensorVisitor& results();    ///< takes those of the call in progress

  enum class Mode : uint8_t { Plain, Capture, Replay };
  /// After arguments(): an Error where a replay would not be what was captured.
  Mode begin();
  bool may_capture() const;  ///< whether begin() may begin a capture, or the call before one
  void capture_at_once();    ///< the first call is captured, too
  void finish();             ///< after results(): realizes them; the end of a capture
  void abandon() noexcept;   ///< the function threw
  void replay();             ///< gives the tensors of results() their new values

  size_t kernels() const;      ///< of a replay; 0 before the capture
  int64_t kept_bytes() const;  ///< memory of what the captured function computed from constants
  /// Memory that a replay needs: what it reads and keeps, outputs and intermediates. 0 before the
  /// capture.
  int64_t planned_bytes() const;
  bool writes() const;  ///< whether it writes arguments or state
  void reset();         ///< forgets the capture; the next call runs plainly
  /// The same in a child of fork(), where another thread may have been in the middle of a call:
  /// what it left is not looked at.
  void reset_after_fork();

  CapturedFunction captured() const;  ///< an Error before the capture
  void load(CapturedFunction f);      ///< from here on calls do what f does
  void call_loaded();  ///< after arguments() and results(): a whole call of what was loaded

 private:
  struct State;
  State* state_;  // owned; null after a move
};

template <class F>
class Jit {
 public:
  Jit(F f, std::string name, CallSite at = CallSite::here())
      : f_(std::move(f)), state_(std::move(name), at) {}

  template <class... Args>
  std::invoke_result_t<F&, Args...> operator()(Args&&... args) {
    TensorVisitor& found = state_.arguments();
    size_t i = 0;
    (detail::visit("argument " + std::to_string(i++), args, found), ...);
    const JitState::Mode mode = state_.begin();
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Args...>>) {
      run(mode, [&] {
        f_(std::forward<Args>(args)...);
        return std::tuple<>();
      });
    } else {
      return run(mode, [&] {
        return std::decay_t<decltype(f_(std::forward<Args>(args)...))>(
            f_(std::forward<Args>(args)...));
      });
    }
  }

  size_t kernels() const { return state_.kernels(); }
  int64_t kept_bytes() const { return state_.kept_bytes(); }
  int64_t planned_bytes() const { return state_.planned_bytes(); }
  void reset() { state_.reset(); }
  /// The first call is captured, not the second one: of functions that make nothing in their first
  /// call which later ones use.
  void capture_at_once() { state_.capture_at_once(); }
  /// What save_function() of io/functions.h writes; an Error before the second call.
  CapturedFunction captured() const { return state_.captured(); }

 private:
  template <class Call>
  std::invoke_result_t<Call> run(JitState::Mode mode, const Call& call) {
    using Result = std::invoke_result_t<Call>;
    if (mode == JitState::Mode::Replay) {
      Result again = std::any_cast<const Result&>(shape_);
      detail::visit("result", again, state_.results());
      state_.replay();
      return again;
    }
    try {
      Result result = call();
      detail::visit("result", result, state_.results());
      state_.finish();
      if (mode == JitState::Mode::Capture) shape_ = result;
      return result;
    } catch (...) {
      state_.abandon();
      throw;
    }
  }

  F f_;
  JitState state_;
  std::any shape_;  // a result of the capture, into whose copies replays put theirs
};

/// A captured function from elsewhere. It is called like the one that was captured, and its results
/// come as a list, in the order in which they lay in that function's result. Its state is its own.
/// The first call compiles and captures; later ones replay. One call at a time.
class LoadedFunction {
 public:
  explicit LoadedFunction(CapturedFunction f, CallSite at = CallSite::here());

  template <class... Args>
  std::vector<Tensor> operator()(const Args&... args) {
    TensorVisitor& found = state_.arguments();
    size_t i = 0;
    (detail::visit("argument " + std::to_string(i++), args, found), ...);
    return call();
  }

  size_t kernels() const { return state_.kernels(); }
  int64_t kept_bytes() const { return state_.kept_bytes(); }
  int64_t planned_bytes() const { return state_.planned_bytes(); }
  CapturedFunction captured() const { return state_.captured(); }

 private:
  std::vector<Tensor> call();

  JitState state_;
  size_t results_;
};

/// A function that is called like f. The first call runs f, with the bits of later ones; the second
/// one runs it and records every kernel it launches; later ones launch those on the new arguments.
/// Arguments are found inside vectors, maps, tuples and structs with visit_tensors(). Tensors that
/// f uses otherwise (parameters, optimizer state, the random counter) are read and written as they
/// are at the time of the call; what is computed from those alone that no call writes is computed
/// once, kept, and computed again after they were written elsewhere (WEFT_KEEP_CONSTANTS=0: in
/// every call). What f does besides, printing or counting, happens in the first two calls only.
/// Numbers are part of what is captured and another one is an Error: pass what changes as a Tensor,
/// or as a bound size (Dim). Sizes that were equal when f was captured may differ later, and one
/// variable may be bound to several values: f is then captured for that case too, in two calls.
/// Results are realized and share no memory between calls. Errors of its own name the line of
/// jit(). WEFT_JIT=0 runs f every time.
template <class F>
Jit<std::decay_t<F>> jit(F&& f, std::string name = "jit", CallSite at = CallSite::here()) {
  return Jit<std::decay_t<F>>(std::forward<F>(f), std::move(name), at);
}

}  // namespace weft
