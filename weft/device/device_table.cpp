#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/log.h"
#include "weft/base/names.h"
#include "weft/device/compiler.h"
#include "weft/device/host_device.h"

namespace weft {

namespace {

struct DeviceRow {
  std::string_view name;
  std::unique_ptr<Device> (*make)(Context&, std::string name, DeviceId);
  std::string (*describe)(Context&);  // of an available one
};

std::string threads_and_features(Context& context, std::string_view target) {
  const std::string cpu = CpuFeatures::of(context).text();
  const Target here = make_target(target, context);
  return strformat("{} threads; {}; {}", here.threads, here.machine.text(),
                   cpu.empty() ? "no extensions" : cpu);
}
std::string describe_c(Context& context) {
  return strformat("C by {}; {}", find_c_compiler(context)->path,
                   threads_and_features(context, "c"));
}
std::string describe_x86(Context& context) {
  return strformat("machine code of our own, nothing to install; {}",
                   threads_and_features(context, "x86"));
}
std::string describe_interp(Context&) { return "interpreter: runs anywhere, for small work"; }

/// Devices that take a target's kernels and run none: for tests and timing.
enum class NullTarget : uint8_t { C, Interp, X86 };
constexpr std::string_view kNullTargets[] = {"c", "interp", "x86"};
template <NullTarget target>
constexpr DeviceRow null_row(std::string_view name) {
  return {name,
          [](Context& context, std::string n, DeviceId id) {
            return make_null_device(context, std::move(n), id,
                                    kNullTargets[static_cast<size_t>(target)]);
          },
          [](Context&) -> std::string { return "takes the same kernels, runs none; for timing"; }};
}

std::unique_ptr<Device> make_sim_interp(Context& context, std::string name, DeviceId id) {
  auto host = make_interp_device(context, name, id);
  return make_sim_device(context, std::move(name), id, std::move(host));
}
std::unique_ptr<Device> make_sim_x86(Context& context, std::string name, DeviceId id) {
  auto host = make_x86_device(context, name, id);
  return make_sim_device(context, std::move(name), id, std::move(host));
}
std::string describe_sim(Context&) {
  return "simulated: memory and queues of its own, late on purpose; for tests";
}

// Ids are made of the row number: append, never reorder.
constexpr DeviceRow kDevices[] = {
    {"CPU:C", make_c_device, describe_c},
    {"CPU:INTERP", make_interp_device, describe_interp},
    null_row<NullTarget::C>("NULL:C"),
    null_row<NullTarget::Interp>("NULL:INTERP"),
    {"CPU:X86", make_x86_device, describe_x86},
    null_row<NullTarget::X86>("NULL:X86"),
    {"OPENCL", make_opencl_device, describe_opencl},
    {"WEBGPU", make_webgpu_device, describe_webgpu},
    {"SIM:INTERP", make_sim_interp, describe_sim},
    {"SIM:X86", make_sim_x86, describe_sim},
};
constexpr size_t kDeviceCount = std::size(kDevices);

struct Alias {
  std::string_view name, target;
};
constexpr Alias kAliases[] = {{"CPU", "CPU:X86"},       {"C", "CPU:C"},       {"X86", "CPU:X86"},
                              {"INTERP", "CPU:INTERP"}, {"NULL", "NULL:X86"}, {"SIM", "SIM:X86"}};
// "CPU" is the first of these that works here; the last one always does.
constexpr std::string_view kCpuChoices[] = {"CPU:X86", "CPU:C", "CPU:INTERP"};

// Id = 1 + row + kKinds * ordinal: the same in every run, whatever was opened first.
constexpr int kKinds = 64;
constexpr int kMaxOrdinal = 255;
static_assert(kDeviceCount <= kKinds);

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

size_t find_row(std::string_view name) {
  for (const Alias& a : kAliases)
    if (a.name == name) name = a.target;
  for (size_t i = 0; i < kDeviceCount; ++i)
    if (kDevices[i].name == name) return i;
  return kDeviceCount;
}

[[noreturn]] void unknown_device(std::string_view asked, std::string_view name) {
  std::string_view known[kDeviceCount + std::size(kAliases)];
  size_t count = 0;
  for (const Alias& a : kAliases) known[count++] = a.name;
  for (const DeviceRow& row : kDevices) known[count++] = row.name;
  std::string list;
  for (size_t i = 0; i < count; ++i) (list += i ? ", " : "") += known[i];
  fail("device", "there is no device \"{}\"{}; devices are {}", asked,
       did_you_mean(name, {known, count}), list);
}

}  // namespace

struct DeviceTable::State {
  explicit State(Context& c) : context(c) {}
  Context& context;
  std::mutex mutex;
  std::map<DeviceId, std::unique_ptr<Device>> open;
};

DeviceTable::DeviceTable(Context& context) : state_(std::make_unique<State>(context)) {}
DeviceTable::~DeviceTable() = default;

Device& DeviceTable::open(std::string_view asked) {
  std::string name = upper(asked);
  int ordinal = 0;
  const size_t colon = name.rfind(':');
  if (colon != std::string::npos && colon + 1 < name.size() && name.size() - colon <= 4 &&
      name.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
    for (char c : name.substr(colon + 1)) ordinal = ordinal * 10 + (c - '0');
    name.resize(colon);
  }
  const size_t row = find_row(name);
  if (row == kDeviceCount || ordinal > kMaxOrdinal) unknown_device(asked, name);
  const auto id = static_cast<DeviceId>(1 + row + static_cast<size_t>(kKinds * ordinal));
  return name == "CPU" ? open_cpu(ordinal) : open(id);
}

Device& DeviceTable::open_cpu(int ordinal) {
  for (std::string_view choice : kCpuChoices) {
    try {
      return open(strformat("{}:{}", choice, ordinal));
    } catch (const DeviceError& error) {
      if (choice == std::end(kCpuChoices)[-1]) throw;
      log_at(state_->context, 1, "CPU is not {}: {}", choice, error.what());
    }
  }
  internal_error("device", "no CPU is left to choose");
}

Device& DeviceTable::open(DeviceId id) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->open.find(id);
  if (found != state_->open.end()) return *found->second;
  const size_t row = id == 0 ? kDeviceCount : static_cast<size_t>(id - 1) % kKinds;
  WEFT_CHECK(row < kDeviceCount, "there is no device with id {}", id);
  const int ordinal = (id - 1) / kKinds;
  std::string name(kDevices[row].name);
  if (ordinal > 0) append_format(name, ":{}", ordinal);
  auto made = kDevices[row].make(state_->context, name, id);
  if (log_enabled(state_->context, 1)) {
    log_at(state_->context, 1, "opened {}: {}", name, kDevices[row].describe(state_->context));
  }
  return *state_->open.emplace(id, std::move(made)).first->second;
}

Device& DeviceTable::default_device() { return open(state_->context.options().dev); }

std::vector<DeviceInfo> DeviceTable::probe() {
  std::vector<DeviceInfo> infos;
  for (const DeviceRow& row : kDevices) {
    DeviceInfo info{std::string(row.name), false, {}};
    try {
      open(row.name);
      info.available = true;
      info.detail = row.describe(state_->context);
    } catch (const Error& error) {
      info.detail = error.message();
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace weft
