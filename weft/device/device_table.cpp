#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>

#include "weft/base/context.h"
#include "weft/base/error.h"
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

std::string describe_c(Context& context) {
  const std::string cpu = CpuFeatures::of(context).text();
  return strformat("C by {}; {} threads; {}", find_c_compiler(context)->path,
                   make_target("c", context).threads, cpu.empty() ? "no extensions" : cpu);
}

// Ids are made of the row number: append, never reorder.
constexpr DeviceRow kDevices[] = {
    {"CPU:C", make_c_device, describe_c},
    {"CPU:INTERP", make_interp_device,
     [](Context&) -> std::string { return "interpreter; needs no compiler, for small work"; }},
    {"NULL:C",
     [](Context& c, std::string n, DeviceId id) {
       return make_null_device(c, std::move(n), id, "c");
     },
     [](Context&) -> std::string { return "compiles for C, runs nothing; for tests and timing"; }},
    {"NULL:INTERP",
     [](Context& c, std::string n, DeviceId id) {
       return make_null_device(c, std::move(n), id, "interp");
     },
     [](Context&) -> std::string { return "accepts linear programs, runs nothing"; }},
    {"CPU:X86", make_x86_device,
     [](Context&) -> std::string { return "machine code of our own; one lane a value so far"; }},
    {"NULL:X86",
     [](Context& c, std::string n, DeviceId id) {
       return make_null_device(c, std::move(n), id, "x86");
     },
     [](Context&) -> std::string { return "compiles machine code, runs nothing"; }},
};
constexpr size_t kDeviceCount = std::size(kDevices);

struct Alias {
  std::string_view name, target;
};
constexpr Alias kAliases[] = {{"CPU", "CPU:C"},
                              {"C", "CPU:C"},
                              {"X86", "CPU:X86"},
                              {"INTERP", "CPU:INTERP"},
                              {"NULL", "NULL:C"}};

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
  if (name != "CPU") return open(id);
  try {
    return open(id);
  } catch (const DeviceError& error) {
    if (!state_->context.options().cc.empty()) throw;  // asked for by name: say that it is missing
    // "CPU" is the best there is, and interp always is.
    log_at(state_->context, 1, "CPU is CPU:INTERP: {}", error.what());
    return open("CPU:INTERP");
  }
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
