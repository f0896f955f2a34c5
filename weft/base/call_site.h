// Where in the user's program a public function was called.
#pragma once

namespace weft {

struct CallSite {
  const char* file = nullptr;  // static storage: __builtin_FILE()
  int line = 0;

  // As a default argument this is evaluated at the caller (std::source_location is not needed).
  static constexpr CallSite here(const char* f = __builtin_FILE(), int l = __builtin_LINE()) {
    return {f, l};
  }
  constexpr explicit operator bool() const { return file != nullptr; }
};

// While one lives, errors and graph nodes made on this thread belong to `site`. The outermost scope
// wins: a public function called by another public function keeps the user's line.
class CallSiteScope {
 public:
  explicit CallSiteScope(CallSite site) noexcept;
  ~CallSiteScope();
  CallSiteScope(const CallSiteScope&) = delete;
  CallSiteScope& operator=(const CallSiteScope&) = delete;

 private:
  bool outermost_;
};

CallSite current_call_site() noexcept;  // empty outside every scope

}  // namespace weft
