#include "weft/schedule/schedule_file.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "weft/base/error.h"
#include "weft/base/reader.h"
#include "weft/graph/binary.h"
#include "weft/graph/verify.h"

namespace weft {
namespace {

// Layout: size of a graph file and the file, whose roots are variables, buffers' sizes and kernels'
// sinks; then the schedule's parts, as describe() lists them. Lists have their size before them.

template <class Archive>
void describe(Archive& a, Kernel& k) {
  a(k.sink, k.name);
}
template <class Archive>
void describe(Archive& a, BufferSpec& b) {
  a(b.dtype, b.numel, b.input, b.output, b.layout, b.of_round);
}
template <class Archive>
void describe(Archive& a, ScheduleStep::Fixed& f) {
  a(f.variable, f.value);
}
template <class Archive>
void describe(Archive& a, ScheduleStep& s) {
  a(s.kind, s.kernel, s.buffers, s.origins, s.fixed, s.round, s.loop, s.asks);
}
template <class Archive>
void describe(Archive& a, Schedule& s) {
  a(s.variables, s.kernels, s.buffers, s.steps, s.outputs, s.loops);
}

template <class T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

class Writer {
 public:
  std::string write(Schedule schedule) {
    describe(*this, schedule);
    const std::vector<std::byte> graph = write_graph(roots_);
    std::string parts;
    std::swap(parts, out_);
    one(static_cast<uint64_t>(graph.size()));
    out_.append(reinterpret_cast<const char*>(graph.data()), graph.size());
    return std::move(out_) + parts;
  }

  template <class... T>
  void operator()(T&... parts) {
    (one(parts), ...);
  }

 private:
  template <class T>
  void one(T& x)
    requires(!kIsNumber<T>)
  {
    describe(*this, x);
  }
  template <class T>
  void one(T x)
    requires(kIsNumber<T>)
  {
    out_.append(reinterpret_cast<const char*>(&x), sizeof(x));
  }
  void one(NodeRef& n) { roots_.push_back(n); }
  void one(std::string& x) {
    one(static_cast<uint32_t>(x.size()));
    out_ += x;
  }
  template <class T>
  void one(std::vector<T>& list) {
    one(static_cast<uint32_t>(list.size()));
    for (T& x : list) one(x);
  }

  std::string out_;
  std::vector<NodeRef> roots_;
};

class Reader {
 public:
  explicit Reader(std::string_view data)
      : in_(std::as_bytes(std::span(data)), "a schedule"), graph_(std::make_shared<Graph>()) {
    roots_ = read_graph(*graph_, in_.bytes(in_.u64()), in_.what());
  }

  Schedule read() {
    Schedule s;
    describe(*this, s);
    s.graph = graph_;
    for (Kernel& k : s.kernels) k.graph = graph_;
    return s;
  }
  bool done() const { return in_.done() && next_root_ == roots_.size(); }

  template <class... T>
  void operator()(T&... parts) {
    (one(parts), ...);
  }

 private:
  template <class T>
  void one(T& x) {
    if constexpr (std::is_same_v<T, bool>) {
      x = in_.u8() != 0;
    } else if constexpr (kIsNumber<T>) {
      std::memcpy(&x, in_.bytes(sizeof(T)).data(), sizeof(T));
    } else {
      describe(*this, x);
    }
  }
  void one(NodeRef& n) {
    if (next_root_ == roots_.size()) fail("graph_file", "{} has too few roots", in_.what());
    n = roots_[next_root_++];
  }
  void one(std::string& x) { x = in_.text(in_.u32()); }
  template <class T>
  void one(std::vector<T>& list) {
    // Elements grow as they are read: each takes a byte or a root at least, many of them more here.
    const uint32_t count = in_.u32();
    for (uint32_t i = 0; i < count; ++i) one(list.emplace_back());
  }

  ByteReader in_;
  std::shared_ptr<Graph> graph_;
  std::vector<NodeRef> roots_;
  size_t next_root_ = 0;
};

using Names = std::vector<std::string_view>;  // sorted

/// What steps of a kernel have to give it.
struct Needs {
  int64_t last_slot = -1;
  Names variables;
};

Names variables_in(const Toposort& nodes) {
  Names names;
  for (NodeRef n : nodes)
    if (n->op == Op::Variable) names.push_back(n->text());
  std::ranges::sort(names);
  return names;
}

Needs needs_of(const Kernel& k) {
  check_kernel(k.sink, "a schedule");
  const Toposort nodes(k.sink);
  Needs needs{-1, variables_in(nodes)};
  for (NodeRef n : nodes)
    if (n->op == Op::Param) needs.last_slot = std::max(needs.last_slot, param_slot(n));
  return needs;
}

bool is_size(NodeRef n) {
  return is_index(n->dtype) && n->rank() == 0 &&
         (n->op == Op::Const || n->op == Op::Variable || is_alu(n->op));
}

class Checker {
 public:
  Checker(const Schedule& s, const ScheduleFor& program) : s_(s), program_(program) {
    for (const Kernel& k : s.kernels) needs_.push_back(needs_of(k));
  }

  bool is_sound() {
    return s_.loops >= 0 && std::cmp_less_equal(s_.loops, s_.steps.size()) && has_variables() &&
           std::ranges::all_of(s_.buffers, [&](auto& b) { return check(b); }) &&
           std::ranges::all_of(s_.steps, [&](auto& step) { return check(step); }) && has_outputs();
  }

 private:
  static bool below(int64_t x, size_t count) { return x >= 0 && static_cast<uint64_t>(x) < count; }

  bool has_variables() {
    for (NodeRef v : s_.variables) {
      if (v->op != Op::Variable) return false;
      names_.push_back(v->text());
    }
    std::ranges::sort(names_);
    return true;
  }

  bool check(const BufferSpec& b) const {
    const Toposort nodes(b.numel);
    return dtype_from_id(static_cast<uint8_t>(b.dtype)) && std::ranges::all_of(nodes, is_size) &&
           std::ranges::includes(names_, variables_in(nodes)) &&
           (b.input == -1 || below(b.input, program_.inputs)) &&
           (b.output == -1 || below(b.output, program_.outputs));
  }

  bool check(const ScheduleStep& step) const {
    if (!std::ranges::all_of(step.buffers, [&](int b) { return below(b, s_.buffers.size()); }))
      return false;
    if (step.loop < -1 || step.loop >= s_.loops || !asks_soundly(step)) return false;
    if (step.kind == ScheduleStep::Kind::Copy) return step.buffers.size() == 2;
    if (step.kind != ScheduleStep::Kind::Run || !below(step.kernel, needs_.size())) return false;
    const Needs& needs = needs_[static_cast<size_t>(step.kernel)];
    Names given = names_;
    for (const ScheduleStep::Fixed& f : step.fixed) given.push_back(f.variable);
    std::ranges::sort(given);
    return needs.last_slot < static_cast<int64_t>(step.buffers.size()) &&
           std::ranges::includes(given, needs.variables);
  }

  bool asks_soundly(const ScheduleStep& step) const {
    if (step.asks == -1) return true;
    if (step.loop < 0 || !below(step.asks, step.buffers.size())) return false;
    const int buffer = step.buffers[static_cast<size_t>(step.asks)];
    return s_.buffers[static_cast<size_t>(buffer)].dtype == DType::I32;
  }

  bool has_outputs() const {
    return s_.outputs.size() == program_.outputs &&
           std::ranges::all_of(s_.outputs, [&](int b) { return below(b, s_.buffers.size()); });
  }

  const Schedule& s_;
  const ScheduleFor& program_;
  std::vector<Needs> needs_;  // of kernels
  Names names_;               // of the schedule's variables
};

}  // namespace

std::string write_schedule(const Schedule& schedule) { return Writer().write(schedule); }

std::optional<Schedule> read_schedule(std::string_view data, const ScheduleFor& program) {
  try {
    Reader in(data);
    Schedule schedule = in.read();
    if (in.done() && Checker(schedule, program).is_sound()) return schedule;
  } catch (const Error&) {  // it was written by something else
  }
  return std::nullopt;
}

}  // namespace weft
