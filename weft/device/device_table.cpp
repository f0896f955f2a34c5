#include <algorithm>
#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/log.h"
#include "weft/base/names.h"
#include "weft/device/driver.h"

namespace weft {

// drivers.def is made of the folder drivers/ (cmake/rooms.cmake): a driver is in no other list.
#define WEFT_DRIVER(name) Driver name##_driver();
#include "weft/device/drivers.def"
#undef WEFT_DRIVER

namespace {

constexpr DriverFunction kDrivers[] = {
#define WEFT_DRIVER(name) name##_driver,
#include "weft/device/drivers.def"
#undef WEFT_DRIVER
};

struct Alias {
  std::string_view name, target;
};
constexpr Alias kAliases[] = {{"CPU", "CPU:X86"},       {"C", "CPU:C"},         {"X86", "CPU:X86"},
                              {"INTERP", "CPU:INTERP"}, {"NULL", "NULL:X86"},   {"SIM", "SIM:X86"},
                              {"CUDA", "CUDA:PTX"},     {"NVRTC", "CUDA:NVRTC"}};
// "CPU" is the first of these that works here; the last one always does.
constexpr std::string_view kCpuChoices[] = {"CPU:X86", "CPU:C", "CPU:INTERP"};

// Id = 1 + number + kMostKinds * ordinal: the same in every run, whatever was opened first.
constexpr int kMostKinds = 64;
constexpr int kMaxOrdinal = 255;

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

std::string_view without_alias(std::string_view name) {
  for (const Alias& a : kAliases)
    if (a.name == name) return a.target;
  return name;
}

/// "CPU:X86:1": which one of those of a name.
struct Asked {
  std::string name;
  int ordinal = 0;
};

Asked parsed(std::string_view text) {
  Asked asked{upper(text)};
  const size_t colon = asked.name.rfind(':');
  if (colon != std::string::npos && colon + 1 < asked.name.size() &&
      asked.name.size() - colon <= 4 &&
      asked.name.find_first_not_of("0123456789", colon + 1) == std::string::npos) {
    for (char c : asked.name.substr(colon + 1)) asked.ordinal = asked.ordinal * 10 + (c - '0');
    asked.name.resize(colon);
  }
  return asked;
}

[[noreturn]] void unknown_device(std::string_view asked, std::string_view name,
                                 std::span<const std::string_view> known) {
  std::string list;
  for (std::string_view k : known) (list += list.empty() ? "" : ", ") += k;
  fail("device", "there is no device \"{}\"{}; devices are {}", asked, did_you_mean(name, known),
       list);
}

}  // namespace

std::vector<DeviceKind> kinds_of(std::span<const DriverFunction> drivers) {
  std::vector<DeviceKind> kinds;
  for (const DriverFunction driver : drivers) {
    for (const DeviceKind& kind : driver()) {
      WEFT_CHECK(kind.number >= 0 && kind.number < kMostKinds,
                 "device {} has number {}: give it one from 0 to {}", kind.name, kind.number,
                 kMostKinds - 1);
      for (const DeviceKind& other : kinds)
        WEFT_CHECK(kind.number != other.number && kind.name != other.name,
                   "device {} of number {} and device {} of number {}: give one of them another "
                   "name or number",
                   other.name, other.number, kind.name, kind.number);
      kinds.push_back(kind);
    }
  }
  std::ranges::sort(kinds, {}, &DeviceKind::number);
  return kinds;
}

struct DeviceTable::State {
  explicit State(Context& c) : context(c) {}
  /// Null where there is none.
  const DeviceKind* kind_of(const Asked& asked) const {
    const auto kind = std::ranges::find(kinds, without_alias(asked.name), &DeviceKind::name);
    return kind == kinds.end() || asked.ordinal > kMaxOrdinal ? nullptr : &*kind;
  }

  Device* find(std::string_view name) {
    const Named* last = last_found.load(std::memory_order_acquire);
    if (last && last->first == name) return last->second;
    std::lock_guard lock(mutex);
    const auto found = std::ranges::find(by_name, name, &Named::first);
    if (found == by_name.end()) return nullptr;
    last_found.store(&*found, std::memory_order_release);
    return found->second;
  }

  Context& context;
  const std::vector<DeviceKind> kinds = kinds_of(kDrivers);
  std::mutex mutex;
  std::map<DeviceId, std::unique_ptr<Device>> open;
  using Named = std::pair<std::string, Device*>;
  std::deque<Named> by_name;  // as they were asked for; few, which stay where they are
  std::atomic<const Named*> last_found{nullptr};  // the default device, mostly
};

DeviceTable::DeviceTable(Context& context) : state_(std::make_unique<State>(context)) {}
DeviceTable::~DeviceTable() = default;

std::vector<std::string_view> DeviceTable::names() const {
  std::vector<std::string_view> names;
  for (const Alias& a : kAliases) names.push_back(a.name);
  for (const DeviceKind& kind : state_->kinds) names.push_back(kind.name);
  return names;
}

bool DeviceTable::has(std::string_view name) const { return state_->kind_of(parsed(name)); }

Device& DeviceTable::open(std::string_view text) {
  if (Device* known = state_->find(text)) return *known;
  Device& device = find_or_make(text);
  std::lock_guard lock(state_->mutex);
  state_->by_name.emplace_back(text, &device);
  return device;
}

Device& DeviceTable::find_or_make(std::string_view text) {
  const Asked asked = parsed(text);
  const DeviceKind* kind = state_->kind_of(asked);
  if (!kind) unknown_device(text, asked.name, names());
  if (asked.name == "CPU") return open_cpu(asked.ordinal);
  return open(static_cast<DeviceId>(1 + kind->number + kMostKinds * asked.ordinal));
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
  const int number = (id - 1) % kMostKinds, ordinal = (id - 1) / kMostKinds;
  const auto kind = std::ranges::find(state_->kinds, number, &DeviceKind::number);
  WEFT_CHECK(kind != state_->kinds.end(), "there is no device with id {}", id);
  std::string name(kind->name);
  if (ordinal > 0) append_format(name, ":{}", ordinal);
  auto made = kind->make(state_->context, name, id);
  if (log_enabled(state_->context, 1))
    log_at(state_->context, 1, "opened {}: {}", name, kind->describe(state_->context));
  return *state_->open.emplace(id, std::move(made)).first->second;
}

Device& DeviceTable::default_device() { return open(state_->context.options().dev); }

std::vector<DeviceInfo> DeviceTable::probe() {
  std::vector<DeviceInfo> infos;
  for (const DeviceKind& kind : state_->kinds) {
    DeviceInfo info{std::string(kind.name), false, {}};
    try {
      open(kind.name);
      info.available = true;
      info.detail = kind.describe(state_->context);
    } catch (const Error& error) {
      info.detail = error.message();
    }
    infos.push_back(std::move(info));
  }
  return infos;
}

}  // namespace weft
