#include "weft/app/load_note.h"

#include <unistd.h>

#include <cstdlib>

#include "weft/base/context.h"
#include "weft/base/file.h"

namespace weft {

namespace {

constexpr std::chrono::milliseconds kRedraw(500);

/// Of all files that are mapped; the model's is nearly all of it.
double gigabytes_in_memory() {
  const std::string status = read_small_file("/proc/self/status");
  const size_t at = status.find("RssFile:");
  return at == std::string::npos ? 0 : std::strtod(status.c_str() + at + 8, nullptr) * 1024e-9;
}

}  // namespace

LoadNote::LoadNote(const Session& session, const std::string& path,
                   std::chrono::milliseconds moment)
    : err_(session.err), name_(path.substr(path.rfind('/', path.size() - 2) + 1)), moment_(moment) {
  if (::isatty(::fileno(err_)) == 1 && !session.context.options().plain())
    thread_ = std::thread([this] { run(); });
}

LoadNote::~LoadNote() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void LoadNote::run() {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(mutex_);
  if (changed_.wait_for(lock, moment_, [this] { return done_; })) return;
  do {
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    std::fprintf(err_, "\rloading %s: %.1f GB in %.0f s", name_.c_str(), gigabytes_in_memory(),
                 passed.count());
    std::fflush(err_);
  } while (!changed_.wait_for(lock, kRedraw, [this] { return done_; }));
  std::fputs("\r\033[K", err_);
  std::fflush(err_);
}

}  // namespace weft
