// What a recording holds, as this room's views see it.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "weft/base/file.h"
#include "weft/viz/numbered.h"
#include "weft/viz/session.h"

namespace weft::viz {

constexpr uint32_t kNone = UINT32_MAX;  ///< no such position

using Bytes = std::span<const std::byte>;

/// A text of a rule, as the recorded program had it.
struct RuleText {
  std::string_view text, source;
};

/// Nodes and states with numbers of their own: a kernel's, or those of all the rest.
struct Arena {
  Numbered<uint64_t> nodes;                              ///< where each lies in the file
  std::unordered_map<uint64_t, Bytes> states;            ///< by number
  std::unordered_map<uint64_t, std::string_view> lines;  ///< of nodes
};

/// A process. What it numbers are numbers of its own.
struct Process {
  uint64_t stream = 0;
  int64_t pid = 0, parent = 0;
  uint64_t begin = 0, unix_ns = 0;  ///< when it was described
  uint64_t last = 0;                ///< the latest time it tells of
  std::string_view version, build, directory, device, machine;
  std::vector<std::string_view> command, options;
  bool described = false, finished = false;
  uint32_t next_block = 0;
  Numbered<std::string_view> strings;  ///< from 1: the first is a placeholder
  std::unordered_map<uint64_t, Arena> arenas;
  std::unordered_map<uint64_t, RuleText> rules;                             ///< by string
  std::unordered_map<uint64_t, uint32_t> runs, kernels, schedules, tracks;  ///< by their number
  std::map<std::string_view, int64_t> counters;
  size_t pass_count = 0, kernel_count = 0, run_count = 0, span_count = 0;
};

struct Run {
  uint32_t process = kNone;
  uint8_t kind = 0;
  std::string_view line = {};
  uint64_t start = 0, end = 0;
  uint64_t compile_ns = 0;
  uint32_t schedule = kNone;
  bool ended = false, failed = false;
  std::vector<uint32_t> passes = {}, kernels = {};  ///< that were compiled
};

struct Firing {
  uint64_t rule = {}, before = {}, after = {};  ///< a string, nodes
};

struct PassRow {
  uint32_t process = kNone, run = kNone, kernel = kNone;
  std::string_view name = {}, subject = {};
  uint64_t start = 0, ns = 0, before = 0, after = 0;
  uint64_t arena = 0;  ///< of the states and of the firings' nodes
  bool ended = false;
  size_t firings = 0;
  Bytes steps = {};  ///< the firings, encoded

  bool changed() const { return before != after; }
};

struct DecisionRow {
  bool staged = {};
  std::string_view value = {}, reason = {}, line = {};
};

struct KernelRow {
  uint32_t process = kNone, run = kNone;
  std::string_view name = {}, entry = {}, device = {}, line = {}, target = {};
  double flops = 0, bytes = 0;
  uint64_t spilled = 0, code_bytes = 0, compile_ns = 0;
  Bytes code = {};
  std::vector<std::string_view> applied = {};
  std::vector<std::string_view> lines = {};  ///< all; `line` is the first and the last
  std::vector<uint32_t> passes = {};
  // of its launches
  uint64_t runs = 0, ns = 0;
  std::vector<uint64_t> lengths = {};

  uint64_t median_ns() const { return lengths.empty() ? 0 : lengths[lengths.size() / 2]; }
};

struct BufferRow {
  std::string_view device = {}, dtype = {};
  int64_t bytes = {}, input = {}, output = {};
  std::string_view name = {};  ///< of a parameter
};
struct StepRow {
  bool copy = {};
  uint32_t kernel = kNone;
  std::string_view name = {}, entry = {}, line = {};
  std::vector<uint64_t> buffers = {};  ///< buffer * 2 + written
};
struct LifeRow {
  uint64_t buffer = {}, offset = {}, bytes = {}, first = {}, last = {};
};
struct ArenaRow {
  std::string_view device = {};
  uint64_t bytes = {}, least = {};
  std::vector<LifeRow> buffers = {};
};
struct ScheduleRow {
  uint32_t process = kNone, run = kNone;
  std::vector<BufferRow> buffers = {};
  std::vector<StepRow> steps = {};
  std::vector<ArenaRow> arenas = {};  ///< of the newest plan
};

struct TrackRow {
  uint32_t process = kNone;
  std::string_view name = {};
  bool queue = {};
  std::vector<uint32_t> spans = {};  ///< by start
  std::vector<uint16_t> depths = {};
  uint32_t depth = 0;  ///< levels of spans within spans
};
struct SpanRow {
  std::string_view name = {}, detail = {};
  uint64_t start = {}, ns = {};
  int64_t amount = {};
  uint32_t track = {}, run = {}, kernel = {};
  uint64_t end() const { return start + ns; }
};

struct SearchRow {
  uint32_t process = kNone;
  std::string_view kernel = {}, device = {}, line = {}, best = {}, analytic = {};
  double best_seconds = {}, analytic_seconds = {}, best_cycles = {}, analytic_cycles = {},
         seconds = {};
  uint64_t rounds = {}, plans = {}, samples = {}, refused = {};
};

struct MissingRow {
  uint32_t process = kNone;
  std::string why = {}, text = {};
  uint64_t at = {};  ///< byte of the file
};

struct Session::Data {
  std::string path;
  std::unique_ptr<MappedFile> file;
  std::vector<std::byte> copy;
  Bytes bytes;
  uint64_t version = 0;  ///< MappedFile::version() when it was read

  std::vector<Process> processes;
  std::vector<Run> runs;
  std::vector<PassRow> passes;
  std::vector<KernelRow> kernels;
  std::vector<ScheduleRow> schedules;
  std::vector<TrackRow> tracks;
  std::vector<SpanRow> spans;
  std::vector<SearchRow> searches;
  std::vector<MissingRow> missing;
  std::vector<std::pair<uint32_t, std::vector<DecisionRow>>> decisions;  ///< by run
  uint64_t begin = 0, end = 0;                                           ///< of all that is told

  /// How large states are, by process, arena and number, as far as that was asked: nodes of a large
  /// one take a while to count.
  mutable std::map<std::tuple<uint32_t, uint64_t, uint64_t>, size_t> sizes;
  mutable std::mutex sizes_mutex;

  int64_t time(uint64_t ns) const { return static_cast<int64_t>(ns - begin); }
  std::string_view rule_name(const PassRow& pass, const Firing& firing) const;
  /// An Error (viz.damaged) where they are not what they should be.
  std::vector<Firing> firings(const PassRow& pass) const;
};

/// Reads blocks and records, then links them: link.cpp.
std::unique_ptr<Session::Data> read_data(std::unique_ptr<Session::Data> data);
/// Passes to runs and kernels, spans to tracks, runs and kernels, by time.
void link(Session::Data& data);

}  // namespace weft::viz
