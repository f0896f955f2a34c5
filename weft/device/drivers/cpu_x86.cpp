// CPU:X86: machine code of ours, copied into executable memory. Needs no compiler.
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/code_memory.h"
#include "weft/device/driver.h"
#include "weft/device/host_device.h"
#include "weft/device/perf_map.h"

namespace weft {
namespace {

class X86Executable : public HostExecutable {
 public:
  X86Executable(const ProgramSource& source, std::shared_ptr<const CodeMemory::Code> code)
      : HostExecutable(source.entry, source, 1),
        code_(std::move(code)),
        entry_(reinterpret_cast<KernelFunction>(reinterpret_cast<uintptr_t>(code_->entry()))) {}

  void run(const KernelArgs& args, uint32_t begin, uint32_t end) const override {
    entry_(&args, begin, end);
  }
  int64_t code_bytes() const override { return static_cast<int64_t>(code_->bytes()); }

 private:
  std::shared_ptr<const CodeMemory::Code> code_;
  KernelFunction entry_;
};

class X86Device : public HostDevice {
 public:
  X86Device(Context& context, std::string name, DeviceId id)
      : HostDevice(context, std::move(name), id, make_target("x86", context)) {}

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& s : sources) {
      WEFT_CHECK(!s.text.empty(), "{} comes without machine code", s.entry);
      const auto code = memory_->add(std::as_bytes(std::span(s.text)));
      if (context().options().perf_map) add_to_perf_map(code->entry(), s.text.size(), s.entry);
      loaded.push_back(std::make_unique<X86Executable>(s, code));
    }
    return loaded;
  }

 private:
  std::shared_ptr<CodeMemory> memory_ = std::make_shared<CodeMemory>();
};

std::string describe(Context& context) {
  return strformat("machine code of our own, nothing to install; {}",
                   describe_host(context, "x86"));
}

}  // namespace

std::unique_ptr<Device> make_x86_device(Context& context, std::string name, DeviceId id) {
  check_features("x86", name, context);
  return std::make_unique<X86Device>(context, std::move(name), id);
}

Driver cpu_x86_driver() {
  static constexpr DeviceKind kKinds[] = {{4, "CPU:X86", make_x86_device, describe}};
  return kKinds;
}

}  // namespace weft
