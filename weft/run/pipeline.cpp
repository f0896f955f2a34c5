// What happens to (a + b).sum() between realize() and its number:
//
//   1 normalise   the tensor graph's buffers become numbered Params, Binds become Variables;
//                 from here on, the same program gives the same node, and caches can find it;
//                 in a program that none has, calls become what they compute
//   2 schedule    which values are computed together, in what order, into which buffers:
//                 here one kernel that adds and reduces, and one output buffer
//   3 optimize    each new kernel: ranges are split and bound to cores, vector lanes, copies
//   4 lower       each new kernel: loops become a list of instructions in execution order
//   5 render      each new kernel: the list becomes text (C), or
//     codegen     machine code: instructions are selected, given registers and encoded
//   6 load        all new kernels of a device: compiled together, loaded into memory
//   7 plan        intermediates get places in one arena, by the steps at which they live
//                                                                      (arenas.cpp)
//   8 bind        memory and the values of variables are put in        (bind.cpp)
//   9 execute     the command list is submitted to the devices         (command_list.cpp)
//  10 commit      each tensor's value becomes the Buffer that holds it (realize.cpp)
//
// Steps 1 to 8 are rows of tables, run by one driver (rewrite/pass.h; passes.h lists them all), and
// a verifier follows every step that makes a graph. Schedules and kernels are cached by structure,
// so that a second, equal realization does 1 and 8 to 10 only, or 7 too where sizes vary.
#include "weft/run/pipeline.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/interrupt.h"
#include "weft/base/log.h"
#include "weft/base/thread_pool.h"
#include "weft/base/version.h"
#include "weft/device/host_device.h"
#include "weft/device/object_cache.h"
#include "weft/graph/print.h"
#include "weft/graph/verify.h"
#include "weft/render/render.h"
#include "weft/run/call_sites.h"
#include "weft/run/kept_schedule.h"
#include "weft/run/kernel_pack.h"
#include "weft/run/load.h"
#include "weft/run/passes.h"
#include "weft/run/plan_search.h"
#include "weft/run/run_state.h"
#include "weft/run/translate.h"
#include "weft/run/versions.h"
#include "weft/schedule/schedule.h"

namespace weft {
namespace {

/// A kernel on its way from the schedule to a device.
struct Job {
  const Kernel* kernel;
  Device* device;
  const ScheduleStep* step;              // the first that runs it
  bool distinct = true;                  // no buffer is bound to two slots
  std::shared_ptr<const LoopPlan> plan;  // that a search found
  CacheKey key;
  std::string entry;
  Translation made;
  std::vector<LoopCost> costs = {};  // where its program comes without instructions
  std::vector<PassRecord> passes;    // where they are asked for
  RecordedAs recorded = {};
  uint64_t ns = 0;  // that translating took
  std::shared_ptr<const CompiledKernel> done;
};

// Kernels that are compiled together, which is what memory has to hold.
constexpr size_t kBatch = 512;

// Kept on disk for the next process are so many kernels or more, whose compiling took so long.
constexpr size_t kFewestPacked = 4;
constexpr uint64_t kWorthPackingNs = 6'000'000;

class Pipeline {
 public:
  Pipeline(Context& context, const NormalForm& form, const std::vector<bool>& constants)
      : context_(context),
        form_(form),
        constants_(constants),
        run_(context.get<RunState>()),
        devices_(context.get<DeviceTable>()),
        plans_(context) {}

  std::shared_ptr<const CompiledSchedule> compile(std::span<const int> into) {
    CompiledSchedule out = compile_versions(into);
    if (run_.observer.compiled) run_.observer.compiled(report_);
    record(out);
    return std::make_shared<const CompiledSchedule>(std::move(out));
  }

 private:
  /// What is kept of constants is not kept in several orders.
  CompiledSchedule compile_versions(std::span<const int> into) {
    const std::vector<Version> versions =
        versions_of(run_.graph, form_, target(), !constants_.empty());
    std::vector<CompiledSchedule> compiled;
    for (const Version& v : versions) compiled.push_back(compile(v.form, v.origins, into));
    if (auto all = joined(run_.graph, form_, versions, compiled, constants_))
      return std::move(*all);
    return compile(form_, {}, into);
  }

  /// `origins`: of nodes that are not those of form_.
  CompiledSchedule compile(const NormalForm& form, const Origins& origins,
                           std::span<const int> into) {
    Schedule schedule = kept_or_made(form, origins, into);
    CompiledSchedule out = outline(schedule, devices_);
    std::vector<Job> jobs = jobs_of(schedule, out);
    compile_new(jobs, out);
    finish_steps(schedule, jobs, out);
    return out;
  }

  void record(const CompiledSchedule& out) {
    if (!run_.recorder) return;
    run_.recorder->decisions(report_.decisions);
    run_.recorder->schedule(out, [&](size_t i) { return lines("", out.steps[i].origins); });
  }

  // ---- 2 schedule

  /// From the disk, where nobody looks on.
  Schedule kept_or_made(const NormalForm& form, const Origins& origins, std::span<const int> into) {
    if (reports() || trace_passes(context_)) return make(form, origins, into);
    const KeptSchedule kept(context_, form, into, constants_, target());
    if (std::optional<Schedule> schedule = kept.find()) return std::move(*schedule);
    Schedule schedule = make(form, origins, into);
    kept.store(schedule);
    return schedule;
  }

  Schedule make(const NormalForm& form, const Origins& origins, std::span<const int> into) {
    const WithoutCalls given = without_calls(run_.graph, form);
    std::vector<ScheduleOutput> outputs;
    for (size_t i = 0; i < into.size(); ++i) outputs.push_back({given.values[i], into[i]});
    Span span(context_.tracer(), "schedule");
    ScheduleOptions options;
    options.explain = reports();
    options.constants = constants_;
    verify_tensor_graph(given.values, "normalise");
    Schedule schedule = make_schedule(outputs, target(), options);
    name_origins(schedule, given.origins);
    name_origins(schedule, origins);
    tell_passes(context_);
    for (const Kernel& k : schedule.kernels) verify_kernel(k, "schedule");
    count_nodes(*schedule.graph);
    for (const Decision& d : schedule.decisions) report(d);
    return schedule;
  }

  /// In nodes of the normal form.
  static void name_origins(Schedule& schedule, const Origins& origins) {
    const auto name = [&](uint64_t& origin) {
      if (const auto at = origins.find(origin); at != origins.end()) origin = at->second;
    };
    for (ScheduleStep& step : schedule.steps) std::ranges::for_each(step.origins, name);
    for (Decision& d : schedule.decisions) name(d.origin);
  }

  /// One machine decides for all: that of the first output.
  const Target& target() {
    const DeviceId device = form_.values.empty() ? DeviceId{} : form_.values[0]->device;
    return (device ? devices_.open(device) : devices_.default_device()).target();
  }

  bool reports() const {
    return log_enabled(context_, 3) || run_.observer.compiled || run_.recorder;
  }

  void report(const Decision& d) {
    report_.decisions.push_back({d.staged, summary(d.node), d.reason, lines("", {&d.origin, 1})});
    if (log_enabled(context_, 3)) log_line(context_, text(report_.decisions.back()));
  }

  void count_nodes(const Graph& made) const {
    context_.tracer().add(Counter::Nodes, static_cast<int64_t>(made.live_nodes()));
  }

  const CallSites& sites() {
    if (!sites_) sites_.emplace(context_, form_);
    return *sites_;
  }
  /// The user's lines behind `before`; nothing where they are not known.
  std::string lines(std::string_view before, std::span<const uint64_t> origins) {
    std::string text = sites().of(origins).text();
    if (!text.empty()) text.insert(0, before);
    return text;
  }

  /// One job per kernel and device it runs on; steps find theirs by step_jobs_.
  std::vector<Job> jobs_of(const Schedule& schedule, const CompiledSchedule& out) {
    std::vector<Job> jobs;
    step_jobs_.clear();
    std::map<std::pair<const Kernel*, Device*>, size_t> numbers;
    for (const ScheduleStep& step : schedule.steps) {
      if (step.kind == ScheduleStep::Kind::Copy) {
        step_jobs_.push_back(-1);
        continue;
      }
      const Kernel* kernel = &schedule.kernels[static_cast<size_t>(step.kernel)];
      Device* device = device_of(step, out, *kernel);
      const auto [known, fresh] = numbers.try_emplace({kernel, device}, jobs.size());
      if (fresh) {
        jobs.push_back({});
        jobs.back().kernel = kernel;
        jobs.back().device = device;
        jobs.back().step = &step;
      }
      std::vector<int> sorted = step.buffers;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        jobs[known->second].distinct = false;
      step_jobs_.push_back(static_cast<int>(known->second));
    }
    return jobs;
  }

  Device* device_of(const ScheduleStep& step, const CompiledSchedule& out, const Kernel& kernel) {
    Device* device = nullptr;
    for (int b : step.buffers) {
      Device* d = out.buffers[static_cast<size_t>(b)].device;
      if (device && device != d)
        fail("realize.devices",
             "kernel {}{} would use memory of {} and of {}; move one operand with .to(device)",
             kernel.name, lines(" at ", step.origins), device->name(), d->name());
      device = d;
    }
    return device ? device : &devices_.default_device();
  }

  // ---- 3 to 6, for the kernels no cache has
  void compile_new(std::vector<Job>& jobs, const CompiledSchedule& out) {
    std::vector<Job*> fresh;
    for (Job& j : jobs) {
      NodeRef structure = run_.graph.import(j.kernel->sink);
      if (plans_.wanted())
        j.plan = plans_.plan_of({j.kernel, j.device, j.distinct, bytes_of(*j.step, out)}, structure,
                                lines("", j.step->origins));
      j.key = {structure,
               {static_cast<int64_t>(j.device->id()), j.distinct,
                static_cast<int64_t>(j.device->target().key()),
                j.plan ? static_cast<int64_t>(hash_text(text(*j.plan))) : 0}};
      j.done = run_.kernels.find(j.key);
      if (!j.done) fresh.push_back(&j);
    }
    if (fresh.empty()) return;
    number_entries(fresh);
    if (run_.recorder)
      for (Job* j : fresh) j->recorded = run_.recorder->new_kernel();
    for (size_t done = 0; done < fresh.size(); done += kBatch)
      compile_batch(std::span(fresh).subspan(done, std::min(kBatch, fresh.size() - done)));
  }

  /// Of each buffer that a step of static sizes is given; nothing where they vary.
  static std::vector<int64_t> bytes_of(const ScheduleStep& step, const CompiledSchedule& out) {
    std::vector<int64_t> bytes;
    for (int b : step.buffers) {
      if (!out.buffers[static_cast<size_t>(b)].numel.is_constant()) return {};
      bytes.push_back(out.bytes_of(b, {}));
    }
    return bytes;
  }

  /// What lowering needs is given back before the next batch, so that a schedule of very many
  /// kernels takes no more memory than its own.
  void compile_batch(std::span<Job* const> batch) {
    const std::optional<ObjectKey> pack = pack_key(batch);
    if (!pack || !unpack(*pack, batch)) {
      const uint64_t start = now_ns();
      translate_all(batch);
      if (pack && now_ns() - start > kWorthPackingNs) store_pack(*pack, batch);
    }
    for (Job* j : batch) print(*j);
    load(batch);
    for (Job* j : batch) {
      run_.kernels.insert(j->key, j->done, key_bytes(j->key) + j->done->bytes_held());
      j->made = {};
    }
  }

  void translate_all(std::span<Job* const> batch) {
    const std::vector<Job*> order = longest_first(batch);
    std::atomic<size_t> next{0};
    const auto translate_some = [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) translate(*order[next.fetch_add(1)]);
    };
    context_.thread_pool().parallel_for(static_cast<int64_t>(order.size()), translate_some, 1,
                                        [] { ask_interrupt(); });
  }

  /// Of what an earlier process may have left on disk; none where there is little to gain, or where
  /// somebody looks on.
  std::optional<ObjectKey> pack_key(std::span<Job* const> batch) const {
    const Target& target = batch[0]->device->target();
    const bool watched = reports() || trace_passes(context_) || plans_.wanted();
    if (batch.size() < kFewestPacked || watched || !target.machine_code || !has_build_id() ||
        !batch[0]->device->computes() || !context_.options().cache)
      return std::nullopt;
    std::vector<PackedFor> kernels;
    for (const Job* j : batch) {
      if (j->device != batch[0]->device) return std::nullopt;
      kernels.push_back({j->kernel->sink, j->distinct});
    }
    return key_of_pack(kernels, target, context_.options());
  }

  bool unpack(ObjectKey key, std::span<Job* const> batch) {
    Span span(context_.tracer(), "unpack");
    const std::optional<std::string> pack = ObjectCache(context_).find(key);
    if (!pack) return false;
    auto kernels = unpack_kernels(*pack, batch.size());
    if (!kernels) return false;
    for (size_t i = 0; i < batch.size(); ++i) {
      batch[i]->made.program = std::move((*kernels)[i].program);
      batch[i]->made.code = std::move((*kernels)[i].code);
      batch[i]->costs = std::move((*kernels)[i].costs);
    }
    return true;
  }

  void store_pack(ObjectKey key, std::span<Job* const> batch) {
    Span span(context_.tracer(), "pack");
    std::vector<const Translation*> made;
    for (const Job* j : batch) made.push_back(&j->made);
    ObjectCache(context_).store(key, pack_kernels(made));
  }

  void number_entries(std::span<Job* const> fresh) {
    for (size_t i = 0; i < fresh.size(); ++i)
      fresh[i]->entry = entry_name(i, fresh[i]->kernel->name);
  }

  /// So that threads end together, and small kernels find the caches as other small ones left them.
  /// Products are what is unrolled most.
  static std::vector<Job*> longest_first(std::span<Job* const> jobs) {
    // Jobs lie in one array: of equal sizes the earlier comes first.
    std::vector<std::pair<size_t, Job*>> sized;
    for (Job* j : jobs) {
      const Toposort nodes(j->kernel->sink);
      const bool products = std::any_of(nodes.begin(), nodes.end(), [](NodeRef n) {
        return n->op == Op::Reduce && is_product(n->src(0)->op);
      });
      sized.emplace_back(nodes.size() * (products ? 8 : 1), j);
    }
    std::sort(sized.begin(), sized.end(), [](const auto& a, const auto& b) {
      return a.first != b.first ? a.first > b.first : a.second < b.second;
    });
    std::vector<Job*> order;
    for (const auto& [size, job] : sized) order.push_back(job);
    return order;
  }

  /// Runs on any thread: touches nothing but the job.
  void translate(Job& j) const {
    const uint64_t start = now_ns();
    std::unique_ptr<PassWatcher> watcher;
    if (run_.recorder) watcher = run_.recorder->kernel_passes(j.recorded);
    std::optional<PassTrace> trace = trace_passes(context_, watcher.get());
    j.made = translate_kernel(*j.kernel, j.device->target(), j.entry, j.distinct, j.plan.get());
    j.ns = now_ns() - start;
    if (trace) j.passes = trace->take();
  }

  void print(Job& j) {
    tell_passes(context_, j.passes);
    if (j.made.report.foreign)
      log_at(context_, 1, "{}: the schedule in {} is of another kernel, and is left out",
             j.kernel->name, run_.plans.path());
    if (reports()) {
      report_.kernels.push_back({j.kernel->name, j.device->name(), lines("", j.step->origins),
                                 j.made.report.applied, j.made.program.flops, j.made.program.bytes,
                                 sites().lines_of(j.step->origins)});
      if (log_enabled(context_, 3)) log_line(context_, text(report_.kernels.back()));
      record(j, report_.kernels.back());
    }
    if (log_enabled(context_, 5)) log_line(context_, print_graph(j.made.optimized.sink));
    if (log_enabled(context_, 6)) log_line(context_, print_program(j.made.program));
    const std::string& code = j.device->target().machine_code ? j.made.listing : j.made.code;
    if (!code.empty()) log_at(context_, 4, "{}", code);
  }

  void record(const Job& j, const KernelReport& report) {
    if (!run_.recorder) return;
    const Target& target = j.device->target();
    const std::string_view code = target.machine_code ? j.made.code : std::string_view();
    run_.recorder->kernel(j.recorded, report,
                          {j.entry, target.name, code, j.made.spilled,
                           static_cast<int64_t>(j.made.code.size()), j.ns});
  }

  void load(std::span<Job* const> fresh) {
    std::vector<Job*> left(fresh.begin(), fresh.end());
    while (!left.empty()) {
      Device* device = left[0]->device;
      std::vector<Job*> here;
      for (Job* j : left)
        if (j->device == device) here.push_back(j);
      load_on(*device, here);
      std::erase_if(left, [device](const Job* j) { return j->device == device; });
    }
  }

  void load_on(Device& device, std::span<Job* const> jobs) {
    Span span(context_.tracer(), "load", device.name(), static_cast<int64_t>(jobs.size()));
    std::vector<ProgramSource> sources;
    for (const Job* j : jobs) sources.push_back({&j->made.program, j->made.code, j->entry});
    std::vector<std::unique_ptr<Executable>> loaded = load_or_say(device, sources, jobs);
    tell_passes(context_);
    for (size_t i = 0; i < jobs.size(); ++i) {
      log_at(context_, 7, "{}: {} bytes of code on {}", jobs[i]->entry, loaded[i]->code_bytes(),
             device.name());
      if (auto* host = dynamic_cast<HostExecutable*>(loaded[i].get());
          host && !jobs[i]->costs.empty())
        host->set_cost({jobs[i]->costs, jobs[i]->made.program.variables, 1});
      jobs[i]->done = compiled_kernel(jobs[i]->kernel->name, jobs[i]->made.program,
                                      std::move(loaded[i]), jobs[i]->recorded);
    }
  }

  /// An error says what the kernels were for.
  std::vector<std::unique_ptr<Executable>> load_or_say(Device& device,
                                                       std::span<const ProgramSource> sources,
                                                       std::span<Job* const> jobs) {
    try {
      return load_programs(device, sources);
    } catch (const DeviceError& error) {
      std::string where;
      for (size_t i = 0; i < std::min<size_t>(3, jobs.size()); ++i)
        where += lines(", ", jobs[i]->step->origins);
      if (where.empty()) throw;
      error.rethrow_with(
          strformat("compiled for {}{}", where.substr(2), jobs.size() > 3 ? " and others" : ""));
    }
  }

  void finish_steps(const Schedule& schedule, const std::vector<Job>& jobs, CompiledSchedule& out) {
    for (size_t i = 0; i < schedule.steps.size(); ++i) {
      const ScheduleStep& from = schedule.steps[i];
      CompiledStep& step = out.steps[i];
      if (step_jobs_[i] >= 0) {
        const Job& job = jobs[static_cast<size_t>(step_jobs_[i])];
        step.kernel = job.done;
        step.device = job.device;
        for (const std::string& name : job.done->variables)
          step.variables.push_back(variable(out, from, name));
      } else {
        step.device = out.buffers[static_cast<size_t>(from.buffers[1])].device;
      }
    }
  }

  static CompiledStep::Variable variable(const CompiledSchedule& out, const ScheduleStep& step,
                                         const std::string& name) {
    for (const ScheduleStep::Fixed& f : step.fixed)
      if (f.variable == name) return {-1, f.value};
    const auto at = std::find(out.variables.begin(), out.variables.end(), name);
    WEFT_CHECK(at != out.variables.end(), "a kernel takes {}, which its schedule does not list",
               name);
    return {static_cast<int>(at - out.variables.begin()), 0};
  }

  Context& context_;
  const NormalForm& form_;
  const std::vector<bool>& constants_;
  RunState& run_;
  DeviceTable& devices_;
  PlanSearch plans_;
  std::vector<int> step_jobs_;  // of the schedule that is compiled
  std::optional<CallSites> sites_;
  CompileReport report_;  // where somebody asks
};

CacheKey schedule_key(Context& context, const NormalForm& form, std::span<const int> into,
                      const std::vector<bool>& constants) {
  CacheKey key{form.root, {}};
  for (const int slot : into) key.more.push_back(slot);
  key.more.push_back(context.get<DeviceTable>().default_device().id());
  for (const bool constant : constants) key.more.push_back(constant);
  key.more.push_back(context.options().beam);
  key.more.push_back(static_cast<int64_t>(hash_text(context.options().beam_cache)));
  return key;
}

std::shared_ptr<const PlannedMemory> plan(const Prepared& prepared, const NormalForm& form) {
  const CompiledSchedule& schedule = *prepared.schedule;
  std::vector<int64_t> values = values_of(schedule.variables, form.variables);
  WEFT_CHECK(values.size() == schedule.variables.size(),
             "the schedule has variables that nothing binds");
  return std::make_shared<const PlannedMemory>(plan_arenas(schedule, std::move(values)));
}

Prepared compile(Context& context, const NormalForm& form, std::span<const int> into,
                 const std::vector<bool>& constants) {
  RunState& run = context.get<RunState>();
  const uint64_t start = now_ns();
  if (run.recorder) run.recorder->compiling();
  Prepared out{Pipeline(context, form, constants).compile(into), nullptr,
               std::make_shared<SpareCommands>()};
  if (out.schedule->variables.empty()) out.memory = plan(out, form);
  run.stats.compile_seconds += static_cast<double>(now_ns() - start) * 1e-9;
  return out;
}

}  // namespace

std::shared_ptr<const Prepared> prepare(Context& context, const NormalForm& form,
                                        std::span<const int> into,
                                        const std::vector<bool>& constants) {
  RunState& run = context.get<RunState>();
  CacheKey key = schedule_key(context, form, into, constants);
  std::shared_ptr<const Prepared> out = run.schedules.find(key);
  if (out) {
    context.tracer().add(Counter::ScheduleHits);
  } else {
    out = std::make_shared<const Prepared>(compile(context, form, into, constants));
    const size_t bytes = key_bytes(key) + out->schedule->bytes_held() +
                         (out->memory ? out->memory->bytes_held() : 0);
    run.schedules.insert(std::move(key), out, bytes);
  }
  if (out->memory) return out;
  return std::make_shared<const Prepared>(Prepared{out->schedule, plan(*out, form), out->spare});
}

}  // namespace weft
