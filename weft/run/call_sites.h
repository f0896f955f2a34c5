// Which lines of the user's program the steps of a schedule come from.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "weft/base/call_site.h"
#include "weft/run/normalise.h"

namespace weft {

class Context;

/// The first and the last operation of a step that are known; empty sites where none is.
struct StepSites {
  CallSite first, last;

  bool operator==(const StepSites& other) const;
  /// "net.cpp:42", "net.cpp:40 .. net.cpp:42", or nothing.
  std::string text() const;
};

/// Made when something is to be printed or has failed: it walks the whole graph.
class CallSites {
 public:
  CallSites(Context& context, const NormalForm& form);

  CallSite of(uint64_t origin) const;
  StepSites of(std::span<const uint64_t> origins) const;
  /// The lines of all of them, each once, in their order.
  std::vector<std::string> lines_of(std::span<const uint64_t> origins) const;

 private:
  std::unordered_map<uint64_t, CallSite> sites_;  // by structural hash in the normal form
};

}  // namespace weft
