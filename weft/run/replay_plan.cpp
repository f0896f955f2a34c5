#include "weft/run/replay_plan.h"

#include <algorithm>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/rewrite/driver.h"

namespace weft {

ReplayPlan::~ReplayPlan() {
  for (NodeRef n : kept_) n->roots.fetch_sub(1, std::memory_order_release);
}

NodeRef ReplayPlan::keep(NodeRef n) {
  n->roots.fetch_add(1, std::memory_order_relaxed);
  kept_.push_back(n);
  return n;
}

NodeRef rebound(Graph& g, NodeRef root, std::span<const ReplayVariable> from,
                std::span<const int64_t> values) {
  return rebuild(root, [&](NodeRef n, std::span<const NodeRef> src) {
    if (n->op != Op::Bind) return g.with_sources(n, src);
    const auto at = std::ranges::find(from, ReplayVariable{n->src(0), n->src(1)->vmin});
    if (at == from.end()) return n;
    NodeRef value = g.index(values[static_cast<size_t>(at - from.begin())]);
    return g.make(Op::Bind, DType::Index, {src[0], value});
  });
}

TensorForm ReplayPlan::form_of(NodeRef buffer) {
  TensorForm form{buffer->dtype, buffer->device, {}, false};
  for (NodeRef d : buffer->shape->span()) {
    form.dims.push_back(keep(d));
    form.symbolic |= d->op != Op::Const;
  }
  return form;
}

namespace {

class Merger {
 public:
  Merger(Context& context, const Recording& recording)
      : recording_(recording),
        table_(context.get<BufferTable>()),
        plan_(std::make_unique<ReplayPlan>(context)) {}

  std::unique_ptr<ReplayPlan> merge() {
    add_arguments();
    for (const ReplayVariable& v : recording_.variables) add_variable(v);
    for (const RecordedRun& run : recording_.runs) add_run(run);
    for (const auto& s : recording_.written) end_state(*s);
    for (const auto& s : recording_.results)
      plan_->results.push_back({ending_of(*s), find_storage(*s)});
    for (const auto& s : recording_.leftovers) end_leftover(s);
    plan_->frozen = recording_.frozen;
    set_roles();
    return std::move(plan_);
  }

 private:
  void add_arguments() {
    plan_->arguments = recording_.arguments.size();
    for (size_t i = 0; i < recording_.arguments.size(); ++i) {
      const ReplayArgument& a = recording_.arguments[i];
      HeldPlace place;
      place.name = a.name;
      place.id = recording_.argument_ids[i];
      place.form = plan_->form_of(recording_.forms.at(place.id));
      place_of_[place.id] = static_cast<int>(i);
      plan_->places.push_back(std::move(place));
    }
  }

  // ---- one recorded run

  void add_run(const RecordedRun& run) {
    const CompiledSchedule& s = *run.schedule;
    const std::vector<int> variables = find_variables(run);
    std::vector<int> buffers;
    for (size_t b = 0; b < s.buffers.size(); ++b)
      buffers.push_back(buffer_of(run, static_cast<int>(b), variables));
    note_writes(s, buffers);
    Computation computation{run.graph,    std::vector<int>(run.input_ids.size(), -1),
                            {},           run.variables,
                            {},           run.constants,
                            run.schedule, run.sites};
    for (const BoundVariable& v : run.variables) plan_->keep(v.variable);
    for (size_t b = 0; b < s.buffers.size(); ++b)
      if (const int slot = s.buffers[b].input; slot >= 0)
        computation.inputs[static_cast<size_t>(slot)] = buffers[b];
    for (const RecordedRun::Result& r : run.results) {
      const int b = s.outputs[static_cast<size_t>(r.output)];
      note_result(r.id, buffers[static_cast<size_t>(b)]);
      computation.results.push_back(buffers[static_cast<size_t>(b)]);
      computation.into.push_back(r.into);
    }
    plan_->computations.push_back(std::move(computation));
  }

  void note_writes(const CompiledSchedule& s, std::span<const int> buffers) {
    written_.resize(plan_->captured.buffers.size());
    for (const CompiledStep& step : s.steps)
      for (size_t slot = 0; slot < step.buffers.size(); ++slot)
        if (const int b = buffers[static_cast<size_t>(step.buffers[slot])];
            b >= 0 && step.writes(slot))
          written_[static_cast<size_t>(b)] = true;
  }

  void add_variable(const ReplayVariable& v) {
    auto& names = plan_->captured.variables;
    std::string name(v.variable->text());
    for (int copy = 1; std::ranges::find(names, name) != names.end(); ++copy)
      name = strformat("{}.{}", v.variable->text(), copy);
    names.push_back(std::move(name));
    plan_->keep(v.variable);
    plan_->variables.push_back(v);
  }

  /// The places in the plan of what a schedule takes.
  std::vector<int> find_variables(const RecordedRun& run) const {
    std::vector<int> positions;
    for (const std::string& name : run.schedule->variables) {
      const auto at = std::ranges::find(run.variables, name, &BoundVariable::name);
      positions.push_back(find_variable({at->variable, at->value}));
    }
    return positions;
  }

  int find_variable(const ReplayVariable& v) const {
    const auto at = std::ranges::find(plan_->variables, v);
    if (at == plan_->variables.end())
      fail("jit.variable",
           "variable {} is bound to {} inside the captured function, so a replay "
           "could not change it; pass it as an argument",
           v.variable->text(), v.value);
    if (contains(recording_.own, v))
      fail("jit.variable",
           "variable {} is bound to {} inside the captured function and by an argument: which of "
           "them is meant a replay could not tell; use the argument",
           v.variable->text(), v.value);
    return static_cast<int>(at - plan_->variables.begin());
  }

  /// -1: nobody else sees it.
  int buffer_of(const RecordedRun& run, int b, std::span<const int> variables) {
    const CompiledBuffer& from = run.schedule->buffers[static_cast<size_t>(b)];
    if (from.intermediate()) return -1;
    CompiledBuffer copy = from;
    copy.numel = from.numel.renumbered(variables);
    copy.lengths = from.lengths.renumbered(variables);
    copy.input = copy.output = -1;
    if (from.input >= 0) return known(run.input_ids[static_cast<size_t>(from.input)], copy);
    // A result that went to memory its storage had before keeps that memory's node.
    for (const RecordedRun::Result& r : run.results)
      if (run.schedule->outputs[static_cast<size_t>(r.output)] == b && existed(r.id))
        return known(r.id, copy);
    return add_buffer(copy);
  }

  int add_buffer(const CompiledBuffer& b) {
    plan_->captured.buffers.push_back(b);
    return static_cast<int>(plan_->captured.buffers.size()) - 1;
  }

  bool existed(int64_t id) const {
    return buffer_of_.contains(id) || recording_.holders.contains(id);
  }

  /// The merged buffer of a Buffer node: made by an earlier run, or memory from before.
  int known(int64_t id, const CompiledBuffer& form) {
    if (const auto at = buffer_of_.find(id); at != buffer_of_.end()) return at->second;
    HeldPlace& place = plan_->places[static_cast<size_t>(place_for(id))];
    return buffer_of_[id] = place.buffer = add_buffer(form);
  }

  /// The place of memory from before the capture; an Error when a replay could not find it again.
  int place_for(int64_t id) {
    if (const auto at = place_of_.find(id); at != place_of_.end()) return at->second;
    if (const auto host = recording_.host_data.find(id); host != recording_.host_data.end())
      fail("jit.host_data",
           "{} was filled from host data inside the captured function, so a replay "
           "would see the old data; pass it as an argument",
           host->second.empty() ? std::string("a tensor") : host->second);
    HeldPlace place;
    place.id = id;
    if (const auto at = recording_.holders.find(id); at != recording_.holders.end())
      for (const auto& weak : at->second) add_holder(place, weak);
    const std::shared_ptr<Buffer> memory = table_.find(id);
    if (!place.storage)
      fail(
          "jit.input",
          "the captured function reads {} ({} bytes), which is neither an argument nor "
          "a tensor that is still alive; pass it as an argument or keep it in the function's state",
          memory ? memory->label() : std::string("a buffer"), memory ? memory->bytes() : 0);
    place.name = place.storage->label();
    const auto read = recording_.forms.find(id);
    place.form = plan_->form_of(read == recording_.forms.end() ? table_.node(id) : read->second);
    plan_->places.push_back(std::move(place));
    return place_of_[id] = static_cast<int>(plan_->places.size()) - 1;
  }

  static void add_holder(HeldPlace& place, const std::weak_ptr<Storage>& weak) {
    std::shared_ptr<Storage> s = weak.lock();
    if (!s) return;
    if (!place.storage)
      place.storage = std::move(s);
    else
      place.aliases.push_back(s);
  }

  void note_result(int64_t id, int buffer) {
    if (buffer_of_.contains(id)) return;  // in place
    buffer_of_[id] = buffer;
  }

  // ---- what the storages end up with

  Ending ending_of(const Storage& s) {
    const int64_t id = buffer_id(StorageAccess::peek(s));
    const auto at = buffer_of_.find(id);
    if (at == buffer_of_.end() || place_of_.contains(id)) return {place_for(id), -1};
    if (const auto f = fresh_of_.find(id); f != fresh_of_.end()) return {-1, f->second};
    plan_->fresh.push_back({at->second, plan_->form_of(table_.node(id)), s.label()});
    return {-1, fresh_of_[id] = static_cast<int>(plan_->fresh.size()) - 1};
  }

  void end_state(const Storage& s) {
    const int index = place_of_storage(s);
    const Ending ending = ending_of(s);
    if (ending.place != index) plan_->places[static_cast<size_t>(index)].ending = ending;
  }

  int find_storage(const Storage& s) const {
    for (size_t i = 0; i < recording_.arguments.size(); ++i)
      if (recording_.arguments[i].storage.get() == &s) return static_cast<int>(i);
    for (size_t i = plan_->arguments; i < plan_->places.size(); ++i)
      if (plan_->places[i].storage.get() == &s) return static_cast<int>(i);
    return -1;
  }

  int place_of_storage(const Storage& s) {
    if (const int found = find_storage(s); found >= 0) return found;
    HeldPlace place;  // only written, or lazy when the capture began
    place.storage = const_cast<Storage&>(s).shared_from_this();
    place.name = s.label();
    place.form = plan_->form_of(StorageAccess::peek(s));
    plan_->places.push_back(std::move(place));
    return static_cast<int>(plan_->places.size()) - 1;
  }

  void end_leftover(const std::shared_ptr<Storage>& s) {
    NodeRef value = StorageAccess::peek(*s);
    const bool known_value = value->op == Op::Buffer && (buffer_of_.contains(buffer_id(value)) ||
                                                         place_of_.contains(buffer_id(value)));
    plan_->leftovers.push_back(
        {s, known_value ? ending_of(*s) : Ending{}, StorageAccess::writes(*s), s->label()});
  }

  void set_roles() {
    auto& buffers = plan_->captured.buffers;
    written_.resize(buffers.size());
    for (size_t i = 0; i < plan_->places.size(); ++i) {
      HeldPlace& place = plan_->places[i];
      if (place.buffer < 0) continue;
      buffers[static_cast<size_t>(place.buffer)].input = static_cast<int>(i);
      place.written = written_[static_cast<size_t>(place.buffer)];
    }
    for (size_t i = 0; i < plan_->fresh.size(); ++i)
      buffers[static_cast<size_t>(plan_->fresh[i].buffer)].output = static_cast<int>(i);
  }

  const Recording& recording_;
  BufferTable& table_;
  std::unique_ptr<ReplayPlan> plan_;
  std::unordered_map<int64_t, int> place_of_;   // by Buffer node id
  std::unordered_map<int64_t, int> buffer_of_;  // merged buffer of a Buffer node
  std::unordered_map<int64_t, int> fresh_of_;
  std::vector<bool> written_;  // by merged buffer
};

}  // namespace

std::unique_ptr<ReplayPlan> plan_replay(Context& context, const Recording& recording) {
  return Merger(context, recording).merge();
}

}  // namespace weft
