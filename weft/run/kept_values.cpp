#include "weft/run/kept_values.h"

#include "weft/base/context.h"
#include "weft/base/error.h"
#include "weft/run/bind.h"

namespace weft {
namespace {

// So often in a row state may have been written since the call before: weights that are trained
// between all calls are computed with in each of them.
constexpr int kChangesInARow = 3;

}  // namespace

KeptValues::KeptValues(const ReplayPlan& plan)
    : plan_(plan),
      changing_(plan.places.size()),
      sources_(plan.places.size()),
      off_(!plan.context.options().keep_constants) {
  for (size_t i = 0; i < changing_.size(); ++i)
    if (const auto& s = plan.places[i].storage; s && !s->lost() && s->realized())
      changing_[i] = s->buffer()->changes_unseen();
  divide();
}

void KeptValues::divide() {
  memory_.clear();
  computed_ = false;
  new_ = true;
  divided_ = off_ ? std::make_unique<const DividedPlan>(plan_)
                  : std::make_unique<const DividedPlan>(plan_, changing_);
}

void KeptValues::update(std::vector<BufferSlice>& memory) {
  if (note_changes(memory)) divide();
  if (computed_ || divided_->kept.empty()) return;
  try {
    compute(memory);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::Memory) throw;
    give_up();
  }
}

bool KeptValues::give_up() {
  if (divided_->kept.empty()) return false;
  off_ = true;
  divide();
  return true;
}

int64_t KeptValues::bytes() const {
  int64_t sum = 0;
  for (const auto& m : memory_) sum += m->bytes();
  return sum;
}

/// True where a source has changed too often. Memory of somebody else, unless it is a file, may
/// change unseen.
bool KeptValues::note_changes(std::span<const BufferSlice> memory) {
  bool too_often = false;
  for (const size_t place : divided_->sources) {
    const Buffer& buffer = *memory[static_cast<size_t>(plan_.places[place].buffer)].buffer;
    Source& source = sources_[place];
    if (!buffer.changes_unseen() && source.contents == buffer.contents()) {
      source.changes = 0;
      continue;
    }
    if (source.contents) ++source.changes;
    source.contents = buffer.contents();
    computed_ = false;
    if (buffer.changes_unseen() || source.changes >= kChangesInARow)
      changing_[place] = too_often = true;
  }
  return too_often;
}

std::vector<std::shared_ptr<Buffer>> KeptValues::allocate() const {
  std::vector<std::shared_ptr<Buffer>> made;
  const CompiledSchedule& schedule = divided_->constant.schedule;
  for (const int b : divided_->kept)
    made.push_back(schedule.buffers[static_cast<size_t>(b)].device->allocate(
        schedule.bytes_of(b, {}), "a constant of a captured function"));
  return made;
}

void KeptValues::compute(std::vector<BufferSlice>& memory) {
  const CapturedSteps& part = divided_->constant;
  const auto lines = [&](size_t step) { return part.sites(step).text(); };
  const PlannedMemory planned = plan_arenas(part.schedule, {});
  Arenas scratch;
  plan_.context.get<BufferTable>().with_swept_memory([&] {
    if (memory_.empty()) memory_ = allocate();
    scratch = Arenas(planned, lines);
  });
  memory.resize(part.schedule.buffers.size());
  for (size_t k = 0; k < memory_.size(); ++k)
    memory[static_cast<size_t>(divided_->kept[k])] = {memory_[k].get(), 0};
  std::vector<BufferSlice> all = memory;
  scratch.place(planned, all);
  CommandList list(part.schedule);
  bind_commands(list, all, {});
  list.run(plan_.context, lines);
  // A model's weights are not held twice, as they lie in its file and as they are packed.
  for (const int b : divided_->done_with) memory[static_cast<size_t>(b)].buffer->let_go();
  plan_.context.tracer().add(Counter::ConstantsComputed);
  computed_ = true;
}

}  // namespace weft
