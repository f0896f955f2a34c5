// PlanCache: the plans that searches found, in a text file that people can read, merge and ship.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "weft/optimize/loop_plan.h"

namespace weft {

class Context;

/// What a plan was found for.
struct PlanKey {
  uint64_t kernel = 0;   ///< its structure
  std::string target;    ///< its name
  uint64_t machine = 0;  ///< Target::key
  int64_t threads = 1;
  auto operator<=>(const PlanKey&) const = default;
};

struct FoundPlan {
  LoopPlan plan;
  int64_t width = 0;  ///< of the search; 0: it was ended early
  int64_t analytic_ns = 0, best_ns = 0;
  std::string kernel;  ///< its name, for people
};

/// A line of the file, without a newline:
/// `kernel=0123456789abcdef target=x86:0123456789abcdef threads=2 width=4 analytic_ns=41000
/// best_ns=38000 loops=... tiles=1x4,16x2 innermost=0 stream=0 borders=1 # reduce_512_512`.
std::string plan_line(const PlanKey& key, const FoundPlan& found);
std::optional<std::pair<PlanKey, FoundPlan>> parse_plan_line(std::string_view line);

/// Of a Context, under the run state's mutex. Lines that are none of these are left out, and said
/// at WEFT_DEBUG=1; plans are checked again where they are applied, so what a file says can cost
/// time and no more.
class PlanCache {
 public:
  explicit PlanCache(Context& context) : context_(context) {}

  /// Null where none is known. An Error where a file was asked for, nobody searches, and it is not
  /// there.
  const FoundPlan* find(const PlanKey& key);
  /// Also in the file, whose other lines stay what they are; other processes may write to it, too.
  void store(const PlanKey& key, FoundPlan found);
  /// Empty where there is none.
  std::string path() const;

 private:
  using Plans = std::map<PlanKey, FoundPlan>;
  void read();
  void add_lines(std::string_view text, Plans& plans) const;

  Context& context_;
  Plans plans_;
  bool read_ = false;
};

}  // namespace weft
