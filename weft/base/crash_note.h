// CrashNote: a file that says what a process was doing, should it end while it does.
#pragma once

#include <cstdint>
#include <string>

#include "weft/base/function_ref.h"

namespace weft {

/// No handler of signals: the file is there while something runs, and whatever ends the process
/// leaves it. Its first byte is a '#' while nothing runs. What cannot be written is not: the caller
/// has better things to do than to fail because of it.
class CrashNote {
 public:
  /// Files go to `folder`, as weft-PID-N.running.repro.
  explicit CrashNote(std::string folder) : folder_(std::move(folder)) {}
  ~CrashNote();  // removes its file
  CrashNote(const CrashNote&) = delete;
  CrashNote& operator=(const CrashNote&) = delete;

  /// `key` begins, of which the file is to hold `text`: asked for where the file has another one's.
  void begin(uint64_t key, FunctionRef<std::string()> text);
  void end();

 private:
  bool open();
  void forget_parent();
  void mark(char first);

  std::string folder_, path_;
  int fd_ = -1;
  int64_t process_ = 0;  // whose file it is: a child of fork() has one of its own
  uint64_t key_ = 0;
  char first_ = '#';  // of the text
  bool failed_ = false;
};

}  // namespace weft
