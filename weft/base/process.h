// What the system knows of this process.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

struct ProcessFacts {
  int64_t pid = 0, parent = 0;
  std::vector<std::string> command;  // its words; empty where the system does not say
  std::string directory;
  int64_t unix_ns = 0;  // now, of the clock on the wall
};
ProcessFacts process_facts();
int64_t process_id();

}  // namespace weft
