// The edge between C and C++: exceptions become statuses, structs are read and written by their
// size.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/error.h"
#include "weft/c/weft.h"

namespace weft::c {

/// A call that weft.h does not allow, as an exception on its way to becoming a status.
class Refused : public std::exception {
 public:
  Refused(weft_status why, std::string_view tag, std::string text)
      : status(why), code(tag), message(std::move(text)) {}
  const char* what() const noexcept override { return message.c_str(); }

  weft_status status;
  std::string code, message;
};

template <class... Args>
[[noreturn]] void refuse(std::string_view code, fmt::format_string<Args...> pattern,
                         Args&&... args) {
  throw Refused(WEFT_ERROR_ARGUMENT, code, strformat(pattern, std::forward<Args>(args)...));
}
/// More results than there is room for.
[[noreturn]] void refuse_space(std::string_view what, size_t needed, size_t capacity);

/// What a function of the user's returned. Where it comes from weft, its own error stays the
/// thread's last one.
struct CallbackFailed {
  weft_status status;
  bool recorded;
};

/// Remembers the exception being handled as this thread's last error.
weft_status record_current_exception() noexcept;
/// How many this thread has recorded.
uint64_t errors_recorded() noexcept;
/// The line that errors of this thread belong to.
CallSite thread_call_site() noexcept;

/// Runs the body of a function of weft.h.
template <class Body>
weft_status guarded(const Body& body) noexcept {
  try {
    const CallSiteScope site(thread_call_site());
    body();
    return WEFT_OK;
  } catch (...) {
    return record_current_exception();
  }
}

// ---- arguments

void require_pointer(const char* what, const void* pointer, size_t count = 1);
/// Text of the caller's, which is not NULL.
std::string_view required_text(const char* what, const char* text);
/// Writes text and its final 0, and its length, as weft_context_get() says.
void write_text(std::string_view from, char* text, size_t capacity, size_t* length);
/// Writes a list and its length.
void write_list(const char* what, const std::vector<int64_t>& from, int64_t* to, size_t capacity,
                size_t* count);

/// Refuses a struct_size outside [least, what a struct may ever have].
void check_struct_size(const char* what, uint32_t size, size_t least);

/// A struct of the caller's, whatever his header's version: fields that his lacks are 0. `least` is
/// what every version has.
template <class T>
T read_struct(const char* what, const T* from, size_t least) {
  require_pointer(what, from);
  const uint32_t size = from->struct_size;
  check_struct_size(what, size, least);
  T out{};
  std::memcpy(static_cast<void*>(&out), from, std::min<size_t>(size, sizeof(T)));
  const auto* bytes = reinterpret_cast<const unsigned char*>(from);
  for (size_t i = sizeof(T); i < size; ++i)
    if (bytes[i] != 0)
      refuse("struct", "{} has fields of a newer version that are not 0: this is ABI version {}",
             what, WEFT_ABI_VERSION);
  if constexpr (requires { out.reserved; })
    if (out.reserved != 0) refuse("struct", "{} has reserved bits that are not 0", what);
  return out;
}

/// Likewise to the caller's struct; what his has more is 0.
template <class T>
void write_struct(const char* what, const T& from, T* to, size_t least) {
  require_pointer(what, to);
  const uint32_t size = to->struct_size;
  check_struct_size(what, size, least);
  std::memset(static_cast<void*>(to), 0, size);
  std::memcpy(static_cast<void*>(to), &from, std::min<size_t>(size, sizeof(T)));
  to->struct_size = size;
}

}  // namespace weft::c
