#include "weft/base/process.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

namespace weft {
namespace {

std::vector<std::string> command_words() {
  std::vector<std::string> words;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/cmdline", "re"),
                                                             &std::fclose);
  if (!file) return words;
  std::string word;
  for (int c = std::fgetc(file.get()); c != EOF; c = std::fgetc(file.get())) {
    if (c != 0) {
      word += static_cast<char>(c);
      continue;
    }
    words.push_back(std::move(word));
    word.clear();
  }
  return words;
}

}  // namespace

int64_t process_id() { return ::getpid(); }

ProcessFacts process_facts() {
  ProcessFacts facts{::getpid(), ::getppid(), command_words(), "", 0};
  char directory[4096];
  if (::getcwd(directory, sizeof(directory)) != nullptr) facts.directory = directory;
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  facts.unix_ns = now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
  return facts;
}

}  // namespace weft
