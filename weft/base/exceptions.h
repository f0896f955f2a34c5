// What weft throws: Error is the user's, InternalError is ours, DeviceError is a driver's.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "weft/base/call_site.h"

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

}  // namespace weft
