// From records to a session's tables. Every number is checked where it is used as a position.
#include <unordered_map>

#include "weft/base/byte_writer.h"
#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/graph/binary.h"
#include "weft/run/recording.h"
#include "weft/viz/blocks.h"
#include "weft/viz/session_data.h"

namespace weft::viz {
namespace {

using recording::Kind;

constexpr size_t kMostMissing = 1000;  // rows about what is missing

/// One record of a process.
class RecordReader {
 public:
  RecordReader(Session::Data& data, uint32_t process, Bytes content)
      : data_(data), process_(process), in_(content, data.path) {}

  void read(Kind kind) {
    switch (kind) {
      case Kind::Process: return read_process();
      case Kind::String: return self().strings.add(in_.text(in_.remaining()));
      case Kind::Nodes: return read_nodes();
      case Kind::State: return read_state();
      case Kind::Rule: return read_rule();
      case Kind::Lines: return read_lines();
      case Kind::Pass: return read_pass();
      case Kind::Kernel: return read_kernel();
      case Kind::Decisions: return read_decisions();
      case Kind::Schedule: return read_schedule();
      case Kind::Memory: return read_memory();
      case Kind::Begin: return read_begin();
      case Kind::End: return read_end();
      case Kind::Track: return read_track();
      case Kind::Spans: return read_spans();
      case Kind::Search: return read_search();
      case Kind::Finish: self().finished = true; return tell_time(in_.u64());
      case Kind::Cut: return read_cut();
      case Kind::Names: return read_names();
    }
  }

 private:
  Process& self() { return data_.processes[process_]; }

  // ---- parts of records
  size_t count(size_t least_bytes) { return in_.count(in_.varint(), least_bytes); }
  std::string_view text() { return in_.text(in_.varint()); }
  std::string_view string() {
    const std::string_view* found = self().strings.find(in_.varint());
    return found ? *found : std::string_view();
  }
  int64_t signed_number() { return unzigzag(in_.varint()); }
  void tell_time(uint64_t ns) { self().last = std::max(self().last, ns); }
  /// A position that is written as 1 more, 0 for none; kNone where it is not there, too.
  static uint32_t find(const std::unordered_map<uint64_t, uint32_t>& of, uint64_t number) {
    const auto at = of.find(number);
    return at == of.end() ? kNone : at->second;
  }
  uint32_t optional(const std::unordered_map<uint64_t, uint32_t>& of) {
    const uint64_t number = in_.varint();
    return number == 0 ? kNone : find(of, number - 1);
  }
  /// Of a row that may be told of before it is described.
  KernelRow& kernel(uint64_t number) {
    const auto [at, fresh] =
        self().kernels.try_emplace(number, static_cast<uint32_t>(data_.kernels.size()));
    if (fresh) data_.kernels.push_back({process_, kNone});
    return data_.kernels[at->second];
  }

  // ---- records
  void read_process() {
    Process& p = self();
    p.described = true;
    p.pid = static_cast<int64_t>(in_.varint());
    p.parent = static_cast<int64_t>(in_.varint());
    p.begin = in_.u64();
    p.unix_ns = in_.u64();
    for (std::string_view* t : {&p.version, &p.build, &p.directory, &p.device, &p.machine})
      *t = text();
    for (auto* list : {&p.command, &p.options}) {
      list->resize(count(1));
      for (std::string_view& t : *list) t = text();
    }
    tell_time(p.begin);
  }

  void read_nodes() {
    Arena& arena = self().arenas[in_.varint()];
    if (!arena.nodes.skip_to(in_.varint()))
      fail("viz.damaged", "{}: nodes do not follow those before them", in_.what());
    const size_t nodes = count(5);
    StoredNode node;
    const std::byte* begin = data_.bytes.data();
    for (size_t i = 0; i < nodes; ++i) {
      const std::byte* at = in_.bytes(0).data();
      read_stored_node(in_, node);
      arena.nodes.add(static_cast<uint64_t>(at - begin));
    }
  }

  void read_state() {
    Arena& arena = self().arenas[in_.varint()];
    const uint64_t number = in_.varint();
    arena.states[number] = in_.bytes(in_.remaining());
  }

  void read_rule() {
    const uint64_t name = in_.varint();
    const std::string_view rule = text();
    self().rules[name] = {rule, text()};
  }

  void read_lines() {
    Arena& arena = self().arenas[in_.varint()];
    for (size_t i = count(2); i > 0; --i) {
      const uint64_t node = in_.varint();
      arena.lines[node] = string();
    }
  }

  void read_pass() {
    PassRow p{process_, kNone, kNone};
    p.name = string();
    p.subject = string();
    p.run = optional(self().runs);
    p.arena = in_.varint();
    if (p.arena != 0) {
      kernel(p.arena - 1);
      p.kernel = find(self().kernels, p.arena - 1);
    }
    in_.varint();  // how deep it lies in others
    p.start = in_.u64();
    p.ns = in_.varint();
    p.ended = in_.u8() != 0;
    p.before = in_.varint();
    p.after = in_.varint();
    p.firings = count(3);
    p.steps = in_.bytes(in_.remaining());
    tell_time(p.start);
    ++self().pass_count;
    data_.passes.push_back(p);
  }

  void read_kernel() {
    KernelRow& k = kernel(in_.varint());
    k.run = optional(self().runs);
    for (std::string_view* t : {&k.name, &k.entry, &k.device, &k.line, &k.target}) *t = string();
    k.flops = in_.f64();
    k.bytes = in_.f64();
    k.spilled = in_.varint();
    k.code_bytes = in_.varint();
    k.compile_ns = in_.varint();
    k.code = in_.bytes(in_.varint());
    k.applied.resize(count(1));
    for (std::string_view& t : k.applied) t = string();
    if (in_.remaining() > 0) k.lines.resize(count(1));
    for (std::string_view& t : k.lines) t = string();
    if (k.lines.empty() && !k.line.empty()) k.lines = {k.line};
    ++self().kernel_count;
  }

  void read_decisions() {
    const uint32_t run = optional(self().runs);
    std::vector<DecisionRow> rows(count(4));
    for (DecisionRow& d : rows) {
      d.staged = in_.u8() != 0;
      for (std::string_view* t : {&d.value, &d.reason, &d.line}) *t = string();
    }
    data_.decisions.emplace_back(run, std::move(rows));
  }

  void read_schedule() {
    const uint64_t number = in_.varint();
    ScheduleRow s{process_, optional(self().runs)};
    s.buffers.resize(count(5));
    for (BufferRow& b : s.buffers) {
      b.device = string();
      b.dtype = string();
      for (int64_t* v : {&b.bytes, &b.input, &b.output}) *v = signed_number();
    }
    s.steps.resize(count(6));
    for (StepRow& step : s.steps) read_step(step, s.buffers.size());
    self().schedules[number] = static_cast<uint32_t>(data_.schedules.size());
    data_.schedules.push_back(std::move(s));
  }

  void read_step(StepRow& step, size_t buffers) {
    step.copy = in_.u8() != 0;
    step.kernel = optional(self().kernels);
    step.name = string();
    step.entry = string();
    step.line = string();
    step.buffers.resize(count(1));
    for (uint64_t& b : step.buffers) {
      b = in_.varint();
      if (b / 2 >= buffers) fail("viz.damaged", "{}: a step uses buffer {}", in_.what(), b / 2);
    }
  }

  void read_memory() {
    const uint32_t schedule = find(self().schedules, in_.varint());
    std::vector<ArenaRow> arenas(count(4));
    for (ArenaRow& a : arenas) {
      a.device = string();
      a.bytes = in_.varint();
      a.least = in_.varint();
      a.buffers.resize(count(5));
      for (LifeRow& l : a.buffers)
        for (uint64_t* v : {&l.buffer, &l.offset, &l.bytes, &l.first, &l.last}) *v = in_.varint();
    }
    if (schedule != kNone) data_.schedules[schedule].arenas = std::move(arenas);
  }

  void read_names() {
    const uint32_t schedule = find(self().schedules, in_.varint());
    for (size_t i = count(2); i > 0; --i) {
      const uint64_t buffer = in_.varint();
      const std::string_view name = string();
      if (schedule == kNone) continue;
      std::vector<BufferRow>& buffers = data_.schedules[schedule].buffers;
      if (buffer < buffers.size()) buffers[static_cast<size_t>(buffer)].name = name;
    }
  }

  void read_begin() {
    const uint64_t number = in_.varint();
    Run run{process_};
    run.kind = std::min<uint8_t>(in_.u8(), 2);
    run.line = string();
    run.start = in_.u64();
    tell_time(run.start);
    self().finished = false;
    ++self().run_count;
    self().runs[number] = static_cast<uint32_t>(data_.runs.size());
    data_.runs.push_back(std::move(run));
  }

  void read_end() {
    const uint32_t at = find(self().runs, in_.varint());
    const uint64_t end = in_.u64(), compile_ns = in_.varint();
    const uint32_t schedule = optional(self().schedules);
    const bool failed = in_.u8() != 0;
    for (size_t i = count(2); i > 0; --i) {
      const std::string_view name = string();
      int64_t& sum = self().counters[name];
      sum =
          static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(signed_number()));
    }
    tell_time(end);
    if (at == kNone) return;
    Run& run = data_.runs[at];
    run.end = std::max(end, run.start);
    run.compile_ns = compile_ns;
    run.schedule = schedule;
    run.failed = failed;
    run.ended = true;
  }

  void read_track() {
    const uint64_t number = in_.varint();
    TrackRow track{process_, string(), in_.u8() != 0};
    self().tracks[number] = static_cast<uint32_t>(data_.tracks.size());
    data_.tracks.push_back(std::move(track));
  }

  void read_spans() {
    uint64_t start = 0;
    for (size_t i = count(6); i > 0; --i) {
      SpanRow s{string(), string(), 0, 0, 0, find(self().tracks, in_.varint()), kNone, kNone};
      s.start = start += static_cast<uint64_t>(signed_number());
      s.ns = std::min(in_.varint(), UINT64_MAX - s.start);
      s.amount = signed_number();
      if (s.track == kNone) continue;
      tell_time(s.end());
      ++self().span_count;
      data_.spans.push_back(s);
    }
  }

  void read_search() {
    SearchRow s{process_};
    for (std::string_view* t : {&s.kernel, &s.device, &s.line}) *t = string();
    s.best = text();
    s.analytic = text();
    for (double* v : {&s.best_seconds, &s.analytic_seconds, &s.best_cycles, &s.analytic_cycles})
      *v = in_.f64();
    for (uint64_t* v : {&s.rounds, &s.plans, &s.samples, &s.refused}) *v = in_.varint();
    s.seconds = in_.f64();
    data_.searches.push_back(s);
  }

  void read_cut() {
    if (data_.missing.size() < kMostMissing)
      data_.missing.push_back({process_, "size", std::string(text()), 0});
  }

  Session::Data& data_;
  uint32_t process_;
  ByteReader in_;
};

class DataReader {
 public:
  explicit DataReader(Session::Data& data) : data_(data) {}

  void run() {
    each_block(
        data_.bytes, data_.path, [&](const Block& b) { read(b); },
        [&](uint64_t at, const char* why, const std::string& text) {
          add_missing(kNone, why, text, at);
        });
  }

 private:
  void add_missing(uint32_t process, const char* why, std::string text, uint64_t at) {
    if (data_.missing.size() < kMostMissing)
      data_.missing.push_back({process, why, std::move(text), at});
  }

  void read(const Block& b) {
    const auto [at, fresh] =
        streams_.try_emplace(b.stream, static_cast<uint32_t>(data_.processes.size()));
    const uint32_t process = at->second;
    if (fresh) add_process(b.stream);
    Process& p = data_.processes[process];
    if (b.number != p.next_block)
      add_missing(process, "damaged",
                  strformat("{} blocks of this process are not there",
                            static_cast<int64_t>(b.number) - static_cast<int64_t>(p.next_block)),
                  b.at);
    p.next_block = b.number + 1;
    // Without a placeholder the stream counts from 0.
    if (!p.strings.skip_to(b.strings + 1))
      return add_missing(process, "damaged", "a block does not follow the one before it", b.at);
    try {
      read_records(process, b.records);
    } catch (const Error& error) {
      add_missing(process, "damaged", strformat("the rest of a block: {}", error.message()), b.at);
    }
  }

  void add_process(uint64_t stream) {
    Process p;
    p.stream = stream;
    p.strings.add({});
    data_.processes.push_back(std::move(p));
  }

  void read_records(uint32_t process, Bytes records) {
    ByteReader in(records, data_.path);
    while (!in.done()) {
      const uint8_t kind = in.u8();
      const Bytes content = in.bytes(in.varint());
      // A later version may have kinds of its own.
      if (kind < static_cast<uint8_t>(Kind::Process) || kind > static_cast<uint8_t>(Kind::Names))
        continue;
      RecordReader(data_, process, content).read(static_cast<Kind>(kind));
    }
  }

  Session::Data& data_;
  std::unordered_map<uint64_t, uint32_t> streams_;
};

}  // namespace

std::string_view Session::Data::rule_name(const PassRow& pass, const Firing& firing) const {
  const std::string_view* found = processes[pass.process].strings.find(firing.rule);
  return found ? *found : std::string_view();
}

std::vector<Firing> Session::Data::firings(const PassRow& pass) const {
  ByteReader in(pass.steps, path);
  std::vector<Firing> out(pass.firings);
  for (Firing& f : out)
    for (uint64_t* v : {&f.rule, &f.before, &f.after}) *v = in.varint();
  return out;
}

std::unique_ptr<Session::Data> read_data(std::unique_ptr<Session::Data> data) {
  DataReader(*data).run();
  link(*data);
  return data;
}

}  // namespace weft::viz
