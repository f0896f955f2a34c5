#include "weft/run/plan_cache.h"

#include <charconv>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/file.h"
#include "weft/base/log.h"

namespace weft {
namespace {

constexpr size_t kLongestLine = 4096;
constexpr size_t kLongestName = 256;
constexpr std::string_view kHeader =
    "# Schedules of kernels found by WEFT_BEAM; one a line, the last of equal ones counts.\n";

/// What stands before the next space of `line`, after `name`; false where that is not there.
bool take_field(std::string_view& line, std::string_view name, std::string_view& value) {
  if (!line.starts_with(name)) return false;
  line.remove_prefix(name.size());
  const size_t end = line.find(' ');
  if (end == std::string_view::npos) return false;
  value = line.substr(0, end);
  line.remove_prefix(end + 1);
  return true;
}

template <class T>
bool take_number(std::string_view text, T& out, int base = 10) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out, base);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

template <class T>
bool take(std::string_view& line, std::string_view name, T& out, int base = 10) {
  std::string_view value;
  return take_field(line, name, value) && take_number(value, out, base);
}

/// Nothing of a file that is not there.
std::string content_of(const std::string& path) {
  if (!file_exists(path)) return "";
  try {
    return std::string(MappedFile(path).text());
  } catch (const Error& error) {
    if (error.code() != "file.empty") throw;
    return "";
  }
}

}  // namespace

std::string plan_line(const PlanKey& key, const FoundPlan& found) {
  return strformat(
      "kernel={:016x} target={}:{:016x} threads={} width={} analytic_ns={} best_ns={} {} # {}",
      key.kernel, key.target, key.machine, key.threads, found.width, found.analytic_ns,
      found.best_ns, text(found.plan), found.kernel);
}

std::optional<std::pair<PlanKey, FoundPlan>> parse_plan_line(std::string_view line) {
  PlanKey key;
  FoundPlan found;
  std::string_view target, rest = line;
  if (line.size() > kLongestLine || !take(rest, "kernel=", key.kernel, 16) ||
      !take_field(rest, "target=", target) || !take(rest, "threads=", key.threads) ||
      !take(rest, "width=", found.width) || !take(rest, "analytic_ns=", found.analytic_ns) ||
      !take(rest, "best_ns=", found.best_ns))
    return std::nullopt;
  const size_t colon = target.find(':'), comment = rest.find(" # ");
  if (colon == std::string_view::npos || comment == std::string_view::npos) return std::nullopt;
  if (!take_number(target.substr(colon + 1), key.machine, 16)) return std::nullopt;
  key.target = target.substr(0, colon);
  found.kernel = rest.substr(comment + 3);
  const std::optional<LoopPlan> plan = parse_loop_plan(rest.substr(0, comment));
  if (!plan || found.kernel.size() > kLongestName) return std::nullopt;
  found.plan = *plan;
  // One way to write each: what is read here is what is written back.
  if (plan_line(key, found) != line) return std::nullopt;
  return std::pair{std::move(key), std::move(found)};
}

std::string PlanCache::path() const {
  const Options& options = context_.options();
  if (!options.beam_cache.empty()) return options.beam_cache;
  if (options.beam == 0 || !options.cache) return "";
  const std::string folder = options.cache_directory();
  return folder.empty() ? "" : folder + "/beam.txt";
}

void PlanCache::add_lines(std::string_view text, Plans& plans) const {
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    if (auto read = parse_plan_line(line))
      plans.insert_or_assign(std::move(read->first), std::move(read->second));
    else
      log_at(context_, 1, "{}: line {} is no schedule, and is left out", path(), number);
  }
}

void PlanCache::read() {
  if (read_) return;
  const std::string file = path();
  if (!file.empty() && context_.options().beam == 0 && !file_exists(file))
    fail("beam.cache",
         "WEFT_BEAM_CACHE names {}, which is not there; search with WEFT_BEAM=4 to make it, or "
         "unset WEFT_BEAM_CACHE",
         file);
  read_ = true;
  try {
    if (!file.empty()) add_lines(content_of(file), plans_);
  } catch (const Error& error) {
    log_at(context_, 1, "no schedules were read: {}", error.what());
  }
}

const FoundPlan* PlanCache::find(const PlanKey& key) {
  read();
  const auto at = plans_.find(key);
  return at == plans_.end() ? nullptr : &at->second;
}

void PlanCache::store(const PlanKey& key, FoundPlan found) {
  try {
    if (const std::string file = path(); !file.empty()) {
      if (context_.options().beam_cache.empty()) make_cache_dir(context_.options(), "");
      Plans all;  // as others have left it meanwhile
      add_lines(content_of(file), all);
      all.insert_or_assign(key, found);
      std::string text(kHeader);
      for (const auto& [each, plan] : all) (text += plan_line(each, plan)) += '\n';
      atomic_write_file(file, text);
    }
  } catch (const Error& error) {
    log_at(context_, 1, "a schedule was not kept: {}", error.what());
  }
  plans_.insert_or_assign(key, std::move(found));
}

}  // namespace weft
