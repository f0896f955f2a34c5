// What weft throws: Error is the user's, InternalError is ours, DeviceError is a driver's.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "weft/base/call_site.h"
#include "weft/base/format.h"

namespace weft {

enum class ErrorKind : uint8_t { Value, Type, Index, Runtime, Memory, Device, Internal };

// what() reads "[matmul] inner dimensions differ: got ... (train.cpp:12)". The tag given to fail()
// is `op` or `op.reason`: the text shows [op], code() is the whole and stable between versions.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string_view code, std::string message,
        CallSite where = current_call_site());

  const char* what() const noexcept override { return text_.c_str(); }
  ErrorKind kind() const { return kind_; }
  std::string_view tag() const { return std::string_view(code_).substr(0, code_.find('.')); }
  const std::string& code() const { return code_; }
  const std::string& message() const { return message_; }
  CallSite where() const { return where_; }

 private:
  ErrorKind kind_;
  CallSite where_;
  std::string code_, message_, text_;
};

class InternalError : public Error {
 public:
  InternalError(std::string_view code, std::string message);
};

// A call into a driver or library that failed: which call, its status, whose.
class DeviceError : public Error {
 public:
  DeviceError(std::string_view call, int64_t status, std::string_view library, std::string detail,
              int64_t command = -1);
  const std::string& call() const { return call_; }
  int64_t status() const { return status_; }
  const std::string& library() const { return library_; }
  int64_t command() const { return command_; }  // of a submitted list, the one that failed; or -1

  // The same error from who knows more about what was being done.
  [[noreturn]] void rethrow_with(std::string_view more) const;

 private:
  std::string call_, library_, detail_;
  int64_t status_, command_;
};

[[noreturn]] void vfail(ErrorKind kind, std::string_view code, fmt::string_view pattern,
                        fmt::format_args args);
[[noreturn]] void vfail_device(std::string_view call, int64_t status, std::string_view library,
                               fmt::string_view pattern, fmt::format_args args);
[[noreturn]] void vfail_check(const char* condition, const char* file, int line,
                              fmt::string_view pattern, fmt::format_args args);
// `doing` failed with this errno: "[save] cannot write m.st: No space left on device (ENOSPC)...".
[[noreturn]] void fail_errno(std::string_view code, std::string_view doing, int error_number);

// NOLINTBEGIN: one shape, one line of meaning each.
#define WEFT_DEFINE_FAIL(function, kind)                                                 \
  template <class... Args>                                                               \
  [[noreturn]] void function(std::string_view code, fmt::format_string<Args...> pattern, \
                             Args&&... args) {                                           \
    vfail(ErrorKind::kind, code, pattern, fmt::make_format_args(args...));               \
  }
WEFT_DEFINE_FAIL(fail, Value)               // an argument has a bad value or shape
WEFT_DEFINE_FAIL(fail_type, Type)           // an argument has a bad dtype
WEFT_DEFINE_FAIL(fail_index, Index)         // out of range
WEFT_DEFINE_FAIL(fail_runtime, Runtime)     // the world outside: files, compilers, data
WEFT_DEFINE_FAIL(fail_memory, Memory)       // an allocation or the memory cap
WEFT_DEFINE_FAIL(internal_error, Internal)  // our own bug
#undef WEFT_DEFINE_FAIL
// NOLINTEND

template <class... Args>
[[noreturn]] void fail_device(std::string_view call, int64_t status, std::string_view library,
                              fmt::format_string<Args...> pattern, Args&&... args) {
  vfail_device(call, status, library, pattern, fmt::make_format_args(args...));
}

template <class... Args>
[[noreturn]] void check_failed(const char* condition, const char* file, int line,
                               fmt::format_string<Args...> pattern, Args&&... args) {
  vfail_check(condition, file, line, pattern, fmt::make_format_args(args...));
}
[[noreturn]] inline void check_failed(const char* condition, const char* file, int line) {
  vfail_check(condition, file, line, "", {});
}

// Always on, in every build: WEFT_CHECK(i < n, "step {} lost a source", i) throws InternalError.
#define WEFT_CHECK(condition, ...)                                                     \
  do {                                                                                 \
    if (!(condition)) [[unlikely]]                                                     \
      ::weft::check_failed(#condition, __FILE__, __LINE__ __VA_OPT__(, ) __VA_ARGS__); \
  } while (false)

// The registry behind `weft explain CODE` (errors.def).
struct ErrorCode {
  const char* code;
  const char* explanation;
};
const ErrorCode* find_error_code(std::string_view code);  // nullptr: not listed
const ErrorCode* error_codes(size_t& count);

}  // namespace weft
