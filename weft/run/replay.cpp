#include "weft/run/replay.h"

#include <algorithm>
#include <optional>
#include <set>

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/graph/print.h"
#include "weft/run/active_capture.h"
#include "weft/run/passes.h"
#include "weft/run/realize.h"
#include "weft/run/replay_state.h"
#include "weft/run/run_state.h"
#include "weft/run/tensor_names.h"

namespace weft {

void check_distinct(std::span<const ReplayArgument> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (arguments[i].storage == arguments[j].storage)
        fail("jit.duplicate", "{} and {} share memory; pass it once, or pass a copy",
             arguments[j].storage->label_as(arguments[j].name), arguments[i].name);
}

void give_own_memory(Context& context, Storage& storage) {
  NodeRef old = storage.value();
  const std::shared_ptr<Buffer> from = storage.buffer();
  Device& device = from->device();
  std::shared_ptr<Buffer> to;
  context.get<BufferTable>().with_swept_memory(
      [&] { to = device.allocate(from->bytes(), storage.label()); });
  const Command copy = Command::copy({from.get(), 0}, {to.get(), 0}, from->bytes());
  const TimelinePoint done = device.submit(0, {&copy, 1});
  device.wait(done);
  Graph::Building building(tensor_graph(context));
  StorageAccess::replace(storage, context.get<BufferTable>().add(std::move(to), old->dtype,
                                                                 old->shape->span(), old->device));
}

Replay::State::State(std::unique_ptr<ReplayPlan> p)
    : plan(std::move(p)), kept(*plan), bound(plan->places.size()) {
  memory.resize(each_call().schedule.buffers.size());
  if (!kept.may_divide()) plan->let_go_of_schedules();
  if (plan->variables.empty()) make_list();
}

/// What was there goes first: there may be room for one of them alone.
void Replay::State::make_list() {
  list.reset();
  kept.take_new();
  arenas = {};
  planned_sizes_.clear();
  plan_for(values);
  list.emplace(each_call().schedule);
}

void Replay::State::update_kept() {
  kept.update(memory);
  if (kept.take_new() || !list) make_list();
}

void Replay::State::run(std::span<const ReplayArgument> arguments,
                        std::span<const ReplayVariable> variables, Take take) {
  Context& context = plan->context;
  RunState& state = context.get<RunState>();
  std::lock_guard lock(state.mutex);
  if (active_capture(context))
    fail("jit.nested",
         "a captured function is called while another one is being captured; call the "
         "plain function inside");
  Span span(context.tracer(), "replay");
  RecordedRunScope recorded(state.recorder.get(), RunKind::Replay);
  const std::optional<PassTrace> trace = trace_passes(context);
  context.tracer().add(Counter::Steps);
  ++state.stats.replays;
  BufferTable& table = context.get<BufferTable>();
  // A walk over the counters of the whole graph now and then; what just died always.
  if (++calls_ % 64 == 0)
    table.collect();
  else
    table.reap();
  settle_leftovers();
  check_frozen();
  set_values(variables);
  bind_places(arguments);
  make_exclusive(arguments);
  update_kept();
  std::vector<std::shared_ptr<Buffer>> made = allocate_fresh();
  arenas.place(memory);
  if (calls_ == 1) give_back_spare_memory();
  bind_commands(*list, memory, values);
  tell_passes(context);
  if (state.recorder && !state.recorder->knows(each_call().schedule))
    record(plan_arenas(each_call().schedule, values));
  recorded.executes(each_call().schedule);
  execute(arguments);
  commit(arguments, std::move(made), take);
}

/// Tensors the function made, kept and did not return: those without a value of this call say so
/// when they are read, and hold no old memory.
void Replay::State::settle_leftovers() {
  std::erase_if(plan->leftovers, [&](const ReplayPlan::Leftover& l) {
    const std::shared_ptr<Storage> s = l.storage.lock();
    if (!s || StorageAccess::writes(*s) != l.writes) return true;
    if (!l.ending.none()) return false;
    {
      Graph& graph = tensor_graph(plan->context);
      Graph::Building building(graph);
      StorageAccess::replace(*s, graph.constant(Value::of(StorageAccess::peek(*s)->dtype, 0)));
    }
    s->mark_lost(
        strformat("{} was made inside a captured function that does not return it, so "
                  "replays do not compute it; return it or realize() it inside",
                  l.name));
    return true;
  });
}

void Replay::State::check_frozen() const {
  for (const ReplayPlan::Frozen& f : plan->frozen) {
    const std::shared_ptr<Storage> s = f.storage.lock();
    if (s && StorageAccess::writes(*s) != f.writes)
      fail("jit.constant",
           "{} was a constant when the function was captured and has been written "
           "since; call its realize() before capturing",
           f.name);
  }
}

/// New values mean new sizes: other arenas, other launch bounds.
void Replay::State::set_values(std::span<const ReplayVariable> variables) {
  if (plan->variables.empty()) return;
  std::vector<int64_t> next;
  for (size_t i = 0; i < plan->variables.size(); ++i) {
    NodeRef v = plan->variables[i].variable;
    if (i >= variables.size() || variables[i].variable != v)
      fail("jit.variable", "variable {} was given when the function was captured; give it again",
           v->text());
    const int64_t x = variables[i].value;
    const int64_t low = v->int_arg(0), high = v->int_arg(1), of = v->int_arg(2);
    if (x < low || x > high || x % of != 0)
      fail("jit.variable", "variable {} is {}; it must lie in [{}, {}]{}", v->text(), x, low, high,
           of == 1 ? std::string() : strformat(" and be a multiple of {}", of));
    next.push_back(x);
  }
  if (next == values) return;
  if (list) plan_for(next);
  values = std::move(next);
}

std::vector<int64_t> Replay::State::intermediate_sizes(std::span<const int64_t> of) const {
  const CompiledSchedule& schedule = each_call().schedule;
  std::vector<int64_t> sizes;
  for (size_t b = 0; b < schedule.buffers.size(); ++b)
    if (schedule.buffers[b].intermediate())
      sizes.push_back(schedule.bytes_of(static_cast<int>(b), of));
  return sizes;
}

/// Most variables say where something is, not how large: the arenas that there are serve then.
void Replay::State::plan_for(std::span<const int64_t> of) {
  std::vector<int64_t> sizes = intermediate_sizes(of);
  if (!sizes.empty() && sizes == planned_sizes_) return;
  planned_sizes_.clear();
  const PlannedMemory planned = plan_arenas(each_call().schedule, {of.begin(), of.end()});
  const CompiledSchedule& schedule = each_call().schedule;
  memory.resize(schedule.buffers.size());
  record(planned);
  arenas = ArenaShares(planned, plan->context.get<RunState>().arenas, lines());
  planned_sizes_ = std::move(sizes);
  for (size_t b = 0; b < memory.size(); ++b)  // some are not there for every length
    if (schedule.buffers[b].intermediate()) memory[b] = {};
}

/// With WEFT_VIZ: what each call runs, and how long its buffers live.
void Replay::State::record(const PlannedMemory& planned) const {
  Recorder* recorder = plan->context.get<RunState>().recorder.get();
  if (!recorder) return;
  recorder->schedule(planned.schedule, lines());
  recorder->memory(planned);
  const TensorNames& known = plan->context.get<TensorNames>();
  std::vector<std::string> names(planned.schedule.buffers.size());
  for (const HeldPlace& place : plan->places)
    if (place.buffer >= 0 && place.storage)
      names[static_cast<size_t>(place.buffer)] = known.find(place.storage);
  recorder->names(planned.schedule, names);
}

// ---- places

Storage& Replay::State::storage_of(size_t place, std::span<const ReplayArgument> arguments) const {
  return place < plan->arguments ? *arguments[place].storage : *plan->places[place].storage;
}

void Replay::State::bind_places(std::span<const ReplayArgument> arguments) {
  if (arguments.size() != plan->arguments)
    fail("jit.arguments", "{} tensors are passed, {} were when the function was captured",
         arguments.size(), plan->arguments);
  check_distinct(arguments);
  for (const ReplayArgument& a : arguments) check_state(a);
  std::vector<std::shared_ptr<Storage>> lazy;
  for (size_t i = 0; i < plan->places.size(); ++i) {
    Storage& s = storage_of(i, arguments);
    const bool needed = i < plan->arguments || plan->places[i].id >= 0;
    if (needed && (s.lost() || StorageAccess::peek(s)->op != Op::Buffer))
      lazy.push_back(s.shared_from_this());
  }
  if (!lazy.empty()) realize(plan->context, lazy);
  to_write.clear();
  for (size_t i = 0; i < plan->places.size(); ++i) {
    if (plan->places[i].id < 0) continue;  // only written
    Storage& s = storage_of(i, arguments);
    NodeRef n = place_node(i, s);
    if (!plan->places[i].written) continue;
    if (StorageAccess::destination(s)->borrowed()) {
      give_own_memory(plan->context, s);
      n = place_node(i, s);
    }
    to_write.push_back(n);
  }
}

NodeRef Replay::State::place_node(size_t i, Storage& storage) {
  const HeldPlace& place = plan->places[i];
  NodeRef n = StorageAccess::peek(storage);
  for (const auto& weak : place.aliases) {
    const std::shared_ptr<Storage> alias = weak.lock();
    if (alias && StorageAccess::peek(*alias) != n)
      fail("jit.twins",
           "{} and {} were equal when the function was captured and are not any more; "
           "capture it again",
           place.name, alias->label());
  }
  const Buffer* now = StorageAccess::destination(storage).get();
  Bound& last = bound[i];
  if (n == last.node && n->key == last.key && now == last.buffer && !place.form.symbolic) return n;
  check_form(place, storage);
  last = {n, n->key, now};
  if (place.buffer >= 0) memory[static_cast<size_t>(place.buffer)] = {const_cast<Buffer*>(now), 0};
  return n;
}

void Replay::State::check_form(const HeldPlace& place, const Storage& storage) const {
  NodeRef value = StorageAccess::peek(storage);
  if (value->dtype != place.form.dtype)
    fail_type("jit.dtype",
              "{} is {}, was {} when the function was captured; cast it or capture "
              "again",
              storage.label_as(place.name), name(value->dtype), name(place.form.dtype));
  if (value->device != place.form.device)
    fail("jit.device",
         "{} is on {}, was on {} when the function was captured; move it with "
         ".to(device) or capture again",
         storage.label_as(place.name), plan->context.get<DeviceTable>().open(value->device).name(),
         plan->context.get<DeviceTable>().open(place.form.device).name());
  Graph& graph = tensor_graph(plan->context);
  Graph::Building building(graph);
  const Shape* expected = graph.shape(dims_of(place.form));
  if (expected != value->shape)
    fail("jit.shape",
         "{} has shape {}, had {} when the function was captured; pass the same shape, "
         "or a Variable for the size that changes",
         storage.label_as(place.name), shape_text(value->shape), shape_text(expected));
}

/// What is passed must not be memory the function also knows as its state.
void Replay::State::check_state(const ReplayArgument& argument) const {
  for (size_t i = plan->arguments; i < plan->places.size(); ++i)
    if (plan->places[i].storage == argument.storage)
      fail("jit.duplicate", "{} is passed, but the function already uses it as {}; pass a copy",
           argument.storage->label_as(argument.name), plan->places[i].name);
}

/// Memory that is written in place must have no other reader: who still looks at the old contents
/// keeps them, and the storage gets a copy to write to.
void Replay::State::make_exclusive(std::span<const ReplayArgument> arguments) {
  Graph& graph = tensor_graph(plan->context);
  if (to_write.empty() || graph.unread(to_write, 1)) return;
  plan->context.get<BufferTable>().sweep();
  if (graph.unread(to_write, 1)) return;
  const std::vector<bool> shared = graph.reachable(to_write, to_write);
  size_t next = 0;
  for (size_t i = 0; i < plan->places.size(); ++i) {
    if (plan->places[i].id < 0 || !plan->places[i].written) continue;
    if (!shared[next++]) continue;
    Storage& s = storage_of(i, arguments);
    give_own_memory(plan->context, s);
    place_node(i, s);
  }
}

// ---- one call

/// What is kept makes room for results.
std::vector<std::shared_ptr<Buffer>> Replay::State::allocate_fresh() {
  try {
    return try_allocate_fresh();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Memory || !kept.give_up()) throw;
  }
  make_list();
  return try_allocate_fresh();
}

std::vector<std::shared_ptr<Buffer>> Replay::State::try_allocate_fresh() {
  std::vector<std::shared_ptr<Buffer>> made;
  for (const Fresh& f : plan->fresh) {
    const CompiledBuffer& b = plan->captured.buffers[static_cast<size_t>(f.buffer)];
    const int64_t bytes = plan->captured.bytes_of(f.buffer, values);
    plan->context.get<BufferTable>().with_swept_memory(
        [&] { made.push_back(b.device->allocate(bytes, f.label)); });
    memory[static_cast<size_t>(f.buffer)] = {made.back().get(), 0};
  }
  return made;
}

/// What the calls before this one freed was of other sizes: from now on each has the same memory.
void Replay::State::give_back_spare_memory() {
  std::set<Device*> devices;
  for (const CompiledBuffer& b : each_call().schedule.buffers) devices.insert(b.device);
  for (Device* d : devices)
    if (d) d->allocator().trim();
}

/// Which of its computations a call is in is not known from outside.
std::vector<std::unique_ptr<NotedRun>> Replay::State::noted() {
  std::vector<std::unique_ptr<NotedRun>> out;
  const std::string& folder = plan->context.options().repro;
  if (folder.empty()) return out;
  for (size_t i = 0; i < plan->computations.size(); ++i) {
    if (notes_.size() <= i) notes_.push_back(std::make_unique<CrashNote>(folder));
    const Computation& c = plan->computations[i];
    out.push_back(std::make_unique<NotedRun>(notes_[i].get(), i + 1, [&] {
      return print_repro(repro_of(plan->context, c.graph, c.variables, kCrashed));
    }));
  }
  return out;
}

void Replay::State::execute(std::span<const ReplayArgument> arguments) {
  const auto notes = noted();
  try {
    list->run(plan->context, lines());
  } catch (const std::exception& error) {
    for (size_t i = 0; i < plan->places.size(); ++i)
      if (plan->places[i].written &&
          list->left_in(plan->places[i].buffer) != CommandList::Left::Untouched)
        storage_of(i, arguments)
            .mark_lost(strformat("the contents of {} were lost: it was being updated in place when "
                                 "{}; assign it anew",
                                 plan->places[i].name, error.what()));
    throw;
  }
}

void Replay::State::commit(std::span<const ReplayArgument> arguments,
                           std::vector<std::shared_ptr<Buffer>> made, Take take) {
  Graph::Building building(tensor_graph(plan->context));
  BufferTable& table = plan->context.get<BufferTable>();
  std::vector<NodeRef> fresh;
  for (size_t i = 0; i < made.size(); ++i) {
    const TensorForm& form = plan->fresh[i].form;
    fresh.push_back(table.add(std::move(made[i]), form.dtype, dims_of(form), form.device));
  }
  // Endings name values as they were: places may be about to change.
  std::vector<NodeRef> held;
  for (size_t i = 0; i < plan->places.size(); ++i)
    held.push_back(StorageAccess::peek(storage_of(i, arguments)));
  const auto value_of = [&](const Ending& e) {
    return e.fresh >= 0 ? fresh[static_cast<size_t>(e.fresh)] : held[static_cast<size_t>(e.place)];
  };
  for (ReplayPlan::Leftover& l : plan->leftovers) {
    const std::shared_ptr<Storage> s = l.storage.lock();
    if (!s) continue;
    s->set_value(value_of(l.ending));
    l.writes = StorageAccess::writes(*s);
  }
  for (size_t i = 0; i < plan->places.size(); ++i)
    if (!plan->places[i].ending.none())
      storage_of(i, arguments).set_value(value_of(plan->places[i].ending));
  for (const ReplayPlan::Result& r : plan->results) {
    if (r.itself < 0)
      take(value_of(r.ending), nullptr);
    else
      take(nullptr, storage_of(static_cast<size_t>(r.itself), arguments).shared_from_this());
  }
}

std::vector<NodeRef> Replay::State::dims_of(const TensorForm& form) const {
  if (!form.symbolic) return form.dims;
  Graph& graph = tensor_graph(plan->context);
  std::vector<NodeRef> dims;
  for (NodeRef d : form.dims) dims.push_back(rebound(graph, d, plan->variables, values));
  return dims;
}

// ---- Replay

Replay::Replay(std::unique_ptr<State> state) : state_(std::move(state)) {}
Replay::~Replay() = default;

void Replay::run(std::span<const ReplayArgument> arguments,
                 std::span<const ReplayVariable> variables, Take take) {
  state_->run(arguments, variables, take);
}

std::vector<std::shared_ptr<Storage>> Replay::run(std::span<const ReplayArgument> arguments,
                                                  std::span<const ReplayVariable> variables) {
  std::vector<std::shared_ptr<Storage>> out;
  run(arguments, variables, [&](NodeRef node, const std::shared_ptr<Storage>& itself) {
    out.push_back(itself ? itself : std::make_shared<Storage>(state_->plan->context, node));
  });
  return out;
}

namespace {

/// That arenas were made for or, before the first call, the captured ones.
std::vector<int64_t> last_values(std::vector<int64_t> values, const ReplayPlan& plan) {
  if (values.empty())
    for (const ReplayVariable& v : plan.variables) values.push_back(v.value);
  return values;
}

PlannedMemory planned(const CompiledSchedule& schedule, std::vector<int64_t> values,
                      const ReplayPlan& plan) {
  return plan_arenas(schedule, last_values(std::move(values), plan));
}

}  // namespace

size_t Replay::kernels() const {
  const std::vector<int64_t> values = last_values(state_->values, *state_->plan);
  size_t count = 0;
  for (const CompiledStep& s : state_->each_call().schedule.steps)
    count += s.kernel != nullptr && s.lengths.contain(values);
  return count;
}
bool Replay::writes() const {
  return std::ranges::any_of(state_->plan->places,
                             [](const HeldPlace& p) { return !p.ending.none(); });
}

const ReplayPlan& Replay::plan() const { return *state_->plan; }

int64_t Replay::arena_bytes() const { return state_->arenas.bytes(); }
int64_t Replay::kept_bytes() const { return state_->kept.bytes(); }

std::string Replay::plan_text() const {
  const DividedPlan& divided = state_->kept.divided();
  return divided.text() +
         weft::plan_text(planned(divided.each_call.schedule, state_->values, *state_->plan));
}

int64_t Replay::planned_bytes() const {
  const CompiledSchedule& schedule = state_->kept.divided().each_call.schedule;
  const PlanTotals sum = totals(planned(schedule, state_->values, *state_->plan));
  return sum.inputs + sum.outputs + sum.intermediates;
}

}  // namespace weft
