// PassRecord: what a step of the compiler did.
#pragma once

#include <cstdint>
#include <string>

namespace weft {

/// What a stage's state is like at one moment, for records.
struct PassView {
  int64_t size = 0;      ///< nodes or instructions
  uint64_t content = 0;  ///< differs where the state does
};

/// What one pass did to one kernel, or to whatever else was compiled.
struct PassRecord {
  const char* pass = "";
  std::string subject = {};
  uint64_t ns = 0;
  PassView before = {}, after = {};
  int64_t firings = 0;                            ///< of rules
  std::string text_before = {}, text_after = {};  ///< where they are asked for
  bool changed() const { return before.content != after.content; }
};

}  // namespace weft
