// NULL: takes any program, runs nothing, and checks what a real asynchronous device would need:
// that work on one queue waits for the work of the other that it depends on.
#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/driver.h"
#include "weft/device/wait_check.h"

namespace weft {

namespace {

constexpr int kQueues = 2;

class NullExecutable : public Executable {
 public:
  explicit NullExecutable(const ProgramSource& source)
      : Executable(source.entry.empty() && source.program ? source.program->name : source.entry,
                   source.program) {}
};

class NullDevice : public Device {
 public:
  NullDevice(Context& context, std::string name, DeviceId id, std::string_view target)
      : Device(context, std::move(name), id, make_target(target, context), kQueues),
        waits_(*this) {}

  bool computes() const override { return false; }

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& s : sources) loaded.push_back(std::make_unique<NullExecutable>(s));
    return loaded;
  }

 protected:
  void enqueue(const Submission& submission) override {
    waits_.check(submission);
    Device::enqueue(submission);
  }
  void execute(int queue, std::span<const Command> commands, std::span<const TimelinePoint>,
               uint64_t) override {
    for (const Command& c : commands) {
      check_arguments(c);
      if (!traces()) continue;
      CommandTime time = CommandTime::of(c);
      time.begin_ns = time.end_ns = now_ns();
      trace(queue, time);
    }
    const auto launched = std::ranges::count_if(
        commands, [](const Command& c) { return c.kind == Command::Kind::Launch; });
    context().tracer().add(Counter::Kernels, launched);
    context().tracer().add(Counter::Copies, static_cast<int64_t>(commands.size()) - launched);
  }

 private:
  static void check_arguments(const Command& c) {
    if (c.kind != Command::Kind::Launch || c.executable->params().empty()) return;
    WEFT_CHECK(c.executable->params().size() == c.buffers.size(),
               "{}: launched with {} buffers, takes {}", c.executable->name(), c.buffers.size(),
               c.executable->params().size());
  }

  WaitCheck waits_;
};

constexpr char kC[] = "c", kInterp[] = "interp", kX86[] = "x86", kPtx[] = "ptx";
template <const char* target>
std::unique_ptr<Device> make(Context& context, std::string name, DeviceId id) {
  check_features(target, name, context);
  return std::make_unique<NullDevice>(context, std::move(name), id, target);
}

std::string describe(Context&) { return "takes the same kernels, runs none; for timing"; }

}  // namespace

Driver null_driver() {
  static constexpr DeviceKind kKinds[] = {{2, "NULL:C", make<kC>, describe},
                                          {3, "NULL:INTERP", make<kInterp>, describe},
                                          {5, "NULL:X86", make<kX86>, describe},
                                          {12, "NULL:PTX", make<kPtx>, describe}};
  return kKinds;
}

}  // namespace weft
