// LoadNote: says on a terminal that a model is being loaded, where that takes longer than a moment.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>

#include "weft/app/commands.h"

namespace weft {

class LoadNote {
 public:
  /// Nothing is written where session.err is no terminal.
  LoadNote(const Session& session, const std::string& path,
           std::chrono::milliseconds moment = std::chrono::seconds(1));
  ~LoadNote();  // removes what it wrote
  LoadNote(const LoadNote&) = delete;
  LoadNote& operator=(const LoadNote&) = delete;

 private:
  void run();

  std::FILE* err_;
  std::string name_;
  std::chrono::milliseconds moment_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;  // loading is one call, which says nothing before its end
};

}  // namespace weft
