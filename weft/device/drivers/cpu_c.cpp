// CPU:C: text compiled by an external C compiler, loaded by our own relocator.
#include <cerrno>
#include <unordered_set>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/device/compiler.h"
#include "weft/device/driver.h"
#include "weft/device/elf.h"
#include "weft/device/host_device.h"
#include "weft/device/object_cache.h"

namespace weft {

namespace {

class CExecutable : public HostExecutable {
 public:
  CExecutable(const ProgramSource& source, std::shared_ptr<CodeObject> code, KernelFunction entry)
      : HostExecutable(source.entry, source, 1), code_(std::move(code)), entry_(entry) {}

  void run(const KernelArgs& args, uint32_t begin, uint32_t end) const override {
    entry_(&args, begin, end);
  }
  int64_t code_bytes() const override { return static_cast<int64_t>(code_->bytes()); }

 private:
  std::shared_ptr<CodeObject> code_;  // shared by the kernels compiled together
  KernelFunction entry_;
};

// Kernels that go into one run of the compiler.
struct Unit {
  std::string text;
  std::vector<size_t> sources;
  std::shared_ptr<CodeObject> code;
};

class CDevice : public HostDevice {
 public:
  CDevice(Context& context, std::string name, DeviceId id, CCompiler compiler)
      : HostDevice(context, std::move(name), id, make_target("c", context)),
        compiler_(std::move(compiler)),
        flags_(c_compiler_flags(target().cpu)),
        cache_(context) {
    for (const std::string& flag : flags_) (flags_text_ += flag) += ' ';
  }

  std::vector<std::unique_ptr<Executable>> load(std::span<const ProgramSource> sources) override {
    std::vector<Unit> units = split(sources);
    compile(units);
    std::vector<std::unique_ptr<Executable>> loaded(sources.size());
    for (const Unit& unit : units) {
      for (size_t i : unit.sources) {
        void* entry = unit.code->function(sources[i].entry);
        if (entry == nullptr) {
          internal_error("device.load", "the text of {} defines no such function",
                         sources[i].entry);
        }
        loaded[i] = std::make_unique<CExecutable>(sources[i], unit.code,
                                                  reinterpret_cast<KernelFunction>(entry));
      }
    }
    return loaded;
  }

 private:
  // Two halves, compiled at once, where there is enough to gain over starting a second process.
  static constexpr size_t kLeastKernelsToSplit = 8;

  std::vector<Unit> split(std::span<const ProgramSource> sources) const {
    size_t total = 0;
    for (const ProgramSource& s : sources) total += s.text.size();
    const bool halve = sources.size() >= kLeastKernelsToSplit && target().threads > 1;
    std::vector<Unit> units;
    std::unordered_set<const char*> seen;  // kernels may share one text
    size_t done = 0;
    for (size_t i = 0; i < sources.size(); ++i) {
      WEFT_CHECK(!sources[i].text.empty(), "{} comes without text", sources[i].entry);
      const bool repeated = seen.contains(sources[i].text.data());
      if (units.empty() || (halve && units.size() == 1 && done * 2 >= total && !repeated)) {
        units.emplace_back();
        seen.clear();
      }
      units.back().sources.push_back(i);
      done += sources[i].text.size();
      if (seen.insert(sources[i].text.data()).second) units.back().text += sources[i].text;
    }
    return units;
  }

  void compile(std::vector<Unit>& units) {
    std::vector<Unit*> missing;
    std::vector<std::string> texts;
    for (Unit& unit : units) {
      if (const auto object = cache_.find(key(unit))) {
        unit.code = try_load(*object);
        if (unit.code) continue;
      }
      missing.push_back(&unit);
      texts.push_back(unit.text);
    }
    if (missing.empty()) return;
    const std::vector<std::string> objects = compile_c(context(), compiler_, flags_, texts);
    for (size_t i = 0; i < missing.size(); ++i) {
      missing[i]->code = CodeObject::load(std::as_bytes(std::span(objects[i])));
      cache_.store(key(*missing[i]), objects[i]);
      context().tracer().add(Counter::KernelsCompiled,
                             static_cast<int64_t>(missing[i]->sources.size()));
    }
  }

  // An entry that passes its checksum but not the loader was written by something else.
  static std::shared_ptr<CodeObject> try_load(const std::string& object) {
    try {
      return CodeObject::load(std::as_bytes(std::span(object)));
    } catch (const Error&) {
      return nullptr;
    }
  }

  ObjectKey key(const Unit& unit) const {
    return ObjectKey::of(unit.text, flags_text_, compiler_.identity);
  }

  CCompiler compiler_;
  std::vector<std::string> flags_;
  std::string flags_text_;
  ObjectCache cache_;
};

std::unique_ptr<Device> make(Context& context, std::string name, DeviceId id) {
#if !defined(__x86_64__)
  fail_device("open", ENOSYS, name,
              "compiled kernels are loaded on x86-64 only so far; use CPU:INTERP");
#endif
  std::optional<CCompiler> compiler = find_c_compiler(context);
  if (!compiler) {
    fail_device("open", ENOENT, name,
                "there is no C compiler: none of clang-19, clang, gcc, cc is on PATH; {}",
                no_compiler_advice());
  }
  return std::make_unique<CDevice>(context, std::move(name), id, std::move(*compiler));
}

std::string describe(Context& context) {
  return strformat("C by {}; {}", find_c_compiler(context)->path, describe_host(context, "c"));
}

}  // namespace

Driver cpu_c_driver() {
  static constexpr DeviceKind kKinds[] = {{0, "CPU:C", make, describe}};
  return kKinds;
}

}  // namespace weft
