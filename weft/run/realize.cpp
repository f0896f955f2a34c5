#include "weft/run/realize.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/base/hash.h"
#include "weft/base/interrupt.h"
#include "weft/base/log.h"
#include "weft/base/small_vector.h"
#include "weft/device/fresh_zeros.h"
#include "weft/graph/binary.h"
#include "weft/graph/node_map.h"
#include "weft/run/active_capture.h"
#include "weft/run/bind.h"
#include "weft/run/call_sites.h"
#include "weft/run/check_nan.h"
#include "weft/run/passes.h"
#include "weft/run/pipeline.h"
#include "weft/run/recorded_run.h"
#include "weft/run/run_state.h"
#include "weft/run/save_repro.h"
#include "weft/run/tensor_names.h"

namespace weft {
namespace {

/// One distinct value, and whose it is.
struct Wanted {
  NodeRef value;
  SmallVector<Storage*, 2> storages;  // in the order they were asked for
  // Where the result goes: the memory of a storage it is for, when that is free, else fresh memory.
  std::shared_ptr<Buffer> destination;
  int64_t destination_id = -1;
  int into = -1;             // input slot that is `destination`
  NodeRef result = nullptr;  // its Buffer node
};

class Realization {
 public:
  Realization(Context& context, std::span<const std::shared_ptr<Storage>> storages)
      : context_(context),
        run_(context.get<RunState>()),
        buffers_(context.get<BufferTable>()),
        graph_(tensor_graph(context)) {
    collect(storages);
  }

  void run() {
    if (wanted_.empty()) return;
    Span span(context_.tracer(), "realize");
    context_.tracer().add(Counter::Realizes);
    ++run_.stats.realizes;
    Recorder* recorder = run_.recorder.get();
    RecordedRunScope recorded(recorder, RunKind::Realize);
    const std::optional<PassTrace> trace =
        trace_passes(context_, recorder ? &recorder->run_passes() : nullptr);
    InterruptibleScope(context_).run([this] { compile(); });
    std::unique_ptr<CommandList> list = placed_list();
    tell_passes(context_);
    recorded.executes(schedule());
    if (!is_there_already()) execute(*list);
    noted_.reset();
    commit();
    // Whoever captures has a list of its own for the calls to come.
    if (!active_capture(context_)) prepared_->spare->list = std::move(list);
  }

 private:
  /// What is packed for many runs takes memory: without room for it nothing is.
  std::unique_ptr<CommandList> placed_list() {
    std::unique_ptr<CommandList> list = command_list();
    try {
      place(*list);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::Memory || constants_.empty()) throw;
      constants_.clear();
      InterruptibleScope(context_).run([this] { prepare_schedule(); });
      list = command_list();
      place(*list);
    }
    return list;
  }
  std::unique_ptr<CommandList> command_list() {
    std::unique_ptr<CommandList> list = std::move(prepared_->spare->list);
    return list ? std::move(list) : std::make_unique<CommandList>(schedule());
  }

  void compile() {
    SmallVector<NodeRef, 8> values;
    for (const Wanted& w : wanted_) values.push_back(w.value);
    const DeviceId default_device = context_.get<DeviceTable>().default_device().id();
    CaptureListener* capture = active_capture(context_);
    if (capture)
      form_ = normalise(run_.graph, values, default_device, capture->watched(), &run_.known);
    else
      form_ = normalise(run_.graph, values, default_device, {}, &run_.known);
    choose_homes();
    if (const StorageListener* listener = storage_listener(context_))
      constants_ = constants_of(*listener);
    prepare_or_save();
  }

  /// Where the compiler fails, WEFT_REPRO keeps what it was given.
  void prepare_or_save() {
    if (context_.options().repro.empty()) return prepare_schedule();
    noted_.emplace(run_.note.get(), key_of_note(), [this] { return print_repro(repro(kCrashed)); });
    if (context_.options().repro_every) save("");
    try {
      prepare_schedule();
    } catch (const InternalError& error) {
      throw InternalError(error.code(), error.message() + kept(error.what()));
    }
  }
  std::string kept(std::string_view failed) {
    try {
      return strformat("; `weft repro {}` runs it again", save(failed));
    } catch (const Error& error) {  // which must not hide what it is about
      return strformat("; WEFT_REPRO has no file of it: {}", error.message());
    }
  }
  std::string save(std::string_view failed) { return save_repro(context_, repro(failed)); }
  Repro repro(std::string_view failed) {
    std::vector<std::shared_ptr<Buffer>> inputs;
    for (NodeRef n : form_.inputs) inputs.push_back(input(n));
    return repro_of(context_, form_, inputs, failed);
  }
  /// Equal for what has the same text; 0 where it has data in it.
  uint64_t key_of_note() const {
    if (context_.options().repro_data) return 0;
    uint64_t key = form_.root->hash;
    for (const BoundVariable& v : form_.variables)
      key = hash_combine(key, static_cast<uint64_t>(v.value));
    return key;
  }

  void prepare_schedule() {
    SmallVector<int, 8> into;
    for (const Wanted& w : wanted_) into.push_back(w.into);
    prepared_ = prepare(context_, form_, into, constants_);
  }

  /// What runs while it is captured, or before that, is scheduled as its replays will be: one
  /// schedule, and one set of kernels, serve all, and give the same bits. By input slot; none where
  /// no input is constant.
  std::vector<bool> constants_of(const StorageListener& listener) const {
    std::vector<bool> out;
    if (!context_.options().keep_constants) return out;
    for (size_t slot = 0; slot < form_.inputs.size(); ++slot) {
      NodeRef n = form_.inputs[slot];
      const auto at = std::ranges::find(wanted_, static_cast<int>(slot), &Wanted::into);
      if (at != wanted_.end() || !listener.stays(buffer_id(n)) || input(n)->changes_unseen())
        continue;
      out.resize(form_.inputs.size());
      out[slot] = true;
    }
    return out;
  }

  const CompiledSchedule& schedule() const { return *prepared_->schedule; }

  auto lines() {
    return [this](size_t step) {
      if (!sites_) sites_.emplace(context_, form_);
      return sites_->of(schedule().steps[step].origins).text();
    };
  }

  /// The distinct values that are not in memory yet.
  void collect(std::span<const std::shared_ptr<Storage>> storages) {
    NodeMap<size_t> places;  // of values; one needs none
    wanted_.reserve(storages.size());
    for (const auto& s : storages) {
      if (s->lost()) s->value();  // throws
      NodeRef value = StorageAccess::peek(*s);
      if (value->op == Op::Buffer) continue;
      size_t place = wanted_.size();
      if (storages.size() > 1) {
        const size_t* known = places.find(value);
        place = known ? *known : places.set(value, place);
      }
      if (place == wanted_.size()) wanted_.push_back({value, {}, nullptr, -1, -1, nullptr});
      SmallVector<Storage*, 2>& of = wanted_[place].storages;
      if (std::find(of.begin(), of.end(), s.get()) == of.end()) of.push_back(s.get());
    }
  }

  // ---- in place or not

  /// A result goes to the old memory of its storage if that has the right size and nobody else can
  /// still read the old contents: no live handle reaches the old Buffer node except through what is
  /// being realized.
  void choose_homes() {
    // The check may have to compute everything again.
    if (context_.options().check_nan) return;
    std::vector<size_t> candidates;
    std::vector<NodeRef> nodes;
    for (size_t i = 0; i < wanted_.size(); ++i) {
      Wanted& w = wanted_[i];
      if (!find_home(w)) continue;
      candidates.push_back(i);
      NodeRef node = buffers_.node(w.destination_id);
      // Swept: nobody reads it. Reachability needs some node to ask about.
      nodes.push_back(node ? node : w.value);
      if (!node) w.destination_id = -1;
    }
    if (candidates.empty()) return;
    std::unordered_map<int64_t, int> slots;  // of input buffers
    for (size_t i = 0; i < form_.inputs.size(); ++i)
      slots.emplace(buffer_id(form_.inputs[i]), static_cast<int>(i));
    std::vector<NodeRef> handles;  // one entry per handle that does not count
    for (const Wanted& w : wanted_)
      for (size_t k = 0; k < w.storages.size(); ++k) handles.push_back(w.value);
    const std::vector<bool> alive = graph_.reachable(nodes, handles);
    for (size_t c = 0; c < candidates.size(); ++c) {
      Wanted& w = wanted_[candidates[c]];
      if (w.destination_id >= 0 && alive[c]) {
        w.destination = nullptr;
        w.destination_id = -1;
      } else if (const auto slot = slots.find(w.destination_id); slot != slots.end()) {
        w.into = slot->second;
      }
    }
  }

  /// The first of the value's storages whose memory fits and that no other value has claimed.
  bool find_home(Wanted& w) {
    const int64_t bytes = bytes_for(w.value->dtype, bound_numel(w.value->shape->span()));
    for (const Storage* s : w.storages) {
      std::shared_ptr<Buffer> destination = StorageAccess::destination(*s);
      if (!destination || destination->bytes() != bytes || !on_device(w.value, *destination))
        continue;
      if (destinations_.contains(destination.get()) ||
          is_shared(w, destination, StorageAccess::destination_id(*s)))
        continue;
      destinations_.insert(destination.get());
      w.destination = std::move(destination);
      w.destination_id = StorageAccess::destination_id(*s);
      return true;
    }
    return false;
  }

  /// Whether anything but this value's storages has the memory. Another storage that once had the
  /// same value may: when the node has been swept since, reachability cannot tell.
  bool is_shared(const Wanted& w, const std::shared_ptr<Buffer>& destination, int64_t id) const {
    const auto own = std::count_if(w.storages.begin(), w.storages.end(), [&](const Storage* s) {
      return StorageAccess::destination(*s) == destination;
    });
    const bool in_table = buffers_.find(id) == destination;
    return destination->borrowed() ||
           destination.use_count() > 1 + own + in_table;  // 1: `destination` itself
  }

  bool on_device(NodeRef value, const Buffer& destination) {
    const DeviceId id =
        value->device ? value->device : context_.get<DeviceTable>().default_device().id();
    return destination.device().id() == id;
  }

  // ---- 8 bind

  void place(CommandList& list) {
    const PlannedMemory& plan = *prepared_->memory;
    if (log_enabled(context_, 2)) log_at(context_, 2, "{}", plan_text(plan));
    if (run_.observer.planned) run_.observer.planned(plan);
    if (run_.recorder) record(*run_.recorder, plan);
    buffers_.with_swept_memory([&] { allocate(plan); });
    SmallVector<BufferSlice, 16> slices;
    for (const auto& buffer : memory_) slices.push_back({buffer.get(), 0});
    arenas_.place(plan, slices);
    bind_commands(list, slices, plan.values);
  }

  void record(Recorder& recorder, const PlannedMemory& plan) {
    recorder.memory(plan);
    if (!recorder.compiles()) return;
    const auto holders = buffers_.holders();
    const TensorNames& known = context_.get<TensorNames>();
    std::vector<std::string> names(schedule().buffers.size());
    for (size_t b = 0; b < names.size(); ++b) {
      const int slot = schedule().buffers[b].input;
      if (slot < 0) continue;
      const auto of = holders.find(buffer_id(form_.inputs[static_cast<size_t>(slot)]));
      if (of == holders.end()) continue;
      for (const std::weak_ptr<Storage>& weak : of->second)
        if (const auto storage = weak.lock(); storage && names[b].empty())
          names[b] = known.find(storage);
    }
    recorder.names(schedule(), names);
  }

  void allocate(const PlannedMemory& plan) {
    memory_.assign(schedule().buffers.size(), nullptr);
    arenas_.memory.clear();
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (wanted_[i].destination)
        memory_[static_cast<size_t>(schedule().outputs[i])] = wanted_[i].destination;
    for (size_t b = 0; b < schedule().buffers.size(); ++b) {
      const CompiledBuffer& buffer = schedule().buffers[b];
      if (buffer.input >= 0)
        memory_[b] = input(form_.inputs[static_cast<size_t>(buffer.input)]);
      else if (buffer.output >= 0 && !memory_[b])
        memory_[b] = fresh(static_cast<int>(b));
    }
    arenas_ = Arenas(plan, lines());
  }

  std::shared_ptr<Buffer> input(NodeRef node) const {
    std::shared_ptr<Buffer> buffer = buffers_.find(buffer_id(node));
    WEFT_CHECK(buffer, "buffer {} is read but has no memory", buffer_id(node));
    return buffer;
  }

  std::shared_ptr<Buffer> fresh(int b) {
    const CompiledBuffer& buffer = schedule().buffers[static_cast<size_t>(b)];
    const Wanted& w = wanted_[static_cast<size_t>(buffer.output)];
    return buffer.device->allocate(schedule().bytes_of(b, prepared_->memory->values),
                                   w.storages[0]->memory_label());
  }

  /// Zeros in memory that the system gave as zeros: it costs nothing until it is written to.
  bool is_there_already() const {
    for (size_t i = 0; i < wanted_.size(); ++i)
      if (!is_zeros(wanted_[i].value) ||
          !is_untouched_zeros(*memory_[static_cast<size_t>(schedule().outputs[i])]))
        return false;
    return true;
  }
  static bool is_zeros(NodeRef n) {
    while (n->op == Op::Expand || n->op == Op::Reshape) n = n->src(0);
    return is_const(n) && const_value(n) == Value::of(n->dtype, 0);
  }

  // ---- 9 execute

  void execute(CommandList& list) {
    try {
      list.run(context_, lines());
    } catch (const std::exception& error) {
      settle(list, error.what());
      throw;
    }
  }

  /// A kernel failed. What is finished is kept; the rest stays lazy, to be computed another time,
  /// unless memory it is computed from was overwritten: then it is lost.
  void settle(const CommandList& list, const char* error) {
    NodeMap<bool> overwritten;
    for (size_t b = 0; b < schedule().buffers.size(); ++b) {
      const int input = schedule().buffers[b].input;
      if (input >= 0 && list.left_in(static_cast<int>(b)) != CommandList::Left::Untouched)
        overwritten[form_.inputs[static_cast<size_t>(input)]] = true;
    }
    if (overwritten.size() == 0) return;
    Graph::Building building(graph_);
    for (size_t i = 0; i < wanted_.size(); ++i) {
      Wanted& w = wanted_[i];
      // What a capture has not heard of must not have happened.
      const bool done = list.left_in(schedule().outputs[i]) == CommandList::Left::Finished;
      if (done && !active_capture(context_)) {
        w.result = result_of(i);
        for (Storage* s : w.storages) StorageAccess::replace(*s, w.result);
      } else if (reads_any(w.value, overwritten)) {
        for (Storage* s : w.storages)
          s->mark_lost(
              strformat("the contents of {} were lost: memory it is computed from was being "
                        "updated in place when {}; assign it anew",
                        s->label(), error));
      }
    }
  }

  static bool reads_any(NodeRef value, const NodeMap<bool>& buffers) {
    const Toposort nodes(value);
    return std::any_of(nodes.begin(), nodes.end(), [&](NodeRef n) { return buffers.contains(n); });
  }

  // ---- 10 commit

  void commit() {
    Graph::Building building(graph_);
    for (size_t i = 0; i < wanted_.size(); ++i) wanted_[i].result = result_of(i);
    // Nothing below throws.
    for (const Wanted& w : wanted_)
      for (Storage* s : w.storages) StorageAccess::replace(*s, w.result);
    if (CaptureListener* capture = active_capture(context_)) capture->ran(record());
  }

  NodeRef result_of(size_t i) {
    const Wanted& w = wanted_[i];
    const auto b = static_cast<size_t>(schedule().outputs[i]);
    if (NodeRef old = w.destination_id >= 0 ? buffers_.node(w.destination_id) : nullptr)
      if (old->shape == w.value->shape && old->dtype == w.value->dtype) return old;
    return buffers_.add(memory_[b], w.value->dtype, w.value->shape, memory_[b]->device().id());
  }

  RecordedRun record() const {
    RecordedRun run;
    run.schedule = prepared_->schedule;
    run.graph = write_graph(form_.values);
    run.sites = std::make_shared<const CallSites>(context_, form_);
    run.variables = form_.variables;
    run.seen = form_.seen;
    run.inputs.assign(form_.inputs.begin(), form_.inputs.end());
    for (NodeRef n : form_.inputs) run.input_ids.push_back(buffer_id(n));
    run.constants = constants_;
    for (size_t i = 0; i < wanted_.size(); ++i)
      run.results.push_back({static_cast<int>(i), wanted_[i].into, buffer_id(wanted_[i].result)});
    return run;
  }

  Context& context_;
  RunState& run_;
  BufferTable& buffers_;
  Graph& graph_;
  std::vector<Wanted> wanted_;
  std::unordered_set<const Buffer*> destinations_;  // that some wanted value has claimed
  NormalForm form_;
  std::vector<bool> constants_;  // by input slot, in a capture; none where no input is constant
  std::shared_ptr<const Prepared> prepared_;
  std::vector<std::shared_ptr<Buffer>> memory_;  // by buffer of the schedule; null: in an arena
  Arenas arenas_;
  std::optional<CallSites> sites_;
  std::optional<NotedRun> noted_;
};

bool has_destination(const std::shared_ptr<Storage>& s) {
  return StorageAccess::destination(*s) != nullptr;
}

// Dead nodes that make a walk no longer than it is worth.
constexpr size_t kNodesOfShortWalk = 512;

/// To see who can read what is written in place takes a walk over all nodes, dead ones too: these
/// go each time they have doubled, so that the walk is as long as what is alive.
void shorten_walks(Context& context, RunState& run) {
  const Graph& graph = tensor_graph(context);
  if (graph.live_nodes() <= 2 * run.nodes_walked + kNodesOfShortWalk) return;
  context.get<BufferTable>().sweep();
  run.nodes_walked = graph.live_nodes();
}

}  // namespace

void realize(Context& context, std::span<const std::shared_ptr<Storage>> storages) {
  const bool done =
      std::all_of(storages.begin(), storages.end(), [](const auto& s) { return s->realized(); });
  if (done) return;
  RunState& run = context.get<RunState>();
  std::lock_guard lock(run.mutex);
  context.get<BufferTable>().collect();
  if (std::any_of(storages.begin(), storages.end(), has_destination)) shorten_walks(context, run);
  const auto realize_all = [&context](std::span<const std::shared_ptr<Storage>> of) {
    Realization(context, of).run();
  };
  std::optional<NanCheck> check;
  if (context.options().check_nan) check.emplace(context, storages);
  realize_all(storages);
  if (check) check->run(realize_all);
  run.collect();
}

void read_bytes(const std::shared_ptr<Storage>& storage, std::span<std::byte> out) {
  if (CaptureListener* capture = active_capture(storage->context())) capture->host_read(*storage);
  realize(storage->context(), {&storage, 1});
  copy_to_host(*storage, out);
}

void collect_garbage(Context& context) {
  RunState& run = context.get<RunState>();
  std::lock_guard lock(run.mutex);
  context.get<BufferTable>().sweep();
  run.graph.sweep();
}

}  // namespace weft
