#include "tests/support/compiler/ptx_machine.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>

#include "tests/support/compiler/ptx_instruction.h"
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/format.h"

namespace weft::testing {

namespace ptx {

constexpr uint64_t kRubbish = 0xA5A5'A5A5'A5A5'A5A5;
constexpr uint32_t kWarp = 32;
/// Shared memory does not begin at 0.
constexpr uint32_t kSharedBegin = 0x400;
/// Bytes of all parameters ("Kernel Function Parameters"), of static shared memory.
constexpr size_t kMostParams = 4352, kMostShared = 48 << 10;

struct Operand {
  enum class Kind : uint8_t { Literal, Register, Special, Pair };
  Kind kind = Kind::Literal;
  uint64_t value = 0;           // a literal, an offset in bytes
  size_t index = 0, other = 0;  // registers; a special one's axis
  std::string_view name = {};   // of a special register
};

struct Line {
  std::string text;
  Instruction what;
  std::optional<Operand> guard;
  bool guard_negated = false;
  std::vector<Operand> operands;
  std::string target;  // of a branch, or the parameter that is loaded
  size_t to = 0;
};

struct Entry {
  std::vector<Line> code;
  std::map<std::string, size_t> labels;
  std::vector<std::string> params;
  std::map<std::string, size_t> registers;
  std::map<std::string, uint32_t> shared;  // where arrays begin
  uint32_t shared_bytes = 0;
  std::optional<Size> block;
};

namespace {

[[noreturn]] void not_understood(std::string_view line) {
  internal_error("ptx", "not understood: {}", line);
}

std::string_view trimmed(std::string_view s) {
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && (s.back() == ' ' || s.back() == ',')) s.remove_suffix(1);
  return s;
}

std::vector<std::string_view> split(std::string_view s, char by) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= s.size(); ++i) {
    if (i < s.size() && s[i] == '{') ++depth;
    if (i < s.size() && s[i] == '}') --depth;
    if (i < s.size() && (s[i] != by || depth > 0)) continue;
    if (const std::string_view part = trimmed(s.substr(begin, i - begin)); !part.empty())
      parts.push_back(part);
    begin = i + 1;
  }
  return parts;
}

/// "Constants".
uint64_t literal(std::string_view s) {
  const std::string_view all = s;
  const bool negative = s.starts_with('-');
  if (negative) s.remove_prefix(1);
  if (s.ends_with('U')) s.remove_suffix(1);
  int base = 10;
  if (s.starts_with("0x") || s.starts_with("0f") || s.starts_with("0d")) {
    base = 16;
    s.remove_prefix(2);
  }
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value, base);
  if (error != std::errc() || end != s.data() + s.size()) not_understood(all);
  return negative ? 0 - value : value;
}

uint32_t number(std::string_view s) { return static_cast<uint32_t>(literal(trimmed(s))); }

/// What is between two characters.
std::string_view between(std::string_view s, char open, char close) {
  const size_t begin = s.find(open) + 1;
  return s.substr(begin, s.find(close, begin) - begin);
}

// ---- text to Entry

class Reader {
 public:
  explicit Reader(Entry& entry) : entry_(entry) {}

  void read(std::string_view line) {
    if (line.starts_with(".param"))
      entry_.params.emplace_back(split(line.substr(0, line.find(')')), ' ')[2]);
    else if (line.starts_with(".reqntid"))
      read_block(line.substr(8));
    else if (line.starts_with(".reg"))
      declare(line);
    else if (line.starts_with(".shared"))
      share(line);
    else if (line.ends_with(':'))
      entry_.labels[std::string(line.substr(0, line.size() - 1))] = entry_.code.size();
    else if (line.ends_with(';'))
      read_instruction(line.substr(0, line.size() - 1));
    else
      not_understood(line);
  }

  void finish() {
    WEFT_CHECK(entry_.params.size() * 8 <= kMostParams, "{} parameters", entry_.params.size());
    WEFT_CHECK(entry_.shared_bytes <= kMostShared, "{} bytes shared", entry_.shared_bytes);
    for (Line& line : entry_.code)
      if (line.what.op == "bra") {
        WEFT_CHECK(entry_.labels.contains(line.target), "no label {}", line.target);
        line.to = entry_.labels[line.target];
      }
  }

 private:
  void read_block(std::string_view text) {
    const auto sizes = split(text, ',');
    entry_.block = Size{number(sizes[0]), number(sizes[1]), number(sizes[2])};
  }
  void declare(std::string_view line) {
    const std::string_view prefix = split(line, ' ')[2].substr(0, 2);
    for (uint32_t i = 0, n = number(between(line, '<', '>')); i < n; ++i)
      entry_.registers.emplace(strformat("{}{}", prefix, i), entry_.registers.size());
  }
  void share(std::string_view line) {
    const auto words = split(line, ' ');
    const uint32_t align = number(words[2]);
    const std::string_view array = words[4];
    entry_.shared_bytes = (entry_.shared_bytes + align - 1) / align * align;
    entry_.shared[std::string(array.substr(0, array.find('[')))] =
        kSharedBegin + entry_.shared_bytes;
    entry_.shared_bytes += number(between(array, '[', ']'));
  }

  void read_instruction(std::string_view text) {
    Line line;
    line.text = text;
    std::string_view rest = line.text;
    if (rest.starts_with('@')) {
      line.guard_negated = rest[1] == '!';
      const size_t space = rest.find(' ');
      line.guard =
          operand(rest.substr(line.guard_negated ? 2 : 1, space - (line.guard_negated ? 2 : 1)));
      rest = trimmed(rest.substr(space));
    }
    const size_t space = std::min(rest.find(' '), rest.size());
    line.what = Instruction::parse(rest.substr(0, space));
    const auto operands = split(rest.substr(space), ',');
    if (line.what.op == "bra")
      line.target = operands.at(0);
    else if (line.what.has("param"))
      read_param(line, operands);
    else
      for (const std::string_view o : operands) line.operands.push_back(operand(o));
    entry_.code.push_back(std::move(line));
  }
  void read_param(Line& line, const std::vector<std::string_view>& operands) {
    line.operands.push_back(operand(operands[0]));
    const auto found = std::ranges::find(entry_.params, between(operands[1], '[', ']'));
    WEFT_CHECK(found != entry_.params.end(), "no parameter {}", operands[1]);
    line.to = static_cast<size_t>(found - entry_.params.begin());
  }

  size_t register_of(std::string_view s) {
    const auto found = entry_.registers.find(std::string(s));
    WEFT_CHECK(found != entry_.registers.end(), "no register {}", s);
    return found->second;
  }
  Operand operand(std::string_view s) {
    if (s.starts_with('[')) {
      const std::string_view inside = between(s, '[', ']');
      const size_t plus = std::min(inside.find('+'), inside.size());
      Operand o = operand(inside.substr(0, plus));
      if (plus < inside.size()) o.value = literal(inside.substr(plus + 1));
      return o;
    }
    if (s.starts_with('{')) {
      const auto halves = split(between(s, '{', '}'), ',');
      WEFT_CHECK(halves.size() == 2, "a vector of two: {}", s);
      // {0, x} is what a bf16 becomes.
      if (halves[0] == "0") return {Operand::Kind::Pair, 0, SIZE_MAX, register_of(halves[1])};
      return {Operand::Kind::Pair, 0, register_of(halves[0]), register_of(halves[1])};
    }
    for (const std::string_view name : {"%tid.", "%ntid.", "%ctaid."})
      if (s.starts_with(name))
        return {Operand::Kind::Special, 0, static_cast<size_t>(s.back() - 'x'), 0, name};
    if (s.starts_with('%')) return {Operand::Kind::Register, 0, register_of(s)};
    if (const auto array = entry_.shared.find(std::string(s)); array != entry_.shared.end())
      return {Operand::Kind::Literal, array->second};
    return {Operand::Kind::Literal, literal(s)};
  }

  Entry& entry_;
};

// ---- a block of threads

enum class State : uint8_t { Runs, AtBarrier, AtShuffle, Done };

struct Thread {
  std::vector<uint64_t> registers;
  size_t at = 0;
  State state = State::Runs;
  Size id;
};

class Block {
 public:
  Block(const Entry& entry, std::span<const uint64_t> params, Size size, Size id)
      : entry_(entry), params_(params), size_(size), id_(id) {
    shared_.assign(entry.shared_bytes, std::byte{0xA5});
    for (uint32_t z = 0; z < size[2]; ++z)
      for (uint32_t y = 0; y < size[1]; ++y)
        for (uint32_t x = 0; x < size[0]; ++x)
          threads_.push_back({std::vector<uint64_t>(entry.registers.size(), kRubbish), 0,
                              State::Runs, Size{x, y, z}});
  }

  void run() {
    while (true) {
      for (Thread& t : threads_)
        while (t.state == State::Runs) step(t);
      if (std::ranges::all_of(threads_, [](const Thread& t) { return t.state == State::Done; }))
        return;
      if (all(threads_, State::AtBarrier))
        release(threads_);
      else
        shuffle();
    }
  }

 private:
  /// Wait for each other.
  static bool all(std::span<const Thread> threads, State state) {
    return std::ranges::all_of(
        threads, [&](const Thread& t) { return t.state == state && t.at == threads[0].at; });
  }
  static void release(std::span<Thread> threads) {
    for (Thread& t : threads) {
      t.state = State::Runs;
      ++t.at;
    }
  }

  /// Warps that have come to a shuffle with all their threads.
  void shuffle() {
    bool any = false;
    for (size_t first = 0; first < threads_.size(); first += kWarp) {
      const std::span<Thread> warp =
          std::span(threads_).subspan(first, std::min<size_t>(kWarp, threads_.size() - first));
      if (!all(warp, State::AtShuffle)) continue;
      any = true;
      const Line& line = entry_.code[warp[0].at];
      std::vector<uint64_t> given;
      for (Thread& t : warp) given.push_back(value(t, line.operands[1]));
      WEFT_CHECK(line.operands[3].value == kWarp - 1 && line.operands[4].value == 0xFFFFFFFF,
                 "a shuffle of less than a warp: {}", line.text);
      for (size_t lane = 0; lane < warp.size(); ++lane) {
        const size_t from = lane ^ line.operands[2].value;
        WEFT_CHECK(from < warp.size(), "a shuffle with a lane that is not there");
        set(warp[lane], line.operands[0], given[from]);
      }
      release(warp);
    }
    WEFT_CHECK(any, "threads wait for each other in different places");
  }

  uint64_t value(Thread& t, const Operand& o) const {
    switch (o.kind) {
      case Operand::Kind::Literal: return o.value;
      case Operand::Kind::Register: return t.registers[o.index];
      case Operand::Kind::Special:
        return (o.name == "%tid." ? t.id : o.name == "%ntid." ? size_ : id_)[o.index];
      case Operand::Kind::Pair: break;
    }
    internal_error("ptx", "a vector where there is none");
  }
  static void set(Thread& t, const Operand& o, uint64_t value) {
    WEFT_CHECK(o.kind == Operand::Kind::Register, "a result that is no register");
    t.registers[o.index] = value;
  }

  void step(Thread& t) {
    const Line& line = entry_.code[t.at];
    const std::string_view op = line.what.op;
    if (line.guard && (value(t, *line.guard) != 0) == line.guard_negated) {
      ++t.at;
      return;
    }
    if (op == "ret")
      t.state = State::Done;
    else if (op == "bar")
      t.state = State::AtBarrier;
    else if (op == "shfl")
      t.state = State::AtShuffle;
    else if (op == "bra")
      t.at = line.to;
    else {
      compute_line(t, line);
      ++t.at;
    }
  }

  void compute_line(Thread& t, const Line& line) {
    const std::vector<Operand>& o = line.operands;
    if (line.what.op == "st") return store(t, line);
    if (line.what.op == "ld") return set(t, o[0], loaded(t, line));
    if (line.what.op == "mov" && o[0].kind == Operand::Kind::Pair) {
      const uint64_t all = value(t, o[1]);
      t.registers[o[0].index] = all & 0xFFFFFFFF;
      t.registers[o[0].other] = all >> 32;
      return;
    }
    if (line.what.op == "mov" && o[1].kind == Operand::Kind::Pair) {
      const int half = bytes_of(line.what.types[0]) * 4;
      const uint64_t low = o[1].index == SIZE_MAX ? 0 : t.registers[o[1].index];
      return set(t, o[0], (low & ((uint64_t{1} << half) - 1)) | t.registers[o[1].other] << half);
    }
    uint64_t values[3] = {};
    for (size_t i = 1; i < o.size(); ++i) values[i - 1] = value(t, o[i]);
    set(t, o[0], compute(line.what, values));
  }

  std::byte* memory(Thread& t, const Line& line, const Operand& o) {
    const uint64_t at = value(t, Operand{o.kind, 0, o.index, 0, {}}) + o.value;
    if (!line.what.has("shared")) return reinterpret_cast<std::byte*>(at);
    const auto offset = static_cast<uint32_t>(at) - kSharedBegin;
    WEFT_CHECK(offset + static_cast<uint32_t>(bytes_of(line.what.types[0])) <= shared_.size(),
               "outside of shared memory: {}", line.text);
    return &shared_[offset];
  }
  uint64_t loaded(Thread& t, const Line& line) {
    if (line.what.has("param")) return params_[line.to];
    uint64_t bits = 0;
    const Type type = line.what.types[0];
    std::memcpy(&bits, memory(t, line, line.operands[1]), static_cast<size_t>(bytes_of(type)));
    return extended(type, bits);
  }
  void store(Thread& t, const Line& line) {
    const uint64_t bits = value(t, line.operands[1]);
    std::memcpy(memory(t, line, line.operands[0]), &bits,
                static_cast<size_t>(bytes_of(line.what.types[0])));
  }

  const Entry& entry_;
  std::span<const uint64_t> params_;
  Size size_, id_;
  std::vector<std::byte> shared_;
  std::vector<Thread> threads_;
};

}  // namespace

}  // namespace ptx

PtxMachine::PtxMachine(std::string_view module) {
  std::optional<ptx::Reader> reader;
  while (!module.empty()) {
    const size_t end = std::min(module.find('\n'), module.size());
    const std::string_view line = ptx::trimmed(module.substr(0, end));
    module.remove_prefix(std::min(end + 1, module.size()));
    if (line == "}") {
      reader->finish();
      reader.reset();
    } else if (line.starts_with(".visible .entry ")) {
      const std::string name(line.substr(16, line.find('(') - 16));
      reader.emplace(*(entries_[name] = std::make_unique<ptx::Entry>()));
    } else if (reader && !line.empty() && line != "{") {
      reader->read(line);
    }
  }
}

PtxMachine::~PtxMachine() = default;

void PtxMachine::launch(std::string_view name, std::span<const uint64_t> params, ptx::Size grid,
                        ptx::Size block) const {
  const auto found = entries_.find(name);
  WEFT_CHECK(found != entries_.end(), "no entry {}", name);
  const ptx::Entry& entry = *found->second;
  WEFT_CHECK(params.size() == entry.params.size(), "{}: {} parameters, takes {}", name,
             params.size(), entry.params.size());
  WEFT_CHECK(!entry.block || *entry.block == block, "{}: a block of another size", name);
  for (uint32_t z = 0; z < grid[2]; ++z)
    for (uint32_t y = 0; y < grid[1]; ++y)
      for (uint32_t x = 0; x < grid[0]; ++x) ptx::Block(entry, params, block, {x, y, z}).run();
}

// ---- a device

namespace {

constexpr uint32_t kBlock = 64;
constexpr DeviceId kNoId = 0x7F00;  // of no kind in the table

std::byte* place(const BufferSlice& slice) {
  return static_cast<std::byte*>(slice.buffer->data()) + slice.offset;
}

class PtxExecutable : public Executable {
 public:
  PtxExecutable(const ProgramSource& source)
      : Executable(source.entry, source.program),
        machine_(source.text),
        program_(*source.program) {}

  void run(const Command& c) const {
    std::vector<uint64_t> params;
    for (size_t i = 0; i < program_.params.size(); ++i)
      params.push_back(reinterpret_cast<uint64_t>(place(c.buffers[i])));
    for (const int64_t v : c.vars) params.push_back(static_cast<uint64_t>(v));
    if (program_.launch.grouped) return run_groups(c, params);
    // In two parts, as grids that are too large are.
    const auto items = static_cast<uint64_t>(c.items);
    run_items(params, 0, items / 3);
    run_items(params, items / 3, items);
  }

 private:
  void run_groups(const Command& c, std::span<const uint64_t> params) const {
    ptx::Size grid, block;
    for (size_t axis = 0; axis < 3; ++axis) {
      grid[axis] = static_cast<uint32_t>(c.grid[axis]);
      block[axis] = static_cast<uint32_t>(program_.launch.group[axis]);
    }
    machine_.launch(name(), params, grid, block);
  }
  void run_items(std::vector<uint64_t> params, uint64_t begin, uint64_t end) const {
    params.insert(params.end(), {begin, end});
    const auto blocks = static_cast<uint32_t>((end - begin + kBlock - 1) / kBlock);
    machine_.launch(name(), params, {blocks, 1, 1}, {kBlock, 1, 1});
  }

  PtxMachine machine_;
  LinearProgram program_;
};

class PtxDevice : public Device {
 public:
  explicit PtxDevice(Context& context)
      : Device(context, "PTX", kNoId, make_target("ptx", context)) {}

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& s : sources) loaded.push_back(std::make_unique<PtxExecutable>(s));
    return loaded;
  }

 protected:
  void execute(int, std::span<const Command> commands, std::span<const TimelinePoint>,
               uint64_t) override {
    for (const Command& c : commands)
      if (c.kind == Command::Kind::Launch)
        static_cast<const PtxExecutable&>(*c.executable).run(c);
      else
        std::memmove(place(c.to), place(c.from), static_cast<size_t>(c.bytes));
  }
};

}  // namespace

OpenedDevice::OpenedDevice(Context& context, std::string_view name) {
  if (name == "PTX") own_ = std::make_unique<PtxDevice>(context);
  device_ = own_ ? own_.get() : &context.get<DeviceTable>().open(name);
}

}  // namespace weft::testing
