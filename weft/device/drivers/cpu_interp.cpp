// CPU:INTERP: runs linear programs directly; needs no compiler.
#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/driver.h"
#include "weft/device/host_device.h"
#include "weft/device/interp.h"

namespace weft {

namespace {

// Measured against compiled code on one core.
constexpr double kSlowness = 15;

class InterpExecutable : public HostExecutable {
 public:
  explicit InterpExecutable(const ProgramSource& source)
      : HostExecutable(source.entry.empty() ? source.program->name : source.entry, source,
                       kSlowness),
        program_(*source.program) {}

  void run(const KernelArgs& args, uint32_t begin, uint32_t end) const override {
    program_.run(args, begin, end);
  }

 private:
  interp::Program program_;
};

class InterpDevice : public HostDevice {
 public:
  InterpDevice(Context& context, std::string name, DeviceId id)
      : HostDevice(context, std::move(name), id, make_target("interp", context)) {}

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::vector<std::unique_ptr<Executable>> loaded;
    for (const ProgramSource& source : sources) {
      WEFT_CHECK(source.program != nullptr, "{} comes without a program", source.entry);
      loaded.push_back(std::make_unique<InterpExecutable>(source));
    }
    return loaded;
  }
};

std::string describe(Context&) { return "interpreter: runs anywhere, for small work"; }

}  // namespace

std::unique_ptr<Device> make_interp_device(Context& context, std::string name, DeviceId id) {
  return std::make_unique<InterpDevice>(context, std::move(name), id);
}

Driver cpu_interp_driver() {
  static constexpr DeviceKind kKinds[] = {{1, "CPU:INTERP", make_interp_device, describe}};
  return kKinds;
}

}  // namespace weft
