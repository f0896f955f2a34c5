// Throwing: fail() and its kin format a message and throw what exceptions.h declares.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/exceptions.h"
#include "weft/base/format.h"

namespace weft {

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
  std::string_view codes;  // one, or several separated by ", "
  std::string_view explanation;
};
std::span<const ErrorCode> error_codes();
// The row of `code`, else of what it belongs to (`op` of `op.reason`); nullptr: not listed.
const ErrorCode* find_error_code(std::string_view code);
std::vector<std::string_view> codes_of(const ErrorCode& row);

}  // namespace weft
