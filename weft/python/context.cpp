// Options, devices, counters, training: what is global in Python.
#include "weft/python/context.h"

#include <chrono>
#include <thread>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/fork.h"
#include "weft/base/interrupt.h"
#include "weft/base/spans.h"
#include "weft/base/version.h"
#include "weft/device/device.h"
#include "weft/python/bindings.h"
#include "weft/run/realize.h"
#include "weft/run/stats.h"
#include "weft/tensor/training.h"

namespace weft::python {

namespace {

/// "CPU:X86:1" is "CPU:1" where "CPU" opens "CPU:X86".
std::string short_name(std::string name) {
  const std::string usual = Context::current().get<DeviceTable>().open("CPU").name();
  if (name.starts_with(usual)) name.replace(0, usual.size(), "CPU");
  return name;
}

std::string canonical(const std::string& name) {
  return short_name(Context::current().get<DeviceTable>().open(name).name());
}

void set_default_device(const std::string& name) {
  Context& context = Context::current();
  context.get<DeviceTable>().open(name);  // complains before anything changes
  context.mutable_options().dev = name;
}

std::vector<std::string> available_devices() {
  std::vector<std::string> names;
  for (const DeviceInfo& d : Context::current().get<DeviceTable>().probe())
    if (d.available) names.push_back(short_name(d.name));
  return names;
}

/// The value of an option by its name without WEFT_, as text that set() takes.
std::string option(const std::string& name) { return Context::current().options().text(name); }

void set_option(const std::string& name, const std::string& value) {
  Context::current().mutable_options().set(name, value);
}

/// Ctrl-C ends a long run between two kernels. Taking the interpreter's lock may take long where
/// other threads of Python run, so it is done ten times a second.
void check_signals() {
  constexpr uint64_t kPeriodNs = 100'000'000;
  thread_local uint64_t last = 0;
  const uint64_t now = now_ns();
  if (now - last < kPeriodNs) return;
  last = now;
  const GilAcquired held;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

nb::dict stats() {
  const RunStats s = run_stats(Context::current());
  nb::dict d;
  d["realizes"] = s.realizes;
  d["replays"] = s.replays;
  d["kernels"] = s.kernels;
  d["copies"] = s.copies;
  d["flops"] = s.flops;
  d["bytes"] = s.bytes;
  d["seconds"] = s.seconds;
  d["compile_seconds"] = s.compile_seconds;
  d["memory_live"] = s.memory_live;
  d["memory_peak"] = s.memory_peak;
  return d;
}

/// Python forks while it holds the interpreter's lock. Nobody begins anything meanwhile, and what
/// runs ends; but if it needs that lock to end, it gets it now and then.
void before_fork() {
  using std::this_thread::sleep_for;
  constexpr std::chrono::microseconds kNap(500);
  for (int tries = 1; !try_take_fork_locks(); ++tries) {
    sleep_for(kNap);
    if (tries % 20 != 0) continue;
    const GilReleased released;
    sleep_for(kNap);
  }
}

}  // namespace

std::string device_name(const Tensor& x) { return short_name(x.device()); }

void bind_context(nb::module_& m) {
  Context::current().get<InterruptCheck>().ask = check_signals;
  m.attr("__version__") = kVersion;
  m.def("set_package_folder", set_package_folder, "folder"_a);
  m.def("default_device",
        [] { return short_name(Context::current().get<DeviceTable>().default_device().name()); });
  m.def("set_default_device", set_default_device, "name"_a);
  m.def("canonical_device", canonical, "name"_a);
  m.def("available_devices", available_devices);
  m.def("option", option, "name"_a);
  m.def("set_option", set_option, "name"_a, "value"_a);
  m.def("stats", stats);
  m.def("reset_stats", [] { reset_run_stats(Context::current()); });
  m.def(
      "collect_garbage", [] { collect_garbage(Context::current()); },
      "Frees graph nodes and memory that nothing alive refers to.", nb::call_guard<Released>());
  m.def("before_fork", before_fork);
  m.def("after_fork_in_parent", &give_back_fork_locks_in_parent);
  m.def("after_fork_in_child", &make_new_fork_locks_in_child);
  nb::module_::import_("os").attr("register_at_fork")(
      "before"_a = m.attr("before_fork"), "after_in_parent"_a = m.attr("after_fork_in_parent"),
      "after_in_child"_a = m.attr("after_fork_in_child"));
  m.def("is_training", &is_training);
  m.def("set_training", &set_training, "on"_a);
}

}  // namespace weft::python
