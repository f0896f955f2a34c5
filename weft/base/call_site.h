// Where in the user's program a public function was called.
#pragma once

#include <string>

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
// wins: a public function called by another public function keeps the user's line. Where one wins
// over its outer ones, that is said: what backward() makes belongs to the line whose gradient it
// is. A line of the standard library is nobody's: make_unique<nn::Linear>(3, 4) calls from there.
class CallSiteScope {
 public:
  enum class Wins : bool { WhenOutermost, Always };
  explicit CallSiteScope(CallSite site, Wins wins = Wins::WhenOutermost) noexcept;
  ~CallSiteScope();
  CallSiteScope(const CallSiteScope&) = delete;
  CallSiteScope& operator=(const CallSiteScope&) = delete;

 private:
  bool counts_;
  CallSite outer_;
};

CallSite current_call_site() noexcept;  // empty outside every scope
std::string short_text(CallSite site);  // "net.cpp:42"; empty for an empty one

}  // namespace weft
